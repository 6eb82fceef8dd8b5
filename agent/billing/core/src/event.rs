//! Events, and their form on the wire: the reference's JSON, field by field.

use crate::{Endpoint, Source};
use serde::{Deserialize, Serialize};
use std::fmt;
use windlass_protocol::{Moment, Sequence};

const DAY: u64 = 86_400;

/// The origin of idempotency keys. The meter keeps it even if the node is renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The node.
    pub source: Source,
    /// The start of the meter: a new meter has other keys.
    pub since: Moment,
}

/// The metric of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// CPU seconds: vCPUs that the VM had, times the seconds for which it had them.
    Cpu,
    /// Seconds in which the VM was there.
    Active,
}

/// The receiver's names of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// [`Metric::Cpu`].
    pub cpu: String,
    /// [`Metric::Active`].
    pub active: String,
}

/// An amount of use. An event never changes, because its key stands for its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its number; the next event has the next one.
    pub sequence: Sequence,
    /// The billed endpoint.
    pub endpoint: Endpoint,
    /// The metric.
    pub metric: Metric,
    /// The start; a fraction of a second may be older.
    pub start: Moment,
    /// The end.
    pub stop: Moment,
    /// Whole seconds, above zero.
    pub value: u64,
}

/// An event as the receiver reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wire<'a> {
    idempotency_key: String,
    metric: &'a str,
    r#type: &'static str,
    endpoint_id: &'a str,
    start_time: String,
    stop_time: String,
    value: u64,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usages<'a> {
    events: Vec<Wire<'a>>,
}

/// Shows a moment as the reference's events have it, RFC 3339 in UTC without trailing zeros:
/// `2023-07-12T09:59:36.1Z`.
struct Utc(Moment);

// === impl Event ===

impl Event {
    /// The idempotency key: always the same for this event, and different for every other event.
    ///
    /// Time first, so that keys sort; then who made it; then a number without gaps, so that the
    /// receiver can see whether one is missing.
    pub fn key(&self, origin: &Origin) -> String {
        let Origin { source, since } = origin;
        format!("{}-{source}-{:x}-{}", Utc(self.stop), since.millis(), self.sequence)
    }

    fn wire<'a>(&'a self, origin: &Origin, names: &'a Names) -> Wire<'a> {
        Wire {
            idempotency_key: self.key(origin),
            metric: match self.metric {
                Metric::Cpu => &names.cpu,
                Metric::Active => &names.active,
            },
            r#type: "incremental",
            endpoint_id: self.endpoint.as_str(),
            start_time: Utc(self.start).to_string(),
            stop_time: Utc(self.stop).to_string(),
            value: self.value,
        }
    }
}

// === impl Usages ===

impl<'a> Usages<'a> {
    /// These events.
    pub fn of(events: &'a [Event], origin: &Origin, names: &'a Names) -> Self {
        Self { events: events.iter().map(|event| event.wire(origin, names)).collect() }
    }
}

// === impl Utc ===

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.millis();
        let (seconds, fraction) = (millis / 1000, millis % 1000);
        let (year, month, day) = date(seconds / DAY);
        let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if fraction > 0 {
            write!(f, ".{}", format!("{fraction:03}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01.
///
/// Counted in years that begin in March, so that the leap day is the last of its year; they
/// repeat every 400 years, which have 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    // 719,468 days lie between March 1 of the year 0 and 1970-01-01.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // From March on the months' lengths repeat every five: 153 days.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_without_trailing_zeros() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (500, "1970-01-01T00:00:00.5Z"),
            (951_825_600_000, "2000-02-29T12:00:00Z"),
            (1_689_155_976_100, "2023-07-12T09:59:36.1Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_010, "2024-03-01T00:00:00.01Z"),
            (1_795_277_040_000, "2026-11-21T16:04:00Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc(Moment::from_millis(millis)).to_string(), text);
        }
    }
}
