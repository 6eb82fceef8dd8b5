//! Which VMs of a node are managed, let go, counted and forgotten.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests need the rest of it")]
#[path = "support/vm.rs"]
mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use windlass_agent_core::roster::Step;
use windlass_agent_core::{Desired, Guest, Lifecycle, Order, Roster, Vm};
use windlass_protocol::{Resources, VmInfo, VmName};

use Lifecycle::{Managed, Released, Removed};

/// What happens to one VM.
#[derive(Clone, Copy, Debug)]
enum Move {
    Declare(i32),
    TakeBack(i32),
    Recall(Lifecycle),
    Withdraw,
    Release(bool),
    Freeze(bool),
    Gone,
    /// The shell does what is planned.
    Act,
}

/// A change, and how a VM stands after it: one that was unknown, managed, released or removed.
type Row = (&'static str, fn(&mut Roster), [Option<Lifecycle>; 4]);

#[test]
fn each_change_leads_from_one_standing_to_the_next() {
    let table: [Row; 6] = [
        (
            "declare",
            |r| declare(r, 1),
            [Some(Managed), Some(Managed), Some(Released), Some(Managed)],
        ),
        ("manage", |r| r.manage(vm(1)), [Some(Managed); 4]),
        (
            "withdraw",
            |r| _ = r.withdraw(&name()),
            [None, Some(Removed), Some(Removed), Some(Removed)],
        ),
        (
            "release",
            |r| _ = r.release(&name(), None),
            [None, Some(Released), Some(Released), Some(Released)],
        ),
        (
            "recall",
            |r| r.recall(name(), Removed),
            [Some(Removed), Some(Managed), Some(Released), Some(Removed)],
        ),
        ("gone", |r| _ = r.gone(&name()), [None, Some(Managed), Some(Released), None]),
    ];
    for (change, apply, after) in table {
        let before = [None, Some(Managed), Some(Released), Some(Removed)];
        for (before, after) in before.into_iter().zip(after) {
            let mut roster = Roster::default();
            if let Some(before) = before {
                roster.recall(name(), before);
            }
            apply(&mut roster);
            assert_eq!(roster.lifecycle(&name()), after, "{change} of {before:?}");
        }
    }
}

#[test]
fn an_order_follows_from_standing_release_and_frost() {
    let size = Some(Resources::ZERO);
    for (lifecycle, release, frozen, order) in [
        (Managed, None, false, Order::Follow),
        (Managed, None, true, Order::Freeze),
        (Released, None, false, Order::Release(None)),
        (Released, None, true, Order::Release(None)),
        (Released, size, false, Order::Release(size)),
        // Moving to the size that it is let go with waits for the thaw.
        (Released, size, true, Order::Freeze),
        (Removed, None, false, Order::Release(None)),
        (Removed, size, true, Order::Release(None)),
    ] {
        let mut roster = Roster::default();
        roster.manage(vm(1));
        roster.freeze(frozen);
        if lifecycle == Released || release.is_some() {
            roster.release(&name(), release);
        }
        if lifecycle == Removed {
            roster.withdraw(&name());
        }
        let desired = roster.desired(&name()).unwrap();
        assert_eq!((desired.lifecycle, desired.order), (lifecycle, order), "{release:?} {frozen}");
    }
}

#[test]
fn what_stood_before_a_restart_stands_by_what_is_declared_after_it() {
    for (before, declared, after) in [
        (Managed, Some(true), Managed),
        (Managed, Some(false), Removed),
        (Managed, None, Removed),
        (Released, Some(true), Released),
        (Released, Some(false), Removed),
        (Released, None, Released),
        (Removed, Some(true), Managed),
        (Removed, Some(false), Removed),
        (Removed, None, Removed),
    ] {
        assert_eq!(before.after_restart(declared), after, "{before} {declared:?}");
    }
}

#[test]
fn what_a_source_no_longer_has_is_withdrawn_once() {
    let mut roster = Roster::default();
    roster.manage(vm(1));
    roster.recall(VmName::on_host("b"), Released);
    roster.recall(VmName::on_host("c"), Removed);
    assert_eq!(roster.undeclared(|_| true), []);
    let all = [name(), VmName::on_host("b")];
    assert_eq!(roster.undeclared(|_| false), all);
    assert!(all.iter().all(|vm| roster.withdraw(vm)));
    assert_eq!(roster.undeclared(|_| false), []);
}

#[test]
fn standings_have_words() {
    let words = [Managed, Released, Removed].map(|lifecycle| lifecycle.to_string());
    assert_eq!(words, ["managed", "released", "removed"]);
}

proptest! {
    /// Whatever happens, and however rarely the shell acts: it ends up where it would be had it
    /// acted on each change, and then has nothing to do.
    #[test]
    fn a_plan_that_is_lost_is_made_again(moves in vec(move_of(), 0..40)) {
        let mut roster = Roster::default();
        let mut runners = BTreeMap::new();
        for made in moves {
            play(&mut roster, &mut runners, made);
        }
        act(&roster, &mut runners);
        prop_assert_eq!(runners.get(&name()).cloned(), roster.desired(&name()));
        prop_assert_eq!(roster.plan(&name(), runners.get(&name())), None);
    }

    /// Nothing but a person, or the end of its declaration, takes a VM out of a release.
    #[test]
    fn a_released_vm_stays_released(moves in vec(move_of(), 0..40), size in any::<bool>()) {
        let mut roster = Roster::default();
        roster.manage(vm(0));
        roster.release(&name(), size.then_some(Resources::ZERO));
        let before = roster.desired(&name()).unwrap().vm;
        for made in moves {
            if matches!(made, Move::TakeBack(_) | Move::Withdraw) {
                continue;
            }
            play(&mut roster, &mut BTreeMap::new(), made);
            prop_assert_eq!(roster.lifecycle(&name()), Some(Released));
            prop_assert_eq!(&roster.desired(&name()).unwrap().vm, &before);
        }
    }

    /// A VM is forgotten where its hypervisor was found gone and nothing declares it, and for no
    /// other reason.
    #[test]
    fn a_vm_is_forgotten_only_once_it_is_gone(moves in vec(move_of(), 0..40)) {
        let mut roster = Roster::default();
        roster.manage(vm(0));
        for made in moves {
            let before = roster.lifecycle(&name());
            play(&mut roster, &mut BTreeMap::new(), made);
            let forgotten = before.is_some() && roster.lifecycle(&name()).is_none();
            let gone = matches!(made, Move::Gone) && before == Some(Removed);
            prop_assert_eq!(forgotten, gone);
        }
    }

    /// On a frozen node no VM is ordered to move.
    #[test]
    fn nothing_moves_on_a_frozen_node(moves in vec(move_of(), 0..40)) {
        let mut roster = Roster::default();
        for made in moves {
            play(&mut roster, &mut BTreeMap::new(), made);
            roster.freeze(true);
            let order = roster.desired(&name()).map(|desired| desired.order);
            prop_assert!(!matches!(order, Some(Order::Follow | Order::Release(Some(_)))), "{order:?}");
        }
    }
}

fn move_of() -> impl Strategy<Value = Move> {
    let lifecycle = prop_oneof![Just(Managed), Just(Released), Just(Removed)];
    prop_oneof![
        (0..3).prop_map(Move::Declare),
        (0..3).prop_map(Move::TakeBack),
        lifecycle.prop_map(Move::Recall),
        Just(Move::Withdraw),
        any::<bool>().prop_map(Move::Release),
        any::<bool>().prop_map(Move::Freeze),
        Just(Move::Gone),
        Just(Move::Act),
    ]
}

fn play(roster: &mut Roster, runners: &mut BTreeMap<VmName, Desired>, made: Move) {
    match made {
        Move::Declare(priority) => declare(roster, priority),
        Move::TakeBack(priority) => roster.manage(vm(priority)),
        Move::Recall(lifecycle) => roster.recall(name(), lifecycle),
        Move::Withdraw => _ = roster.withdraw(&name()),
        Move::Release(size) => {
            _ = roster.release(&name(), size.then_some(Resources::ZERO));
        }
        Move::Freeze(frozen) => roster.freeze(frozen),
        Move::Gone => _ = roster.gone(&name()),
        Move::Act => act(roster, runners),
    }
}

/// What a shell does when something declares the VM.
fn declare(roster: &mut Roster, priority: i32) {
    if roster.heeds(&name()) {
        roster.manage(vm(priority));
    }
}

/// What a shell does.
fn act(roster: &Roster, runners: &mut BTreeMap<VmName, Desired>) {
    match roster.plan(&name(), runners.get(&name())) {
        Some(Step::Start(desired)) => assert_eq!(runners.insert(name(), desired), None),
        Some(Step::Tell(desired)) => assert!(runners.insert(name(), desired).is_some()),
        Some(Step::Stop) => assert!(runners.remove(&name()).is_some()),
        None => {}
    }
}

fn vm(priority: i32) -> Vm {
    let guest = Guest { informant: ([127, 0, 0, 1], 1).into(), advertise: None, metrics: None };
    Vm { info: VmInfo { name: name(), priority, ..support::info() }.into(), guest }
}

fn name() -> VmName {
    VmName::on_host("a")
}
