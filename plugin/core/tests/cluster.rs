//! Several nodes: which of them know a VM, and what a new declaration makes of what was promised.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_plugin_core::cluster::{Cluster, DeclaredVm, Node, Place};
use windlass_plugin_core::{Ask, Books, VmRecord};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

const NOW: Moment = Moment::from_millis(1_000_000);

#[test]
fn a_vm_that_is_being_moved_has_room_on_both_nodes_and_is_answered_by_the_first() {
    let mut cluster = cluster(&[("a", on("one"))]);
    ask(&mut cluster, "a", 3);
    declare(&mut cluster, &[("a", Place::Between { from: "one".into(), to: "two".into() })]);
    assert_eq!(booked(&cluster, "one", "a"), Some(cu(3)));
    assert_eq!(booked(&cluster, "two", "a"), Some(cu(3)), "no more than it has");
    assert_eq!(ask(&mut cluster, "a", 4), 3, "it keeps its size");

    // It has arrived: the room that it had is free, and its agent is asked there.
    declare(&mut cluster, &[("a", on("two"))]);
    assert_eq!(booked(&cluster, "one", "a"), None);
    assert_eq!(ask(&mut cluster, "a", 4), 4);
    assert_eq!(booked(&cluster, "two", "a"), Some(cu(4)));
}

#[test]
fn a_move_that_is_given_up_leaves_nothing_behind() {
    let mut cluster = cluster(&[("a", on("one"))]);
    ask(&mut cluster, "a", 2);
    declare(&mut cluster, &[("a", Place::Between { from: "one".into(), to: "two".into() })]);
    declare(&mut cluster, &[("a", on("one"))]);
    assert_eq!(booked(&cluster, "two", "a"), None);
    assert_eq!(ask(&mut cluster, "a", 3), 3, "it may grow again");
}

#[test]
fn a_vm_of_the_same_name_with_another_uid_inherits_nothing() {
    let mut cluster = cluster(&[]);
    for (uid, asks) in [("first", 4), ("second", 1)] {
        let vm = DeclaredVm { uid: Some(uid.into()), ceiling: cu(1), ..vm(on("one")) };
        cluster.declare(&rooms(), BTreeMap::from([(name("a"), vm)]), hold);
        assert_eq!(booked(&cluster, "one", "a"), Some(cu(1)), "{uid}");
        ask(&mut cluster, "a", asks);
    }
    // Declared once more it is the same.
    let second = DeclaredVm { uid: Some("second".into()), ..vm(on("one")) };
    cluster.declare(&rooms(), BTreeMap::from([(name("a"), second)]), hold);
    assert_eq!(booked(&cluster, "one", "a"), Some(cu(1)));
}

#[test]
fn declaring_anew_forgets_nothing_and_a_vm_elsewhere_counts_with_its_ceiling_at_least() {
    let mut cluster = cluster(&[("a", on("one")), ("b", on("one"))]);
    assert_eq!(booked(&cluster, "one", "b"), Some(cu(2)), "its ceiling");
    ask(&mut cluster, "a", 3);
    declare(&mut cluster, &[("a", on("one")), ("b", on("one"))]);
    assert_eq!(booked(&cluster, "one", "a"), Some(cu(3)));
    declare(&mut cluster, &[("a", on("two")), ("b", on("nowhere"))]);
    assert_eq!(booked(&cluster, "two", "a"), Some(cu(3)), "what it was promised elsewhere");
    assert!(cluster.node_of(&name("b")).is_none(), "its node is not declared");
    let reserved = cluster.nodes()["one"].with_books(|books| books.reserved());
    assert_eq!(reserved, Resources::ZERO);
}

/// The books of a node, for one thread.
struct Held(RefCell<Books>);

impl Node for Held {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        ask(&mut self.0.borrow_mut())
    }
}

fn cluster(vms: &[(&str, Place)]) -> Cluster<Held> {
    let mut cluster = Cluster::default();
    declare(&mut cluster, vms);
    cluster
}

fn declare(cluster: &mut Cluster<Held>, vms: &[(&str, Place)]) {
    let vms = vms.iter().map(|(of, place)| (name(of), vm(place.clone())));
    cluster.declare(&rooms(), vms.collect(), hold);
}

/// What the agent of a VM is permitted, in compute units, when it asks the node that answers it.
fn ask(cluster: &mut Cluster<Held>, vm: &str, wanted: u64) -> u64 {
    let ask = Ask { last_permit: Some(Resources::ZERO), ..Ask::from(cu(wanted)) };
    let node = cluster.node_of(&name(vm)).unwrap();
    let granted = node.with_books(|books| books.request(NOW, &name(vm), ask)).unwrap();
    granted.permit.cpu.milli() / 1000
}

fn booked(cluster: &Cluster<Held>, node: &str, vm: &str) -> Option<Resources> {
    cluster.nodes()[node].with_books(|books| books.reserved_for(&name(vm)))
}

fn vm(place: Place) -> DeclaredVm {
    let record = VmRecord { grain: cu(1), ..VmRecord::default() };
    DeclaredVm { uid: None, place, record, ceiling: cu(2) }
}

fn on(node: &str) -> Place {
    Place::On(node.into())
}

fn rooms() -> BTreeMap<String, Resources> {
    ["one", "two"].into_iter().map(|node| (node.to_owned(), cu(8))).collect()
}

fn hold(_: &str, known: Option<Held>) -> Held {
    known.unwrap_or_else(|| Held(RefCell::new(Books::new(Resources::ZERO))))
}

fn name(vm: &str) -> Arc<VmName> {
    Arc::new(VmName::on_host(vm))
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
