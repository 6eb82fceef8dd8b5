//! Real guests, real binaries: what the tests of a whole host stand on.
//!
//! A [`Stage`] has a `windlass host` of its own (spawned, with folders of its own), real
//! guests from the lab, and a [`Watch`](laws::Watch) that compares the books with QEMU and
//! with the guests' kernels all the time. A [`Fleet`] has `windlass-plugin` and `windlass-agent` in
//! its place; a [`Duo`] two agents, each with a monitor of its own, and ways to them that can be
//! cut. A [`Cluster`] has a real control plane, whose objects declare the VMs; a [`Platform`] one without Windlass, into which it is installed
//! by the commands of a [`page`]. Tests wait for conditions, and for a time only where nothing is to move in it; they
//! run one at a time, also when their binary is started twice, but for one that is idle for minutes.

pub mod acts;
mod books;
mod cluster;
mod duo;
mod fleet;
mod host;
mod http;
pub mod laws;
pub mod page;
mod platform;
mod plugin;
mod programs;
mod quotas;
mod relay;
mod rival;
mod served;
mod sight;
mod spoken;
mod stage;
mod told;
mod usage;
mod view;
mod vm;

pub use acts::Who;
pub use books::Books;
pub use cluster::{Cluster, Look, Part, Said, Sentences};
pub use duo::Duo;
pub use fleet::Fleet;
pub use host::{Host, Setting};
pub use http::{Answer, get_tcp};
pub use platform::Platform;
pub use quotas::Covered;
pub use rival::Way;
pub use sight::Sight;
pub use spoken::Spoken;
pub use stage::Stage;
pub use told::Told;
pub use usage::{cpus_used, is_not_run};
pub use view::View;
pub use vm::Vm;

/// The path of kubectl.
///
/// # Panics
/// If it is not built.
pub fn kubectl() -> &'static std::path::Path {
    windlass_control_plane::program("kubectl")
}
