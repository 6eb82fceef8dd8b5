//! Which of several agents of one VM bills it.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{BEGAN, Vm, capabilities, info, settings};
use windlass_agent_core::{Action, Call, CallAnswer, Charge, Event, Failure, Scaler};
use windlass_protocol::status::SessionState;
use windlass_protocol::{InformantVersion, MilliCpu, Mode, Peer, ShrinkCpu, VmInfo};

/// All three vCPUs, since nobody else can bill them.
const PRESUMED: Charge = Charge::Presumed(MilliCpu::from_cores(3));
const CERTAIN: Charge = Charge::Certain(MilliCpu::from_cores(3));

/// What happened to an agent of a VM with three vCPUs, and what it bills.
type Case = (&'static str, fn(&mut Vm), Charge);

const CASES: &[Case] = &[
    ("no informant ever took it on", |_| {}, PRESUMED),
    ("nobody answers when it registers", |vm| hello(vm, Failure::NoAnswer), PRESUMED),
    ("its informant wants nobody", |vm| hello(vm, Failure::Refused(400)), PRESUMED),
    ("it is registered and was not told to run", taken_on, Charge::Open),
    ("told to run, and the word may be old", told_to_run, Charge::Open),
    ("it acts", acts, CERTAIN),
    ("it acts, and its lease is about to end", |vm| then(vm, acts, |vm| vm.passes(7_999)), CERTAIN),
    ("it slept through its lease", |vm| then(vm, acts, |vm| vm.passes(8_000)), Charge::Open),
    ("it was told to wait", |vm| then(vm, acts, waits), Charge::Nothing),
    ("it waits and its informant is gone", |vm| then(vm, waiting, dies), Charge::Nothing),
    ("it waits and the guest restarts", |vm| then(vm, waiting, restarts), Charge::Nothing),
    ("it waited and acts again", |vm| then(vm, waiting, acts_again), CERTAIN),
    ("it acts alone after it waited", |vm| then(vm, waiting, alone_again), PRESUMED),
    ("its session broke off", |vm| then(vm, acts, silences), Charge::Open),
    ("nobody answers for 35 s", |vm| then(vm, acts, dies), PRESUMED),
    ("nobody answers for an hour", |vm| then(vm, acts, gone_for_good), PRESUMED),
    ("its informant does not know it", |vm| then(vm, acts, forgotten), Charge::Open),
    ("its informant answers, and does not take it", |vm| then(vm, acts, not_called), Charge::Open),
    ("its informant has refused it again and again", rests, Charge::Open),
    (
        "its sizes are refused for another agent's sake",
        |vm| then(vm, acts, unheeded),
        Charge::Nothing,
    ),
    ("it was told to wait, and does not know that it is registered", waits_early, Charge::Nothing),
    ("the guest restarts", |vm| then(vm, acts, restarts), Charge::Open),
    ("its hypervisor does not answer", |vm| then(vm, acts, lost), Charge::Open),
    ("it is told to observe", |vm| then(vm, acts, observes), Charge::Nothing),
];

#[test]
fn a_vm_is_billed_by_the_agent_that_acts_and_by_one_that_no_other_can_be_beside() {
    for (what, happens, expected) in CASES {
        let mut vm = Vm::seen_with(3);
        happens(&mut vm);
        assert_eq!(vm.scaler.charge(vm.now), *expected, "{what}");
    }
}

/// The first look after a start waits for these.
#[test]
fn what_a_session_may_make_another_is_not_settled() {
    for (charge, settled) in
        [(Charge::Open, false), (PRESUMED, false), (CERTAIN, true), (Charge::Nothing, true)]
    {
        assert_eq!(charge.is_settled(), settled, "{charge:?}");
    }
}

/// Of two agents in all states that a hand-over has: never both.
#[test]
fn a_hand_over_is_billed_by_one_at_a_time() {
    for (how, ends) in
        [("told", waits as fn(&mut Vm)), ("cut off", silences), ("let go", forgotten)]
    {
        let (mut old, mut new) = (Vm::seen_with(3), Vm::seen_with(3));
        acts(&mut old);
        new.registered();
        assert_eq!(
            (old.scaler.charge(old.now), new.scaler.charge(new.now)),
            (CERTAIN, Charge::Open)
        );
        ends(&mut old);
        new.now = old.now;
        told_to_run(&mut new);
        new.checked();
        assert_eq!(new.scaler.charge(new.now), CERTAIN);
        assert_eq!(old.scaler.charge(new.now).cpu(), None, "{how}");
    }
}

#[test]
fn a_vm_that_was_not_seen_is_not_billed_and_one_that_is_observed_never() {
    let unseen = Scaler::new(info(), settings(), BEGAN);
    assert_eq!(unseen.charge(BEGAN), Charge::Open);
    let observed = VmInfo { mode: Mode::Observe, ..info() };
    let can = capabilities(ShrinkCpu::Parking);
    let vm = Vm::that_can(can, settings(), observed, vm::seen(3));
    assert_eq!(vm.scaler.charge(vm.now), Charge::Nothing);
}

fn then(vm: &mut Vm, first: fn(&mut Vm), second: fn(&mut Vm)) {
    first(vm);
    second(vm);
}

fn hello(vm: &mut Vm, failure: Failure) {
    vm.says_hello();
    vm.tell(Event::Failed(Peer::Informant, failure));
}

fn taken_on(vm: &mut Vm) {
    vm.registered();
}

fn told_to_run(vm: &mut Vm) {
    if vm.scaler.session() == SessionState::Absent {
        vm.registered_in(InformantVersion::V2_0);
    }
    let answer = vm.scaler.call(vm.now, Call::Resume(vm.id));
    assert!(matches!(answer, CallAnswer::Ours(..)), "{answer:?}");
}

fn acts(vm: &mut Vm) {
    vm.registers();
}

fn waits(vm: &mut Vm) {
    vm.scaler.call(vm.now, Call::Suspend(vm.id));
}

fn waiting(vm: &mut Vm) {
    acts(vm);
    waits(vm);
}

fn acts_again(vm: &mut Vm) {
    vm.passes(6_000);
    told_to_run(vm);
    vm.checked();
}

fn alone_again(vm: &mut Vm) {
    acts_again(vm);
    dies(vm);
}

/// Its checks are not answered until the session is over.
fn silences(vm: &mut Vm) {
    for _ in 0..3 {
        vm.passes(6_000);
        vm.tell(Event::Sent(Action::CheckHealth(vm.id)));
        vm.tell(Event::Failed(Peer::Informant, Failure::NoAnswer));
    }
}

fn dies(vm: &mut Vm) {
    silences(vm);
    vm.passes(16_000);
    hello(vm, Failure::NoAnswer);
    vm.passes(1_000);
}

/// Its line rests, so that nobody is asked.
fn rests(vm: &mut Vm) {
    for _ in 0..4 {
        acts(vm);
        forgotten(vm);
        vm.passes(59_000);
    }
}

/// A size is refused, since another agent counts; then nothing reaches anybody.
fn unheeded(vm: &mut Vm) {
    let less = vm.downscale(vm::cu(2));
    vm.answered(less, Event::Failed(Peer::Informant, Failure::Refused(400)));
    dies(vm);
}

/// Told to wait before it has read that it is registered, which is lost.
fn waits_early(vm: &mut Vm) {
    vm.says_hello();
    waits(vm);
    vm.tell(Event::Failed(Peer::Informant, Failure::NoAnswer));
}

fn gone_for_good(vm: &mut Vm) {
    silences(vm);
    for _ in 0..60 {
        vm.passes(60_000);
        hello(vm, Failure::NoAnswer);
    }
}

fn forgotten(vm: &mut Vm) {
    vm.passes(6_000);
    vm.tell(Event::Sent(Action::CheckHealth(vm.id)));
    vm.tell(Event::Failed(Peer::Informant, Failure::Refused(404)));
}

/// The informant cannot call it, and says so each time that it registers.
fn not_called(vm: &mut Vm) {
    forgotten(vm);
    for _ in 0..10 {
        vm.passes(60_000);
        hello(vm, Failure::Refused(400));
    }
    vm.passes(59_000);
}

fn restarts(vm: &mut Vm) {
    vm.tell(Event::Reset);
    vm.answered(Action::Look, Event::Seen(vm::seen(3)));
}

fn lost(vm: &mut Vm) {
    for _ in 0..2 {
        vm.answered(Action::Look, Event::Failed(Peer::Hypervisor, Failure::NoAnswer));
    }
}

fn observes(vm: &mut Vm) {
    vm.tell(Event::Told(VmInfo { mode: Mode::Observe, ..info() }.into()));
}
