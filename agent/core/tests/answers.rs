//! Answers that come late or never, and calls that are meant for another: what they say, and
//! what they do not. Each is told to one scaler, in the one order in which it matters.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/vm.rs"]
mod vm;

use std::collections::BTreeSet;
use vm::{Vm, agreed, capabilities, cu, info, seen, settings};
use windlass_agent_core::{
    Action, Asking, Call, CallAnswer, Event, Failure, NotNow, Order, Settings,
};
use windlass_protocol::status::SessionState;
use windlass_protocol::{
    AgentId, Bounds, Bytes, ComputeUnit, InformantVersion, MemorySeen, Mode, Peer, PluginVersion,
    Resize, Resources, Seen, Sequence, ShrinkCpu, VmInfo,
};
use windlass_scaling::Sample;

#[test]
fn a_resize_counts_until_the_next_look_whatever_was_answered() {
    let more = Action::Resize(Resize::Memory(cu(4).mem));
    let silence = Event::Failed(Peer::Hypervisor, Failure::NoAnswer);
    for answer in [Event::Resized, silence.clone()] {
        let mut vm = Vm::seen_with(2);
        vm.answered(more, answer);
        assert_eq!(vm.upper().mem, cu(4).mem, "it may have happened");
        vm.answered(Action::Look, silence.clone());
        vm.passes(1_200);
        assert_eq!(vm.upper().mem, cu(4).mem, "nobody has looked");
        assert!(vm.scaler.plan(vm.now).actions.contains(&Action::Look), "and first somebody does");
        vm.answered(Action::Look, Event::Seen(seen(2)));
        assert_eq!(vm.upper().mem, cu(2).mem, "it came and had no effect, or never came");
    }
}

#[test]
fn a_report_that_is_older_than_the_session_says_nothing_of_it() {
    let mut vm = Vm::seen_with(3);
    vm.tell(Event::Sent(Action::Measure));
    vm.registers();
    vm.tell(Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(3).cpu, "the guest may have brought the others online since");
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(1).cpu);
}

/// A guest whose cache makes room before it agrees uses that room again once it is told to.
#[test]
fn a_guest_that_may_have_agreed_to_less_is_told_what_is_there() {
    let busy = |vm: &Vm| Sample { available: Some(Bytes::ZERO), ..vm.report(2) };
    let mut vm = Vm::with_session(2);
    vm.answered(Action::Look, Event::Seen(seen(2)));
    vm.answered(asks(cu(2)), Event::Permitted(cu(2)));
    vm.answered(Action::Measure, Event::Measured(busy(&vm)));
    assert_eq!(vm.tells(), Some(cu(2)), "an earlier agent may have asked for less");
    vm.answered(vm.upscale(cu(2)), Event::Upscaled);
    assert_eq!(vm.tells(), None);
    let silence = Event::Failed(Peer::Informant, Failure::NoAnswer);
    vm.answered(vm.downscale(cu(1)), Event::Declined { status: String::new() });
    assert_eq!(vm.tells(), None, "it keeps all");
    vm.answered(vm.downscale(cu(1)), silence);
    vm.wait(2_000);
    assert_eq!(vm.tells(), Some(cu(2)), "the answer may have been yes");
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.tells(), None, "it has no need of it");
}

#[test]
fn vcpus_that_are_plugged_while_the_guest_agrees_count() {
    for asked_first in [true, false] {
        let mut vm = Vm::with_session(2);
        vm.answered(Action::Measure, Event::Measured(vm.report(2)));
        let mut sent = [vm.downscale(cu(1)), Action::Resize(Resize::Cpu(cu(3).cpu))];
        if !asked_first {
            sent.reverse();
        }
        sent.into_iter().for_each(|action| vm.tell(Event::Sent(action)));
        vm.tell(agreed());
        assert_eq!(vm.upper().cpu, cu(3).cpu, "a new one may be on its way");
        vm.tell(Event::Resized);
        vm.answered(Action::Look, Event::Seen(seen(3)));
        assert_eq!(vm.upper().cpu, cu(3).cpu, "and comes online by itself");
        vm.answered(Action::Measure, Event::Measured(vm.report(1)));
        assert_eq!(vm.upper().cpu, cu(3).cpu, "whatever is online before that");
    }
}

#[test]
fn vcpus_that_are_plugged_while_the_guest_registers_count() {
    let mut vm = Vm::seen_with(1);
    vm.tell(Event::Sent(Action::Resize(Resize::Cpu(cu(3).cpu))));
    vm.registers();
    vm.tell(Event::Resized);
    vm.answered(Action::Look, Event::Seen(seen(3)));
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(3).cpu, "those that came last are not online yet");
}

#[test]
fn the_ids_of_sessions_look_like_any_random_uuid() {
    let id = |seed| Vm::told(Settings { seed, ..settings() }, 1).registered().to_string();
    let ids: Vec<String> = (0..64).map(id).collect();
    for place in 0..36 {
        let digits: BTreeSet<char> = ids.iter().map(|id| id.chars().nth(place).unwrap()).collect();
        match place {
            8 | 13 | 18 | 23 => assert_eq!(digits, BTreeSet::from(['-'])),
            14 => assert_eq!(digits, BTreeSet::from(['4'])),
            19 => assert_eq!(digits, BTreeSet::from(['8', '9', 'a', 'b'])),
            _ => assert!(digits.len() > 8, "{place}: {digits:?}"),
        }
    }
}

#[test]
fn a_vcpu_counts_until_the_guest_reports_that_it_parked_it() {
    let mut vm = Vm::with_session(1);
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    vm.answered(Action::Resize(Resize::Cpu(cu(2).cpu)), Event::Resized);
    vm.answered(Action::Look, Event::Seen(seen(2)));
    // The second is slow to come online. What is reported from here on was asked for before the
    // guest agreed to do without it.
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    vm.tell(Event::Sent(Action::Measure));
    vm.answered(vm.downscale(cu(1)), agreed());
    assert_eq!(vm.upper().cpu, cu(2).cpu, "to agree is not yet to park");
    vm.tell(Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(2).cpu, "it may have come online since");
    assert!(vm.scaler.plan(vm.now).actions.contains(&Action::Measure), "and is asked for at once");
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(1).cpu);
}

#[test]
fn a_consent_lasts_ten_seconds_from_its_question() {
    let mut vm = Vm::with_session(2);
    let less = vm.downscale(cu(1));
    vm.tell(Event::Sent(less));
    vm.wait(1_900);
    vm.tell(agreed());
    vm.wait(8_000);
    assert_eq!(vm.consent(), Some(cu(1)));
    vm.wait(100);
    assert_eq!(vm.consent(), None);
}

#[test]
fn a_consent_ends_when_an_upscale_leaves() {
    let mut vm = Vm::with_session(2);
    vm.answered(vm.downscale(cu(1)), agreed());
    assert_eq!(vm.consent(), Some(cu(1)));
    let more = Action::Upscale(AgentId::default(), Sequence::ZERO, cu(2));
    vm.tell(Event::Sent(more));
    assert_eq!(vm.consent(), None, "it may arrive, whatever becomes of its answer");
    vm.tell(Event::Failed(Peer::Informant, Failure::NoAnswer));
    assert_eq!(vm.consent(), None);
}

#[test]
fn a_call_for_more_takes_back_a_consent_that_is_on_its_way() {
    let mut vm = Vm::with_session(2);
    let less = vm.downscale(cu(1));
    vm.tell(Event::Sent(less));
    vm.calls_for_memory();
    vm.tell(agreed());
    assert_eq!(vm.consent(), None, "whichever came first");
    vm.wait(12_000);
    vm.answered(vm.downscale(cu(1)), agreed());
    assert_eq!(vm.consent(), Some(cu(1)), "asked afresh, it stands");
}

#[test]
fn a_call_for_more_is_heeded_for_ten_seconds() {
    let mut vm = Vm::with_session(2);
    vm.answered(Action::Measure, Event::Measured(vm.report(2)));
    let goal = |vm: &Vm| vm.scaler.status(vm.now).goal.map(|goal| goal.mem);
    vm.calls_for_memory();
    vm.passes(9_999);
    assert_eq!(goal(&vm), Some(cu(3).mem));
    vm.passes(1);
    assert_eq!(goal(&vm), Some(cu(1).mem), "it is idle");
}

#[test]
fn a_permit_of_before_is_not_relied_on_after_watching() {
    let mut vm = Vm::with_session(1);
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    let permit = |vm: &Vm| vm.scaler.status(vm.now).permit;
    assert_eq!(permit(&vm), Some(cu(3)));
    vm.tell(Event::Sent(asks(cu(3))));
    vm.tell(Event::Told(VmInfo { mode: Mode::Observe, ..info() }.into()));
    assert_eq!(permit(&vm), None);
    vm.tell(Event::Told(info().into()));
    vm.tell(Event::Permitted(cu(3)));
    assert_eq!(permit(&vm), None, "that was asked before");
    vm.answered(asks(cu(3)), Event::Permitted(cu(2)));
    assert_eq!(permit(&vm), Some(cu(2)));
}

#[test]
fn no_vcpu_is_taken_out_that_one_in_use_is_above() {
    let mut vm = Vm::with_idle_vcpus();
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    // One is in use: the highest.
    let third = Sample { reach: Some(cu(3).cpu), ..vm.report(1) };
    vm.answered(Action::Measure, Event::Measured(third));
    assert_eq!(vm.takes_out(), None);
    // The lowest.
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.takes_out(), Some(cu(1).cpu));
}

#[test]
fn vcpus_are_taken_out_to_no_more_than_is_permitted() {
    let mut vm = Vm::with_idle_vcpus();
    let second = Sample { reach: Some(cu(2).cpu), ..vm.report(1) };
    vm.answered(asks(cu(3)), Event::Permitted(Resources { cpu: cu(1).cpu, ..cu(3) }));
    vm.answered(Action::Measure, Event::Measured(second));
    assert_eq!(vm.takes_out(), None, "if an earlier removal comes first, this would put one in");
    vm.answered(asks(cu(3)), Event::Permitted(cu(2)));
    assert_eq!(vm.takes_out(), Some(cu(2).cpu));
    for order in [Order::Freeze, Order::Release(None)] {
        vm.tell(Event::Ordered(order));
        assert_eq!(vm.takes_out(), None, "{order:?}: it keeps what it has");
    }
}

#[test]
fn a_report_that_is_older_than_the_guests_word_takes_none_out() {
    let mut vm = Vm::with_session(3);
    vm.tell(Event::Attached(capabilities(ShrinkCpu::Removal)));
    vm.answered(Action::Look, Event::Seen(seen(3)));
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    vm.wait(1_500);
    vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(3) }), agreed());
    vm.answered(Action::Look, Event::Seen(seen(3)));
    assert_eq!(vm.takes_out(), None, "one that would not be parked may have been in use since");
    vm.wait(2_500);
    vm.answered(Action::Look, Event::Seen(seen(3)));
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.takes_out(), Some(cu(1).cpu));
}

#[test]
fn a_vcpu_that_was_left_in_is_not_taken_out_without_a_new_word() {
    let mut vm = Vm::with_idle_vcpus();
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    vm.answered(Action::Resize(Resize::Cpu(cu(2).cpu)), Event::Resized);
    vm.answered(Action::Look, Event::Seen(seen(2)));
    assert_eq!(vm.takes_out(), None, "it may be in use by now");
    vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(3) }), agreed());
    vm.wait(3_000);
    vm.answered(Action::Look, Event::Seen(seen(2)));
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.takes_out(), Some(cu(1).cpu));
}

#[test]
fn a_guest_that_reports_no_vcpus_is_told_of_each_that_was_added() {
    let mut vm = Vm::with_session(1);
    let two = Resources { cpu: cu(2).cpu, ..cu(1) };
    let bounds = Bounds { min: two, max: cu(4) };
    vm.tell(Event::Told(VmInfo { bounds, ..info() }.into()));
    vm.answered(asks(two), Event::Permitted(two));
    assert_eq!(vm.tells(), None);
    vm.answered(Action::Resize(Resize::Cpu(two.cpu)), Event::Resized);
    assert_eq!(vm.tells(), None, "it was not seen");
    vm.answered(Action::Look, Event::Seen(Seen { plugged: two.cpu, ..seen(1) }));
    vm.answered(Action::Upscale(AgentId::default(), Sequence::ZERO, cu(1)), Event::Upscaled);
    assert_eq!(vm.tells(), Some(two), "that was of before");
    vm.answered(Action::Upscale(AgentId::default(), Sequence::ZERO, two), Event::Upscaled);
    assert_eq!(vm.tells(), None);
}

#[test]
fn a_guest_that_reports_no_vcpus_is_not_told_of_more_than_it_has_just_agreed_to() {
    let mut vm = Vm::with_session(2);
    vm.tell(Event::Attached(capabilities(ShrinkCpu::Removal)));
    vm.answered(Action::Look, Event::Seen(seen(2)));
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    vm.answered(Action::Resize(Resize::Cpu(cu(3).cpu)), Event::Resized);
    vm.answered(Action::Look, Event::Seen(Seen { plugged: cu(3).cpu, ..seen(2) }));
    // It is idle again: nobody wants the third any more, nor the memory.
    vm.answered(Action::Measure, Event::Measured(Sample { online: None, ..vm.report(1) }));
    vm.answered(vm.downscale(Resources { cpu: cu(2).cpu, ..cu(1) }), agreed());
    assert_eq!(vm.tells(), None, "it would end the consent, and the shrink begin anew");
    vm.answered(Action::Resize(Resize::Memory(cu(1).mem)), Event::Resized);
    let memory = MemorySeen { requested: Bytes::ZERO, ..seen(2).memory };
    vm.answered(
        Action::Look,
        Event::Seen(Seen { plugged: cu(3).cpu, limit: None, found_limit: None, memory, ..seen(1) }),
    );
    assert_eq!(vm.tells(), None, "while it gives memory back");
}

#[test]
fn a_guest_is_not_told_again_of_a_vcpu_that_it_does_not_use_and_that_no_load_calls_for() {
    let mut vm = Vm::with_session(2);
    vm.tell(Event::Attached(capabilities(ShrinkCpu::Removal)));
    vm.answered(asks(cu(3)), Event::Permitted(cu(3)));
    vm.answered(Action::Resize(Resize::Cpu(cu(3).cpu)), Event::Resized);
    vm.answered(Action::Look, Event::Seen(Seen { plugged: cu(3).cpu, ..seen(2) }));
    vm.answered(Action::Measure, Event::Measured(Sample { online: None, ..vm.report(1) }));
    vm.answered(vm.downscale(cu(2)), agreed());
    // It is not asked for less for a while, so that only the vCPU is left to speak of.
    for refused in [Resources { cpu: cu(3).cpu, ..cu(1) }, Resources { cpu: cu(1).cpu, ..cu(2) }] {
        vm.answered(vm.downscale(refused), Event::Declined { status: String::new() });
    }
    vm.wait(3_000);
    assert_eq!(vm.tells(), None);
}

#[test]
fn an_answer_to_a_session_that_is_over_means_nothing() {
    let mut vm = Vm::with_session(2);
    let less = vm.downscale(cu(1));
    vm.tell(Event::Sent(less));
    vm.tell(Event::Reset);
    vm.tell(agreed());
    assert_eq!(vm.consent(), None);
    vm.registers();
    assert_eq!(vm.consent(), None);
}

#[test]
fn a_restart_of_the_guest_ends_what_it_agreed_to_and_what_it_parked() {
    let mut vm = Vm::with_session(2);
    vm.answered(Action::Measure, Event::Measured(vm.report(2)));
    vm.answered(vm.downscale(cu(1)), agreed());
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!((vm.consent(), vm.upper().cpu), (Some(cu(1)), cu(1).cpu));
    vm.tell(Event::Reset);
    assert_eq!((vm.consent(), vm.upper().cpu), (None, cu(2).cpu));
    // A figure of before, that was on its way.
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(2).cpu);
    vm.registers();
    assert_eq!((vm.consent(), vm.upper().cpu), (None, cu(2).cpu));
}

#[test]
fn a_machine_that_took_the_place_of_a_larger_one_has_what_it_is_seen_to_have() {
    let mut vm = Vm::with_session(3);
    vm.tell(Event::Attached(capabilities(ShrinkCpu::Parking)));
    vm.tell(Event::Reset);
    assert_eq!(vm.upper(), cu(3), "nobody has looked");
    vm.answered(Action::Look, Event::Seen(seen(1)));
    assert_eq!(vm.upper(), cu(1), "whether or not its informant is ever heard");
}

#[test]
fn a_guest_that_restarted_hears_of_no_size_before_it_was_looked_at() {
    let mut vm = Vm::with_session(2);
    vm.tell(Event::Sent(Action::Look));
    vm.tell(Event::Reset);
    vm.registers();
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    let spoken_to = |vm: &Vm| {
        let actions = vm.scaler.plan(vm.now).actions;
        actions.iter().any(|action| matches!(action, Action::Downscale(..) | Action::Upscale(..)))
    };
    assert!(!spoken_to(&vm), "memory comes back by and by");
    vm.tell(Event::Seen(seen(2)));
    assert!(!spoken_to(&vm), "that was asked before it restarted");
    vm.tell(Event::Sent(Action::Look));
    assert!(!spoken_to(&vm), "nobody knows yet");
    vm.tell(Event::Seen(seen(2)));
    assert!(spoken_to(&vm), "{:?}", vm.scaler.plan(vm.now));
}

#[test]
fn a_session_begins_with_a_look() {
    let mut vm = Vm::seen_with(2);
    assert_eq!(vm.scaler.metrics_port(), None);
    vm.registers();
    assert_eq!(vm.scaler.metrics_port(), Some(9100), "its figures are read where it said");
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    let actions = vm.scaler.plan(vm.now).actions;
    let spoken_to = |action: &Action| matches!(action, Action::Downscale(..) | Action::Upscale(..));
    assert!(!actions.iter().any(spoken_to), "it may have restarted, and nobody heard of it");
    assert!(actions.contains(&Action::Look), "{actions:?}");
}

#[test]
fn a_call_that_names_another_session_changes_nothing() {
    let mut vm = Vm::seen_with(2);
    let ours = vm.registered();
    let another = AgentId::from_u128(7);
    let more = |expected| Call::MoreResources { expected, cpu: true, memory: true };
    for state in [SessionState::Registered, SessionState::Active, SessionState::Suspended] {
        match state {
            SessionState::Active => drop(vm.scaler.call(vm.now, Call::Resume(ours))),
            SessionState::Suspended => drop(vm.scaler.call(vm.now, Call::Suspend(ours))),
            SessionState::Absent | SessionState::Registered => {}
        }
        for call in [Call::Resume(another), Call::Suspend(another), more(another)] {
            let plan = vm.scaler.plan(vm.now);
            assert_eq!(vm.scaler.call(vm.now, call), CallAnswer::Other(another), "{call:?}");
            assert_eq!(vm.scaler.status(vm.now).session, state, "{call:?}");
            assert_eq!(vm.scaler.plan(vm.now), plan, "{call:?}");
        }
    }
}

#[test]
fn who_was_not_told_to_run_says_that_it_is_suspended_once_it_is_registered() {
    let mut vm = Vm::seen_with(2);
    let refusal = |vm: &mut Vm| {
        let (expected, _) = vm.scaler.numbered().expect("a session is there, or on its way");
        vm.scaler.call(vm.now, Call::MoreResources { expected, cpu: true, memory: true })
    };
    let plan = vm.scaler.plan(vm.now);
    let opens = |action: &&Action| matches!(action, Action::Register(_));
    let register = *plan.actions.iter().find(opens).expect("it registers");
    vm.scaler.observe(vm.now, Event::Sent(register));
    assert_eq!(refusal(&mut vm), CallAnswer::NotNow(NotNow::MoreUnconfirmed));
    let version = InformantVersion::V2_0;
    vm.scaler.observe(vm.now, Event::Registered { version, metrics_port: 9100 });
    assert_eq!(refusal(&mut vm), CallAnswer::NotNow(NotNow::MoreSuspended));
    let (ours, _) = vm.scaler.numbered().expect("a session");
    vm.scaler.call(vm.now, Call::Resume(ours));
    let answer = refusal(&mut vm);
    let Some((_, number)) = vm.scaler.numbered() else { panic!("it has a session") };
    assert_eq!(answer, CallAnswer::Ours(ours, number));
    assert_eq!(number, Sequence::from_number(2), "the second answer in it");
    vm.scaler.call(vm.now, Call::Suspend(ours));
    assert_eq!(refusal(&mut vm), CallAnswer::NotNow(NotNow::MoreSuspended));
}

#[test]
fn a_session_that_nobody_resumes_is_given_up_for_a_new_one() {
    let mut vm = Vm::seen_with(2);
    let first = vm.registered();
    let leave = Action::Unregister(first);
    for _ in 0..29 {
        vm.wait(1_000);
        assert!(!vm.scaler.plan(vm.now).actions.contains(&leave), "it may still be resumed");
        vm.answered(Action::CheckHealth(first), Event::Healthy);
    }
    vm.wait(1_000);
    assert!(vm.scaler.plan(vm.now).actions.contains(&leave), "{:?}", vm.scaler.plan(vm.now));
    vm.answered(leave, Event::Unregistered);
    assert_ne!(vm.registered(), first);
}

#[test]
fn who_was_told_to_wait_asks_neither_the_plugin_nor_for_resizes() {
    let mut vm = Vm::seen_with(2);
    let ours = vm.registered();
    vm.scaler.call(vm.now, Call::Resume(ours));
    vm.checked();
    vm.answered(Action::Look, Event::Seen(seen(2)));
    let asks = |vm: &Vm| {
        let actions = vm.scaler.plan(vm.now).actions;
        actions.iter().any(|action| matches!(action, Action::AskPlugin(_) | Action::Resize(_)))
    };
    assert!(asks(&vm), "who counts speaks to the plugin");
    vm.scaler.call(vm.now, Call::Suspend(ours));
    for _ in 0..20 {
        assert!(!asks(&vm), "{:?}", vm.scaler.plan(vm.now));
        vm.wait(1_000);
    }
    vm.scaler.call(vm.now, Call::Resume(ours));
    vm.checked();
    vm.answered(Action::Look, Event::Seen(seen(2)));
    assert!(asks(&vm), "and it does again");
}

/// It is moved whoever asks.
#[test]
fn a_move_that_is_told_in_an_old_answer_keeps_the_size() {
    let told = Event::MustStay(cu(3));
    let refused = Event::Failed(Peer::Plugin, Failure::Moving);
    for (answer, stays) in [(Event::Permitted(cu(3)), false), (told, true), (refused, true)] {
        let mut vm = Vm::seen_with(3);
        let id = vm.registers();
        vm.answered(Action::Look, Event::Seen(seen(3)));
        vm.tell(Event::Sent(asks(cu(3))));
        vm.scaler.call(vm.now, Call::Suspend(id));
        vm.wait(6_000);
        vm.tell(answer);
        vm.scaler.call(vm.now, Call::Resume(id));
        vm.checked();
        vm.answered(Action::Look, Event::Seen(seen(3)));
        vm.answered(Action::Measure, Event::Measured(vm.report(3)));
        let actions = vm.scaler.plan(vm.now).actions;
        let is_for_less = |action: &Action| matches!(action, Action::Downscale(..));
        assert_eq!(!actions.iter().any(is_for_less), stays, "{actions:?}");
    }
}

fn asks(resources: Resources) -> Action {
    let unit = ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap();
    let version = PluginVersion::V5_0;
    Action::AskPlugin(Asking { version, resources, last_permit: None, unit })
}
