//! Which version of the informant's protocol the guests of a run speak, and what a story expects of it.
//!
//! `WINDLASS_GUEST_VERSION` limits the informant in every guest to one version; without it guests
//! speak the newest. The one place where the stories of versions differ: a story asks here and in
//! [`View::has`](crate::View::has), which goes by [`Spoken::parks`].

use anyhow::{Context, Result};
use std::env::{self, VarError};
use windlass_protocol::InformantVersion;

const VARIABLE: &str = "WINDLASS_GUEST_VERSION";

/// What the guests of a run speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    limit: Option<InformantVersion>,
}

// === impl Spoken ===

impl Spoken {
    /// What this run is told to have its guests speak.
    ///
    /// # Errors
    /// If that is no version.
    pub fn of_run() -> Result<Self> {
        match env::var(VARIABLE) {
            Ok(name) => Self::named(&name),
            Err(VarError::NotPresent) => Ok(Self { limit: None }),
            Err(error) => Err(error).context(VARIABLE),
        }
    }

    fn named(name: &str) -> Result<Self> {
        let limit = InformantVersion::from_name(name).with_context(|| {
            let known = InformantVersion::KNOWN.map(|version| version.to_string());
            format!("{VARIABLE}: {name:?} is none of {}", known.join(", "))
        })?;
        Ok(Self { limit: Some(limit) })
    }

    /// The version that an informant is limited to, by name; `None` if it is not.
    pub(crate) fn limit(self) -> Option<String> {
        self.limit.map(|version| version.to_string())
    }

    /// The version that informant and agent agree on.
    pub fn version(self) -> InformantVersion {
        self.limit.unwrap_or(InformantVersion::SPOKEN.max)
    }

    /// Whether a vCPU that a guest has parked leaves the books where parking is trusted. A size
    /// without a number may come late and un-park it: there it stays.
    pub fn parks(self) -> bool {
        self.version().numbers_sizes()
    }

    /// Whether a guest that runs out of memory calls for more, or waits until it is sampled.
    pub fn calls(self) -> bool {
        self.version().asks_for_more()
    }

    /// Whether agents ask if their sessions stand, and act by lease.
    pub fn leases(self) -> bool {
        self.version().checks_health()
    }

    /// How much memory can be filled every 250 ms while a guest of one unit grows in time, in MiB.
    pub fn filled_in_time(self) -> u32 {
        if self.calls() { 16 } else { 8 }
    }

    /// Says that the story that runs cannot be told in this version, and why. `make guests` counts
    /// these lines, and knows which there may be.
    pub fn lacks(self, story: &str, what: &str) {
        eprintln!("\n    not of {}: {story}: there is no {what}", self.version());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_name_each_version_and_nothing_else() {
        for version in InformantVersion::KNOWN {
            assert_eq!(Spoken::named(&version.to_string()).unwrap().version(), version);
        }
        let refused = Spoken::named("v1.3").unwrap_err().to_string();
        assert!(refused.ends_with("\"v1.3\" is none of v1.0, v1.1, v1.2, v2.0"), "{refused}");
    }

    #[test]
    fn without_a_limit_the_newest_is_spoken() {
        let spoken = Spoken { limit: None };
        assert_eq!((spoken.version(), spoken.limit()), (InformantVersion::V2_0, None));
    }
}
