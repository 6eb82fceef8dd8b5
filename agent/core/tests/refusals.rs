//! For how long a guest is left alone that refuses, or that takes back what it agreed to.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use std::time::Duration;
use vm::{Vm, agreed, cu};
use windlass_agent_core::{Action, Event};
use windlass_protocol::{Resources, Waiting};

#[test]
fn a_row_of_refusals_of_vcpus_ends_with_an_agreement_to_fewer() {
    let fewer = |count| Resources { cpu: cu(count).cpu, ..cu(4) };
    let less = Resources { mem: cu(3).mem, ..cu(4) };
    for (accepted, seconds) in [(fewer(3), 5), (less, 40)] {
        let mut vm = Vm::that_is_idle(4);
        for rest in [5, 10, 20] {
            vm.refuses(fewer(3));
            vm.is_left_alone_for(rest);
        }
        vm.answered(vm.downscale(accepted), agreed());
        vm.answered(Action::Measure, Event::Measured(vm.report(accepted.cpu.cores_up())));
        vm.refuses(fewer(2));
        vm.is_left_alone_for(seconds);
    }
}

#[test]
fn what_is_taken_back_before_it_was_heard_is_a_refusal_of_memory() {
    let fewer = Resources { cpu: cu(1).cpu, ..cu(2) };
    for (asked, refuses) in [(cu(1), true), (fewer, false)] {
        let mut vm = Vm::that_is_idle(2);
        // Each is longer than the one before; the third outlasts the call for more.
        for _ in 0..3 {
            let less = vm.downscale(asked);
            vm.tell(Event::Sent(less));
            vm.calls_for_memory();
            vm.tell(agreed());
            vm.wait(12_000);
            vm.answered(Action::Measure, Event::Measured(vm.report(2)));
        }
        assert_eq!(vm.asks_for_memory(), !refuses, "after {asked}");
        vm.wait(12_000);
        vm.answered(Action::Measure, Event::Measured(vm.report(2)));
        assert!(vm.asks_for_memory());
    }
}

impl Vm {
    /// All that it has is in use no more.
    fn that_is_idle(units: u64) -> Self {
        let mut vm = Self::with_session(units);
        vm.looks();
        vm.answered(Action::Measure, Event::Measured(vm.report(units)));
        vm
    }

    fn refuses(&mut self, size: Resources) {
        self.answered(self.downscale(size), Event::Declined { status: String::new() });
    }

    /// Give or take a tenth.
    fn is_left_alone_for(&self, seconds: u64) {
        let waiting = self.scaler.waiting(self.now);
        let refused = |waiting: &Waiting| {
            let Waiting::Refused { until } = waiting else { return None };
            Some(until.since(self.now))
        };
        let rest = waiting.iter().find_map(refused).unwrap();
        let wait = Duration::from_secs(seconds);
        assert!(rest >= wait.mul_f64(0.9) && rest <= wait.mul_f64(1.1), "{rest:?} of {wait:?}");
    }

    fn asks_for_memory(&self) -> bool {
        let actions = self.scaler.plan(self.now).actions;
        let has = self.upper();
        actions.iter().any(|a| matches!(a, Action::Downscale(_, _, size) if size.mem < has.mem))
    }
}
