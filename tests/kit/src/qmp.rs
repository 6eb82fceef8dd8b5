//! Monitors that speak QMP over a real socket, with no hypervisor behind them.
//!
//! [`Sizes`] is what a machine has, and what it answers. A [`Machine`] is served by a thread, for
//! programs; a [`FakeMonitor`] answers as a test's script says, in the test's own runtime.

mod fake_monitor;
mod machine;
mod sizes;

pub use fake_monitor::{FakeMonitor, Reply};
pub use machine::{Machine, listen};
pub use sizes::Sizes;

use serde_json::{Value, json};

/// What QEMU 7.2 says first, without the end of the line.
pub const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \
    \"major\": 7}, \"package\": \"\"}, \"capabilities\": [\"oob\"]}}";

/// A refusal, with its class and words.
pub fn refusal(id: &Value, class: &str, words: &str) -> Value {
    json!({"id": id, "error": {"class": class, "desc": words}})
}

/// What is said to a command that has this result, or is not known.
pub fn reply(id: &Value, result: Option<Value>) -> Value {
    match result {
        Some(result) => json!({"return": result, "id": id}),
        None => refusal(id, "CommandNotFound", "The command has not been found"),
    }
}
