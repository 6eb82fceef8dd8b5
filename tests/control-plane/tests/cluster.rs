//! What happens in a cluster: identities and their roles, the scheduler and its extenders, a kubelet.
//!
//! All of it shares one control plane; each test has a [`Space`] of its own.

#![expect(clippy::unwrap_used, reason = "tests")]

use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, Scheduler};

#[path = "cluster/extender.rs"]
mod extender;
#[path = "cluster/kubelet.rs"]
mod kubelet;
#[path = "cluster/roles.rs"]
mod roles;
#[path = "cluster/scheduler.rs"]
mod scheduler;

/// The control plane of these tests. It ends with their process.
async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE.get_or_init(ControlPlane::start).await
}

/// The control plane, with a scheduler that places the pods that name no other.
async fn scheduled() -> &'static ControlPlane {
    static SCHEDULER: OnceCell<Scheduler> = OnceCell::const_new();
    let plane = plane().await;
    SCHEDULER.get_or_init(|| Scheduler::start(plane, Scheduler::DEFAULT, &[])).await;
    plane
}
