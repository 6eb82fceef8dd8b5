//! The guest's figures: the newest sample, and whether it counts.
//!
//! - The hypervisor does not run the guest: its time stands still, and load counts over a window once
//!   the guest has run for so long again.
//! - Memory is on its way out: [`memory_filter`] keeps that from looking like use.
//! - The figures may be another guest's, after a restart or a move: they are forgotten.

mod guest_clock;
mod memory_filter;

use crate::backoff::Jitter;
use crate::event::Action;
use crate::in_flight::{InFlight, Plan};
use guest_clock::GuestClock;
use memory_filter::MemoryFilter;
use std::time::Duration;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{LoadWindow, Moment, Waiting};
use windlass_scaling::{Sample, memory};

/// The figures of one guest.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    sample: Option<Sample>,
    /// What was read last of this guest, as it was read: no size follows from it.
    reading: Option<Sample>,
    memory_filter: MemoryFilter,
    clock: GuestClock,
    /// When a sample was last complete.
    complete_at: Option<Moment>,
    measure_at: Moment,
    /// Whether the figures are read elsewhere than where the guest's informant says.
    are_elsewhere: bool,
    in_flight: InFlight,
}

// === impl Signals ===

impl Signals {
    /// Nothing is measured before `measure_at`.
    pub(super) fn new(measure_at: Moment) -> Self {
        Self {
            sample: None,
            reading: None,
            memory_filter: MemoryFilter::default(),
            clock: GuestClock::default(),
            complete_at: None,
            measure_at,
            are_elsewhere: false,
            in_flight: InFlight::new(Duration::from_secs(1), Duration::from_secs(5)),
        }
    }

    /// Reads the figures when that is due. A guest that stands still answers nothing.
    pub(super) fn plan(&self, plan: &mut Plan, now: Moment, executes: bool) {
        let due = executes.then_some((self.measure_at, Action::Measure));
        plan.offer(now, &self.in_flight, due);
    }

    /// Whether the figures are read elsewhere than where the guest's informant says.
    pub(super) const fn are_elsewhere(&self) -> bool {
        self.are_elsewhere
    }

    /// The newest sample, unless it is stale.
    pub(super) fn fresh(&self, now: Moment) -> Option<&Sample> {
        self.sample.as_ref().filter(|sample| now.since(sample.at) < FIGURES_LAST)
    }

    /// What was read last of this guest, however long ago.
    pub(super) const fn reading(&self) -> Option<&Sample> {
        self.reading.as_ref()
    }

    /// The same, unless it is stale: a guest's load of long ago is not its load.
    pub(super) fn fresh_reading(&self, now: Moment) -> Option<&Sample> {
        self.reading.as_ref().filter(|reading| now.since(reading.at) < FIGURES_LAST)
    }

    /// When the newest sample becomes stale, or became.
    pub(super) fn stale_at(&self) -> Option<Moment> {
        self.sample.as_ref().map(|sample| sample.at.after(FIGURES_LAST))
    }

    /// When the guest was seen to run again, if it ever stood still.
    pub(super) fn ran_since(&self) -> Option<Moment> {
        self.clock.since()
    }

    /// Whether this agent acted when the guest was found to stand still, which it does.
    pub(super) fn stopped_while_acting(&self) -> bool {
        self.clock == GuestClock::Stopped { acted: true }
    }

    /// What is missing of the figures.
    pub(super) fn missing(&self, now: Moment, window: LoadWindow) -> Option<Waiting> {
        let lasts = |at: Moment| now.since(at) < FIGURES_LAST;
        match (&self.sample, self.complete_at) {
            (None, None) => Some(Waiting::FirstSignals),
            (_, Some(at)) if lasts(at) => None,
            (Some(sample), _) if lasts(sample.at) && memory::used(sample).is_some() => {
                let over = sample.loads.shorter(window).map(|(over, _)| over);
                let resumed = self.clock.since().is_some_and(|at| now.since(at) < window.length());
                let fills = over.is_some() || resumed;
                Some(match fills {
                    true => Waiting::Window { over },
                    false => Waiting::Signals { since: self.complete_at },
                })
            }
            (Some(sample), _) if !lasts(sample.at) => {
                Some(Waiting::Signals { since: Some(sample.at) })
            }
            (_, since) => Some(Waiting::Signals { since }),
        }
    }

    /// A reading leaves; `giving`: whether memory is on its way out.
    pub(super) fn sent(
        &mut self,
        now: Moment,
        giving: bool,
        period: Duration,
        jitter: &mut Jitter,
    ) {
        self.in_flight.sent(Action::Measure);
        self.memory_filter.asked(now, giving);
        let wait = jitter.around(period);
        self.measure_at = now.after(wait);
    }

    /// An answer came: whether it is one to a reading that still counts.
    pub(super) fn answered(&mut self, reading: Sample) -> bool {
        self.reading = Some(reading);
        self.in_flight.answered().is_some()
    }

    pub(super) fn failed(&mut self, now: Moment, jitter: &mut Jitter) {
        self.in_flight.failed(now, jitter);
    }

    pub(super) fn measured(&mut self, sample: Sample, giving: bool, window: LoadWindow) {
        let sample = self.memory_filter.counts(sample, self.sample.as_ref(), giving);
        let sample = Sample { loads: self.clock.counts(sample.at, sample.loads), ..sample };
        let load = sample.loads.over(window);
        if load.is_some() && memory::used(&sample).is_some() {
            self.complete_at = Some(sample.at);
        }
        self.sample = Some(sample);
    }

    /// The hypervisor was looked at. `acts`: whether this agent acts.
    pub(super) fn sees_state(&mut self, now: Moment, executes: bool, acts: bool) {
        match self.clock {
            GuestClock::Stopped { .. } if executes => {
                self.clock = GuestClock::Since(now);
                self.measure_at = now;
            }
            GuestClock::Always | GuestClock::Since(_) if !executes => {
                self.clock = GuestClock::Stopped { acted: acts };
                self.sample = None;
            }
            GuestClock::Always | GuestClock::Since(_) | GuestClock::Stopped { .. } => return,
        }
        // What was asked before is of another time.
        self.in_flight.disregard();
    }

    pub(super) fn disregard(&mut self) {
        self.in_flight.disregard();
    }

    /// The figures are read anew, at once.
    pub(super) fn read_anew(&mut self, now: Moment) {
        self.in_flight.disregard();
        self.measure_at = now;
    }

    /// The figures are read elsewhere, at once. Those of before may be another guest's.
    pub(super) fn moved(&mut self, now: Moment, elsewhere: bool) {
        self.are_elsewhere = elsewhere;
        self.measure_at = now;
        self.forget();
    }

    /// The figures of before may be another guest's.
    pub(super) fn forget(&mut self) {
        self.in_flight.disregard();
        self.sample = None;
        self.reading = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::START;
    use super::*;
    use windlass_protocol::Bytes;
    use windlass_scaling::Loads;

    const WINDOW: LoadWindow = LoadWindow::FifteenSeconds;

    #[test]
    fn a_reading_counts_from_when_it_was_asked_for_and_not_for_ever() {
        let (mut signals, mut jitter) = (Signals::new(START), Jitter::new(7));
        assert_eq!(signals.missing(START, WINDOW), Some(Waiting::FirstSignals));
        signals.sent(START, false, Duration::from_secs(1), &mut jitter);
        let late = sample(START.after(Duration::from_secs(3)));
        assert!(signals.answered(late));
        signals.measured(late, false, WINDOW);
        let stale = START.after(FIGURES_LAST);
        assert_eq!(signals.fresh(START).map(|sample| sample.at), Some(START));
        assert_eq!(signals.missing(START, WINDOW), None);
        assert_eq!(signals.fresh(stale), None);
        assert_eq!(signals.missing(stale, WINDOW), Some(Waiting::Signals { since: Some(START) }));
    }

    #[test]
    fn memory_that_is_missing_is_not_made_up_while_the_guest_gives_some_back() {
        let (mut signals, mut jitter) = (Signals::new(START), Jitter::new(7));
        let mut reads = |seconds, read: fn(Sample) -> Sample| {
            let at = START.after(Duration::from_secs(seconds));
            signals.sent(at, true, Duration::from_secs(1), &mut jitter);
            signals.measured(read(sample(at)), true, WINDOW);
            signals.fresh(at).and_then(memory::used)
        };
        let gib = Some(Bytes::from_gib(1));
        assert_eq!(reads(0, |sample| sample), gib);
        let lower = |sample| Sample { total: Some(Bytes::from_mib(1536)), ..sample };
        assert_eq!(reads(1, lower), gib, "what is on its way out looks like use");
        assert_eq!(reads(2, |sample| Sample { total: None, available: None, ..sample }), None);
        assert_eq!(reads(3, |sample| sample), gib);
    }

    #[test]
    fn a_guest_that_stands_still_is_not_asked_and_its_figures_go() {
        let (mut signals, mut jitter) = (Signals::new(START), Jitter::new(7));
        signals.sent(START, false, Duration::from_secs(1), &mut jitter);
        signals.sees_state(START, false, true);
        assert!(!signals.answered(sample(START)), "it was asked of a guest that ran");
        assert!(signals.stopped_while_acting());
        assert_eq!(asks(&signals, START, false), []);
        signals.sees_state(START, true, true);
        assert_eq!(signals.ran_since(), Some(START));
        assert_eq!(asks(&signals, START, true), [Action::Measure]);
        signals.measured(sample(START), false, WINDOW);
        assert_eq!(signals.fresh(START).unwrap().loads.fifteen_seconds, None, "it ran for no time");
    }

    #[test]
    fn a_reading_is_told_as_it_was_read_until_it_is_stale_or_another_guest_s() {
        let mut signals = Signals::new(START);
        assert_eq!((signals.reading(), signals.fresh_reading(START)), (None, None));
        let read = sample(START);
        let stale = START.after(FIGURES_LAST);
        signals.answered(read);
        let soon = Moment::from_millis(stale.millis() - 1);
        assert_eq!(signals.fresh_reading(soon), Some(&read));
        assert_eq!((signals.reading(), signals.fresh_reading(stale)), (Some(&read), None));
        for forget in [Signals::forget, |signals| signals.moved(START, true)] as [fn(&mut _); 2] {
            signals.answered(read);
            forget(&mut signals);
            assert_eq!(signals.reading(), None);
        }
    }

    fn asks(signals: &Signals, now: Moment, executes: bool) -> Vec<Action> {
        let mut plan = Plan::default();
        signals.plan(&mut plan, now, executes);
        plan.actions
    }

    fn sample(at: Moment) -> Sample {
        let loads = Loads { fifteen_seconds: Some(0.5), ..Loads::default() };
        let (total, available) = (Some(Bytes::from_gib(2)), Some(Bytes::from_gib(1)));
        Sample { at, loads, total, available, online: None, reach: None, by_minutes: false }
    }
}
