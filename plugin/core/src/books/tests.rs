//! What the books come to, kept with each change, against the same found out anew.

use super::*;
use crate::tally::Tally;
use proptest::prelude::*;
use std::time::Duration;
use windlass_protocol::status::Booked;

#[derive(Clone, Debug)]
enum Act {
    Enter(usize, u64),
    Presume(usize, u64),
    Update(usize, i32, u64),
    Leave(usize),
    Count(usize, u64),
    Witness(usize, u64),
    Moves(usize, bool),
    Ask(usize, u64, Option<u64>),
    Room(u64),
    Hold(bool, bool),
    Wait(u64),
}

proptest! {
    #[test]
    fn what_the_books_come_to_is_what_is_in_them(acts in prop::collection::vec(act(), 1..60)) {
        let (mut books, mut now) = (Books::new(cu(12)), Moment::default());
        for act in acts {
            now = play(&mut books, now, act);
            prop_assert_eq!(&books.tally, &anew(&books));
            let ends = books.vms.values().filter_map(|entry| entry.claim).map(|claim| claim.until);
            if let Some(end) = ends.min() {
                prop_assert!(books.claims_end.is_some_and(|early| early <= end));
            }
            // A division that was kept is the one that would be made now.
            let mut fresh = books.clone();
            fresh.tally = anew(&books);
            for axis in [Axis::Cpu, Axis::Memory] {
                for free in [0, axis.of(cu(1)), axis.of(cu(3))] {
                    prop_assert_eq!(books.tally.divided(axis, free), fresh.tally.divided(axis, free));
                    for vm in 0..VMS {
                        let vm = name(vm);
                        let others = others(&mut books, axis, free, &vm);
                        prop_assert_eq!(others, self::others(&mut fresh, axis, free, &vm));
                    }
                }
            }
        }
    }
}

/// The VMs that a shortage of this VM names.
fn others(books: &mut Books, axis: Axis, free: u64, vm: &VmName) -> Arc<[Booked]> {
    if !books.tally.names_known(axis, free) {
        Books::name_others(&mut books.tally, &books.vms, axis, free);
    }
    books.tally.named(axis, vm)
}

/// More than are named in a shortage.
const VMS: usize = 12;

fn act() -> impl Strategy<Value = Act> {
    let vm = 0..VMS;
    prop_oneof![
        2 => (vm.clone(), 0..4_u64).prop_map(|(vm, has)| Act::Enter(vm, has)),
        1 => (vm.clone(), 0..4_u64).prop_map(|(vm, has)| Act::Presume(vm, has)),
        1 => (vm.clone(), 0..3, 0..2_u64).prop_map(|(vm, p, min)| Act::Update(vm, p, min)),
        1 => vm.clone().prop_map(Act::Leave),
        1 => (vm.clone(), 0..4_u64).prop_map(|(vm, has)| Act::Count(vm, has)),
        1 => (vm.clone(), 0..4_u64).prop_map(|(vm, has)| Act::Witness(vm, has)),
        1 => (vm.clone(), any::<bool>()).prop_map(|(vm, moves)| Act::Moves(vm, moves)),
        6 => (vm, 0..6_u64, prop::option::of(0..6_u64)).prop_map(|(vm, w, l)| Act::Ask(vm, w, l)),
        1 => (4..20_u64).prop_map(Act::Room),
        1 => any::<(bool, bool)>().prop_map(|(cordon, pressure)| Act::Hold(cordon, pressure)),
        1 => (1..12_u64).prop_map(Act::Wait),
    ]
}

fn play(books: &mut Books, now: Moment, act: Act) -> Moment {
    let record = VmRecord { grain: cu(1), ..VmRecord::default() };
    match act {
        Act::Enter(vm, has) => books.enter(name(vm), record, cu(has)),
        Act::Presume(vm, has) => books.presume(name(vm), record, cu(has)),
        Act::Update(vm, priority, min) => {
            books.update(&name(vm), VmRecord { priority, min: cu(min), ..record });
        }
        Act::Leave(vm) => books.leave(&name(vm)),
        Act::Count(vm, has) => books.count(&name(vm), cu(has)),
        Act::Witness(vm, has) => books.witness(&name(vm), cu(has)),
        Act::Moves(vm, moves) => books.set_moving(&name(vm), moves),
        Act::Ask(vm, wanted, last) => {
            let ask = Ask { wanted: cu(wanted), last_permit: last.map(cu), ..Ask::default() };
            // Of a VM that is not there, or is about to be moved, it is refused.
            let _ = books.request(now, &name(vm), ask);
        }
        Act::Room(room) => books.set_room(cu(room)),
        Act::Hold(is_cordoned, has_memory_pressure) => {
            books.set_hold(Hold { is_cordoned, has_memory_pressure });
        }
        Act::Wait(seconds) => return now.after(Duration::from_secs(seconds)),
    }
    now
}

fn anew(books: &Books) -> Tally {
    let mut tally = Tally::default();
    for (name, entry) in books.vms.in_order() {
        tally.change(name, None, Some(entry.part()));
    }
    tally
}

fn name(vm: usize) -> VmName {
    VmName::on_host(format!("vm{vm}"))
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
