//! Growth of VMs and placement by Kubernetes' own scheduler race for the same room, on 20 shared nodes at once.
//!
//! The scheduler knows nothing of the plugin. A VM asks for more than the headroom pod of its node holds; the plugin has
//! the pod resized, and the kubelet carries that out or not. The judge hears what kubelets have admitted, and of
//! permits, which an agent uses at once.

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
use windlass_control_plane::space::{node_of, phase_of};
use windlass_control_plane::{Amounts, Kubelet, Scheduler};
use windlass_testkit::wait;

/// What the other pod of a node requests: more than is left if the VM grows, and less than is if it does not.
const OTHER: i64 = 2500;
/// A VM asks again until it is known who has won.
const AGAIN: Duration = Duration::from_millis(100);

#[tokio::test]
async fn growth_and_any_pod_never_get_the_same_room_of_a_shared_node() {
    let Cluster { plane, plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    let _default = Scheduler::start(plane, Scheduler::DEFAULT, &[]).await;
    let nodes: Api<Node> = Api::all(vms.space.client().clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"pool": "shared"}}}));
    let mut kubelets = Vec::new();
    for nth in 0..NODES {
        let node = vms.space.node(&nth.to_string(), &CPUS.to_string(), "64Gi").await;
        nodes.patch(&node, &PatchParams::default(), &label).await.unwrap();
        wait::until("its pool is known", || plugin.node(&node)["mode"] == "headroom");
        kubelets.push(Kubelet::start(vms.space.client(), &node).await);
    }
    // It takes a while to have the headroom pod resized; the other pods come meanwhile.
    let spread = Duration::from_millis(1500);
    let play = async |race, spread| play(&vms, race, spread).await;
    until_both_win(spread, Later::Placement, play).await;
}

async fn play(vms: &Vms<'_>, race: u32, spread: Duration) -> Won {
    let judge = RefCell::new(Judge::of(thousandths(CPUS)));
    let won = {
        let (watched, played) =
            (pin!(watch(vms, &judge)), pin!(race_on(vms, race, spread, &judge)));
        match select(watched, played).await {
            Either::Left(((), _)) => panic!("the watch has ended"),
            Either::Right((won, _)) => won,
        }
    };
    vms.delete_all().await;
    let Cluster { plugin, .. } = cluster().await;
    for nth in 0..NODES {
        let node = node_name(vms, nth);
        // The kubelet ends the headroom pod on this thread.
        let is_empty = async || plugin.node(&node)["pods"] == 0;
        wait::until_async("no pod is left on the node", is_empty).await;
    }
    won
}

async fn race_on(vms: &Vms<'_>, race: u32, spread: Duration, judge: &RefCell<Judge>) -> Won {
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
        // The headroom pod is there, with next to nothing.
        let (pods, pod) = (&own, format!("headroom-{}", node_name(vms, nth)));
        let is_held = async || {
            let pod = pods.get_opt(&pod).await.unwrap();
            pod.is_some_and(|pod| phase_of(&pod) == "Running")
        };
        wait::until_async("the headroom pod is admitted", is_held).await;
    }
    let comes = (0..NODES).map(async |nth| {
        // In an order that is not that of the VMs.
        let at = u32::try_from((nth * 7) % NODES).unwrap();
        tokio::time::sleep(spread * at / u32::try_from(NODES).unwrap()).await;
        let requests = json!({"cpu": format!("{OTHER}m"), "memory": "1Gi"});
        let selector = json!({"kubernetes.io/hostname": node_name(vms, nth)});
        vms.space.pod(&name("comes", nth), requests, json!({"nodeSelector": selector})).await;
    });
    let grows = agents.iter_mut().zip(0..NODES).map(async |(agent, nth)| {
        let (vm, other) = (name("grows", nth), name("comes", nth));
        loop {
            let size = agent.ask(CPUS);
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

/// Notes every pod that a kubelet has admitted.
async fn watch(vms: &Vms<'_>, judge: &RefCell<Judge>) {
    let mut pods = pin!(watcher(vms.space.pods(), watcher::Config::default()).applied_objects());
    while let Some(Ok(pod)) = pods.next().await {
        if phase_of(&pod) == "Running" {
            let node = node_of(&pod).unwrap_or_default();
            judge.borrow_mut().runs(&pod.name_any(), node, Amounts::requested(&pod).cpu);
        }
    }
}

fn thousandths(cpus: u64) -> i64 {
    i64::try_from(cpus * 1000).unwrap()
}

fn node_name(vms: &Vms<'_>, nth: u64) -> String {
    format!("{}-{nth}", vms.space.name())
}
