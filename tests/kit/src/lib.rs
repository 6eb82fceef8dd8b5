//! What the tests of several packages need.
//!
//! Tests, benches and the lab link it; a product crate has it among its `dev-dependencies` only. It
//! knows nothing of Windlass. What fails here fails the test that called it. The default features
//! need `std` alone, so that a core's tests do not compile a runtime:
//!
//! - [`folder`]: a folder that goes with its value.
//! - [`wait`]: until a condition holds, with a deadline; for `async` tests too (feature `tokio`).
//! - [`process`], [`leash`]: programs that end with their value, and with the test.
//! - [`http`]: requests as exact bytes, and a server that answers as a test says.
//! - `log`: what a test's thread logs (feature `log`).
//! - `tls`: certificates, and a client that shows them (feature `tls`).
//! - `qmp`: monitors without a hypervisor (feature `qmp`).

#![expect(clippy::unwrap_used, reason = "what fails here fails the test that called it")]

pub mod folder;
pub mod http;
pub mod leash;
#[cfg(feature = "log")]
pub mod log;
pub mod process;
#[cfg(feature = "qmp")]
pub mod qmp;
#[cfg(feature = "tls")]
pub mod tls;
pub mod wait;

pub use folder::Folder;
pub use process::Process;
