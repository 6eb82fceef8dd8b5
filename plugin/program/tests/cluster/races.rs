//! Growth and placement race for the same room, on 20 nodes at once: each node has room for one of them.
//!
//! The judge is not our books: it adds what the API server says that bound pods request, and the permits, which an
//! agent uses at once. Nothing shrinks in a race, so the sum at its end is the largest.

use crate::agent::Agent;
use crate::vms::Vms;
use crate::{Cluster, cluster};
use futures_util::future::join_all;
use std::time::Duration;
use windlass_control_plane::space::node_of;

const NODES: u64 = 20;
/// Of a node, and the most that a VM grows to.
const CPUS: u64 = 4;
/// A race is tried so often until each side has won its share of one.
const RACES: u32 = 12;

#[tokio::test]
async fn growth_and_placement_never_get_the_same_room() {
    let vms = Vms::new(cluster().await).await;
    for nth in 0..NODES {
        vms.space.node(&nth.to_string(), &CPUS.to_string(), "64Gi").await;
    }
    // VMs ask for more at moments that are spread over this time. Placement wins more of it the longer it is.
    let mut spread = Duration::from_millis(400);
    for race in 0..RACES {
        let Won { growth, placement } = play(&vms, race, spread).await;
        println!("race {race}: growth won {growth} of {NODES}, placement {placement}");
        if growth.min(placement) >= NODES / 5 {
            return;
        }
        spread = if growth > placement { spread * 2 } else { spread / 2 };
    }
    panic!("in no race has each side won a fifth");
}

/// How many nodes each side won.
struct Won {
    growth: u64,
    placement: u64,
}

/// One race on every node.
async fn play(vms: &Vms<'_>, race: u32, spread: Duration) -> Won {
    let Cluster { plugin, .. } = cluster().await;
    let name = |what: &str, nth: u64| format!("{what}-{race}-{nth}");
    let node = |nth: u64| format!("{}-{nth}", vms.space.name());
    let mut agents = Vec::new();
    for nth in 0..NODES {
        vms.vm_on(&name("grows", nth), 1, CPUS, &node(nth)).await;
    }
    for nth in 0..NODES {
        vms.bound(&name("grows", nth)).await;
        let mut agent = Agent::new(plugin, vms.space.name(), &name("grows", nth));
        assert_eq!(agent.ask(1), 1);
        agents.push(agent);
    }

    let comes = (0..NODES).map(async |nth| {
        vms.vm_on(&name("comes", nth), CPUS - 1, CPUS, &node(nth)).await;
    });
    let grows = agents.iter_mut().zip(0..NODES).map(async |(agent, nth)| {
        // In an order that is not the pods'.
        let at = u32::try_from((nth * 7) % NODES).unwrap();
        tokio::time::sleep(spread * at / u32::try_from(NODES).unwrap()).await;
        agent.ask(CPUS)
    });
    let (comes, grows) = (join_all(comes), join_all(grows));
    let (_, sizes) = futures_util::future::join(comes, grows).await;

    let mut won = Won { growth: 0, placement: 0 };
    for (nth, size) in (0..NODES).zip(sizes) {
        let pod = vms.decided(&name("comes", nth)).await;
        let bound = if node_of(&pod).is_some() { CPUS - 1 } else { 0 };
        assert!(size + bound <= CPUS, "node {nth}: the VM has {size}, the pod {bound}");
        assert!([1, CPUS].contains(&size), "the VM gets all that is left, or nothing: {size}");
        won.growth += u64::from(size == CPUS);
        won.placement += u64::from(bound > 0);
    }
    vms.delete_all().await;
    won
}
