//! What the network and a busy API server do to requests.

use crate::chance::Chance;

/// How unkind the way to the API server and to the plugins is. Figures are of a hundred messages, but where another unit is
/// named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Requests to the API server that never arrive.
    pub lost: u64,
    /// Answers of the API server that never arrive: the request has taken effect.
    pub unanswered: u64,
    /// Requests that are answered with 429, 409 or 500 and have no effect.
    pub refused: u64,
    /// Requests that are answered with 500 though they have taken effect.
    pub half_done: u64,
    /// Requests that take effect late, by up to `late` milliseconds, and as many whose answers come late.
    pub slow: u64,
    /// At most 50 s: the API server gives up a request after a minute.
    pub late: u64,
    /// Requests of agents, and answers to them, that are lost.
    pub agents_lost: u64,
    /// Requests of agents that arrive twice.
    pub agents_twice: u64,
    /// Requests of agents that are delayed, by up to `agents_late` milliseconds.
    pub agents_slow: u64,
    /// At most 8 s: later than ten no request counts as possible.
    pub agents_late: u64,
    /// The longest lag of a watch, in milliseconds.
    pub lag: u64,
    /// Of a thousand events of a watch, so many are lost, and as many others come again.
    pub gaps: u64,
}

/// An answer that takes longer than this is not heard: what was read is that old at most.
const SLOWEST_ANSWER: u64 = 3_500;

/// What becomes of one request to the API server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    /// Milliseconds to the API server; `None`: it is lost.
    pub(crate) there: Option<u64>,
    /// The same for the answer.
    pub(crate) back: Option<u64>,
    /// It is answered with this in place of being carried out.
    pub(crate) refused: Option<u16>,
    /// It is answered with this after it was carried out.
    pub(crate) half_done: bool,
}

// === impl Network ===

impl Network {
    pub(crate) fn fate(&self, chance: &mut Chance) -> Fate {
        let (mut there, mut back) = (1 + chance.below(20), 1 + chance.below(20));
        if chance.happens(self.slow) {
            there += chance.below(self.late);
        } else if chance.happens(self.slow) {
            back += chance.below(SLOWEST_ANSWER);
        }
        let statuses = [429, 429, 409, 500, 503];
        let drawn = usize::try_from(chance.below(5)).unwrap_or(0);
        Fate {
            there: (!chance.happens(self.lost)).then_some(there),
            back: (!chance.happens(self.unanswered)).then_some(back),
            refused: chance.happens(self.refused).then_some(statuses[drawn]),
            half_done: chance.happens(self.half_done),
        }
    }

    /// Milliseconds until what an agent or a scheduler says, or is answered, arrives; `None`: it is lost.
    pub(crate) fn agent_way(&self, chance: &mut Chance) -> Option<u64> {
        let late =
            if chance.happens(self.agents_slow) { chance.below(self.agents_late) } else { 0 };
        (!chance.happens(self.agents_lost)).then_some(1 + chance.below(10) + late)
    }

    /// How long a watch takes to tell.
    pub(crate) fn lag(&self, chance: &mut Chance) -> u64 {
        let lag = if chance.happens(30) { self.lag } else { self.lag / 8 };
        1 + chance.below(lag.max(10))
    }
}
