//! What is measured and counted of the cache, as Prometheus text.

use crate::postgres::Postgres;
use windlass_informant::metrics::Count;
use windlass_informant_core::wire::figures::Page;
use windlass_protocol::{Bytes, Moment};

/// What was counted since the start.
#[derive(Debug, Default)]
pub struct Counts {
    set: Count,
    not_set: Count,
    /// Consents to less memory.
    pub agreed: Count,
    /// Consents that were declined because it would not fit.
    pub declined: Count,
    /// Consents that were declined because PostgreSQL did not do its part.
    pub failed: Count,
}

impl Counts {
    /// A size was set: whether it was seen to be in effect.
    pub(crate) fn set(&self, done: bool) {
        if done { self.set.add() } else { self.not_set.add() }
    }
}

/// The lines about the cache. A figure that is missing has no line.
pub(crate) fn lines(postgres: &Postgres, now: Moment, page: &mut Page) {
    let (seen, wanted, up) = {
        let cache = postgres.cache();
        (cache.last_seen(), cache.wanted(now), cache.problem().is_none())
    };
    let about = "Whether PostgreSQL answers, and does as it is told.";
    let up = u8::from(up && seen.is_some());
    page.add("windlass_file_cache_up", about, [("", up)]);
    let mut bytes = |name: &str, about: &str, amount: Option<Bytes>| {
        page.add(name, about, amount.map(|amount| ("", amount.bytes())));
    };
    let limit = seen.map(|seen| seen.limit);
    bytes("windlass_file_cache_limit_bytes", "How large the cache may become.", limit);
    let used = seen.and_then(|seen| seen.used);
    bytes("windlass_file_cache_used_bytes", "Memory that its content occupies.", used);
    bytes("windlass_file_cache_wanted_bytes", "How large it is to be.", wanted);

    let counts = &postgres.counts;
    let about = "Sizes that were set, by what became of them.";
    let sets =
        [("{result=\"done\"}", counts.set.get()), ("{result=\"failed\"}", counts.not_set.get())];
    page.add("windlass_file_cache_sets_total", about, sets);
    let about = "Requests for less memory, by their answer.";
    let consents = [
        ("{result=\"agreed\"}", counts.agreed.get()),
        ("{result=\"declined\"}", counts.declined.get()),
        ("{result=\"failed\"}", counts.failed.get()),
    ];
    page.add("windlass_file_cache_consents_total", about, consents);
}
