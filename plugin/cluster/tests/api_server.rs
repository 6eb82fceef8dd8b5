//! Bindings, ceilings and annotations at a real API server, with faults on the way to it.
//!
//! The parts of the plugin run in the test, with the role that we ship; no scheduler is there, the test asks in its place. What the
//! plugin sends goes through [`between`], which loses, delays and records it. All tests share one control plane; each has
//! books, a namespace and nodes of its own.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "api_server/audit.rs"]
mod audit;
#[path = "api_server/between.rs"]
mod between;
#[path = "api_server/binding.rs"]
mod binding;
#[path = "api_server/ceilings.rs"]
mod ceilings;
#[path = "api_server/certificates.rs"]
mod certificates;
#[path = "api_server/headroom.rs"]
mod headroom;
#[path = "api_server/leading.rs"]
mod leading;
#[path = "api_server/migrations.rs"]
mod migrations;
#[path = "api_server/objects.rs"]
mod objects;
#[path = "api_server/plugin.rs"]
mod plugin;
#[path = "api_server/rebuilding.rs"]
mod rebuilding;
#[path = "api_server/resizes.rs"]
mod resizes;
#[path = "api_server/rights.rs"]
mod rights;
#[path = "api_server/tokens.rs"]
mod tokens;

use std::path::Path;
use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, neonvm};

async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE
        .get_or_init(async || {
            let plane = ControlPlane::start().await;
            plane.apply(Path::new("../../deploy/kustomize/plugin")).await;
            // A test that resizes VMs' pods binds this role in its own namespace.
            plane.apply(Path::new("../../deploy/kustomize/plugin-resize/role.yaml")).await;
            plane
        })
        .await
}

/// The same, where there are NeonVM's kinds.
async fn plane_with_neonvm() -> &'static ControlPlane {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let plane = plane().await;
    APPLIED.get_or_init(async || neonvm::kinds(plane).await).await;
    plane
}
