//! Hand-over between agents: who acts, for how long, and what it knows when it begins.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use std::time::Duration;
use vm::{Vm as Agent, cu, seen, settings};
use windlass_agent_core::{Action, Call, CallAnswer, Event, Failure, NotNow};
use windlass_protocol::status::SessionState;
use windlass_protocol::{AgentId, InformantVersion, Peer, Resize, Resources, Sequence, Waiting};
use windlass_scaling::{Loads, Sample};

#[test]
fn an_agent_acts_for_eight_seconds_after_it_sent_a_check_that_was_answered() {
    let mut agent = Agent::new();
    assert!(!agent.acts(), "it was not told to run");
    agent.resume();
    assert!(!agent.acts(), "the word may be an old one");
    agent.tell(Event::Sent(agent.check()));
    agent.passes(900);
    agent.tell(Event::Healthy);
    agent.passes(7_000);
    agent.looks();
    assert!(agent.acts());
    agent.passes(101);
    assert!(!agent.acts(), "8 s after the check left, not after its answer");
}

/// The guest may have restarted meanwhile, and its new informant tell another agent to run.
#[test]
fn who_has_not_seen_its_hypervisor_for_three_seconds_acts_no_more() {
    let mut agent = Agent::acting();
    agent.passes(2_999);
    assert!(agent.acts() && agent.asks(), "{:?}", agent.plan());
    agent.passes(1);
    assert!(!agent.acts() && !agent.asks(), "{:?}", agent.plan());
    assert_eq!(agent.scaler.status(agent.now).waiting, [Waiting::HypervisorLost]);
    agent.tell(Event::Sent(Action::Look));
    agent.tell(Event::Failed(Peer::Hypervisor, Failure::NoAnswer));
    let silent_since = |agent: &Agent| agent.scaler.status(agent.now).silent_since;
    let failed_at = Some(agent.now);
    assert_eq!(silent_since(&agent), failed_at);
    agent.passes(1_000);
    assert_eq!(silent_since(&agent), failed_at);
    assert!(!agent.acts() && !agent.asks(), "{:?}", agent.plan());
    agent.looks();
    assert_eq!(silent_since(&agent), None);
    assert!(agent.acts() && agent.asks(), "{:?}", agent.plan());
}

#[test]
fn who_may_not_act_asks_for_nothing_and_goes_on_once_a_check_is_answered() {
    let mut agent = Agent::acting();
    assert!(agent.asks(), "{:?}", agent.plan());
    agent.passes(8_001);
    agent.looks();
    assert!(!agent.asks(), "{:?}", agent.plan());
    assert_eq!(agent.scaler.session(), SessionState::Active, "its session stands");
    agent.answered(agent.check(), Event::Healthy);
    assert!(agent.asks());
}

#[test]
fn who_does_not_act_counts_on_no_permit() {
    let counts = |agent: &Agent| agent.scaler.relies_on_a_permit();
    let mut agent = Agent::acting();
    assert!(!counts(&agent), "it has not asked");
    let ask = agent.asks_for_a_permit();
    agent.tell(Event::Sent(ask));
    assert!(counts(&agent), "the answer may be on its way");
    agent.suspend();
    assert!(!counts(&agent), "another agent asks");
    agent.tell(Event::Permitted(cu(4)));
    assert!(!counts(&agent), "that was asked before");
    agent.passes(6_000);
    agent.resume();
    assert!(counts(&agent), "what the other agent was permitted may be there");
    agent.answered(agent.check(), Event::Healthy);
    agent.looks();
    assert!(!counts(&agent), "it has seen what there is");
    agent.answered(agent.asks_for_a_permit(), Event::Permitted(cu(4)));
    assert!(counts(&agent));
    agent.tell(Event::Reset);
    assert!(!counts(&agent));
    // One that acts alone by figures of elsewhere, until they are not.
    let mut agent = Agent::with_figures(true);
    agent.passes(36_000);
    agent.looks();
    agent.answered(agent.asks_for_a_permit(), Event::Permitted(cu(4)));
    assert!(counts(&agent));
    agent.tell(Event::FiguresMoved { elsewhere: false });
    assert!(!agent.acts() && !counts(&agent));
}

#[test]
fn a_check_that_is_due_goes_before_a_size() {
    let mut agent = Agent::acting();
    agent.answered(Action::Measure, Event::Measured(agent.report(3)));
    let asks_for_less = |action: &Action| matches!(action, Action::Downscale(..));
    assert!(agent.plan().iter().any(asks_for_less), "{:?}", agent.plan());
    agent.passes(6_000);
    agent.looks();
    let to_informant: Vec<_> =
        agent.plan().into_iter().filter(|action| action.peer() == Peer::Informant).collect();
    assert_eq!(to_informant, [agent.check()]);
}

#[test]
fn before_v1_2_an_agent_acts_for_thirteen_seconds_after_it_was_called() {
    let mut agent = Agent::of(InformantVersion::V1_1);
    agent.resume();
    assert!(agent.acts());
    agent.runs(10);
    agent.scaler.call(agent.now, Call::Id);
    agent.runs(12);
    agent.passes(900);
    assert!(agent.acts());
    agent.passes(101);
    assert!(!agent.acts());
}

/// Its informant gave up the calls that an agent finds when it goes on, and perhaps the agent too.
#[test]
fn before_v1_2_a_call_that_may_have_waited_lets_nobody_act() {
    for waits in [Duration::ZERO, Duration::from_millis(1_999), Duration::from_secs(2)] {
        let mut agent = Agent::of(InformantVersion::V1_0);
        agent.resume();
        agent.passes(14_000);
        agent.scaler.call(agent.now, Call::Id);
        agent.looks();
        assert!(!agent.acts(), "it was called before it saw anything");
        agent.now = agent.now.after(waits);
        agent.looks();
        agent.scaler.call(agent.now, Call::Id);
        assert_eq!(agent.acts(), waits == Duration::from_secs(2), "{waits:?}");
    }
}

#[test]
fn what_was_permitted_before_an_agent_went_blind_counts_no_more() {
    let mut agent = Agent::acting();
    agent.answered(agent.asks_for_a_permit(), Event::Permitted(cu(4)));
    agent.passes(9_999);
    agent.looks();
    assert!(agent.scaler.relies_on_a_permit());
    agent.passes(10_000);
    agent.looks();
    assert!(!agent.scaler.relies_on_a_permit(), "the books may have forgotten it");
}

#[test]
fn a_word_to_run_right_after_the_one_to_wait_may_be_older() {
    for version in InformantVersion::KNOWN {
        let mut agent = Agent::of(version);
        agent.resume();
        agent.suspend();
        agent.passes(4_900);
        let answer = agent.scaler.call(agent.now, Call::Resume(agent.id));
        assert_eq!(answer, CallAnswer::NotNow(NotNow::ResumesTooSoon), "{version}");
        assert_eq!(agent.scaler.session(), SessionState::Suspended);
        agent.passes(101);
        agent.resume();
        assert_eq!(agent.scaler.session(), SessionState::Active);
    }
}

#[test]
fn a_suspended_agent_keeps_its_session_by_checks_and_takes_over_again() {
    let mut agent = Agent::acting();
    agent.suspend();
    for _ in 0..20 {
        agent.passes(5_500);
        assert!(!agent.acts());
        agent.answered(agent.check(), Event::Healthy);
    }
    agent.resume();
    agent.answered(agent.check(), Event::Healthy);
    agent.looks();
    assert!(agent.acts());
}

#[test]
fn who_counts_again_looks_first_and_counts_every_vcpu_until_it_is_told() {
    let mut agent = Agent::acting();
    let fewer = Resources { cpu: cu(1).cpu, ..cu(3) };
    let agreed = Event::Agreed { status: String::new() };
    agent.answered(Action::Downscale(agent.id, Sequence::from_number(1), fewer), agreed);
    agent.answered(Action::Measure, Event::Measured(agent.busy(1)));
    assert_eq!(agent.upper().cpu, cu(1).cpu, "one of three is in use");
    agent.suspend();
    assert_eq!(agent.upper().cpu, cu(3).cpu, "the other one may have un-parked them");
    agent.passes(6_000);
    agent.looks();
    agent.resume();
    agent.answered(agent.check(), Event::Healthy);
    assert!(agent.acts());
    let plan = agent.plan();
    assert!(plan.contains(&Action::Look), "{plan:?}");
    let sizes = |action: &Action| {
        matches!(action, Action::Resize(_) | Action::Downscale(..) | Action::Upscale(..))
    };
    assert!(!plan.iter().any(sizes), "{plan:?}");
    let asks = |action: &Action| matches!(action, Action::AskPlugin(_));
    assert!(!plan.iter().any(asks), "what the other one had is not known yet: {plan:?}");
    agent.answered(Action::Look, Event::Seen(seen(3)));
    let plan = agent.plan();
    let covers = |action: &Action| matches!(action, Action::AskPlugin(ask) if ask.resources.cpu >= cu(3).cpu);
    assert!(plan.iter().any(covers), "what the other one had allowed is not given back: {plan:?}");
}

#[test]
fn not_to_be_the_active_agent_is_no_end_of_a_session() {
    let mut agent = Agent::acting();
    let refused = Event::Failed(Peer::Informant, Failure::Refused(400));
    agent.answered(agent.asks_for_less(), refused);
    assert_eq!(agent.scaler.session(), SessionState::Registered, "it waits to be told");
    assert!(!agent.asks(), "{:?}", agent.plan());
    let hello = |action: &Action| matches!(action, Action::Register(_));
    assert!(!agent.plan().iter().any(hello), "and does not take over by registering anew");
    agent.passes(1_500);
    agent.resume();
    agent.answered(agent.check(), Event::Healthy);
    assert!(!agent.asks(), "what it knows is of before: {:?}", agent.plan());
    agent.answered(Action::Look, Event::Seen(seen(3)));
    assert!(agent.asks(), "a refusal that was explained is forgotten: {:?}", agent.plan());
}

#[test]
fn a_check_that_is_refused_ends_the_session() {
    let mut agent = Agent::acting();
    let gone = Event::Failed(Peer::Informant, Failure::Refused(404));
    agent.passes(6_000);
    agent.answered(agent.check(), gone);
    assert_eq!(agent.scaler.session(), SessionState::Absent);
    assert!(!agent.asks(), "{:?}", agent.plan());
}

#[test]
fn who_takes_its_leave_acts_no_more() {
    let mut agent = Agent::acting();
    agent.tell(Event::Sent(Action::Unregister(agent.id)));
    assert!(!agent.asks(), "{:?}", agent.plan());
    agent.tell(Event::Healthy);
    assert!(!agent.acts());
}

#[test]
fn a_resize_of_unknown_outcome_is_under_way_until_it_was_looked_for() {
    let mut agent = Agent::acting();
    assert!(agent.scaler.is_quiet());
    agent.tell(Event::Sent(Action::Resize(Resize::Cpu(cu(4).cpu))));
    agent.tell(Event::Failed(Peer::Hypervisor, Failure::NoAnswer));
    assert!(!agent.scaler.is_quiet(), "it may still take effect");
    agent.passes(1_000);
    agent.answered(Action::Look, Event::Seen(seen(3)));
    assert!(agent.scaler.is_quiet());
}

#[test]
fn a_session_that_is_given_up_waits_until_nothing_is_under_way() {
    let mut agent = Agent::of(InformantVersion::V1_1);
    agent.resume();
    agent.tell(Event::Sent(Action::Resize(Resize::Cpu(cu(4).cpu))));
    agent.passes(40_000);
    let leave = Action::Unregister(agent.id);
    assert!(!agent.plan().contains(&leave), "{:?}", agent.plan());
    agent.tell(Event::Resized);
    agent.answered(Action::Look, Event::Seen(seen(4)));
    assert!(agent.plan().contains(&leave), "{:?}", agent.plan());
}

#[test]
fn without_a_session_somebody_else_s_figures_count_where_nobody_answers() {
    for (elsewhere, refuses) in [(true, false), (true, true), (false, false)] {
        let mut agent = Agent::with_figures(elsewhere);
        agent.passes(36_000);
        if refuses {
            let refused = Event::Failed(Peer::Informant, Failure::Refused(400));
            agent.answered(Action::Register(AgentId::from_u128(1)), refused);
        }
        agent.answered(Action::Measure, Event::Measured(agent.busy(3)));
        assert_eq!(agent.asks(), elsewhere && !refuses, "{:?}", agent.plan());
    }
}

#[test]
fn a_file_that_names_another_place_for_figures_counts_each_time_that_it_changes() {
    let mut agent = Agent::with_figures(false);
    agent.passes(36_000);
    for elsewhere in [true, false, true, false] {
        agent.tell(Event::FiguresMoved { elsewhere });
        assert_eq!(agent.goal(), Some(cu(3)), "figures of before count no more");
        agent.answered(Action::Look, Event::Seen(seen(3)));
        agent.answered(Action::Measure, Event::Measured(agent.busy(3)));
        assert_eq!((agent.goal(), agent.asks()), (Some(cu(4)), elsewhere), "{:?}", agent.plan());
    }
}

#[test]
fn figures_that_were_asked_for_elsewhere_are_not_counted() {
    let mut agent = Agent::acting();
    assert_eq!(agent.goal(), Some(cu(4)));
    agent.tell(Event::Sent(Action::Measure));
    agent.tell(Event::FiguresMoved { elsewhere: true });
    agent.tell(Event::Measured(agent.busy(3)));
    assert!(agent.plan().contains(&Action::Measure), "read at once: {:?}", agent.plan());
    assert_eq!(agent.goal(), Some(cu(3)));
}

#[test]
fn a_session_with_an_informant_that_is_elsewhere_ends_and_another_is_opened_at_once() {
    let mut agent = Agent::acting();
    for _ in 0..3 {
        agent.tell(Event::InformantMoved);
        assert!(!agent.acts(), "another agent may be told to run there");
        let old = agent.id;
        agent.id = agent.opens().unwrap();
        assert_ne!(agent.id, old);
        agent.answered(
            Action::Register(agent.id),
            Event::Registered { version: InformantVersion::V2_0, metrics_port: 9100 },
        );
        agent.resume();
        agent.answered(agent.check(), Event::Healthy);
        agent.answered(Action::Look, Event::Seen(seen(3)));
        assert!(agent.acts());
    }
}

/// The newer word counts: another agent is about to be told to run.
#[test]
fn a_word_to_wait_outdoes_one_to_run_that_came_before_the_answer_to_register() {
    let mut agent = Agent::told_to_run_early();
    let answer = agent.scaler.call(agent.now, Call::Suspend(agent.id));
    assert_eq!(answer, CallAnswer::NotNow(NotNow::SuspendsUnregistered));
    agent.tell(Event::Registered { version: InformantVersion::V2_0, metrics_port: 9100 });
    assert_eq!(agent.scaler.session(), SessionState::Registered);
    assert!(!agent.acts() && !agent.asks(), "{:?}", agent.plan());
}

/// Another agent may have had the VM grow while this one had no session.
#[test]
fn who_is_told_to_run_before_the_answer_to_register_looks_first_too() {
    let mut agent = Agent::told_to_run_early();
    agent.tell(Event::Registered { version: InformantVersion::V2_0, metrics_port: 9100 });
    agent.answered(agent.check(), Event::Healthy);
    assert!(agent.acts());
    assert!(!agent.asks(), "{:?}", agent.plan());
    agent.answered(Action::Look, Event::Seen(seen(4)));
    let covers =
        |action: &Action| matches!(action, Action::AskPlugin(ask) if ask.resources == cu(4));
    assert!(agent.plan().iter().any(covers), "{:?}", agent.plan());
}

/// The informant may be there, and let another agent run.
#[test]
fn who_had_a_session_and_is_cut_off_never_acts_alone() {
    let mut agent = Agent::with_figures(true);
    agent.registered_in(InformantVersion::V2_0);
    agent.answered(Action::Look, Event::Seen(seen(3)));
    agent.resume();
    agent.answered(agent.check(), Event::Healthy);
    for _ in 0..3 {
        agent.passes(6_000);
        agent.answered(agent.check(), Event::Failed(Peer::Informant, Failure::NoAnswer));
    }
    assert_eq!(agent.scaler.session(), SessionState::Absent);
    agent.passes(100_000);
    agent.answered(Action::Look, Event::Seen(seen(3)));
    agent.answered(Action::Measure, Event::Measured(agent.busy(3)));
    assert!(!agent.asks(), "{:?}", agent.plan());
}

/// A VM of three units with a load that calls for four, and its agent.
impl Agent {
    fn with_figures(elsewhere: bool) -> Self {
        let mut agent = Self::told(settings(), 3);
        agent.tell(Event::FiguresMoved { elsewhere });
        agent
    }

    /// It has not read yet that it is registered.
    fn told_to_run_early() -> Self {
        let mut agent = Self::with_figures(false);
        agent.says_hello();
        agent.resume();
        agent
    }

    fn of(version: InformantVersion) -> Self {
        let mut agent = Self::with_figures(false);
        agent.registered_in(version);
        agent.answered(Action::Look, Event::Seen(seen(3)));
        agent
    }

    fn new() -> Self {
        Self::of(InformantVersion::V2_0)
    }

    /// It counts, and knows what there is and how much is in use.
    fn acting() -> Self {
        let mut agent = Self::new();
        agent.resume();
        agent.answered(agent.check(), Event::Healthy);
        agent.answered(Action::Look, Event::Seen(seen(3)));
        agent.answered(Action::Measure, Event::Measured(agent.busy(3)));
        agent
    }

    /// So many seconds pass, and the hypervisor is seen each second.
    fn runs(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.passes(1_000);
            self.looks();
        }
    }

    fn resume(&mut self) {
        let answer = self.scaler.call(self.now, Call::Resume(self.id));
        assert!(matches!(answer, CallAnswer::Ours(..)), "{answer:?}");
    }

    fn suspend(&mut self) {
        let answer = self.scaler.call(self.now, Call::Suspend(self.id));
        assert!(matches!(answer, CallAnswer::Ours(..)), "{answer:?}");
    }

    fn check(&self) -> Action {
        Action::CheckHealth(self.id)
    }

    fn asks_for_less(&self) -> Action {
        Action::Downscale(self.id, Sequence::from_number(1), cu(2))
    }

    fn acts(&self) -> bool {
        self.scaler.acts(self.now)
    }

    fn plan(&self) -> Vec<Action> {
        self.scaler.plan(self.now).actions
    }

    fn asks_for_a_permit(&self) -> Action {
        let is_ask = |action: &Action| matches!(action, Action::AskPlugin(_));
        self.plan().into_iter().find(is_ask).unwrap()
    }

    /// The id under which it would register now.
    fn opens(&self) -> Option<AgentId> {
        self.plan()
            .into_iter()
            .find_map(|action| if let Action::Register(id) = action { Some(id) } else { None })
    }

    /// What the figures call for.
    fn goal(&self) -> Option<Resources> {
        self.scaler.status(self.now).goal
    }

    /// Whether it asks for a permit, or for a size of anybody.
    fn asks(&self) -> bool {
        self.plan().iter().any(|action| match action {
            Action::AskPlugin(_)
            | Action::Resize(_)
            | Action::Downscale(..)
            | Action::Upscale(..) => true,
            Action::Look
            | Action::Measure
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Unregister(_) => false,
        })
    }

    /// A guest with this many vCPUs in use, and a load that calls for all that it may have.
    fn busy(&self, online: u64) -> Sample {
        let loads = Loads { fifteen_seconds: Some(3.6), ..Loads::default() };
        let (total, available) = (Some(cu(3).mem), Some(cu(2).mem));
        Sample { loads, total, available, ..self.report(online) }
    }
}
