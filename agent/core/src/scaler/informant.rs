//! The session with the guest's informant: opened, kept, used for sizes, and closed.
//!
//! [`Session`] says whether the informant lets this agent act.

use crate::backoff::Jitter;
use crate::event::{Action, Failure};
use crate::in_flight::{InFlight, Plan};
use crate::session::Session;
use crate::settings::Settings;
use std::time::Duration;
use windlass_protocol::{Moment, Resources};

/// The status of a size in a session that is not the informant's active one.
const NOT_ACTIVE: u16 = 400;

/// The session of one VM with its informant.
#[derive(Clone, Debug)]
pub(super) struct Informant {
    /// Whether the informant lets this agent act, and since when it says nothing.
    pub(super) session: Session,
    in_flight: InFlight,
}

/// What the rest of the VM says to the informant's part of a plan.
pub(super) struct Circumstances {
    /// Whether the agent is done with the VM.
    pub(super) leaves: bool,
    /// Whether nothing that the agent asked for can still take effect.
    pub(super) quiet: bool,
    /// Whether the hypervisor runs the guest.
    pub(super) executes: bool,
    /// Whether the hypervisor was seen.
    pub(super) seen: bool,
    /// When the guest was seen to run again, if it ever stood still.
    pub(super) ran_since: Option<Moment>,
    /// What to say of the guest's size, and when.
    pub(super) size: Option<(Moment, SizeMessage)>,
}

/// A message about sizes, before it has an id and a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum SizeMessage {
    /// The guest has this, and may use it.
    Up(Resources),
    /// Whether the guest can live with this.
    Down(Resources),
}

/// What a failed request leaves of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// All of it.
    Stands,
    /// Nothing, or a session in which this agent acts no more.
    Stopped,
    /// Nothing: the agent has taken its leave.
    Left,
}

// === impl Informant ===

impl Informant {
    pub(super) fn new(settings: &Settings, now: Moment) -> Self {
        let retry = settings.periods.register_retry;
        Self {
            session: Session::new(settings.seed, settings.periods, now),
            // An informant is never left alone for longer than `register_retry`.
            in_flight: InFlight::new(Duration::from_secs(1).min(retry), retry),
        }
    }

    /// Opens, keeps and closes the session, and says sizes in it.
    pub(super) fn plan(&self, plan: &mut Plan, now: Moment, circumstances: &Circumstances) {
        plan.offer(now, &self.in_flight, self.due(now, circumstances));
        if let Some(until) = self.session.leased_until() {
            plan.wake(now, until);
        }
    }

    fn due(&self, now: Moment, circumstances: &Circumstances) -> Option<(Moment, Action)> {
        let quiet = circumstances.quiet;
        if circumstances.leaves {
            let id = self.session.id().filter(|_| quiet)?;
            return Some((Moment::default(), Action::Unregister(id)));
        }
        if !circumstances.executes {
            return None;
        }
        let Some(id) = self.session.id() else {
            let opens = (self.session.opens_at(), Action::Register(self.session.next_id()));
            return circumstances.seen.then_some(opens);
        };
        let health = self.session.health_due().map(|at| (at, Action::CheckHealth(id)));
        // Never told to run, or nothing heard: a new session may do better.
        let given_up = self.session.gives_up_at(circumstances.ran_since).filter(|_| quiet);
        let given_up = given_up.map(|at| (at, Action::Unregister(id)));
        // What lets it act goes before what it does.
        let due = health.filter(|(at, _)| *at <= now);
        if due.is_some() || !self.session.is_active() {
            return due.or_else(|| health.into_iter().chain(given_up).min_by_key(|(at, _)| *at));
        }
        let number = self.session.next_sequence();
        let size = circumstances.size.map(|(at, message)| match message {
            SizeMessage::Up(size) => (at, Action::Upscale(id, number, size)),
            SizeMessage::Down(size) => (at, Action::Downscale(id, number, size)),
        });
        size.into_iter().chain(health).chain(given_up).min_by_key(|(at, _)| *at)
    }

    pub(super) fn is_told_a_size(&self) -> bool {
        matches!(self.in_flight.busy(), Some(Action::Downscale(..) | Action::Upscale(..)))
    }

    pub(super) fn is_asked_to_shrink(&self) -> bool {
        matches!(self.in_flight.busy(), Some(Action::Downscale(..)))
    }

    pub(super) fn sent(&mut self, now: Moment, action: Action) {
        self.in_flight.sent(action);
        match action {
            Action::Register(_) => self.session.opening(),
            Action::CheckHealth(_) => self.session.checking(now),
            Action::Unregister(_) => self.session.leaving(),
            Action::Downscale(..) | Action::Upscale(..) => self.session.sized(),
            Action::Look | Action::Resize(_) | Action::Measure | Action::AskPlugin(_) => {}
        }
    }

    pub(super) fn answered(&mut self, now: Moment) -> Option<Action> {
        let action = self.in_flight.answered()?;
        self.session.answered(now);
        if matches!(action, Action::Downscale(..) | Action::Upscale(..)) {
            self.session.forget_refusals();
        }
        Some(action)
    }

    pub(super) fn healthy(&mut self, now: Moment, jitter: &mut Jitter) {
        self.session.healthy();
        self.session.check_later(now, jitter);
    }

    /// A request failed: what that leaves of the session.
    pub(super) fn failed(
        &mut self,
        now: Moment,
        failure: Failure,
        jitter: &mut Jitter,
    ) -> AfterFailure {
        let action = self.in_flight.failed(now, jitter);
        let Some(action) = action else { return AfterFailure::Stands };
        match (action, failure) {
            (Action::Unregister(_), _) => AfterFailure::Left,
            (Action::Downscale(..) | Action::Upscale(..), Failure::Refused(NOT_ACTIVE)) => {
                self.session.unheeded(now);
                AfterFailure::Stopped
            }
            (Action::Register(_), Failure::Refused(_)) => {
                self.session.answered(now);
                self.ends();
                AfterFailure::Stopped
            }
            (_, Failure::Refused(status)) => {
                self.ends();
                self.session.refused(now, status, jitter);
                AfterFailure::Stopped
            }
            (_, Failure::NoAnswer) if self.session.silent() => {
                self.ends();
                AfterFailure::Stopped
            }
            (_, Failure::NoAnswer | Failure::Version | Failure::Moving) => AfterFailure::Stands,
        }
    }

    /// The session is over, and an answer on its way says nothing.
    pub(super) fn ends(&mut self) {
        self.session.end();
        self.in_flight.disregard();
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{START, size};
    use super::*;
    use crate::event::Call;
    use crate::settings::Periods;
    use windlass_protocol::{ComputeUnit, InformantVersion, PluginVersion};

    #[test]
    fn a_session_is_closed_only_when_nothing_can_still_take_effect() {
        let (informant, id) = registered();
        let leaves = |quiet| Circumstances { leaves: true, quiet, ..circumstances() };
        assert_eq!(asks(&informant, &leaves(false)), []);
        assert_eq!(asks(&informant, &leaves(true)), [Action::Unregister(id)]);
    }

    #[test]
    fn a_size_is_said_in_an_active_session_alone() {
        let (mut informant, id) = registered();
        let up = Some((START, SizeMessage::Up(size(2))));
        let circumstances = Circumstances { size: up, ..circumstances() };
        assert_eq!(asks(&informant, &circumstances), []);
        informant.session.call(START, Call::Resume(id), false);
        let asked = asks(&informant, &circumstances);
        assert_eq!(asked, [Action::CheckHealth(id)], "what lets it act goes first");
        let mut jitter = Jitter::new(7);
        informant.sent(START, Action::CheckHealth(id));
        informant.answered(START);
        informant.healthy(START, &mut jitter);
        assert!(informant.session.is_leased(START));
        let asked = asks(&informant, &circumstances);
        assert!(matches!(asked[..], [Action::Upscale(..)]), "{asked:?}");
        informant.sent(START, asked[0]);
        let after = informant.failed(START, Failure::Refused(NOT_ACTIVE), &mut jitter);
        assert_eq!(after, AfterFailure::Stopped);
        assert!(!informant.session.is_active() && !informant.session.is_absent());
    }

    fn registered() -> (Informant, windlass_protocol::AgentId) {
        let settings = Settings {
            unit: ComputeUnit::new(size(1).cpu, size(1).mem).unwrap().into(),
            cpu_limit: Some(windlass_protocol::CpuLimit::Trust),
            plugin_versions: PluginVersion::SPOKEN,
            seed: 7,
            periods: Periods::USUAL,
        };
        let (mut informant, mut jitter) = (Informant::new(&settings, START), Jitter::new(7));
        let [Action::Register(id)] = asks(&informant, &circumstances())[..] else { panic!() };
        informant.sent(START, Action::Register(id));
        informant.answered(START);
        informant.session.registered(START, InformantVersion::V2_0, &mut jitter);
        (informant, id)
    }

    fn circumstances() -> Circumstances {
        Circumstances {
            leaves: false,
            quiet: true,
            executes: true,
            seen: true,
            ran_since: None,
            size: None,
        }
    }

    fn asks(informant: &Informant, circumstances: &Circumstances) -> Vec<Action> {
        let mut plan = Plan::default();
        informant.plan(&mut plan, START, circumstances);
        plan.actions
    }
}
