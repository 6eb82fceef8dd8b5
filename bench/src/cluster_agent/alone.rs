//! How soon a real guest has its first vCPU more after load came: the whole path in a cluster, beside that of a host.
//!
//! Two guests have their turns one after another: one is the VM of an object, the other that of a `windlass host`, where books and
//! hypervisor are beside the agent. What the cluster adds is the ratio.

use super::neonvm::{Controller, Hypervisor};
use super::objects::{self, Vm};
use super::programs::Installed;
use crate::growth::{COMPUTES_MIB, load};
use crate::host::{self, AT_ONCE, Host};
use crate::print;
use anyhow::{Context, Result};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass_control_plane::{Amounts, Space};
use windlass_lab::{Guest, GuestSpec, Lab};

/// Between two looks at a vCPU that is on its way.
const LOOK: Duration = Duration::from_millis(10);

/// From load to the first vCPU more that the guest uses, by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grown {
    pub(crate) cluster: Vec<Duration>,
    pub(crate) host: Vec<Duration>,
}

/// The one guest that is there.
struct InLab(Arc<Guest>);

pub(super) async fn run(installed: &Installed<'_>, rounds: usize) -> Result<()> {
    let lab = tokio::task::spawn_blocking(Lab::prepared).await??;
    print::alone_head(rounds, &lab)?;
    let named = |name| GuestSpec { boot_mib: COMPUTES_MIB, ..GuestSpec::named(name) };
    let guests = Guest::boot_all(&lab, [named("cluster"), named("host")]).await?;
    let [cluster, at_host] =
        <[Guest; 2]>::try_from(guests).ok().context("two guests were booted")?;
    let text = host::load_text(&at_host, COMPUTES_MIB, AT_ONCE);
    let host = Host::start(&host::binary()?, &[text]).await?;

    let (cluster, space) = (Arc::new(cluster), Space::new(installed.plane).await);
    let node = space.node("real", "8", "16Gi").await;
    installed.agent_pod(&node).await;
    let _controller = Controller::start(space.client(), space.name(), InLab(Arc::clone(&cluster)));
    let slots = json!({"min": 1, "max": 1, "use": 1});
    let vm = Vm {
        name: "real".to_owned(),
        node: node.clone(),
        address: cluster.informant().ip(),
        guest: json!({
            "cpus": {"min": 1, "max": 3, "use": 1},
            "memorySlots": slots, "memorySlotSize": format!("{COMPUTES_MIB}Mi"),
        }),
        group: "real",
        is_labelled: false,
    };
    objects::make(&space, [vm]).await?;
    let agent = installed.agent(&node, None, &[]).await?;
    let mut grown = Grown::default();
    for _ in 0..rounds {
        let took = load(&cluster).await;
        grown.cluster.push(took.with_context(|| agent.log())?);
        let took = load(&at_host).await;
        grown.host.push(took.with_context(|| host.log())?);
    }
    print::alone(&grown)
}

// === impl InLab ===

impl Hypervisor for InLab {
    /// No vCPU can be taken out of an emulated guest: it has what it may use, as with NeonVM's cgroup.
    async fn resize(&self, _vm: &str, to: Amounts) -> Result<Amounts> {
        let mut plugged = i64::from(self.0.outside().await?.vcpus) * 1000;
        while plugged < to.cpu {
            self.0.plug_vcpu().await?;
            tokio::time::sleep(LOOK).await;
            plugged = i64::from(self.0.outside().await?.vcpus) * 1000;
        }
        Ok(Amounts { cpu: plugged.min(to.cpu), memory: to.memory })
    }
}
