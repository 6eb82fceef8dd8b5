//! Flags and their defaults. Few enough to be read by hand, which keeps the program small.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::words::meant;

/// What `--help` prints.
pub const HELP: &str = "\
Speaks for this guest to a Windlass agent: reports load, agrees or refuses to give memory
up, asks for more before it runs out, and brings added memory and vCPUs online, these
as its agent allows.

Usage: windlass-informant [OPTIONS]

Without options it serves on 0.0.0.0:10301 and changes nothing until an agent registers.

Options:
  --listen ADDR       where to serve, as ip:port; port 0 takes a free one and prints it
                      [default: 0.0.0.0:10301]
  --sample-every MS   how often load and memory are read, 10 to 400 ms [default: 100]
  --versions RANGE    versions of the protocol with agents, as v1.0-v1.2 or v2.0
                      [default: v1.0-v2.0]
  --root DIR          take DIR/proc, DIR/sys and DIR/run in place of the machine's
  --help              print this
  --version           print the version
";

/// What may be meant by a flag that there is not.
const FLAGS: [&str; 6] =
    ["--listen", "--sample-every", "--versions", "--root", "--help", "--version"];

/// Below 10 ms sampling would be a load of its own; above 400 ms there would be too few
/// samples for a consent.
const SAMPLE_EVERY: std::ops::RangeInclusive<u64> = 10..=400;

/// What was asked for on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Serve.
    Run(Config),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// How to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where.
    pub listen: SocketAddr,
    /// How often load and memory are read.
    pub sample_every: Duration,
    /// The versions that agents are spoken to in.
    pub versions: Versions<InformantVersion>,
    /// A tree in place of the machine's own.
    pub root: Option<PathBuf>,
}

/// A command line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadFlag {
    /// There is no such flag.
    #[error("{flag}: there is no such option; {}", hint(*meant))]
    Unknown {
        /// What was given.
        flag: String,
        /// The flag that was probably meant.
        meant: Option<&'static str>,
    },
    /// The flag needs a value.
    #[error("{0}: needs a value")]
    NoValue(&'static str),
    /// The value is not one.
    #[error("{flag}: {value} is not {expected}")]
    Value {
        /// Which flag.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 10301)),
            sample_every: Duration::from_millis(100),
            versions: InformantVersion::SPOKEN,
            root: None,
        }
    }
}

// === impl BadFlag ===

impl BadFlag {
    /// The same of a program that has these flags, too.
    #[must_use]
    pub fn beside(self, more: &[&'static str]) -> Self {
        match self {
            Self::Unknown { flag, .. } => Self::unknown(&flag, more),
            Self::NoValue(_) | Self::Value { .. } => self,
        }
    }

    fn unknown(flag: &str, more: &[&'static str]) -> Self {
        let meant = meant(flag, FLAGS.iter().chain(more).copied());
        Self::Unknown { flag: flag.to_owned(), meant }
    }
}

/// Reads the command line, without the program's name.
///
/// # Errors
/// Names the flag, its value, and what is allowed.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, BadFlag> {
    let mut args = args.into_iter();
    let mut config = Config::default();
    while let Some(arg) = args.next() {
        let arg = arg.to_string_lossy().into_owned();
        let (flag, inline) = match arg.split_once('=') {
            Some((flag, value)) => (flag, Some(OsString::from(value))),
            None => (arg.as_str(), None),
        };
        let mut value = |flag| inline.clone().or_else(|| args.next()).ok_or(BadFlag::NoValue(flag));
        match flag {
            "--listen" => config.listen = listen(&value("--listen")?)?,
            "--sample-every" => config.sample_every = sample_every(&value("--sample-every")?)?,
            "--versions" => config.versions = versions(&value("--versions")?)?,
            "--root" => config.root = Some(PathBuf::from(value("--root")?)),
            "--help" | "-h" => return Ok(Command::Help),
            "--version" | "-V" => return Ok(Command::Version),
            unknown => return Err(BadFlag::unknown(unknown, &[])),
        }
    }
    Ok(Command::Run(config))
}

/// What to do about a flag that there is not.
fn hint(meant: Option<&str>) -> String {
    meant.map_or_else(|| "--help lists them".to_owned(), |flag| format!("did you mean {flag}?"))
}

fn listen(value: &OsString) -> Result<SocketAddr, BadFlag> {
    let value = value.to_string_lossy();
    let expected = "an ip:port";
    value.parse().map_err(|_| BadFlag::Value { flag: "--listen", value: value.into(), expected })
}

fn sample_every(value: &OsString) -> Result<Duration, BadFlag> {
    let value = value.to_string_lossy();
    let millis = value.parse().ok().filter(|millis| SAMPLE_EVERY.contains(millis));
    let expected = "a number of milliseconds from 10 to 400";
    millis.map(Duration::from_millis).ok_or_else(|| BadFlag::Value {
        flag: "--sample-every",
        value: value.into(),
        expected,
    })
}

fn versions(value: &OsString) -> Result<Versions<InformantVersion>, BadFlag> {
    let value = value.to_string_lossy();
    let (min, max) = value.split_once('-').unwrap_or((&value, &value));
    let ends = InformantVersion::from_name(min).zip(InformantVersion::from_name(max));
    let range = ends.map(|(min, max)| Versions { min, max }).filter(|range| range.min <= range.max);
    let expected = "a version or a range, oldest first, of v1.0 to v2.0";
    range.ok_or_else(|| BadFlag::Value { flag: "--versions", value: value.into(), expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, BadFlag> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn without_flags_it_serves_the_guest_it_is_in() {
        assert_eq!(parsed(&[]), Ok(Command::Run(Config::default())));
    }

    #[test]
    fn flags_take_their_value_either_way() {
        let Ok(Command::Run(config)) =
            parsed(&["--listen", "127.0.0.1:0", "--sample-every=10", "--root", "/tmp/x"])
        else {
            panic!("understood");
        };
        assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 0)));
        assert_eq!(config.sample_every, Duration::from_millis(10));
        assert_eq!(config.root, Some(PathBuf::from("/tmp/x")));
        assert_eq!(parsed(&["--root", "/x", "--help"]), Ok(Command::Help));
    }

    #[test]
    fn versions_are_a_range_or_one() {
        let (v1_0, v1_2) = (InformantVersion::V1_0, InformantVersion::V1_2);
        for (value, versions) in [
            ("v1.0-v1.2", Versions { min: v1_0, max: v1_2 }),
            ("v1.2", Versions::only(v1_2)),
            ("v1.0-v1.0", Versions::only(v1_0)),
        ] {
            let Ok(Command::Run(config)) = parsed(&["--versions", value]) else {
                panic!("{value} is understood");
            };
            assert_eq!(config.versions, versions);
        }
    }

    #[test]
    fn a_bad_flag_is_named_with_its_value_and_the_limit() {
        for (args, said) in [
            (
                &["--sample-every", "5"][..],
                "--sample-every: 5 is not a number of milliseconds from 10 to 400",
            ),
            (
                &["--sample-every=401"],
                "--sample-every: 401 is not a number of milliseconds from 10 to 400",
            ),
            (&["--listen", "localhost:1"], "--listen: localhost:1 is not an ip:port"),
            (
                &["--versions", "v1.3"],
                "--versions: v1.3 is not a version or a range, oldest first, of v1.0 to v2.0",
            ),
            (
                &["--versions=v2.0-v1.0"],
                "--versions: v2.0-v1.0 is not a version or a range, oldest first, of v1.0 to v2.0",
            ),
            (&["--listen"], "--listen: needs a value"),
            (&["--cgroup=x"], "--cgroup: there is no such option; --help lists them"),
            (&["--lisen=x"], "--lisen: there is no such option; did you mean --listen?"),
            (
                &["sample-every"],
                "sample-every: there is no such option; did you mean --sample-every?",
            ),
        ] {
            assert_eq!(parsed(args).unwrap_err().to_string(), said);
        }
    }
}
