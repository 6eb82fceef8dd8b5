//! Parts that hang, die and come back: what was promised stays covered, and nothing is promised twice.
//!
//! Each of these tests has a control plane of its own, since it stops parts of it.

use crate::Cluster;
use crate::agent::Agent;
use crate::vms::Vms;
use std::time::Duration;
use windlass_control_plane::ControlPlane;
use windlass_testkit::wait;

/// The room of a node, to which twice as many pods are bound.
const ROOM: usize = 30;

/// A part that is stopped may have answered all that it was sent.
const ATTEMPTS: u64 = 20;

/// Longer than the plugin waits for an answer.
const HANGS: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_plugin_that_was_killed_covers_again_what_it_had_granted() {
    let mut cluster = Cluster::start().await;
    let name = {
        let vms = Vms::new(&cluster).await;
        vms.space.node("one", "8", "64Gi").await;
        for vm in ["a", "b"] {
            vms.vm(vm, 8).await;
            vms.bound(vm).await;
            assert_eq!(vms.ceiling(vm).await, Some(2), "recorded with the binding");
        }
        vms.vm_on("waits", 8, 8, &format!("{}-one", vms.space.name())).await;
        vms.refused("waits").await;
        vms.space.name().to_owned()
    };
    let node = format!("{name}-one");
    let mut known = Vec::new();
    for (vm, size) in [("a", 3), ("b", 1)] {
        let mut agent = Agent::new(&cluster.plugin, &name, vm);
        assert_eq!((agent.ask(1), agent.ask(size)), (1, size));
        // Naming its permit, it says that it heard of it.
        assert_eq!(agent.ask(size), size);
        known.push(agent.last().clone());
    }
    assert_eq!(cluster.plugin.node(&node)["reserved"]["cpu"], 4000);
    let vms = Vms::in_space(&cluster, &name).await;
    assert_eq!(vms.ceiling("a").await, Some(4), "raised before the answer, with headroom");
    drop(vms);

    cluster.plugin.restart();
    // Each VM counts with its ceiling until its agent speaks. By their maxima no pod would fit.
    assert_eq!(cluster.plugin.node(&node)["reserved"]["cpu"], 6000);
    let vms = Vms::in_space(&cluster, &name).await;
    vms.is_annotated("waits", "windlass.dev/binding-settled").await;
    vms.vm_on("fits", 2, 2, &node).await;
    vms.bound("fits").await;
    let mut b = Agent::new(&cluster.plugin, &name, "b").knowing(known.remove(1));
    assert_eq!(b.ask(1), 1);
    assert_eq!(cluster.plugin.node(&node)["reserved"]["cpu"], 7000, "a is silent");
    let mut a = Agent::new(&cluster.plugin, &name, "a").knowing(known.remove(0));
    assert_eq!(a.ask(3), 3);
    assert_eq!(cluster.plugin.node(&node)["reserved"]["cpu"], 6000, "as before the crash");
    assert_eq!((a.ask(4), b.ask(4)), (4, 2), "all that is left");
    assert_eq!((vms.ceiling("a").await, vms.ceiling("b").await), (Some(4), Some(2)));
    vms.vm("c", 4).await;
    vms.refused("c").await;
}

#[tokio::test]
async fn bindings_that_the_api_server_did_not_answer_are_settled() {
    settled_after(|plane, signal| plane.api_server().signal(signal)).await;
}

#[tokio::test]
async fn bindings_that_etcd_held_up_are_settled() {
    settled_after(|plane, signal| plane.etcd().signal(signal)).await;
}

/// Stops a part while pods are bound all at once to a node that has room for half of them, until that has hit a binding
/// that was sent and not answered.
async fn settled_after(send: impl Fn(&ControlPlane, &str)) {
    let cluster = Cluster::start().await;
    let vms = Vms::new(&cluster).await;
    for attempt in 0..ATTEMPTS {
        let node = vms.space.node(&attempt.to_string(), &ROOM.to_string(), "64Gi").await;
        wait::until("the plugin knows the node", || !cluster.plugin.node(&node).is_null());
        let mut requests = Vec::new();
        for nth in 0..2 * ROOM {
            let name = format!("vm-{attempt}-{nth}");
            requests.push(vms.left_alone(&name, &node).await);
        }
        let is_hit = std::thread::scope(|scope| {
            for request in &requests {
                scope.spawn(|| cluster.plugin.extend("bind", request));
            }
            // The others are not far behind it.
            let is_any_placed = || cluster.plugin.node(&node)["reserved"]["cpu"] != 0;
            wait::until("a pod is placed", is_any_placed);
            send(&cluster.plane, "STOP");
            std::thread::sleep(HANGS);
            let is_open = cluster.plugin.placements(&node) != 0;
            send(&cluster.plane, "CONT");
            is_open
        });
        let mut bound = 0;
        wait::until_async("the API server answers", async || {
            bound = vms.count_bound(&node).await;
            cluster.plane.ready().await.is_ok()
        })
        .await;
        wait::until("no placement is open", || cluster.plugin.placements(&node) == 0);
        bound = bound.max(vms.count_bound(&node).await);
        assert!(bound <= ROOM, "{bound} pods on a node with room for {ROOM}");
        assert_eq!(cluster.plugin.node(&node)["reserved"]["cpu"], bound * 1000);
        if is_hit {
            println!("hit at attempt {attempt}: {bound} of {ROOM} bound");
            return;
        }
    }
    panic!("no binding was sent and not answered");
}
