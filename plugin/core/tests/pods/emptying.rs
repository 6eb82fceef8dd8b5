//! VMs that leave a node because it is cordoned: all of them, in turn, and people learn of those that stay.

use crate::cluster::{Held, NOW, cu, node, on};
use crate::leaving::{begin, migration, plan, pod_of, runs, terms};
use std::time::Duration;
use windlass_plugin_core::Pods;
use windlass_plugin_core::pods::{Migration, MigrationTerms, Pools, Step};
use windlass_protocol::node::{Effect, Node, Taint};
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_view::Scaling;
use windlass_protocol::{Moment, VmName};

/// Whoever empties a node waits for each of its VMs: the silence of an agent keeps none.
#[test]
fn every_vm_that_may_be_moved_leaves_a_node_that_is_emptied() {
    let terms = MigrationTerms { per_node: 2, ..terms() };
    let mut pods = emptying(terms, &["n1"]);
    runs(&mut pods, "n1", "a", 1);
    // No agent has spoken for it, so it counts with all that it may have.
    pods.pod_seen(on("n1", pod_of("b", "b-pod")));
    pods.pod_seen(on("n1", forbidding("c")));
    assert_eq!(plan(&pods), [begin("b", "n1"), begin("a", "n1")], "the most room first");
    pods.migration_seen(migration("b"), NOW);
    pods.migration_seen(migration("a"), NOW);
    assert_eq!(plan(&pods), [], "both move");

    let mut pods = emptying(terms, &["n2"]);
    runs(&mut pods, "n1", "a", 1);
    assert_eq!(plan(&pods), [], "its node is not cordoned");
    let pools = Pools { empties_cordoned: false, ..pools(terms) };
    let mut pods = listed(Pods::of(pools), &["n1"]);
    runs(&mut pods, "n1", "a", 9);
    assert_eq!(plan(&pods), [], "a cordon empties no node where nobody said so");
}

/// It is tried again soon, and sooner than on a node that is too full; of a shorter rest the shorter one counts.
#[test]
fn one_whose_migration_ended_rests_for_a_minute_where_its_node_is_emptied() {
    for (rests, rest) in [(600, 60), (60, 60), (10, 10)] {
        let terms = MigrationTerms { rests: Duration::from_secs(rests), ..terms() };
        let mut pods = emptying(terms, &["n1"]);
        runs(&mut pods, "n1", "a", 1);
        ends(&mut pods, "a", NOW);
        let after = |secs| NOW.after(Duration::from_secs(secs));
        assert_eq!(pods.migration_plan(after(rest - 1)), [], "{rests}");
        assert_eq!(pods.migration_plan(after(rest)), [begin("a", "n1")], "{rests}");
    }
}

/// Two that find no place are tried in turn, and the third is not kept by them.
#[test]
fn who_was_tried_lately_goes_after_the_others() {
    let mut pods = emptying(terms(), &["n1"]);
    for (vm, units) in [("a", 3), ("b", 2), ("c", 1)] {
        runs(&mut pods, "n1", vm, units);
    }
    let mut now = NOW;
    for vm in ["a", "b", "c", "a", "b"] {
        now = now.after(Duration::from_secs(120));
        assert_eq!(pods.migration_plan(now), [begin(vm, "n1")]);
        ends(&mut pods, vm, now);
    }
}

/// One node above its watermark and one that is emptied: the second goes first, and both share what may move at a time.
#[test]
fn those_of_an_emptied_node_leave_before_those_of_a_full_one() {
    let terms = MigrationTerms { per_node: 2, in_all: 3, ..terms() };
    let pools = Pools { watermark: Some(800), ..pools(terms) };
    let mut pods = listed(Pods::of(pools), &["n3"]);
    for vm in ["a", "b", "c"] {
        runs(&mut pods, "n1", vm, 3);
    }
    for vm in ["x", "y", "z"] {
        runs(&mut pods, "n3", vm, 1);
    }
    assert_eq!(plan(&pods), [begin("x", "n3"), begin("y", "n3"), begin("a", "n1")]);
    // Below its watermark the other node has room for eight.
    runs(&mut pods, "n2", "d", 8);
    assert_eq!(plan(&pods), [], "there is no place below a watermark");
}

/// The place of one that was told to leave is not another's, before its second pod is there.
#[test]
fn two_nodes_that_are_emptied_at_once_do_not_share_one_place() {
    let mut pods = emptying(terms(), &["n1", "n3"]);
    runs(&mut pods, "n1", "a", 6);
    runs(&mut pods, "n3", "b", 6);
    assert_eq!(plan(&pods), [begin("a", "n1")]);
    pods.migration_seen(migration("a"), NOW);
    assert_eq!(plan(&pods), [], "the room is that of a");
    let target = Pod { uid: "target".into(), ..pod_of("a", "a-target") };
    pods.place(&target, "n2").unwrap();
    assert_eq!(plan(&pods), [], "and so it is once a has its place");
}

/// A node that takes no pods is no place to go.
#[test]
fn nobody_leaves_for_a_node_that_takes_no_pods() {
    let tainted = |key| tainted("n2", key);
    let is_short = Node { has_memory_pressure: true, ..again("n2") };
    for (other, is_chosen) in [
        (Node { is_unschedulable: true, ..again("n2") }, false),
        (tainted("node.kubernetes.io/unreachable"), false),
        (tainted("node.kubernetes.io/not-ready"), false),
        (is_short, false),
        (tainted("example.com/vms"), true),
        (again("n2"), true),
    ] {
        let pools = Pools { watermark: Some(800), empties_cordoned: false, ..pools(terms()) };
        let mut pods = Pods::of(pools);
        let nodes = vec![node("n1", cu(10)), other.clone()];
        pods.nodes_listed(nodes, |_| Held::empty());
        pods.migrations_listed(Vec::new(), NOW);
        for vm in ["a", "b", "c"] {
            runs(&mut pods, "n1", vm, 3);
        }
        let expected: Vec<Step> = is_chosen.then(|| begin("a", "n1")).into_iter().collect();
        assert_eq!(plan(&pods), expected, "{other:?}");
    }
}

/// An operator reads why a drain does not end.
#[test]
fn a_vm_that_stays_on_a_node_that_is_emptied_says_why() {
    let mut pods = emptying(terms(), &["n1"]);
    runs(&mut pods, "n1", "leaves", 1);
    pods.pod_seen(on("n1", forbidding("stays")));
    runs(&mut pods, "n1", "large", 8);
    runs(&mut pods, "n2", "there", 5);
    let words = |pods: &Pods<Held>, vm: &str| {
        let views = pods.views_of(NOW, NOW, &VmName::on_host(vm)).vms;
        let condition = &views[0].condition;
        (condition.reason, condition.message.clone())
    };
    let cannot = |why: &str| {
        let words = format!("The node is cordoned, and the VM cannot leave it: {why}.");
        (Scaling::NodeCordoned, words)
    };
    assert_eq!(words(&pods, "leaves").0, Scaling::Following);
    let label = "its object has no label windlass.dev/may-move: \"true\"";
    assert_eq!(words(&pods, "stays"), cannot(label));
    assert_eq!(words(&pods, "large"), cannot("no other node has room for 8 vCPU / 8GiB"));
    assert_eq!(words(&pods, "there").0, Scaling::Following, "nobody leaves its node");
    pods.pod_seen(on("n1", crate::cluster::vm("own", 1)));
    assert_eq!(words(&pods, "own"), cannot("a pod that is a VM itself cannot be moved"));
    pods.migration_seen(migration("large"), NOW);
    assert_eq!(words(&pods, "large").0, Scaling::Moving, "a person has it move");
    pods.migration_gone(&migration("large").name, "uid of large", NOW);
    assert_eq!(plan(&pods), [begin("leaves", "n1")]);

    let silent = tainted("n1", "node.kubernetes.io/unreachable");
    let silent = Node { is_unschedulable: true, ..silent };
    pods.node_seen(&silent, || unreachable!("its books are there"));
    assert_eq!(words(&pods, "leaves"), cannot("the kubelet of the node is silent"));
    assert_eq!(plan(&pods), [], "its migration would not end");
}

fn pools(migration: MigrationTerms) -> Pools {
    Pools { empties_cordoned: true, migration, ..Pools::default() }
}

/// Three nodes of ten units where these are cordoned, and so emptied.
fn emptying(terms: MigrationTerms, cordoned: &[&str]) -> Pods<Held> {
    listed(Pods::of(pools(terms)), cordoned)
}

fn listed(mut pods: Pods<Held>, cordoned: &[&str]) -> Pods<Held> {
    let of = |name: &str| Node { is_unschedulable: cordoned.contains(&name), ..node(name, cu(10)) };
    // The third is there where it is cordoned.
    let names = ["n1", "n2", "n3"].into_iter();
    let names = names.filter(|name| *name != "n3" || cordoned.contains(name));
    pods.nodes_listed(names.map(of).collect(), |_| Held::empty());
    pods.migrations_listed(Vec::new(), NOW);
    pods
}

/// A later revision of a node of ten units.
fn again(name: &str) -> Node {
    Node { revision: "again".to_owned(), ..node(name, cu(10)) }
}

/// The same, with this taint.
fn tainted(name: &str, key: &str) -> Node {
    let (key, value) = (key.to_owned(), String::new());
    Node { taints: vec![Taint { key, value, effect: Effect::NoSchedule }], ..again(name) }
}

fn forbidding(vm: &str) -> Pod {
    let mut pod = pod_of(vm, &format!("{vm}-pod"));
    pod.vm.as_mut().unwrap().may_move = false;
    pod
}

/// The migration of a VM ends at this moment, and the VM is where it was.
fn ends(pods: &mut Pods<Held>, vm: &str, now: Moment) {
    let uid = format!("uid of {vm} at {}", now.millis());
    let migration = Migration { uid: uid.clone(), ..migration(vm) };
    pods.migration_seen(migration.clone(), now);
    pods.migration_gone(&migration.name, &uid, now);
}
