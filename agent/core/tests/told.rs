//! What an agent tells people of its VM.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, cu};
use windlass_agent_core::{Action, Event};
use windlass_protocol::plugin::Why;
use windlass_protocol::{Moment, Waiting};
use windlass_scaling::{Loads, Sample};

/// The weightiest reason is told: what an operator has to mend comes before what passes by itself.
#[test]
fn of_several_reasons_the_one_that_needs_a_person_is_told() {
    let until = Moment::from_millis(1);
    for (waiting, told) in [
        (vec![Waiting::AtGoal], Why::AtGoal),
        (vec![Waiting::Hypervisor, Waiting::Session], Why::NoInformant),
        (vec![Waiting::Refused { until }, Waiting::Paused { until }], Why::Paused),
        (vec![Waiting::Session, Waiting::HypervisorLost], Why::HypervisorSilent),
        (vec![Waiting::Informant, Waiting::Signals { since: None }], Why::NoInformant),
        (vec![Waiting::Plugin, Waiting::Consent], Why::NoPermit),
    ] {
        assert_eq!(waiting.iter().map(Why::from).min().unwrap(), told, "{waiting:?}");
    }
}

/// It tells with a request, before it knows the answer.
#[test]
fn a_vm_waits_for_room_only_once_the_plugin_gave_less_than_it_was_asked_for() {
    let why = |vm: &Vm| vm.scaler.told(vm.now).why;
    for (first, then) in [(3, Why::Resizing), (2, Why::Room)] {
        let mut vm = Vm::with_session(1);
        vm.looks();
        vm.answered(Action::Measure, Event::Measured(vm.report(1)));
        vm.asks(1);
        vm.tell(Event::Permitted(cu(1)));
        assert_eq!(why(&vm), Why::AtGoal);
        vm.passes(300);
        let loads = Loads { fifteen_seconds: Some(2.6), ..Loads::default() };
        let busy = Sample { loads, ..vm.report(1) };
        vm.answered(Action::Measure, Event::Measured(busy));
        assert_eq!(why(&vm), Why::Resizing, "it is about to ask");
        vm.asks(3);
        assert_eq!(why(&vm), Why::Resizing, "with the request this is told");
        vm.tell(Event::Permitted(cu(first)));
        assert_eq!(why(&vm), then);
        vm.wait(6_000);
        vm.asks(3);
        assert_eq!(why(&vm), then, "what the plugin says next is not known yet");
        vm.tell(Event::Permitted(cu(3)));
        assert_eq!(why(&vm), Why::Resizing);
    }
}

impl Vm {
    /// It asks for a permit of so much.
    fn asks(&mut self, units: u64) {
        let actions = self.scaler.plan(self.now).actions;
        let mut asked = actions.iter().filter_map(|action| {
            let Action::AskPlugin(asking) = action else { return None };
            Some(*asking)
        });
        let asking = asked.next().unwrap();
        assert_eq!(asking.resources, cu(units));
        self.tell(Event::Sent(Action::AskPlugin(asking)));
    }
}
