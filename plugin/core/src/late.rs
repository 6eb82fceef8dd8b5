//! What an agent may be using, by requests that may come late.
//!
//! A request for a permit carries no number. Over a network it may arrive after a newer one, or twice, and one
//! that says a smaller size must not free what its agent was granted since. So:
//!
//! - An agent that names the last answer as its last permit has received it, and uses no more than that. A smaller figure is answered at once, and counts once the agent names that answer. The name
//!   proves nothing while a request may be under way that names the same figure for an earlier answer.
//! - Any other smaller figure is *doubted*: it counts once a smaller figure was said again,
//!   [`REQUEST_IS_LATE`] or more after the first one, with no word between that the VM still needs what is
//!   reserved for it. The later of both was then sent after everything that was granted.

use std::collections::VecDeque;
use std::time::Duration;
use windlass_protocol::timing::{LONGEST_ACT, REQUEST_IS_LATE};
use windlass_protocol::{Bytes, Moment, Resources};

/// As many earlier answers are remembered.
const EARLIER: usize = 8;

/// A request that names an earlier answer may arrive for this long after the next answer was given: the agent
/// may receive that one late, too.
const FOLLOWS: Duration = REQUEST_IS_LATE.saturating_add(LONGEST_ACT);

/// What an agent was answered, and which of its words are doubted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    last: Option<Resources>,
    /// Permits that the agent had before the last answer, the oldest first. With each, the last moment at
    /// which it was the last answer, or the agent named it.
    earlier: VecDeque<(Moment, Resources)>,
    /// When an answer was forgotten before its time.
    crowded: Option<Moment>,
    doubted: Option<Doubted>,
}

/// Smaller figures that may have come late.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Doubted {
    since: Moment,
    /// The largest of them.
    most: Resources,
}

// === impl Answers ===

impl Answers {
    /// What an agent may be using of what it `used` before, now that it wants this much and names `last_permit`.
    /// Memory is compared in whole slots.
    pub(crate) fn used(
        &mut self,
        now: Moment,
        used: Resources,
        wanted: Resources,
        last_permit: Option<Resources>,
        slot: Bytes,
    ) -> Resources {
        let received = self.last.filter(|_| self.is_received(now, last_permit, slot));
        self.hear(now, last_permit);
        let used = received.map_or(used, |answer| used.min(answer));
        if received.is_some() || wanted.covers(used) {
            self.doubted = None;
            return used;
        }
        let Doubted { since, most } = self.doubted.unwrap_or(Doubted { since: now, most: wanted });
        let most = most.max(wanted);
        if now.since(since) < REQUEST_IS_LATE {
            self.doubted = Some(Doubted { since, most });
            return used;
        }
        // What is smaller still is doubted from here on.
        let less = (!wanted.covers(most)).then_some(Doubted { since: now, most: wanted });
        self.doubted = less;
        used.min(most)
    }

    /// Whether a word may still be one of the agent of another VM that had the name: the first was heard less long ago than a request
    /// may be late.
    pub(crate) fn may_be_of_another(&mut self, now: Moment, wanted: Resources) -> bool {
        let first = self.doubted.get_or_insert(Doubted { since: now, most: wanted });
        now.since(first.since) < REQUEST_IS_LATE
    }

    /// The first word that counts.
    pub(crate) fn begin(&mut self, now: Moment, last_permit: Option<Resources>) {
        self.doubted = None;
        self.hear(now, last_permit);
    }

    /// The agent names its last permit.
    pub(crate) fn hear(&mut self, now: Moment, last_permit: Option<Resources>) {
        if let Some(named) = last_permit.filter(|named| self.last != Some(*named)) {
            self.remember(now, named);
        }
    }

    /// The agent is answered this.
    pub(crate) fn answer(&mut self, now: Moment, permit: Resources) {
        if self.last == Some(permit) {
            return;
        }
        if let Some(last) = self.last.replace(permit) {
            self.remember(now, last);
        }
    }

    /// Whether an agent that may be using this much was answered less last.
    pub(crate) fn is_below(&self, used: Resources) -> bool {
        self.last.is_some_and(|last| !last.covers(used))
    }

    fn remember(&mut self, now: Moment, permit: Resources) {
        self.earlier.retain(|(at, known)| *known != permit && now.since(*at) < FOLLOWS);
        if self.earlier.len() == EARLIER {
            self.earlier.pop_front();
            self.crowded = Some(now);
        }
        self.earlier.push_back((now, permit));
    }

    /// Whether a request that names this last permit was sent after the last answer was received.
    fn is_received(&self, now: Moment, last_permit: Option<Resources>, slot: Bytes) -> bool {
        let is_named = |permit: Resources| {
            let whole = |size: Resources| Resources { mem: size.mem.round_up(slot), ..size };
            last_permit.is_some_and(|last| whole(permit) == whole(last))
        };
        let may_arrive = |at: Moment| now.since(at) < FOLLOWS;
        let mut earlier = self.earlier.iter();
        self.last.is_some_and(is_named)
            && !self.crowded.is_some_and(may_arrive)
            && !earlier.any(|(at, permit)| is_named(*permit) && may_arrive(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::MilliCpu;

    #[test]
    fn a_smaller_figure_counts_once_its_answer_is_named() {
        let mut answers = answered(&[(0, 2), (20, 4)]);
        assert_eq!(answers.hears(21, 4, 1, Some(4)), 4, "it may be older than one that said 4");
        answers.answer(at(21), size(1));
        for (wanted, last, used) in
            [(1, Some(1), 1), (5, Some(1), 1), (1, Some(4), 4), (1, None, 4)]
        {
            assert_eq!(answers.clone().hears(22, 4, wanted, last), used, "{wanted} {last:?}");
        }
    }

    #[test]
    fn the_same_answer_given_twice_within_the_time_proves_nothing() {
        let answers = answered(&[(0, 2), (1, 4), (2, 2)]);
        assert_eq!(answers.clone().hears(12, 4, 2, Some(2)), 4);
        assert_eq!(answers.clone().hears(13, 4, 2, Some(2)), 2, "none is under way");
        let again = answered(&[(0, 4), (1, 2), (2, 2)]);
        assert_eq!(again.clone().hears(3, 4, 2, Some(2)), 2, "it was one answer");
    }

    #[test]
    fn a_permit_that_was_named_late_proves_nothing_later() {
        let mut answers = answered(&[(0, 2), (1, 4)]);
        assert_eq!(answers.hears(9, 4, 4, Some(2)), 4, "the agent did not hear the last answer");
        answers.answer(at(14), size(2));
        assert_eq!(answers.clone().hears(20, 4, 2, Some(2)), 4, "that may be from before 9 s");
        assert_eq!(answers.hears(21, 4, 2, Some(2)), 2);
    }

    #[test]
    fn a_doubted_figure_counts_once_it_is_said_again_after_the_time() {
        let mut answers = answered(&[(0, 4)]);
        for (now, wanted, used) in [(1, 1, 4), (6, 2, 4), (10, 1, 4), (11, 1, 2)] {
            assert_eq!(answers.hears(now, 4, wanted, None), used, "at {now} s");
        }
        assert_eq!(answers.hears(20, 2, 1, None), 2, "that was said first at 11 s");
        assert_eq!(answers.hears(21, 2, 1, None), 1);
        let mut answers = answered(&[(0, 4)]);
        assert_eq!(answers.hears(1, 4, 1, None), 4);
        assert_eq!(answers.hears(5, 4, 4, None), 4, "the VM needs it");
        assert_eq!(answers.hears(11, 4, 1, None), 4, "the first is forgotten");
        assert_eq!(answers.hears(21, 4, 1, None), 1);
    }

    #[test]
    fn more_answers_than_are_remembered_prove_nothing_for_a_while() {
        let turns: Vec<(u64, u64)> = (0..11).map(|nth| (nth / 4, 20 - nth)).collect();
        let answers = answered(&turns);
        assert_eq!(answers.earlier.len(), EARLIER);
        assert_eq!(answers.clone().hears(3, 20, 1, Some(10)), 20);
        assert_eq!(answers.clone().hears(14, 20, 1, Some(10)), 10);
        assert_eq!(answered(&turns[..9]).hears(3, 20, 1, Some(12)), 12, "all are remembered");
    }

    impl Answers {
        /// What may be in use, in seconds and units.
        fn hears(&mut self, now: u64, used: u64, wanted: u64, last: Option<u64>) -> u64 {
            let last = last.map(size);
            let slot = Bytes::from_mib(128);
            self.used(at(now), size(used), size(wanted), last, slot).cpu.milli() / 1000
        }
    }

    fn answered(answers: &[(u64, u64)]) -> Answers {
        let mut answered = Answers::default();
        for (second, permit) in answers {
            answered.answer(at(*second), size(*permit));
        }
        answered
    }

    fn at(second: u64) -> Moment {
        Moment::from_millis(second * 1000)
    }

    fn size(count: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
    }
}
