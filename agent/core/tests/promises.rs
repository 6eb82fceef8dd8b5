//! What a driver promises of order and time, and how long the agent waits because of it.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use std::time::Duration;
use vm::{Vm, agreed, cu, seen, settings};
use windlass_agent_core::{Action, Event, Failure};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, Peer, Promises, Resize, Resources, Seen, ShrinkCpu, Waiting,
};

const LATE: Promises = Promises { settles_within: Duration::from_secs(20), ..Promises::IN_ORDER };

#[test]
fn a_resize_counts_until_its_driver_promises_that_it_shows() {
    for answer in [Event::Resized, Event::Failed(Peer::Hypervisor, Failure::NoAnswer)] {
        let mut vm = Vm::of_a_driver_that_promises(LATE, seen(1));
        vm.answered(Action::Resize(Resize::Cpu(cu(2).cpu)), answer);
        for _ in 0..19 {
            vm.passes(1_000);
            vm.answered(Action::Look, Event::Seen(seen(1)));
            assert_eq!(vm.upper().cpu, cu(2).cpu);
            assert!(!vm.scaler.is_settled() && !vm.scaler.is_quiet());
            assert!(!vm.looks_now(), "no sooner than it is worth its cost");
        }
        vm.passes(1_000);
        assert!(vm.looks_now());
        vm.answered(Action::Look, Event::Seen(seen(1)));
        assert_eq!(vm.upper(), cu(1), "it never comes");
        assert!(vm.scaler.is_settled());
    }
}

#[test]
fn a_look_under_way_when_a_resize_settles_is_too_early() {
    let mut vm = Vm::of_a_driver_that_promises(LATE, seen(1));
    vm.answered(Action::Resize(Resize::Cpu(cu(2).cpu)), Event::Resized);
    vm.passes(19_999);
    vm.tell(Event::Sent(Action::Look));
    vm.passes(1);
    vm.tell(Event::Seen(seen(1)));
    assert_eq!(vm.upper().cpu, cu(2).cpu);
    assert!(vm.looks_now(), "one that begins now settles it");
}

#[test]
fn a_resize_that_shows_early_is_not_waited_for() {
    let mut vm = Vm::of_a_driver_that_promises(LATE, seen(1));
    vm.answered(Action::Resize(Resize::Memory(cu(2).mem)), Event::Resized);
    vm.passes(1_000);
    let has = Seen { plugged: cu(1).cpu, ..seen(2) };
    vm.answered(Action::Look, Event::Seen(has));
    assert!(vm.scaler.is_settled());
    assert_eq!(vm.upper(), has.upper());
}

#[test]
fn what_comes_late_is_asked_for_sooner_and_acted_on_for_less_time() {
    for (lag, looks_after, acts_for) in
        [(0, 2_000, 3_000), (1_000, 1_000, 2_000), (2_500, 200, 500)]
    {
        let promises = Promises { lag: Duration::from_millis(lag), ..Promises::IN_ORDER };
        let mut vm = Vm::of_a_driver_that_promises(promises, seen(1));
        vm.registers();
        vm.answered(Action::Look, Event::Seen(seen(1)));
        assert!(vm.scaler.acts(vm.now));
        vm.passes(looks_after - 1);
        assert!(!vm.looks_now(), "a lag of {lag} ms");
        vm.passes(1);
        assert!(vm.looks_now(), "a lag of {lag} ms");
        vm.passes(acts_for - looks_after - 1);
        assert!(vm.scaler.acts(vm.now), "a lag of {lag} ms");
        vm.passes(1);
        assert!(!vm.scaler.acts(vm.now), "a lag of {lag} ms");
    }
}

#[test]
fn memory_is_stuck_as_late_as_the_driver_says() {
    let stuck_after = Duration::from_secs(60);
    let promises = Promises { stuck_after, ..Promises::IN_ORDER };
    let mut vm = Vm::of_a_driver_that_promises(promises, seen(3));
    vm.registers();
    vm.answered(vm.downscale(Resources { mem: cu(2).mem, ..cu(3) }), agreed());
    vm.answered(Action::Resize(Resize::Memory(cu(2).mem)), Event::Resized);
    let giving = MemorySeen { requested: Bytes::from_gib(1), ..seen(3).memory };
    vm.answered(Action::Look, Event::Seen(Seen { memory: giving, ..seen(3) }));
    let left = Bytes::from_gib(1);
    vm.wait(59_000);
    assert!(vm.waits_for(Waiting::Unplug { left }));
    vm.wait(1_000);
    assert!(vm.waits_for(Waiting::StuckUnplug { left }));
}

impl Vm {
    fn of_a_driver_that_promises(promises: Promises, has: Seen) -> Self {
        let can = Capabilities { promises, ..vm::capabilities(ShrinkCpu::Parking) };
        Self::that_can(can, settings(), vm::info(), has)
    }

    fn looks_now(&self) -> bool {
        self.scaler.plan(self.now).actions.contains(&Action::Look)
    }

    fn waits_for(&self, what: Waiting) -> bool {
        self.scaler.waiting(self.now).contains(&what)
    }
}
