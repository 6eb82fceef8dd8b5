//! VM pods are placed by the stock scheduler, grow by permits, and never have more than their node together.

use crate::agent::Agent;
use crate::vms::Vms;
use crate::{Cluster, cluster};
use std::time::Instant;
use windlass_control_plane::space::{condition, node_of};
use windlass_testkit::wait;

#[tokio::test]
async fn a_vm_is_placed_and_grows_and_the_next_pod_goes_elsewhere() {
    let Cluster { plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    let one = vms.space.node("one", "4", "16Gi").await;
    vms.vm("first", 4).await;
    assert_eq!(vms.bound("first").await, one);
    let mut first = Agent::new(plugin, vms.space.name(), "first");
    assert_eq!(first.ask(1), 1);
    assert_eq!(first.ask(3), 3, "the node has room for growth");

    vms.vm("second", 4).await;
    assert_eq!(vms.bound("second").await, one, "one vCPU is left");
    assert_eq!(first.ask(4), 3, "the pod took what was left");

    // The requests of two pods would leave room for a third; what the first VM grew into does not.
    vms.vm("third", 4).await;
    let words = |pod: &_| condition(pod, "PodScheduled").and_then(|it| it.message.clone());
    let says = |pod: &_| {
        words(pod).is_some_and(|words| words.contains("1 too little cpu is free: 1 asked"))
    };
    vms.space.until_pod("third", "refused in the books' words", says).await;

    let other = vms.space.node("other", "4", "16Gi").await;
    assert_eq!(vms.bound("third").await, other);
    let node = plugin.node(&one);
    assert_eq!(node["reserved"]["cpu"], node["room"]["cpu"], "{node}");
}

#[tokio::test]
async fn a_refused_pod_is_bound_soon_after_a_vm_gave_room_back() {
    let Cluster { plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    let node = vms.space.node("one", "4", "16Gi").await;
    vms.vm("grown", 4).await;
    vms.bound("grown").await;
    let mut agent = Agent::new(plugin, vms.space.name(), "grown");
    assert_eq!((agent.ask(1), agent.ask(4)), (1, 4));
    vms.vm("waiting", 4).await;
    vms.refused("waiting").await;

    let freed = Instant::now();
    assert_eq!((agent.ask(3), agent.ask(3)), (3, 3), "the second says that the first was answered");
    assert_eq!(vms.bound("waiting").await, node);
    println!("bound {:.1} s after room came free", freed.elapsed().as_secs_f64());
}

#[tokio::test]
async fn a_pod_that_is_gone_takes_no_room() {
    let Cluster { plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    let node = vms.space.node("one", "2", "16Gi").await;
    vms.vm("first", 2).await;
    vms.bound("first").await;
    let mut agent = Agent::new(plugin, vms.space.name(), "first");
    assert_eq!((agent.ask(1), agent.ask(2)), (1, 2));
    vms.delete("first").await;
    wait::until("its room is free", || plugin.node(&node)["reserved"]["cpu"] == 0);
    assert_eq!(agent.try_ask(2).0, 404);
    vms.vm("second", 2).await;
    vms.bound("second").await;
    // The same name is another VM, which inherits nothing.
    vms.vm("first", 2).await;
    vms.bound("first").await;
    assert_eq!(Agent::new(plugin, vms.space.name(), "first").ask(1), 1);
}

#[tokio::test]
async fn pods_that_are_no_vms_take_room_of_vms() {
    let Cluster { plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    let node = vms.space.node("one", "4", "16Gi").await;
    let requests = serde_json::json!({"cpu": "2500m", "memory": "1Gi"});
    let more = serde_json::json!({"nodeName": node});
    let pod = vms.space.pod("daemon", requests, more).await;
    assert_eq!(node_of(&pod), Some(node.as_str()));
    wait::until("it counts", || plugin.node(&node)["others"]["cpu"] == 2500);
    vms.vm("vm", 4).await;
    vms.bound("vm").await;
    let mut agent = Agent::new(plugin, vms.space.name(), "vm");
    assert_eq!(
        (agent.ask(1), agent.ask(4)),
        (1, 1),
        "half a vCPU is left, and the VM moves in whole ones"
    );
}
