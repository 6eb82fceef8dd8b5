//! How often an agent asks, as it was told; and that no period lets two agents act.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use std::time::Duration;
use vm::{BEGAN, Vm, cu, seen, settings};
use windlass_agent_core::{Action, Call, Event, Failure, Periods, Settings};
use windlass_protocol::{Moment, Peer};

/// Waits are spread by a tenth.
const SPREAD: [f64; 2] = [0.9, 1.1];

#[test]
fn metrics_are_read_and_sessions_checked_as_often_as_told() {
    for (metrics, health) in [(1, 5), (5, 1), (10, 3)] {
        let (metrics, health) = (Duration::from_secs(metrics), Duration::from_secs(health));
        let mut vm = Vm::with(Periods { metrics, health, ..Periods::USUAL });
        vm.registers();
        let is_measure = |action: &Action| *action == Action::Measure;
        let is_check = |action: &Action| matches!(action, Action::CheckHealth(_));
        for (is_it, period) in
            [(&is_measure as &dyn Fn(&Action) -> bool, metrics), (&is_check, health)]
        {
            let times = vm.moments(60, is_it);
            assert!(times.len() > 3, "{times:?}");
            for pair in times.windows(2) {
                within(pair[1].since(pair[0]), period);
            }
        }
    }
}

#[test]
fn a_lease_ends_eight_seconds_after_its_check_whatever_the_periods_are() {
    let long = Duration::from_secs(3600);
    let all = Periods {
        health: long,
        metrics: long,
        register_retry: long,
        session_retry: long,
        session_gap: long,
    };
    for periods in [Periods::USUAL, Periods::REFERENCE, all] {
        let mut vm = Vm::with(periods);
        let id = vm.registered();
        vm.scaler.call(vm.now, Call::Resume(id));
        vm.tell(Event::Sent(Action::CheckHealth(id)));
        vm.passes(900);
        vm.tell(Event::Healthy);
        vm.passes(7_099);
        vm.looks();
        assert!(vm.scaler.acts(vm.now), "{periods:?}");
        vm.passes(1);
        assert!(!vm.scaler.acts(vm.now), "{periods:?}");
    }
}

#[test]
fn checks_of_the_longest_period_leave_no_gap_in_the_lease() {
    // A longer one counts as the longest.
    let mut vm = Vm::with(Periods { health: Duration::from_secs(60), ..Periods::USUAL });
    vm.registers();
    for _ in 0..600 {
        vm.passes(100);
        vm.looks();
        assert!(vm.scaler.acts(vm.now), "after {:?}", vm.now.since(BEGAN));
        let actions = vm.scaler.plan(vm.now).actions;
        if let Some(check) = actions.into_iter().find(|a| matches!(a, Action::CheckHealth(_))) {
            vm.tell(Event::Sent(check));
            vm.passes(1_000);
            vm.tell(Event::Healthy);
        }
    }
}

#[test]
fn an_informant_that_is_not_reached_is_asked_again_no_later_than_told() {
    for retry in [1, 5, 60] {
        let longest = Duration::from_secs(retry);
        let mut vm = Vm::with(Periods { register_retry: longest, ..Periods::USUAL });
        let mut expected = Duration::from_secs(1).min(longest);
        for _ in 0..10 {
            let failed = vm.tries_to_register(Failure::NoAnswer);
            within(vm.until_it_registers().since(failed), expected);
            expected = expected.saturating_mul(2).min(longest);
        }
    }
}

#[test]
fn a_session_that_was_refused_is_opened_anew_later_each_time_and_within_seconds() {
    let second = Duration::from_secs(1);
    // What was told to be longer stays as it is.
    for (first, waits) in [(1, [1, 2, 4, 5, 5]), (3, [3, 5, 5, 5, 5]), (8, [8, 8, 8, 8, 8])] {
        let session_retry = second * first;
        let mut vm = Vm::with(Periods { session_retry, session_gap: second, ..Periods::USUAL });
        for wait in waits {
            let refused = vm.is_refused(500);
            within(vm.until_it_registers().since(refused), second * wait);
        }
    }
}

#[test]
fn an_informant_that_forgot_a_session_gets_another_soon_but_no_sooner_than_told() {
    let gap = Duration::from_secs(20);
    let mut vm = Vm::with(Periods { session_gap: gap, ..Periods::USUAL });
    let began = vm.now;
    vm.is_refused(404);
    assert_eq!(vm.until_it_registers().since(began), gap, "it is another one so soon");
    let mut vm = Vm::with(Periods { session_gap: gap, ..Periods::USUAL });
    // Once is a restart, and costs the second after any failure; twice is none.
    for wait in [1, 5] {
        vm.until_it_registers();
        vm.registers();
        vm.wait(30_000);
        let refused = vm.refuses_a_check(404);
        within(vm.until_it_registers().since(refused), Duration::from_secs(wait));
    }
}

#[test]
fn a_guest_that_restarted_is_registered_with_at_once() {
    let mut vm = Vm::with(Periods { session_gap: Duration::from_secs(300), ..Periods::USUAL });
    vm.registers();
    vm.passes(100);
    vm.tell(Event::Reset);
    vm.answered(Action::Look, Event::Seen(seen(1)));
    assert!(vm.registers_now());
}

impl Vm {
    fn with(periods: Periods) -> Self {
        Self::told(Settings { periods, ..settings() }, 1)
    }

    /// When it does this in the next seconds; everything else is answered, too.
    fn moments(&mut self, seconds: u64, is_it: &dyn Fn(&Action) -> bool) -> Vec<Moment> {
        let mut moments = Vec::new();
        for _ in 0..seconds * 100 {
            self.passes(10);
            for action in self.scaler.plan(self.now).actions {
                let answer = match action {
                    Action::Look => Event::Seen(seen(1)),
                    Action::Measure => Event::Measured(self.report(1)),
                    Action::CheckHealth(_) => Event::Healthy,
                    Action::AskPlugin(_) => Event::Permitted(cu(1)),
                    Action::Upscale(..) => Event::Upscaled,
                    Action::Resize(_)
                    | Action::Register(_)
                    | Action::Unregister(_)
                    | Action::Downscale(..) => panic!("an idle vm of one unit: {action:?}"),
                };
                if is_it(&action) {
                    moments.push(self.now);
                }
                self.answered(action, answer);
            }
        }
        moments
    }

    fn registers_now(&self) -> bool {
        let actions = self.scaler.plan(self.now).actions;
        actions.iter().any(|action| matches!(action, Action::Register(_)))
    }

    /// Time passes until it tries to register.
    fn until_it_registers(&mut self) -> Moment {
        for _ in 0..100_000 {
            if self.registers_now() {
                return self.now;
            }
            self.passes(1);
        }
        panic!("it does not register: {:?}", self.scaler.plan(self.now));
    }

    fn tries_to_register(&mut self, failure: Failure) -> Moment {
        self.until_it_registers();
        let actions = self.scaler.plan(self.now).actions;
        let hello = actions.into_iter().find(|action| matches!(action, Action::Register(_)));
        self.answered(hello.unwrap(), Event::Failed(Peer::Informant, failure));
        self.now
    }

    /// It has a session, and the first request in it is refused.
    fn is_refused(&mut self, status: u16) -> Moment {
        self.until_it_registers();
        self.registered();
        self.refuses_a_check(status)
    }

    fn refuses_a_check(&mut self, status: u16) -> Moment {
        let refused = Event::Failed(Peer::Informant, Failure::Refused(status));
        self.answered(Action::CheckHealth(self.id), refused);
        self.now
    }
}

fn within(wait: Duration, period: Duration) {
    let [least, most] = SPREAD.map(|factor| period.mul_f64(factor));
    // A test looks so often.
    let most = most + Duration::from_millis(10);
    assert!((least..=most).contains(&wait), "{wait:?} is not {period:?}");
}
