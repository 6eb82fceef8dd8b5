//! Metrics text, as a guest serves it, to a [`Sample`]. What is missing is said, not guessed.
//!
//! Reads the Prometheus text format of our informant, and the reference's names where ours are
//! absent. A figure that is NaN, infinite, negative or unreadable counts as absent; a name that
//! stands twice with different values does too, because nothing says which one is true.

use windlass_protocol::{Bytes, MilliCpu, Moment};
use windlass_scaling::{Loads, Sample};

/// How names begin that our informant alone has. Load over its shorter windows is there once they are filled.
const OURS: &str = "windlass_";

/// One figure while the text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Figure {
    #[default]
    Absent,
    Is(f64),
    Contradicts,
}

#[derive(Default)]
struct Figures {
    load5s: Figure,
    load15s: Figure,
    load1: Figure,
    load5: Figure,
    total: Figure,
    available: Figure,
    online: Figure,
    reach: Figure,
}

/// Reads a whole answer. Lines that mean nothing to us are passed over.
pub fn parse(text: &str, at: Moment) -> Sample {
    let mut figures = Figures::default();
    let mut by_minutes = true;
    for line in text.lines() {
        let Some((name, labels, value)) = split(line) else { continue };
        by_minutes &= !name.starts_with(OURS);
        if let Some(figure) = figures.named(name, labels) {
            figure.hear(value);
        }
    }
    Sample {
        at,
        loads: Loads {
            five_seconds: figures.load5s.value(),
            fifteen_seconds: figures.load15s.value(),
            one_minute: figures.load1.value(),
            five_minutes: figures.load5.value(),
        },
        total: figures.total.value().map(bytes),
        available: figures.available.value().map(bytes),
        online: figures.online.value().and_then(cores),
        reach: figures.reach.value().and_then(cores),
        by_minutes,
    }
}

/// `name{labels} value [timestamp]` into its first three parts.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", rest),
    };
    Some((name, labels.trim(), rest.split_whitespace().next()?))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative and not NaN, and a float cast saturates"
)]
fn bytes(value: f64) -> Bytes {
    Bytes::from_bytes(value as u64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range that is checked first"
)]
fn cores(value: f64) -> Option<MilliCpu> {
    // No machine has none, and none has a million.
    (1.0..=1e6).contains(&value).then(|| MilliCpu::from_milli((value * 1000.0) as u64))
}

// === impl Figures ===

impl Figures {
    fn named(&mut self, name: &str, labels: &str) -> Option<&mut Figure> {
        Some(match name {
            "windlass_load" if labels == r#"window="5s""# => &mut self.load5s,
            "windlass_load" if labels == r#"window="15s""# => &mut self.load15s,
            "host_load1" | "node_load1" => &mut self.load1,
            "host_load5" | "node_load5" => &mut self.load5,
            "windlass_memory_total_bytes"
            | "host_memory_total_bytes"
            | "node_memory_MemTotal_bytes" => &mut self.total,
            "windlass_memory_available_bytes"
            | "host_memory_available_bytes"
            | "node_memory_MemAvailable_bytes" => &mut self.available,
            "windlass_cpus_online" => &mut self.online,
            "windlass_cpus_reach" => &mut self.reach,
            _ => return None,
        })
    }
}

// === impl Figure ===

impl Figure {
    fn hear(&mut self, value: &str) {
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        *self = match (*self, value) {
            (Self::Absent, Some(value)) => Self::Is(value),
            #[expect(clippy::float_cmp, reason = "the same text gives the same value")]
            (Self::Is(known), Some(value)) if known == value => Self::Is(known),
            (Self::Absent | Self::Is(_) | Self::Contradicts, _) => Self::Contradicts,
        };
    }

    fn value(self) -> Option<f64> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Contradicts => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_and_the_references_are_read() {
        let text = "# HELP x y\n# TYPE host_load1 gauge\nhost_load1 0.53\nhost_load15 9\n\
            host_load5 0.4 1700000000\nwindlass_load{window=\"5s\"} 2.5\n\
            windlass_load{window=\"15s\"} 1.25\nwindlass_cpus_online 2\n\
            windlass_memory_total_bytes 1048576\nwindlass_memory_available_bytes 4096\n";
        let sample = parse(text, Moment::from_millis(5));
        assert_eq!(sample.loads.one_minute, Some(0.53));
        assert_eq!(sample.loads.five_minutes, Some(0.4));
        assert_eq!(sample.loads.five_seconds, Some(2.5));
        assert_eq!(sample.loads.fifteen_seconds, Some(1.25));
        assert_eq!(sample.online, Some(MilliCpu::from_cores(2)));
        assert_eq!(sample.total, Some(Bytes::from_mib(1)));
        assert_eq!(sample.available, Some(Bytes::from_kib(4)));
    }

    #[test]
    fn what_makes_no_sense_is_missing() {
        for line in [
            "host_load1 NaN",
            "host_load1 +Inf",
            "host_load1 -1",
            "host_load1 abc",
            "host_load1",
            "host_load1{a=\"b\" 1",
            "host_load1_foo 1",
            "host_load1 1\nhost_load1 2",
            "host_load1 1\nhost_load1 NaN",
            "",
            "{} 1",
        ] {
            assert_eq!(parse(line, Moment::default()).loads.one_minute, None, "{line}");
        }
        for online in ["0", "0.5", "1e9", "NaN"] {
            assert_eq!(
                parse(&format!("windlass_cpus_online {online}"), Moment::default()).online,
                None
            );
        }
    }
}
