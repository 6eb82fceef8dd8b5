//! What is read of a guest, and how it is sized by that.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, cu};
use windlass_agent_core::{Action, Event, metrics_text};
use windlass_protocol::LoadWindow;

/// A guest with the reference's informant, or with a node_exporter: it will never have load over 15 s.
#[test]
fn a_guest_that_has_load_by_the_minute_alone_is_sized_by_that() {
    let mut vm = Vm::with_session(2);
    let ours = "windlass_cpus_online 2\n";
    let mut wants = |load: f64, more: &str| {
        let memory = "host_memory_total_bytes 1e9\nhost_memory_available_bytes 9e8\n";
        let text = format!("{more}host_load1 {load}\nhost_load5 0\n{memory}");
        vm.answered(Action::Measure, Event::Measured(metrics_text::parse(&text, vm.now)));
        let status = vm.scaler.status(vm.now);
        (status.goal, status.window)
    };
    let (minute, told) = (Some(LoadWindow::OneMinute), Some(LoadWindow::FifteenSeconds));
    assert_eq!(wants(2.6, ours), (Some(cu(2)), told), "the window of our informant fills");
    assert_eq!(wants(2.6, ""), (Some(cu(3)), minute));
    assert_eq!(wants(0.1, ""), (Some(cu(1)), minute), "and it shrinks by that");
    assert_eq!(wants(2.6, ours), (Some(cu(2)), told), "another informant came");
}
