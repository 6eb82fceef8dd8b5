//! What is read of a guest while its memory is on its way out, and what ends that.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, agreed, cu, settings};
use windlass_agent_core::{Action, Call, Event, Failure};
use windlass_protocol::status::SessionState;
use windlass_protocol::{
    Bounds, Bytes, Capabilities, MemorySeen, Peer, Resize, Resources, RunState, Seen, ShrinkCpu,
    VmInfo,
};
use windlass_scaling::Sample;

#[test]
fn what_looks_like_use_while_memory_goes_out_calls_nothing_off() {
    for settled in [false, true] {
        let mut vm = Vm::that_agreed_to_less();
        vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
        vm.tell(Event::Sent(Action::Measure));
        vm.answered(Action::Look, Event::Seen(seen(2, if settled { 2 } else { 3 })));
        // A block that goes is not available any more, and not yet gone.
        vm.tell(Event::Measured(vm.report_of(1)));
        assert_eq!(vm.goal(), gib(1), "of three, two seem to be in use");
    }
}

#[test]
fn what_was_asked_for_before_the_shrink_and_answered_in_it_is_no_use_either() {
    let mut vm = Vm::that_agreed_to_less();
    vm.tell(Event::Sent(Action::Measure));
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.tell(Event::Measured(vm.report_of(1)));
    assert_eq!(vm.goal(), gib(1));
}

#[test]
fn a_guest_that_is_stuck_with_its_memory_is_believed_again() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.answered(Action::Look, Event::Seen(seen(2, 3)));
    vm.wait(9_000);
    vm.answered(Action::Measure, Event::Measured(vm.report_of(1)));
    assert_eq!(vm.goal(), gib(1));
    vm.wait(1_000);
    vm.answered(Action::Measure, Event::Measured(vm.report_of(1)));
    assert_eq!(vm.goal(), gib(3));
}

#[test]
fn use_that_grows_while_nothing_goes_out_counts_at_once() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Measure, Event::Measured(vm.report_of(1)));
    assert_eq!(vm.goal(), gib(3));
}

#[test]
fn who_loses_its_session_calls_off_what_it_takes() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.loses_its_session();
    vm.answered(Action::Look, Event::Seen(seen(2, 3)));
    assert_eq!(vm.resizes(), [Resize::Memory(gib(3))]);
}

/// The agent that acts in its place may have begun to take that memory.
#[test]
fn who_is_told_to_wait_calls_nothing_off() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.scaler.call(vm.now, Call::Suspend(vm.id));
    assert_eq!(vm.scaler.session(), SessionState::Suspended);
    vm.answered(Action::Look, Event::Seen(seen(2, 3)));
    assert_eq!(vm.resizes(), []);
}

#[test]
fn what_was_agreed_to_is_not_taken_in_a_later_session() {
    let mut vm = Vm::that_agreed_to_less();
    assert_eq!(vm.resizes(), [Resize::Memory(gib(2))]);
    vm.loses_its_session();
    vm.passes(6_000);
    vm.registers();
    vm.answered(Action::Look, Event::Seen(seen(3, 3)));
    vm.answered(Action::Measure, Event::Measured(vm.report_of(3)));
    assert_eq!(vm.goal(), gib(1));
    assert_eq!(vm.resizes(), []);
}

impl Vm {
    /// An idle VM of one vCPU and three GiB, with a session.
    fn that_agreed_to_less() -> Self {
        let (min, max) = (cu(1), Resources { mem: gib(4), ..cu(1) });
        let can = Capabilities { max, ..vm::capabilities(ShrinkCpu::Parking) };
        let info = VmInfo { bounds: Bounds { min, max }, ..vm::info() };
        let mut vm = Self::that_can(can, settings(), info, seen(3, 3));
        vm.registers();
        vm.answered(Action::Look, Event::Seen(seen(3, 3)));
        vm.answered(Action::Measure, Event::Measured(vm.report_of(3)));
        vm.answered(vm.downscale(Resources { mem: gib(2), ..cu(1) }), agreed());
        vm
    }

    /// Its informant knows nothing of it: it started anew.
    fn loses_its_session(&mut self) {
        let unknown = Event::Failed(Peer::Informant, Failure::Refused(404));
        self.answered(Action::CheckHealth(self.id), unknown);
        assert_eq!(self.scaler.session(), SessionState::Absent);
    }

    fn resizes(&self) -> Vec<Resize> {
        let resize = |action| {
            let Action::Resize(resize) = action else { return None };
            Some(resize)
        };
        self.scaler.plan(self.now).actions.into_iter().filter_map(resize).collect()
    }

    fn goal(&self) -> Bytes {
        self.scaler.status(self.now).goal.unwrap().mem
    }

    /// A guest without load, of whose three GiB this many are available.
    fn report_of(&self, available: u64) -> Sample {
        Sample { total: Some(gib(3)), available: Some(gib(available)), ..self.report(1) }
    }
}

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

fn seen(requested: u64, size: u64) -> Seen {
    let memory = MemorySeen { boot: gib(1), requested: gib(requested - 1), size: gib(size - 1) };
    Seen { plugged: cu(1).cpu, limit: None, found_limit: None, memory, state: RunState::Running }
}
