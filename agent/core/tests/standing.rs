//! A VM that its hypervisor does not run, or is about to hand over; and load whose window is not
//! filled.

#[expect(dead_code, clippy::unwrap_used, reason = "other tests use the rest")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, cu, seen};
use windlass_agent_core::{Action, Asking, Charge, Event, Failure, Order};
use windlass_protocol::status::SessionState;
use windlass_protocol::{LoadWindow, Peer, Resources, RunState, Seen, Signal, Waiting};
use windlass_scaling::{Loads, Sample};

/// Every state in which nothing may be resized.
const STOPPED: [RunState; 7] = [
    RunState::Migrating,
    RunState::Saving,
    RunState::Paused,
    RunState::Suspended,
    RunState::ShutDown,
    RunState::Failed,
    RunState::Unknown,
];

#[test]
fn nothing_is_resized_while_qemu_does_not_run_the_vm() {
    for state in STOPPED {
        let mut vm = Vm::that_looked(1);
        vm.permitted(4);
        vm.measures(vm.busy());
        assert!(vm.resizes(), "{state:?}: it would grow");
        vm.is_in(state);
        assert!(!vm.resizes() && !vm.speaks_of_sizes(), "{state:?}");
        let status = vm.scaler.status(vm.now);
        assert_eq!(status.waiting, [Waiting::Stopped { state }]);
        assert_eq!(status.goal, Some(cu(1)));
        assert_eq!(status.reason.map(|reason| reason.signal), Some(Signal::Stopped));
    }
}

#[test]
fn memory_that_is_on_its_way_in_is_waited_for_and_looked_at_often() {
    for (plugged, waits, looks_after) in
        [(cu(2).mem, Waiting::AtGoal, 2_000), (cu(1).mem, Waiting::Hypervisor, 200)]
    {
        let mut vm = Vm::with_session(2);
        let mut has = seen(2);
        has.memory.size = plugged.saturating_sub(has.memory.boot);
        vm.answered(Action::Look, Event::Seen(has));
        vm.answered(Action::Measure, Event::Measured(vm.busy()));
        vm.tell(Event::Ordered(Order::Release(Some(cu(2)))));
        assert!(vm.waits_for(waits), "{:?}", vm.scaler.waiting(vm.now));
        vm.passes(looks_after - 1);
        assert!(!vm.plans(Action::Look), "{looks_after}");
        vm.passes(1);
        assert!(vm.plans(Action::Look), "{looks_after}");
    }
}

#[test]
fn what_is_no_longer_asked_for_is_given_back_whatever_is_answered() {
    let mut vm = Vm::that_looked(1);
    vm.permitted(1);
    vm.measures(vm.busy());
    vm.passes(1_000);
    vm.permitted(4);
    assert_eq!(vm.scaler.status(vm.now).permit, Some(cu(4)));
    vm.measures(vm.idle());
    vm.passes(1_000);
    let asking = vm.asking().unwrap();
    assert_eq!(asking.resources, cu(1));
    vm.tell(Event::Sent(Action::AskPlugin(asking)));
    assert_eq!(vm.scaler.status(vm.now).permit, Some(cu(1)), "the plugin may have heard it");
    vm.tell(Event::Failed(Peer::Plugin, Failure::NoAnswer));
    vm.measures(vm.busy());
    assert!(!vm.resizes(), "what was permitted before says nothing");
}

#[test]
fn growth_waits_for_a_session_before_it_waits_for_the_books() {
    let waits = |mut vm: Vm| {
        vm.tell(Event::Ordered(Order::Release(Some(cu(2)))));
        let of = |waiting| vm.waits_for(waiting);
        (of(Waiting::Session), of(Waiting::Plugin))
    };
    assert_eq!(waits(Vm::seen_with(1)), (true, false));
    assert_eq!(waits(Vm::with_session(1)), (false, true));
}

#[test]
fn a_paused_vm_is_asked_no_permit_for_above_what_it_has() {
    let mut vm = Vm::that_looked(2);
    vm.permitted(2);
    vm.measures(vm.busy());
    vm.passes(1_000);
    assert_eq!(vm.asks_for(), Some(cu(4)));
    vm.is_in(RunState::Paused);
    vm.goes_on(6_000);
    assert_eq!(vm.asks_for(), Some(cu(2)));
    assert_eq!(vm.upper(), cu(2), "and the books keep what it has");
}

#[test]
fn a_shrink_that_began_before_a_pause_waits_for_its_end() {
    let mut vm = Vm::that_looked(3);
    vm.permitted(3);
    vm.measures(vm.report(3));
    vm.answered(vm.downscale(cu(2)), vm::agreed());
    assert!(vm.resizes(), "it takes a unit");
    vm.is_in(RunState::Paused);
    vm.passes(20_000);
    vm.is_in(RunState::Paused);
    assert!(!vm.resizes() && !vm.speaks_of_sizes());
    assert_eq!(vm.upper(), cu(3));
}

#[test]
fn memory_on_its_way_out_is_not_called_off_before_the_vm_runs_again() {
    let mut vm = Vm::that_looked(3);
    let half = |state| {
        let mut seen = Seen { state, ..seen(3) };
        seen.memory.requested = cu(1).mem;
        Event::Seen(seen)
    };
    vm.answered(Action::Look, half(RunState::Paused));
    assert!(!vm.resizes(), "no consent covers it, and the guest cannot give it now");
    vm.answered(Action::Look, half(RunState::Running));
    assert!(vm.resizes());
}

#[test]
fn a_guest_that_stood_still_is_judged_by_what_was_measured_since() {
    let mut vm = Vm::that_looked(2);
    vm.permitted(4);
    vm.is_in(RunState::Paused);
    vm.passes(60_000);
    vm.is_in(RunState::Running);
    vm.checked();
    // Its clock stood still: what its informant says of the last seconds is of before.
    vm.measures(vm.busy());
    assert_eq!(vm.goal(), (cu(2), Signal::Missing));
    assert!(vm.waits_for(Waiting::Window { over: None }));
    vm.goes_on(4_000);
    vm.measures(vm.busy());
    assert_eq!(vm.goal(), (cu(2), Signal::Missing));
    vm.goes_on(1_000);
    vm.measures(vm.busy());
    assert_eq!(vm.goal(), (cu(4), Signal::Load), "five seconds of it may make it grow");
    assert_eq!(vm.scaler.status(vm.now).signals.over, Some(LoadWindow::FiveSeconds));
    vm.goes_on(9_000);
    vm.measures(vm.idle());
    assert_eq!(vm.goal(), (cu(2), Signal::Missing), "and fourteen do not make it shrink");
    assert!(vm.waits_for(Waiting::Window { over: Some(LoadWindow::FiveSeconds) }));
    vm.goes_on(1_000);
    vm.measures(vm.idle());
    assert_eq!(vm.goal(), (cu(1), Signal::Idle));
}

#[test]
fn figures_that_were_asked_for_before_a_pause_do_not_count_after_it() {
    let mut vm = Vm::that_looked(1);
    vm.tell(Event::Sent(Action::Measure));
    vm.is_in(RunState::Paused);
    vm.passes(30_000);
    vm.is_in(RunState::Running);
    vm.tell(Event::Measured(vm.busy()));
    assert_eq!(vm.goal(), (cu(1), Signal::Missing));
    assert!(vm.plans(Action::Measure), "and it is measured at once");
}

#[test]
fn a_guest_that_stands_still_is_asked_nothing_and_its_session_stands() {
    let mut vm = Vm::that_looked(2);
    vm.is_in(RunState::Paused);
    for _ in 0..60 {
        vm.passes(1_000);
        vm.is_in(RunState::Paused);
        let asked = vm.scaler.plan(vm.now).actions;
        let of_guest = |action: &Action| !matches!(action, Action::Look | Action::AskPlugin(_));
        assert!(!asked.iter().any(of_guest), "{asked:?}");
    }
    assert_eq!(vm.scaler.session(), SessionState::Active);
    vm.is_in(RunState::Running);
    assert!(vm.plans(Action::CheckHealth(vm.id)), "its session is confirmed at once");
    assert!(!vm.scaler.acts(vm.now), "before that it does not act");
    assert_eq!(vm.scaler.silent_since(), vm.now);
}

#[test]
fn a_vm_without_a_session_is_not_registered_with_while_it_stands_still() {
    let mut vm = Vm::seen_with(1);
    vm.is_in(RunState::Paused);
    vm.passes(60_000);
    vm.is_in(RunState::Paused);
    assert!(!vm.says_hello_next());
    vm.is_in(RunState::Running);
    assert!(vm.says_hello_next());
}

#[test]
fn the_agent_that_acted_bills_a_vm_that_stands_still() {
    let mut vm = Vm::that_looked(2);
    assert_eq!(vm.scaler.charge(vm.now), Charge::Certain(cu(2).cpu));
    vm.is_in(RunState::Paused);
    vm.passes(600_000);
    vm.is_in(RunState::Paused);
    assert_eq!(vm.scaler.charge(vm.now), Charge::Certain(cu(2).cpu));
}

#[test]
fn while_a_vm_is_migrated_its_guest_is_measured_and_nothing_moves() {
    let mut vm = Vm::that_looked(1);
    vm.permitted(4);
    vm.is_in(RunState::Migrating);
    vm.goes_on(10_000);
    assert!(vm.plans(Action::Measure));
    vm.measures(vm.busy());
    assert!(!vm.resizes());
    assert_eq!(vm.goal(), (cu(1), Signal::Stopped));
    vm.is_in(RunState::Running);
    assert_eq!(vm.goal(), (cu(4), Signal::Load), "its time went on meanwhile");
}

#[test]
fn an_answer_counts_from_when_it_was_asked_for() {
    let mut vm = Vm::that_looked(1);
    vm.tell(Event::Sent(Action::Measure));
    let asked_at = vm.now;
    vm.goes_on(14_000);
    vm.tell(Event::Measured(vm.busy()));
    assert_eq!(vm.goal(), (cu(4), Signal::Load));
    vm.goes_on(1_000);
    assert_eq!(vm.goal(), (cu(1), Signal::Missing), "it is 15 s old");
    assert!(vm.waits_for(Waiting::Signals { since: Some(asked_at) }));
}

#[test]
fn figures_are_missing_since_the_last_that_came() {
    let mut vm = Vm::that_looked(1);
    vm.measures(vm.busy());
    // Then a gap, after which the window of its load is not filled again before the guest is silent.
    vm.goes_on(40_000);
    let busy = vm.busy();
    vm.measures(Sample { loads: Loads::default(), ..busy });
    let last = vm.now;
    vm.goes_on(20_000);
    assert!(vm.waits_for(Waiting::Signals { since: Some(last) }));
}

impl Vm {
    /// It has a session, and was seen since that began.
    fn that_looked(units: u64) -> Self {
        let mut vm = Self::with_session(units);
        vm.looks();
        vm
    }

    fn is_in(&mut self, state: RunState) {
        let units = self.upper().cpu.cores_up();
        self.tell(Event::Changed);
        self.answered(Action::Look, Event::Seen(Seen { state, ..seen(units) }));
    }

    /// Time passes, the hypervisor is looked at, and the session stands.
    fn goes_on(&mut self, millis: u64) {
        self.wait(millis);
    }

    fn measures(&mut self, sample: Sample) {
        self.answered(Action::Measure, Event::Measured(sample));
    }

    /// All windows say that it has much to do.
    fn busy(&self) -> Sample {
        self.loaded(3.6)
    }

    fn idle(&self) -> Sample {
        self.loaded(0.0)
    }

    fn loaded(&self, load: f64) -> Sample {
        let load = Some(load);
        let loads = Loads { five_seconds: load, fifteen_seconds: load, ..Loads::default() };
        Sample { loads, ..self.report(self.upper().cpu.cores_up()) }
    }

    /// The books hold so many units for it.
    fn permitted(&mut self, units: u64) {
        let Some(asking) = self.asking() else { panic!("it asks for nothing") };
        let asking = Asking { resources: cu(units), ..asking };
        self.answered(Action::AskPlugin(asking), Event::Permitted(cu(units)));
    }

    fn asking(&self) -> Option<Asking> {
        self.scaler.plan(self.now).actions.into_iter().find_map(|action| {
            let Action::AskPlugin(asking) = action else { return None };
            Some(asking)
        })
    }

    fn asks_for(&self) -> Option<Resources> {
        self.asking().map(|asking| asking.resources)
    }

    fn plans(&self, action: Action) -> bool {
        self.scaler.plan(self.now).actions.contains(&action)
    }

    fn resizes(&self) -> bool {
        let actions = self.scaler.plan(self.now).actions;
        actions.iter().any(|action| matches!(action, Action::Resize(_)))
    }

    fn speaks_of_sizes(&self) -> bool {
        let actions = self.scaler.plan(self.now).actions;
        let of_sizes = |a: &Action| matches!(a, Action::Downscale(..) | Action::Upscale(..));
        actions.iter().any(of_sizes)
    }

    fn says_hello_next(&self) -> bool {
        let actions = self.scaler.plan(self.now).actions;
        actions.iter().any(|action| matches!(action, Action::Register(_)))
    }

    fn goal(&self) -> (Resources, Signal) {
        let status = self.scaler.status(self.now);
        (status.goal.unwrap_or_default(), status.reason.map_or(Signal::Order, |r| r.signal))
    }

    fn waits_for(&self, waiting: Waiting) -> bool {
        self.scaler.waiting(self.now).contains(&waiting)
    }
}
