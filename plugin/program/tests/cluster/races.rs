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

pub(crate) const NODES: u64 = 20;
/// Of a node, and the most that a VM grows to.
pub(crate) const CPUS: u64 = 4;
/// As many races are played of each kind, in place of one on each node.
const COUNT: &str = "WINDLASS_RACES";
/// As many more are tried until each side has won its share.
const RACES: u32 = 12;

#[tokio::test]
async fn growth_and_placement_never_get_the_same_room() {
    let vms = Vms::new(cluster().await).await;
    for nth in 0..NODES {
        vms.space.node(&nth.to_string(), &CPUS.to_string(), "64Gi").await;
    }
    // VMs ask for more at moments that are spread over this time. Placement wins more of it the longer it is.
    let spread = Duration::from_millis(400);
    let play = async |race, spread| play(&vms, race, spread).await;
    until_both_win(spread, Later::Growth, play).await;
}

/// Plays races, each on every node, until there were as many as are asked for and each side has won a fifth of them.
/// Who has won moves the time over which one side is spread.
pub(crate) async fn until_both_win(
    mut spread: Duration,
    later: Later,
    mut play: impl AsyncFnMut(u32, Duration) -> Won,
) {
    let wanted = std::env::var(COUNT).ok().map_or(NODES, |count| count.parse().unwrap());
    let most = u32::try_from(wanted.div_ceil(NODES)).unwrap() + RACES;
    let mut all = Won { growth: 0, placement: 0 };
    for race in 0..most {
        let Won { growth, placement } = play(race, spread).await;
        println!("race {race}: growth won {growth} of {NODES}, placement {placement}");
        all.growth += growth;
        all.placement += placement;
        let total = all.growth + all.placement;
        if total >= wanted && all.growth.min(all.placement) >= total / 5 {
            println!("of {total} races growth won {}, placement {}", all.growth, all.placement);
            return;
        }
        let is_longer = match later {
            Later::Growth => growth > placement,
            Later::Placement => placement > growth,
        };
        spread = if is_longer { spread * 3 / 2 } else { spread * 2 / 3 };
        spread = spread.clamp(Duration::from_millis(50), Duration::from_secs(10));
    }
    panic!("of {most} races on each node neither side has won a fifth: {all:?}");
}

/// Which side begins at moments that are spread over a time, and wins less the longer that is.
#[derive(Clone, Copy)]
pub(crate) enum Later {
    Growth,
    Placement,
}

/// How many nodes each side won.
#[derive(Debug)]
pub(crate) struct Won {
    pub(crate) growth: u64,
    pub(crate) placement: u64,
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
        // Where the API server is slow, it is told of its first ceiling, and asks again.
        (0..10).map(|_| agent.ask(CPUS)).find(|size| [1, CPUS].contains(size)).unwrap_or_default()
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
