//! What a case has at hand: the informant under test, and the version that is spoken to it.

use super::Options;
use crate::case::{Fault, Verdict};
use crate::http::{self, Answer, Lost};
use crate::versions::Version;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A registration takes longest: a call-back, and bringing memory online.
const LIMIT: Duration = Duration::from_secs(12);

/// How often it is looked whether something happened.
const LOOK: Duration = Duration::from_millis(5);

/// Any amounts that no guest uses up, so that agreeing to them changes nothing.
pub(super) const ENOUGH: (&str, &str) = ("64", "64Gi");

/// Memory that no guest can live with.
pub(super) const TOO_LITTLE: (&str, &str) = ("64", "1Mi");

/// The informant under test, spoken to in one version.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) target: SocketAddr,
    pub(super) advertise: IpAddr,
    pub(super) version: Version,
    provoke: Option<String>,
}

/// Makes memory short for as long as it lives.
pub(super) struct Pressure<'a>(&'a Bench);

// === impl Bench ===

impl Bench {
    pub(super) fn new(options: &Options, version: Version) -> Self {
        let Options { target, advertise, ref provoke, .. } = *options;
        Self { target, advertise, version, provoke: provoke.clone() }
    }

    /// Asks with a body of text.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> Result<Answer, Lost> {
        http::ask(self.target, method, path, body.as_bytes(), LIMIT)
    }

    /// Whether amounts name their agent and have numbers.
    pub(super) fn is_numbered(&self) -> bool {
        self.version.number >= 4
    }

    /// The body of `/downscale` and `/upscale` as this version has it.
    pub(super) fn amounts(&self, (cpu, memory): (&str, &str), id: &str, number: u64) -> String {
        if self.is_numbered() {
            format!(
                r#"{{"data":{{"cpu":"{cpu}","memory":"{memory}","id":{{"agentID":"{id}"}}}},"sequenceNumber":{number}}}"#
            )
        } else {
            format!(r#"{{"cpu":"{cpu}","memory":"{memory}"}}"#)
        }
    }

    /// Makes memory short at the target.
    pub(super) fn press(&self) -> Result<Pressure<'_>, Fault> {
        self.provoke("on")?;
        Ok(Pressure(self))
    }

    fn provoke(&self, word: &str) -> Verdict {
        let Some(command) = &self.provoke else {
            return Err(Fault("--provoke was not given".to_owned()));
        };
        let run = Command::new("sh").arg("-c").arg(format!("{command} {word}")).status();
        match run {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Fault(format!("--provoke: {command} {word}: {status}"))),
            Err(error) => Err(Fault(format!("--provoke: {command} {word}: {error}"))),
        }
    }
}

impl Drop for Pressure<'_> {
    fn drop(&mut self) {
        // A guest that stays short makes the next case fail, and say so.
        let _ = self.0.provoke("off");
    }
}

/// Waits until `so`, at most for `limit`; how long it took.
///
/// # Errors
/// If it was not so in time.
pub(super) fn until(
    what: &str,
    limit: Duration,
    mut so: impl FnMut() -> bool,
) -> Result<Duration, Fault> {
    let started = Instant::now();
    while !so() {
        if started.elapsed() > limit {
            return Err(Fault(format!("not within {limit:?}: {what}")));
        }
        sleep(LOOK);
    }
    Ok(started.elapsed())
}
