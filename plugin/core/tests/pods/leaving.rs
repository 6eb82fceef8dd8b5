//! VMs that leave nodes above their watermark: who, when, how many, and when it stops.

use crate::cluster::{Held, NOW, ask, at, booked, cu, node, on, permit};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_plugin_core::Ask;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Migration, MigrationTerms, Move, Pools, Step};
use windlass_plugin_core::{BooksError, Pods};
use windlass_protocol::pod::{Phase, Pod, PodVm};
use windlass_protocol::{Bounds, Moment, VmInfo, VmName};

/// In thousandths.
const WATERMARK: u64 = 800;
pub(crate) const RESTS: Duration = Duration::from_secs(600);
const PLACED_WITHIN: Duration = Duration::from_secs(120);
/// A VM may grow to this.
const MOST: u64 = 8;

#[test]
fn a_vm_leaves_a_node_above_its_watermark_and_keeps_its_size_meanwhile() {
    let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
    for vm in ["a", "b", "c"] {
        runs(&mut pods, "n1", vm, 2);
    }
    assert_eq!(plan(&pods), [], "six of eight");
    grows(&pods, "c", 2, 5);
    assert_eq!(plan(&pods), [begin("a", "n1")], "a alone is enough, and so is b");

    pods.migration_sent(&goes("a", "n1"));
    assert_eq!(pods.moving(), 1);
    assert_eq!(
        plan(&pods),
        [begin("a", "n1")],
        "asked for until it is seen, and nobody else leaves"
    );
    let granted = ask(&pods, "a-pod", 2, 3);
    assert_eq!((granted.permit, granted.moving), (cu(2), true), "no growth, and its agent is told");
    let vm = VmName::on_host("a-pod");
    let books = pods.node_of(&vm).unwrap();
    let refused = books.with_books(|books| books.request(NOW, &vm, Ask::from(cu(1))));
    assert!(matches!(refused, Err(BooksError::Moving { .. })), "{refused:?}");

    pods.migration_seen(migration("a"), NOW);
    assert_eq!(plan(&pods), []);
    // The pod that it moves to counts beside the other, and does not grow either.
    let target = controlled(pod_of("a", "a-target"), None);
    pods.place(&target, "n2").unwrap();
    assert_eq!(booked(&pods, "n2", "a-target"), Some(cu(2)), "the VM comes with what it has");
    pods.pod_seen(on("n2", target));
    assert_eq!(booked(&pods, "n2", "a-target"), Some(cu(2)));
    let granted = ask(&pods, "a-target", 2, 3);
    assert!(granted.moving && booked(&pods, "n1", "a-pod") == Some(cu(2)));

    // The VM is on the other node, and what is left on this one is the migration's.
    pods.pod_seen(at("3", on("n2", pod_of("a", "a-target"))));
    pods.pod_seen(at("3", on("n1", controlled(pod_of("a", "a-pod"), None))));
    pods.migration_seen(Migration { is_over: true, ..migration("a") }, NOW);
    assert_eq!(plan(&pods), [delete("a", false)], "its old pod is about to go: nobody else leaves");
    assert_eq!(pods.moving(), 0);
    pods.pod_gone(&vm, "uid of a-pod");
    assert!(!ask(&pods, "a-target", 2, 3).moving, "it may change again");
    pods.migration_gone(&migration("a").name, "uid of a", NOW);
    assert_eq!(plan(&pods), [], "seven of eight");
}

/// Found by the simulation: a target that was placed before the watch told of its migration counted with its requests.
#[test]
fn a_pod_that_a_vm_moves_to_counts_with_what_comes_before_its_migration_is_known() {
    let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
    runs(&mut pods, "n1", "a", 5);
    let target = controlled(pod_of("a", "a-target"), None);
    pods.place(&target, "n2").unwrap();
    assert_eq!(booked(&pods, "n2", "a-target"), Some(cu(5)), "the VM comes with what it has");
    // The object of its node may be gone meanwhile.
    let other = controlled(pod_of("a", "a-other"), None);
    pods.node_gone("n1");
    pods.pod_gone(&target.name, &target.uid);
    pods.place(&other, "n2").unwrap();
    assert_eq!(booked(&pods, "n2", "a-other"), Some(cu(5)));
}

/// Found by the simulation: a VM whose migration ended while the object of its node was gone was never asked to grow again.
#[test]
fn a_move_that_ends_while_the_object_of_a_node_is_gone_is_over() {
    let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
    runs(&mut pods, "n1", "a", 2);
    pods.migration_seen(migration("a"), NOW);
    assert!(ask(&pods, "a-pod", 2, 3).moving);
    pods.node_gone("n1");
    pods.migration_seen(Migration { is_over: true, ..migration("a") }, NOW);
    pods.node_seen(&node("n1", cu(10)), || unreachable!("its books are there"));
    assert_eq!(ask(&pods, "a-pod", 2, 3).permit, cu(3), "it grows");
}

#[test]
fn the_pressure_on_a_node_is_told_with_its_watermark() {
    let mut pods = cluster(&[("n1", 10), ("n2", 3)]);
    for vm in ["a", "b"] {
        runs(&mut pods, "n1", vm, 2);
    }
    let told = |pods: &Pods<Held>, now: Moment| {
        let all = pods.status_at(now);
        let node = all.iter().find(|node| node.name == "n1").unwrap();
        (node.watermark, node.pressure)
    };
    assert_eq!(told(&pods, NOW), (Some(cu(8)), Some(cu(0))), "four of eight");
    pods.pod_seen(on("n1", crate::cluster::other("daemon", 6)));
    assert_eq!(told(&pods, NOW), (Some(cu(8)), Some(cu(2))), "ten of eight");
    assert_eq!(ask(&pods, "a-pod", 2, 5).permit, cu(2));
    assert_eq!(told(&pods, NOW), (Some(cu(8)), Some(cu(5))), "three were asked for in vain");
    let later = NOW.after(Duration::from_secs(60));
    assert_eq!(told(&pods, later), (Some(cu(8)), Some(cu(2))), "and are forgotten");
    pods.migration_seen(migration("a"), NOW);
    assert_eq!(told(&pods, later), (Some(cu(8)), Some(cu(0))), "that leaves");
    assert_eq!(told(&crate::cluster::cluster(&[("n1", 10)]), NOW), (None, None));
}

/// Each VM with its priority and its size; the node has ten, its watermark is eight.
#[test]
fn who_leaves_first() {
    for (vms, chosen) in [
        (&[("a", 0, 3), ("b", 0, 2), ("c", 0, 4)][..], &["b"][..]),
        (&[("a", 0, 3), ("b", 1, 2), ("c", 0, 4)], &["a"]),
        (&[("a", 5, 3), ("b", 5, 2), ("c", 4, 4)], &["c"]),
        (&[("a", 0, 5), ("b", 0, 5)], &["a"]),
        // One alone is not enough: the one that helps most goes first.
        (&[("a", 0, 1), ("b", 0, 1), ("c", 0, 8)], &["c"]),
        (&[("a", 0, 1), ("b", 0, 1), ("c", 1, 8)], &["a", "b"]),
    ] {
        let terms = MigrationTerms { per_node: 2, ..terms() };
        let mut pods = cluster_of(&[("n1", 10), ("n2", 20)], terms);
        for (vm, priority, size) in vms {
            let mut pod = pod_of(vm, &format!("{vm}-pod"));
            pod.vm.as_mut().unwrap().priority = *priority;
            pods.pod_seen(on("n1", pod));
            speaks(&pods, vm, *size);
        }
        let begins: Vec<Step> = chosen.iter().map(|vm| begin(vm, "n1")).collect();
        assert_eq!(plan(&pods), begins, "{vms:?}");
    }
}

#[test]
fn nobody_leaves_who_may_not_or_has_no_place_to_go() {
    let full = |change: &dyn Fn(Pod) -> Pod, other: u64| {
        let mut pods = cluster(&[("n1", 10), ("n2", other)]);
        pods.pod_seen(on("n1", change(pod_of("a", "a-pod"))));
        speaks(&pods, "a", 3);
        pods.pod_seen(on("n1", crate::cluster::other("daemon", 6)));
        plan(&pods)
    };
    let same = |pod: Pod| pod;
    assert_eq!(full(&same, 10), [begin("a", "n1")]);
    assert_eq!(full(&same, 3), [], "the other node would be above its own watermark");
    assert_eq!(full(&|pod| controlled(pod, None), 10), [], "its kind cannot be moved");
    let forbids = |mut pod: Pod| {
        pod.vm.as_mut().unwrap().may_move = false;
        pod
    };
    assert_eq!(full(&forbids, 10), []);
    assert_eq!(full(&|pod| Pod { is_terminating: true, ..pod }, 10), []);

    let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
    for vm in ["a", "b"] {
        pods.pod_seen(on("n1", pod_of(vm, &format!("{vm}-pod"))));
    }
    assert_eq!(booked(&pods, "n1", "a-pod"), Some(cu(MOST)), "no agent has spoken");
    assert_eq!(plan(&pods), []);
    speaks(&pods, "a", 2);
    assert_eq!(plan(&pods), [], "nobody moves for what another may have been promised");
    speaks(&pods, "b", 7);
    assert_eq!(plan(&pods), [begin("a", "n1")]);
}

#[test]
fn without_a_watermark_nobody_leaves() {
    let mut pods = Pods::of(Pools { migration: terms(), ..Pools::default() });
    let nodes = [("n1", 10), ("n2", 10)].map(|(name, units)| node(name, cu(units)));
    pods.nodes_listed(nodes.to_vec(), |_| Held::empty());
    pods.migrations_listed(Vec::new(), NOW);
    runs(&mut pods, "n1", "a", 8);
    runs(&mut pods, "n1", "b", 2);
    assert_eq!(plan(&pods), []);
}

#[test]
fn what_is_asked_for_above_the_watermark_is_pressure_too() {
    let terms = MigrationTerms { per_node: 4, ..terms() };
    let mut pods = cluster_of(&[("n1", 10), ("n2", 20)], terms);
    for vm in ["a", "b", "c", "d"] {
        runs(&mut pods, "n1", vm, 2);
    }
    assert_eq!(plan(&pods), []);
    grows(&pods, "d", 2, 4);
    assert_eq!(plan(&pods).len(), 1, "two above it");
    let granted = ask(&pods, "d-pod", 4, MOST);
    assert_eq!(granted.permit, cu(4), "it gets no more");
    let (most, rest) = (begin("d", "n1"), begin("a", "n1"));
    assert_eq!(plan(&pods), [most, rest], "six above it, with what it asks for");
    pods.migration_seen(migration("a"), NOW);
    pods.migration_seen(migration("b"), NOW);
    assert_eq!(plan(&pods), [begin("c", "n1")], "what leaves already counts");
}

#[test]
fn few_move_at_a_time_and_those_of_others_count() {
    let terms = MigrationTerms { per_node: 1, in_all: 3, ..terms() };
    let nodes = ["n1", "n2", "n3", "n4"].map(|name| (name, 10));
    let mut pods = cluster_of(&[&nodes[..], &[("big", 100)]].concat(), terms);
    for (node, units) in nodes {
        for vm in ["a", "b", "c"] {
            runs(&mut pods, node, &format!("{node}{vm}"), units / 3);
        }
    }
    grows(&pods, "n3c", 3, 4);
    let first = plan(&pods);
    assert_eq!(
        first,
        [begin("n3a", "n3"), begin("n1a", "n1"), begin("n2a", "n2")],
        "fullest first"
    );
    for of in ["x", "y"] {
        let theirs = Migration { is_ours: false, ..migration(of) };
        pods.migration_seen(theirs, NOW);
    }
    assert_eq!(plan(&pods), [begin("n3a", "n3")], "two move already, by whomever");
    pods.migration_seen(migration("n3b"), NOW);
    assert_eq!(plan(&pods), []);
}

#[test]
fn one_whose_migration_ended_rests_however_it_ended() {
    for end in 0..4 {
        let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
        runs(&mut pods, "n1", "a", 8);
        pods.pod_seen(on("n1", crate::cluster::other("daemon", 2)));
        let goes = goes("a", "n1");
        pods.migration_sent(&goes);
        match end {
            0 => pods.migration_refused(&goes, NOW),
            1 => {
                pods.migration_seen(migration("a"), NOW);
                // A person deletes it.
                pods.migration_gone(&migration("a").name, "uid of a", NOW);
                // The answer to its creation comes late.
                pods.migration_seen(migration("a"), NOW);
            }
            2 => {
                pods.migration_seen(Migration { is_over: true, ..migration("a") }, NOW);
                pods.migration_seen(migration("a"), NOW);
                pods.migration_gone(&migration("a").name, "uid of a", NOW);
            }
            _ => {
                pods.migration_seen(migration("a"), NOW);
                pods.migrations_listed(Vec::new(), NOW);
            }
        }
        assert_eq!((pods.moving(), plan(&pods)), (0, vec![]), "end {end}");
        assert!(!ask(&pods, "a-pod", 8, 8).moving);
        let later = NOW.after(RESTS);
        assert_eq!(pods.migration_plan(later), [begin("a", "n1")], "end {end}");
    }
}

#[test]
fn a_migration_whose_vm_finds_no_node_is_given_up() {
    let mut pods = cluster(&[("n1", 10), ("n2", 10)]);
    runs(&mut pods, "n1", "a", 2);
    pods.migration_seen(migration("a"), NOW);
    let theirs = Migration { is_ours: false, ..migration("b") };
    pods.migration_seen(theirs, NOW);
    assert_eq!(plan(&pods), []);
    let later = NOW.after(PLACED_WITHIN);
    assert_eq!(pods.migration_plan(later), [delete("a", true)], "others' are left alone");
    let target = Pod { uid: "other".into(), ..pod_of("a", "a-target") };
    pods.pod_seen(on("n2", controlled(target, None)));
    assert_eq!(pods.migration_plan(later), [], "it is placed, and may take its time");
}

#[test]
fn nobody_leaves_before_the_migrations_were_listed() {
    let pools = Pools { watermark: Some(WATERMARK), migration: terms(), ..Pools::default() };
    let mut pods = Pods::of(pools);
    let nodes = [("n1", 10), ("n2", 10)].map(|(name, units)| node(name, cu(units)));
    pods.nodes_listed(nodes.to_vec(), |_| Held::empty());
    runs(&mut pods, "n1", "a", 8);
    pods.pod_seen(on("n1", crate::cluster::other("daemon", 2)));
    assert_eq!(plan(&pods), []);
    // An earlier plugin asked for this one.
    pods.migrations_listed(vec![migration("a")], NOW);
    assert_eq!(plan(&pods), []);
    assert!(ask(&pods, "a-pod", 8, 8).moving);
}

proptest! {
    /// Whoever is chosen may move, relieves a node above its watermark, and fits below the watermark of another; few move.
    #[test]
    fn a_plan_keeps_its_terms(
        vms in prop::collection::vec((0..4_usize, 1..6_u64, any::<bool>(), any::<bool>()), 0..24),
        per_node in 1..3_usize,
        in_all in 1..5_usize,
        moves in prop::collection::vec(0..24_usize, 0..3),
    ) {
        let names = ["n0", "n1", "n2", "n3"];
        let terms = MigrationTerms { per_node, in_all, ..terms() };
        let mut pods = cluster_of(&names.map(|name| (name, 12)), terms);
        for (nth, (node, units, may_move, speaks)) in vms.iter().enumerate() {
            let vm = format!("vm{nth}");
            let mut pod = pod_of(&vm, &format!("{vm}-pod"));
            pod.vm.as_mut().unwrap().may_move = *may_move;
            pods.pod_seen(on(names[*node], pod));
            if *speaks {
                self::speaks(&pods, &vm, *units);
            }
        }
        for nth in &moves {
            pods.migration_seen(migration(&format!("vm{nth}")), NOW);
        }
        let before = pods.moving();
        let chosen = plan(&pods);
        prop_assert!(before + chosen.len() <= in_all.max(before));
        let mut per: std::collections::BTreeMap<String, usize> = Default::default();
        let mut seen = BTreeSet::new();
        for step in chosen {
            let Step::Begin(goes) = step else { return Err(TestCaseError::fail("a deletion")) };
            let nth: usize = goes.vm.name.trim_start_matches("vm").parse().unwrap();
            let (node, units, may_move, speaks) = vms[nth];
            prop_assert!(may_move && speaks && !moves.contains(&nth) && seen.insert(nth));
            prop_assert_eq!(&goes.node, names[node]);
            *per.entry(goes.node.clone()).or_default() += 1;
            prop_assert!(per[&goes.node] <= per_node);
            let reserved = |name: &str| pods.node(name).unwrap().summary().reserved.cpu.milli();
            prop_assert!(reserved(&goes.node) * 1000 > WATERMARK * 12_000);
            let takes = |name: &&str| {
                reserved(name) + units * 1000 <= 12_000 * WATERMARK / 1000
            };
            prop_assert!(names.iter().filter(|name| **name != goes.node).any(takes));
        }
    }
}

pub(crate) fn terms() -> MigrationTerms {
    MigrationTerms { per_node: 1, in_all: 4, rests: RESTS, placed_within: PLACED_WITHIN }
}

fn cluster(nodes: &[(&str, u64)]) -> Pods<Held> {
    cluster_of(nodes, terms())
}

/// These nodes, with a watermark, and no migration.
fn cluster_of(nodes: &[(&str, u64)], migration: MigrationTerms) -> Pods<Held> {
    let mut pods = Pods::of(Pools { watermark: Some(WATERMARK), migration, ..Pools::default() });
    let nodes = nodes.iter().map(|(name, units)| node(name, cu(*units)));
    pods.nodes_listed(nodes.collect(), |_| Held::empty());
    pods.migrations_listed(Vec::new(), NOW);
    pods
}

/// A pod of a NeonVM VM that may be moved. It requests one unit.
pub(crate) fn pod_of(vm: &str, pod: &str) -> Pod {
    let of_vm = PodVm {
        object: VmName::on_host(vm),
        bounds: Bounds { min: cu(1), max: cu(MOST) },
        priority: 0,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        ceiling: None,
        controller: Some(format!("uid of {vm}").into()),
        may_move: true,
        is_enabled: true,
        container: None,
        scaling: None,
        problems: Vec::new(),
    };
    let pod = crate::cluster::other(pod, 1);
    Pod { vm: Some(Box::new(of_vm)), phase: Phase::Running, ..pod }
}

pub(crate) fn controlled(mut pod: Pod, by: Option<&str>) -> Pod {
    pod.vm.as_mut().unwrap().controller = by.map(Into::into);
    pod
}

/// A VM is on a node and has this.
pub(crate) fn runs(pods: &mut Pods<Held>, node: &str, vm: &str, units: u64) {
    pods.pod_seen(on(node, pod_of(vm, &format!("{vm}-pod"))));
    speaks(pods, vm, units);
}

/// Its agent says that it has this.
pub(crate) fn speaks(pods: &Pods<Held>, vm: &str, units: u64) {
    let pod = VmName::on_host(format!("{vm}-pod"));
    let ask = Ask { last_permit: Some(cu(units)), ..Ask::from(cu(units)) };
    pods.node_of(&pod).unwrap().with_books(|books| permit(books, NOW, &pod, ask));
}

pub(crate) fn grows(pods: &Pods<Held>, vm: &str, last: u64, units: u64) {
    assert_eq!(ask(pods, &format!("{vm}-pod"), last, units).permit, cu(units));
}

pub(crate) fn plan(pods: &Pods<Held>) -> Vec<Step> {
    pods.migration_plan(NOW)
}

pub(crate) fn goes(vm: &str, node: &str) -> Move {
    let (vm, pod) = (VmName::on_host(vm), VmName::on_host(format!("{vm}-pod")));
    Move { object: format!("uid of {}", vm.name), vm, pod, node: node.to_owned() }
}

pub(crate) fn begin(vm: &str, node: &str) -> Step {
    Step::Begin(goes(vm, node))
}

pub(crate) fn migration(vm: &str) -> Migration {
    Migration {
        name: VmName::on_host(format!("windlass-{vm}")),
        uid: format!("uid of {vm}"),
        vm: VmName::on_host(vm),
        is_ours: true,
        is_over: false,
    }
}

fn delete(vm: &str, is_given_up: bool) -> Step {
    let Migration { name, uid, .. } = migration(vm);
    Step::Delete { name, uid, is_given_up }
}
