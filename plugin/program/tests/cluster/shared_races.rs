//! Growth of VMs and placement by Kubernetes' own scheduler race for the same room, on 20 shared nodes at once.
//!
//! The scheduler knows nothing of the plugin. A VM asks for more than the headroom pod of its node holds, or than its own pod
//! requests; the plugin has that pod resized, and the kubelet carries that out or not. The judge looks at a log of what kubelets
//! have admitted and allocated, by the API server's objects, and of permits, which an agent uses at once; it knows nothing of
//! our books.

use crate::agent::Agent;
use crate::judge::Judge;
use crate::races::{CPUS, Later, NODES, Won, until_both_win};
use crate::vms::Vms;
use crate::{Cluster, cluster};
use futures_util::StreamExt;
use futures_util::future::{Either, join_all, select};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt, api::Patch, api::PatchParams};
use serde_json::json;
use std::cell::RefCell;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::OnceCell;
use windlass_control_plane::space::{node_of, phase_of};
use windlass_control_plane::{Amounts, ControlPlane, Kubelet, Scheduler};
use windlass_testkit::wait;

/// What the other pod of a node requests: more than is left if the VM grows, and less than is if it does not.
const OTHER: i64 = 2500;
/// A VM asks again until it is known who has won.
const AGAIN: Duration = Duration::from_millis(100);

#[tokio::test]
async fn growth_and_any_pod_never_get_the_same_room_of_a_shared_node() {
    play_on(Shared::ByHeadroom).await;
}

#[tokio::test]
async fn growth_and_any_pod_never_get_the_same_room_where_pods_are_resized() {
    play_on(Shared::ByResizing).await;
}

/// How the plugin shares a node.
#[derive(Clone, Copy, Debug)]
enum Shared {
    ByHeadroom,
    ByResizing,
}

// === impl Shared ===

impl Shared {
    /// The pool, by its label, and its mode.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::ByHeadroom => ("shared", "headroom"),
            Self::ByResizing => ("resized", "resize"),
        }
    }

    /// A headroom pod takes a while to be resized, and the other pods come meanwhile; a VM's own pod is faster than the
    /// scheduler.
    const fn later(self) -> (Later, Duration) {
        match self {
            Self::ByHeadroom => (Later::Placement, Duration::from_millis(1500)),
            Self::ByResizing => (Later::Growth, Duration::from_millis(400)),
        }
    }
}

async fn play_on(shared: Shared) {
    let Cluster { plane, plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    default_scheduler(plane).await;
    let nodes: Api<Node> = Api::all(vms.space.client().clone());
    let (pool, mode) = shared.words();
    let label = Patch::Merge(json!({"metadata": {"labels": {"pool": pool}}}));
    let mut kubelets = Vec::new();
    for nth in 0..NODES {
        let node = vms.space.node(&nth.to_string(), &CPUS.to_string(), "64Gi").await;
        nodes.patch(&node, &PatchParams::default(), &label).await.unwrap();
        wait::until("its pool is known", || plugin.node(&node)["mode"] == mode);
        kubelets.push(Kubelet::start(vms.space.client(), &node).await);
    }
    let (later, spread) = shared.later();
    let play = async |race, spread| play(&vms, shared, race, spread).await;
    until_both_win(spread, later, play).await;
}

/// Kubernetes' own scheduler; it ends with the tests.
async fn default_scheduler(plane: &ControlPlane) {
    static SCHEDULER: OnceCell<Scheduler> = OnceCell::const_new();
    SCHEDULER.get_or_init(async || Scheduler::start(plane, Scheduler::DEFAULT, &[]).await).await;
}

async fn play(vms: &Vms<'_>, shared: Shared, race: u32, spread: Duration) -> Won {
    let judge = RefCell::new(Judge::of(thousandths(CPUS)));
    let won = {
        let (watched, played) =
            (pin!(watch(vms, &judge)), pin!(race_on(vms, shared, race, spread, &judge)));
        match select(watched, played).await {
            Either::Left(((), _)) => panic!("the watch has ended"),
            Either::Right((won, _)) => won,
        }
    };
    vms.delete_all().await;
    let Cluster { plugin, .. } = cluster().await;
    for nth in 0..NODES {
        let node = node_name(vms, nth);
        // The kubelet ends pods on this thread.
        let is_empty = async || plugin.node(&node)["pods"] == 0;
        wait::until_async("no pod is left on the node", is_empty).await;
    }
    won
}

async fn race_on(
    vms: &Vms<'_>,
    shared: Shared,
    race: u32,
    spread: Duration,
    judge: &RefCell<Judge>,
) -> Won {
    let Cluster { plugin, .. } = cluster().await;
    let name = |what: &str, nth: u64| format!("{what}-{race}-{nth}");
    let own: Api<Pod> = Api::namespaced(vms.space.client().clone(), "windlass");
    let mut agents = Vec::new();
    for nth in 0..NODES {
        vms.vm_on(&name("grows", nth), 1, CPUS, &node_name(vms, nth)).await;
    }
    for nth in 0..NODES {
        vms.bound(&name("grows", nth)).await;
        let mut agent = Agent::new(plugin, vms.space.name(), &name("grows", nth));
        assert_eq!(agent.ask(1), 1);
        agents.push(agent);
        // The pod that is to be resized is there; a headroom pod has next to nothing.
        let (pods, pod) = match shared {
            Shared::ByHeadroom => (&own, format!("headroom-{}", node_name(vms, nth))),
            Shared::ByResizing => (&vms.space.pods(), name("grows", nth)),
        };
        let is_held = async || {
            let pod = pods.get_opt(&pod).await.unwrap();
            pod.is_some_and(|pod| phase_of(&pod) == "Running")
        };
        wait::until_async("the pod that is to grow is admitted", is_held).await;
    }
    // One side begins at once, and the other in an order that is not that of the nodes.
    let begins = async |is_later: bool, nth: u64| {
        let at = if is_later { u32::try_from((nth * 7) % NODES).unwrap() } else { 0 };
        tokio::time::sleep(spread * at / u32::try_from(NODES).unwrap()).await;
    };
    let (later, _) = shared.later();
    let comes = (0..NODES).map(async |nth| {
        begins(matches!(later, Later::Placement), nth).await;
        let requests = json!({"cpu": format!("{OTHER}m"), "memory": "1Gi"});
        let selector = json!({"kubernetes.io/hostname": node_name(vms, nth)});
        vms.space.pod(&name("comes", nth), requests, json!({"nodeSelector": selector})).await;
    });
    let grows = agents.iter_mut().zip(0..NODES).map(async |(agent, nth)| {
        let (vm, other) = (name("grows", nth), name("comes", nth));
        begins(matches!(later, Later::Growth), nth).await;
        loop {
            let size = agent.ask_beside(CPUS).await;
            judge.borrow_mut().has(&vm, thousandths(size));
            let pod = vms.space.pods().get_opt(&other).await.unwrap();
            let runs = pod.is_some_and(|pod| phase_of(&pod) == "Running");
            if size == CPUS || runs {
                return (size, runs);
            }
            tokio::time::sleep(AGAIN).await;
        }
    });
    let (_, ends) = futures_util::future::join(join_all(comes), join_all(grows)).await;
    let mut won = Won { growth: 0, placement: 0 };
    for (size, runs) in ends {
        assert!(size != CPUS || !runs, "both have won");
        won.growth += u64::from(size == CPUS);
        won.placement += u64::from(runs);
    }
    won
}

/// Notes what kubelets have admitted and allocated.
async fn watch(vms: &Vms<'_>, judge: &RefCell<Judge>) {
    let mut pods = pin!(watcher(vms.space.pods(), watcher::Config::default()).applied_objects());
    while let Some(Ok(pod)) = pods.next().await {
        if phase_of(&pod) == "Running" {
            let node = node_of(&pod).unwrap_or_default();
            judge.borrow_mut().runs(&pod.name_any(), node, allocated(&pod));
        }
    }
}

/// What a kubelet counts of a pod: what it has allocated, which is what the pod requests once no resize is pending.
fn allocated(pod: &Pod) -> i64 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let allocated = statuses.into_iter().flatten().map(|one| one.allocated_resources.as_ref());
    allocated.map(|list| Amounts::of(list.unwrap()).cpu).sum()
}

fn thousandths(cpus: u64) -> i64 {
    i64::try_from(cpus * 1000).unwrap()
}

fn node_name(vms: &Vms<'_>, nth: u64) -> String {
    format!("{}-{nth}", vms.space.name())
}
