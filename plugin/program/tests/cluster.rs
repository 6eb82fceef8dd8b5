//! The plugin in a real cluster: a real API server, the stock kube-scheduler, our program with the role that we ship.
//!
//! A test is the kubelet and the agent: it speaks the wires. Those that stop no part share one control plane, one
//! plugin and one scheduler; each test has a namespace and nodes of its own.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "cluster/agent.rs"]
mod agent;
#[path = "cluster/callers.rs"]
mod callers;
#[path = "cluster/counts.rs"]
mod counts;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/front.rs"]
mod front;
#[path = "cluster/install.rs"]
mod install;
#[path = "cluster/judge.rs"]
mod judge;
#[path = "cluster/load.rs"]
mod load;
#[path = "cluster/network.rs"]
mod network;
#[path = "cluster/operators.rs"]
mod operators;
#[path = "cluster/outage.rs"]
mod outage;
#[path = "cluster/own_scheduler.rs"]
mod own_scheduler;
#[path = "cluster/placing.rs"]
mod placing;
#[path = "cluster/plugin.rs"]
mod plugin;
#[path = "cluster/races.rs"]
mod races;
#[path = "cluster/shared_races.rs"]
mod shared_races;
#[path = "cluster/standby.rs"]
mod standby;
#[path = "cluster/storm.rs"]
mod storm;
#[path = "cluster/trust.rs"]
mod trust;
#[path = "cluster/vms.rs"]
mod vms;
#[path = "cluster/workloads.rs"]
mod workloads;

use plugin::Plugin;
use std::path::Path;
use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, Identity, Scheduler};

/// The scheduler that asks the plugin.
const SCHEDULER: &str = "windlass-scheduler";

/// A control plane with a plugin and the scheduler that asks it. It ends with the tests.
struct Cluster {
    plane: ControlPlane,
    plugin: Plugin,
    _scheduler: Scheduler,
}

impl Cluster {
    async fn start() -> Self {
        let plane = ControlPlane::start().await;
        plane.apply(Path::new("../../deploy/kustomize/plugin")).await;
        plane.apply(Path::new("../../deploy/kustomize/plugin-resize")).await;
        let plugin = Plugin::start(&plane.kubeconfig(Identity::Plugin));
        let config = plugin.scheduler_config();
        let scheduler = Scheduler::start(&plane, SCHEDULER, &[config]).await;
        Self { plane, plugin, _scheduler: scheduler }
    }
}

async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER.get_or_init(Cluster::start).await
}
