//! A peer that stops answering: the log says so once, and once more when it answers again.

use std::time::Duration;
use windlass_protocol::Moment;

/// Whether a peer answers, and whether a person was told that it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outage {
    since: Option<Moment>,
    is_told: bool,
}

/// What a person is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It has not answered for so long.
    Silent(Duration),
    /// It answers again.
    Back,
}

// === impl Outage ===

impl Outage {
    /// Takes in that the peer answered, or did not. A silence is reported once it has lasted for `after`:
    /// a single lost answer is no outage.
    pub(crate) fn heard(&mut self, now: Moment, answered: bool, after: Duration) -> Option<Word> {
        if answered {
            let was_told = std::mem::take(self).is_told;
            return was_told.then_some(Word::Back);
        }
        let silent = now.since(*self.since.get_or_insert(now));
        if self.is_told || silent < after {
            return None;
        }
        self.is_told = true;
        Some(Word::Silent(silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_told_once_when_it_lasts_and_so_is_its_end() {
        const AFTER: Duration = Duration::from_secs(5);
        let mut outage = Outage::default();
        let mut at = |seconds: u64, answered| {
            outage.heard(Moment::from_millis(seconds * 1_000), answered, AFTER)
        };
        assert_eq!((at(1, true), at(2, false), at(3, true)), (None, None, None), "a lost answer");
        assert_eq!((at(10, false), at(14, false)), (None, None));
        assert_eq!(at(15, false), Some(Word::Silent(AFTER)));
        assert_eq!((at(16, false), at(60, false)), (None, None), "that was said");
        assert_eq!((at(61, true), at(62, true)), (Some(Word::Back), None));
        assert_eq!((at(63, false), at(68, false)), (None, Some(Word::Silent(AFTER))), "a new one");
    }
}
