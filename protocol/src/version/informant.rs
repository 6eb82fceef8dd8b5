//! Versions of the protocol between agent and informant, and the requests that each one has.
//!
//! Code asks a version whether it has a request; no other place compares versions. A version that
//! this release does not know has none.

use super::{Versions, numbered};

/// A version of the protocol between agent and informant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InformantVersion(pub(super) u32);

/// The name of each version, oldest first.
const NAMES: [&str; 4] = ["v1.0", "v1.1", "v1.2", "v2.0"];

numbered!(InformantVersion, &NAMES);

// === impl InformantVersion ===

impl InformantVersion {
    /// Sessions, and sizes without an id or a number.
    pub const V1_0: Self = Self(1);

    /// The guest can ask for more at once.
    pub const V1_1: Self = Self(2);

    /// The agent can check that its session is valid.
    pub const V1_2: Self = Self(3);

    /// Numbered messages that carry the agent's id.
    pub const V2_0: Self = Self(4);

    /// The versions that this release speaks.
    pub const SPOKEN: Versions<Self> = Versions { min: Self::V1_0, max: Self::V2_0 };

    /// Every version that has a name, oldest first.
    pub const KNOWN: [Self; NAMES.len()] = [Self::V1_0, Self::V1_1, Self::V1_2, Self::V2_0];

    /// The version of this name, as `v1.2`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|version| version.to_string() == name)
    }

    /// Whether the guest can ask for more at once (`/try-upscale`).
    pub fn asks_for_more(self) -> bool {
        (Self::V1_1..=Self::V2_0).contains(&self)
    }

    /// Whether the agent can check that its session is valid (`/health-check`).
    pub fn checks_health(self) -> bool {
        (Self::V1_2..=Self::V2_0).contains(&self)
    }

    /// Whether `/downscale` and `/upscale` carry the session's id and a number.
    pub fn numbers_sizes(self) -> bool {
        self == Self::V2_0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_known_once_and_in_order() {
        for (version, number) in InformantVersion::KNOWN.into_iter().zip(1..) {
            assert_eq!(version.number(), number);
            assert_eq!(InformantVersion::from_name(&version.to_string()), Some(version));
        }
        assert_eq!(InformantVersion::from_name("v1.3"), None);
    }

    #[test]
    fn an_unknown_version_has_no_request() {
        for version in [0, 5, u32::MAX].map(InformantVersion::from_number) {
            assert!(!version.asks_for_more() && !version.checks_health());
            assert!(!version.numbers_sizes());
        }
    }
}
