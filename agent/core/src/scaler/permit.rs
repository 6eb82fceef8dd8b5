//! The plugin's side: what the books hold for this VM, as far as the agent knows, and what is asked.
//!
//! A request below what is held is the news that it was given back, and the books may act on
//! it whether or not the answer reaches the agent. So from the moment a request is sent, the agent
//! relies on no more than what it names.

use crate::backoff::Jitter;
use crate::event::{Action, Asking, Failure};
use crate::in_flight::{InFlight, Plan};
use crate::version_fallback::VersionFallback;
use std::time::Duration;
use windlass_protocol::timing::{ASK_EVERY, ASKS_AFTER_A_LOSS};
use windlass_protocol::{ComputeUnit, Moment, PluginVersion, Resources, Versions};

/// After less than was asked for, it is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// What the plugin says of a move holds for this long, and is then looked into: a plugin of the
/// reference says it once, and not when the move came to nothing.
const STAYS_FOR: Duration = Duration::from_secs(30);
/// The least time between an answer and the next request.
const GAP: Duration = Duration::from_millis(250);

/// What the plugin allows.
#[derive(Clone, Debug)]
pub(super) struct Permit {
    /// The books hold at least this for the VM.
    known: Option<Resources>,
    /// What was last asked for, if it was answered.
    settled: Option<Resources>,
    /// The last answer gave less than was asked for.
    is_short: bool,
    answered_at: Option<Moment>,
    next_at: Moment,
    /// The VM is about to be moved, and keeps its size until then.
    stays_until: Option<Moment>,
    /// Another agent may have asked for more, and the VM was not seen since.
    is_blind: bool,
    versions: VersionFallback,
    in_flight: InFlight,
}

// === impl Permit ===

impl Permit {
    pub(super) fn new(versions: Versions<PluginVersion>) -> Self {
        Self {
            known: None,
            settled: None,
            is_short: false,
            answered_at: None,
            next_at: Moment::default(),
            stays_until: None,
            is_blind: false,
            versions: VersionFallback::new(versions),
            in_flight: InFlight::new(ASKS_AFTER_A_LOSS, ASK_EVERY),
        }
    }

    /// Asks for this ceiling when that is due. The books are told nothing before the VM was seen.
    pub(super) fn plan(
        &self,
        plan: &mut Plan,
        now: Moment,
        ceiling: Option<Resources>,
        unit: ComputeUnit,
    ) {
        let ask = |ceiling| {
            let asking = Asking {
                version: self.versions.stated(now),
                resources: ceiling,
                last_permit: self.known,
                unit,
            };
            (self.due(ceiling), Action::AskPlugin(asking))
        };
        plan.offer(now, &self.in_flight, ceiling.filter(|_| !self.is_blind).map(ask));
    }

    pub(super) fn known(&self) -> Option<Resources> {
        self.known
    }

    /// Whether the plugin gave less than it was asked for last. What it says to a request under way is not known yet.
    pub(super) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Until when the VM keeps its size because it is about to be moved, if it does.
    pub(super) fn stays_until(&self, now: Moment) -> Option<Moment> {
        self.stays_until.filter(|until| now < *until)
    }

    /// Whether the agent may use more than the VM may have by a permit that it has or asks for, or
    /// has yet to see what there is.
    pub(super) fn is_relied_on(&self) -> bool {
        let permitted = self.known.is_some() || self.in_flight.is_heard();
        permitted || self.is_blind
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.busy().is_some()
    }

    pub(super) const fn is_failing(&self) -> bool {
        self.in_flight.failures() > 0
    }

    pub(super) fn is_refused_in_every_version(&self) -> bool {
        self.versions.takes_none()
    }

    /// The agent stops asking, so the books may hold less by the time it asks again. A VM that is to be
    /// moved is moved whichever agent asks.
    pub(super) fn forget(&mut self) {
        (self.known, self.settled, self.is_short) = (None, None, false);
        self.in_flight.disregard();
    }

    /// Another agent may have asked: the books are told nothing before the VM was seen.
    pub(super) fn waits_for_a_look(&mut self) {
        self.is_blind = true;
    }

    pub(super) fn sees(&mut self) {
        self.is_blind = false;
    }

    pub(super) fn sent(&mut self, now: Moment, asking: Asking) {
        self.in_flight.sent(Action::AskPlugin(asking));
        self.versions.sent(now, asking.version);
        self.known = self.known.map(|known| known.min(asking.resources));
        self.settled = None;
    }

    /// An answer came. Returns what was asked, if that still counts.
    pub(super) fn permitted(
        &mut self,
        now: Moment,
        permit: Resources,
        jitter: &mut Jitter,
    ) -> Option<Resources> {
        let Some(Action::AskPlugin(asked)) = self.in_flight.answered() else { return None };
        self.versions.took(asked.version);
        let asked = asked.resources;
        // More than was asked for was not asked for: it is not used.
        let permit = permit.min(asked);
        self.known = Some(permit);
        (self.settled, self.is_short) = (Some(asked), permit != asked);
        self.answered_at = Some(now);
        let wait = if permit == asked { ASK_EVERY } else { ASK_AGAIN };
        self.next_at = now.after(jitter.around(wait));
        Some(asked)
    }

    /// The plugin has said that the VM is about to be moved. This is so in an old answer, too.
    pub(super) fn stays(&mut self, now: Moment) {
        self.stays_until = Some(now.after(STAYS_FOR));
    }

    /// A request failed. Another version is tried at once.
    pub(super) fn failed(&mut self, now: Moment, failure: Failure, jitter: &mut Jitter) {
        if let Some(Action::AskPlugin(asked)) = self.in_flight.busy() {
            match failure {
                Failure::Version => {
                    if self.versions.refused(asked.version) {
                        self.in_flight.answered();
                        return;
                    }
                }
                Failure::NoAnswer => self.versions.silent(),
                Failure::Refused(_) | Failure::Moving => self.versions.took(asked.version),
            }
        }
        if failure == Failure::Moving {
            self.stays(now);
        }
        self.in_flight.failed(now, jitter);
    }

    /// When this ceiling is to be asked for.
    fn due(&self, ceiling: Resources) -> Moment {
        if self.settled == Some(ceiling) {
            return self.next_at;
        }
        self.answered_at.map_or(Moment::default(), |at| at.after(GAP))
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{START, size};
    use super::*;

    #[test]
    fn what_is_given_back_is_not_relied_on_from_the_request_on() {
        let (mut permit, mut jitter) = (Permit::new(PluginVersion::SPOKEN), Jitter::new(7));
        let ask = |permit: &mut Permit, units| {
            let asked = asks(permit, units).unwrap();
            permit.sent(START, asked);
        };
        ask(&mut permit, 3);
        assert_eq!((permit.known(), permit.is_relied_on()), (None, true), "one may be on its way");
        assert_eq!(permit.permitted(START, size(4), &mut jitter), Some(size(3)));
        assert_eq!(permit.known(), Some(size(3)), "no more than was asked for");
        ask(&mut permit, 1);
        assert_eq!(permit.known(), Some(size(1)));
        permit.failed(START, Failure::NoAnswer, &mut jitter);
        assert_eq!(permit.known(), Some(size(1)), "it may have been heard");
    }

    #[test]
    fn the_books_are_told_nothing_before_a_look() {
        let mut permit = Permit::new(PluginVersion::SPOKEN);
        permit.waits_for_a_look();
        assert!(asks(&permit, 1).is_none() && permit.is_relied_on());
        permit.sees();
        assert!(asks(&permit, 1).is_some() && !permit.is_relied_on());
    }

    fn asks(permit: &Permit, units: u64) -> Option<Asking> {
        let later = START.after(GAP);
        let unit = ComputeUnit::new(size(1).cpu, size(1).mem).unwrap();
        let mut plan = Plan::default();
        permit.plan(&mut plan, later, Some(size(units)), unit);
        plan.actions.into_iter().find_map(|action| {
            let Action::AskPlugin(asking) = action else { return None };
            Some(asking)
        })
    }
}
