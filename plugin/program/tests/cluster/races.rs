//! Growth and placement race for the same room, on 20 nodes at once: each node has room for one of them.
//!
//! The judge is not our books: it adds what the API server says that bound pods request, and what the agents'
//! hypervisors were set to, as soon as a permit allows it. Nothing shrinks in a race, so the sum at its end is the largest.

use crate::agent::Agent;
use crate::vms::Vms;
use crate::{Cluster, cluster};
use std::time::{Duration, Instant};
use windlass_control_plane::space::node_of;

const NODES: u64 = 20;
/// Of a node, and the most that a VM grows to.
const CPUS: u64 = 4;
/// A race is tried so often until each side has won its share.
const RACES: u64 = 6;

#[tokio::test]
async fn growth_and_placement_never_get_the_same_room() {
    let vms = Vms::new(cluster().await).await;
    for nth in 0..NODES {
        vms.space.node(&nth.to_string(), &CPUS.to_string(), "64Gi").await;
    }
    // How long a pod takes from its creation to its binding decides when a VM has to ask to win half of the races.
    let mut until_bound = Duration::from_millis(200);
    let (mut grown, mut placed) = (0, 0);
    for race in 0..RACES {
        let won = Race::run(&vms, race, until_bound).await;
        grown += won.grown;
        placed += won.placed;
        until_bound = won.until_bound;
        let fair = NODES * (race + 1) / 5;
        if grown >= fair && placed >= fair {
            println!("{} races: growth won {grown}, placement {placed}", NODES * (race + 1));
            return;
        }
    }
    panic!("one side hardly ever wins: growth {grown}, placement {placed}");
}

/// What came of one race on every node.
struct Race {
    grown: u64,
    placed: u64,
    /// The median time from a pod's creation to its binding.
    until_bound: Duration,
}

impl Race {
    async fn run(vms: &Vms<'_>, race: u64, until_bound: Duration) -> Self {
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

        let start = Instant::now();
        let comes = (0..NODES).map(async |nth| {
            vms.vm_on(&name("comes", nth), CPUS - 1, CPUS, &node(nth)).await;
        });
        let grows = agents.iter_mut().zip(0..NODES).map(async |(agent, nth)| {
            // From the beginning to twice the time that a binding takes, in an order that is not the pods'.
            let at = u32::try_from((nth * 7) % NODES).unwrap();
            tokio::time::sleep(until_bound * 2 * at / u32::try_from(NODES).unwrap()).await;
            agent.ask(CPUS)
        });
        let (_, sizes) = futures_util::future::join(
            futures_util::future::join_all(comes),
            futures_util::future::join_all(grows),
        )
        .await;

        let mut won = Self { grown: 0, placed: 0, until_bound };
        let mut times = Vec::new();
        for (nth, size) in (0..NODES).zip(sizes) {
            if size == CPUS {
                won.grown += 1;
            } else {
                assert_eq!(size, 1, "the VM gets all that is left, or nothing");
                vms.bound(&name("comes", nth)).await;
                times.push(start.elapsed());
                won.placed += 1;
            }
            let pod = vms.space.pods().get(&name("comes", nth)).await.unwrap();
            let bound = if node_of(&pod).is_some() { CPUS - 1 } else { 0 };
            assert!(size + bound <= CPUS, "node {nth}: the VM has {size}, the pod {bound}");
        }
        times.sort_unstable();
        won.until_bound = times.get(times.len() / 2).copied().unwrap_or(until_bound * 2);
        if won.grown == 0 {
            won.until_bound = until_bound / 2;
        }
        vms.delete_all().await;
        won
    }
}
