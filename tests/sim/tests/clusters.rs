//! A share of the schedules of clusters, and what they promise.

use windlass_sim::cluster::draw::draw;
use windlass_sim::cluster::play::{minimise, play};
use windlass_sim::cluster::run::{Tally, play_range};
use windlass_sim::seeds::Seeds;

/// Enough to find each of the deliberate bugs that are said to be found here, few enough for every run of the tests.
const SHARE: u64 = 4_000;

/// These failed once, as they are drawn now. What they showed is a story of the plugin's core, which stays when the drawing
/// changes.
const FAILED_ONCE: [u64; 24] = [
    267, 333, 8_444, 8_509, 8_617, 14_297, 15_246, 18_612, 5_012_469, 5_013_927, 6_001_034,
    6_003_215, 6_004_187, 6_019_375, 6_020_682, 6_021_713, 7_100_009, 7_104_801, 8_227_556,
    8_278_073, 8_279_847, 8_294_631, 8_448_557, 8_457_894,
];

/// What every share of this size meets: a law that nothing tries holds by itself.
const MET: [&str; 57] = [
    "nodes whose rebuilt books were compared",
    "takeovers",
    "leases that were lost",
    "plugins that were told to end",
    "stops that were noticed",
    "requests that waited in a stopped plugin",
    "bindings that took effect late",
    "bindings that were refused",
    "pods that were changed to settle a binding",
    "placements that ended by a read",
    "ceilings that were written late",
    "ceilings that were mended",
    "answers that waited for a ceiling",
    "answers that were cut at a ceiling",
    "answers that came too late",
    "409 and 422: conflicts",
    "410: a watch that cannot go on",
    "429: throttled",
    "500 though it took effect",
    "audits that found a lost event",
    "watch events that came again",
    "resizes that were deferred",
    "resizes that took effect",
    "resizes that took effect late",
    "resizes that came too late",
    "resizes that were taken back",
    "pods that the kubelet rejected",
    "answers that waited for a kubelet",
    "VMs that grew",
    "nodes that changed",
    "nodes that were gone",
    "nodes that were settled after a change",
    "leases that were deleted",
    "API servers that went back",
    "audits that found an API server that went back",
    "VMs that the agent of a node found",
    "VMs that the agent of a node forgot",
    "VMs that got another pod",
    "VMs that got their vCPUs before their memory",
    "VMs that a plugin had move",
    "VMs that moved",
    "moves of VMs that were taken back",
    "objects of VMs that were deleted",
    "objects that an agent labelled",
    "agents of nodes that were killed",
    "agents of nodes that were stopped",
    "agents of nodes that were told to end",
    "agents of nodes that took leave of a guest",
    "agents of nodes that waited for their guest",
    "watches of the agent of a node that broke",
    "watch events that the agent of a node lost",
    "watch events that came again to the agent of a node",
    "writes of agents that took effect",
    "writes of agents that came late",
    "writes of agents that were refused",
    "writes of agents that came to another state than was looked at",
    "lost writes of agents that a read settled",
];

#[test]
fn a_share_of_schedules_of_clusters_breaks_no_law() {
    let tally = play_some(SHARE);
    assert!(tally.passed(), "{}", tally.failures());
    let missed: Vec<_> = MET.into_iter().filter(|word| tally.met().of(word) == 0).collect();
    assert!(missed.is_empty(), "not met: {missed:?}");
}

#[test]
fn clusters_that_failed_once_do_not_fail_again() {
    let wrong = |seed| Some(format!("seed {seed}: {}", play(&draw(seed), false).wrong.first()?));
    let failed: Vec<String> = FAILED_ONCE.into_iter().filter_map(wrong).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_same_seed_makes_the_same_cluster_and_the_same_story() {
    let (one, two) = (play(&draw(7), true), play(&draw(7), true));
    assert!(one.story.len() > 50, "{} lines", one.story.len());
    assert_eq!(one, two);
}

#[test]
fn a_schedule_that_passes_is_not_made_smaller() {
    let schedule = draw(7);
    assert_eq!(minimise(&schedule), (schedule, 1));
}

fn play_some(count: u64) -> Tally {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    play_range(Seeds { from: 1, count, until_failure: true, until: None, threads })
}
