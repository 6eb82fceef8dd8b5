//! Logs on standard error: plain for people, JSON for machines. The filter can change at run time.
//!
//! Standard output belongs to the results of commands.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use thiserror::Error;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

const MAX_FILTER: usize = 1024;
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Plain,
    /// One JSON object per line.
    Json,
}

/// The filter of a running process, which can be changed.
#[derive(Clone, Debug)]
pub struct LogLevel(reload::Handle<EnvFilter, Registry>);

/// An error of logging.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// This filter, shortened, is invalid for this reason.
    #[error("log filter {0:?}: {1}; write a level (`info`) or `target=level` parts")]
    Filter(String, String),
    /// Logging is already set up in this process.
    #[error("logging is already set up")]
    Twice,
    /// Logging has ended.
    #[error("logging has ended")]
    Ended,
}

/// Sets up logging for the whole process.
///
/// # Errors
/// `filter` is invalid, or logging is already set up.
pub fn init(format: Format, filter: &str) -> Result<LogLevel, TelemetryError> {
    let (filter, handle) = reload::Layer::new(parse(filter)?);
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    match format {
        Format::Plain => registry.with(lines.with_target(false)).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    }
    .map_err(|_| TelemetryError::Twice)?;
    Ok(LogLevel(handle))
}

// === impl Format ===

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "plain" => Ok(Self::Plain),
            "json" => Ok(Self::Json),
            other => Err(format!("{other:?} is not a log format: plain, json")),
        }
    }
}

// === impl LogLevel ===

impl LogLevel {
    /// The current filter.
    ///
    /// # Errors
    /// Logging has ended.
    pub fn get(&self) -> Result<String, TelemetryError> {
        self.0.with_current(EnvFilter::to_string).map_err(|_| TelemetryError::Ended)
    }

    /// Changes the filter.
    ///
    /// # Errors
    /// `filter` is invalid, or logging has ended.
    pub fn set(&self, filter: &str) -> Result<(), TelemetryError> {
        self.0.reload(parse(filter)?).map_err(|_| TelemetryError::Ended)
    }

    /// The filter of a log that has ended, which can be neither read nor changed.
    pub fn ended() -> Self {
        Self(reload::Layer::new(EnvFilter::default()).1)
    }

    /// A filter without a log, for tests.
    #[cfg(test)]
    pub(crate) fn unconnected(filter: &str) -> (reload::Layer<EnvFilter, Registry>, Self) {
        let (layer, handle) = reload::Layer::new(parse(filter).unwrap());
        (layer, Self(handle))
    }
}

fn parse(filter: &str) -> Result<EnvFilter, TelemetryError> {
    let refuse =
        |why: &str| TelemetryError::Filter(filter.chars().take(80).collect(), why.to_owned());
    let filter = filter.trim();
    if filter.is_empty() {
        return Err(refuse("it is empty"));
    }
    if filter.len() > MAX_FILTER {
        return Err(refuse("it is longer than 1024 bytes"));
    }
    let parts: Vec<&str> = filter.split(',').map(str::trim).collect();
    if let Some(part) = parts.iter().find(|part| !is_part(part)) {
        let what = match part.chars().take(80).collect::<String>().as_str() {
            "" => "there is nothing before or after a comma".to_owned(),
            part => format!("{part:?} is no level"),
        };
        return Err(refuse(&format!("{what}; a level is one of {}", LEVELS.join(", "))));
    }
    EnvFilter::builder().parse(parts.join(",")).map_err(|error| refuse(&error.to_string()))
}

/// Whether this is `LEVEL` or `TARGET=LEVEL`. The library treats any other word as a target, and then
/// silences all other targets.
fn is_part(part: &str) -> bool {
    let (target, level) = part.rsplit_once('=').map_or((None, part), |(t, l)| (Some(t), l));
    target != Some("") && LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_changes_while_running_and_a_bad_one_changes_nothing() {
        let (_layer, level) = LogLevel::unconnected("info");
        level.set("warn,windlass_agent=debug").unwrap();
        assert_eq!(level.get().unwrap(), "windlass_agent=debug,warn");
        for bad in ["", "agent=loudest", &"x".repeat(2000)] {
            let error = level.set(bad).unwrap_err().to_string();
            assert!(error.contains("log filter"), "{error}");
        }
        assert_eq!(level.get().unwrap(), "windlass_agent=debug,warn");
    }

    #[test]
    fn a_filter_of_a_kibibyte_is_the_longest() {
        let of = |length: usize| format!("{}=info", "x".repeat(length - 5));
        assert!(parse(&of(1024)).is_ok());
        let error = parse(&of(1025)).unwrap_err().to_string();
        assert!(error.contains("it is longer than 1024 bytes"), "{error}");
    }

    #[test]
    fn a_format_is_known_by_its_name() {
        assert_eq!("plain".parse(), Ok(Format::Plain));
        assert_eq!("json".parse(), Ok(Format::Json));
        let error = "Json".parse::<Format>().unwrap_err();
        assert_eq!(error, "\"Json\" is not a log format: plain, json");
    }

    #[test]
    fn each_part_of_a_filter_is_a_level_or_a_target_with_a_level() {
        for good in ["off", "ERROR", "Warn", "info", "debug", "trace", "a::b=Debug, warn", "a=off"]
        {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, part) in [
            ("debgu", "debgu"),
            ("info,debgu", "debgu"),
            ("windlass_agent", "windlass_agent"),
            ("windlass_agent=debgu,info", "windlass_agent=debgu"),
            ("windlass_agent=", "windlass_agent="),
            ("=debug", "=debug"),
            ("3", "3"),
            ("a=3", "a=3"),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(&format!(": {part:?} is no level;")), "{bad}: {error}");
            assert!(error.contains("off, error, warn, info, debug, trace;"), "{bad}: {error}");
        }
        for bad in ["info,,debug", "info,", ",info"] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(
                error.contains(": there is nothing before or after a comma;"),
                "{bad}: {error}"
            );
        }
    }
}
