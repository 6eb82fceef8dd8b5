//! Real guests, real binaries: what the tests of a whole host stand on.
//!
//! A [`Stage`] has a `windlass host` of its own (spawned, with folders of its own), real
//! guests from the lab, and a [`Watch`](laws::Watch) that compares the books with QEMU and
//! with the guests' kernels all the time. A [`Fleet`] has `windlass-plugin` and `windlass-agent` in
//! its place. Tests wait for conditions and never for time; they
//! run one at a time, also when their binary is started twice.

mod fleet;
mod host;
mod http;
pub mod laws;
mod programs;
mod stage;
mod view;
mod vm;

pub use fleet::{Fleet, Sight};
pub use host::{Host, Setting};
pub use http::{Answer, get_tcp};
pub use stage::Stage;
pub use view::View;
pub use vm::Vm;
