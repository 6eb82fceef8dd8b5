//! Versions of the protocol between agent and informant: one table, and what is asked of it.
//!
//! Whoever needs to know whether a version can say something asks the version, and the version
//! looks it up here. A version that is not in the table can say nothing.

use super::{Versions, name};
use std::fmt;

/// A version of the protocol between agent and informant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InformantVersion(pub(super) u32);

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    version: InformantVersion,
    name: &'static str,
    /// The guest can call for more (`/try-upscale`).
    asks_for_more: bool,
    /// The agent can ask whether its session stands (`/health-check`).
    checks_health: bool,
    /// Sizes carry the agent's id and a number.
    numbers_sizes: bool,
}

/// Every version, oldest first.
const TABLE: [Row; 4] = [
    Row {
        version: InformantVersion::V1_0,
        name: "v1.0",
        asks_for_more: false,
        checks_health: false,
        numbers_sizes: false,
    },
    Row {
        version: InformantVersion::V1_1,
        name: "v1.1",
        asks_for_more: true,
        checks_health: false,
        numbers_sizes: false,
    },
    Row {
        version: InformantVersion::V1_2,
        name: "v1.2",
        asks_for_more: true,
        checks_health: true,
        numbers_sizes: false,
    },
    Row {
        version: InformantVersion::V2_0,
        name: "v2.0",
        asks_for_more: true,
        checks_health: true,
        numbers_sizes: true,
    },
];

// === impl InformantVersion ===

impl InformantVersion {
    /// Bare sizes, and nothing else but sessions.
    pub const V1_0: Self = Self(1);

    /// The guest can call for more.
    pub const V1_1: Self = Self(2);

    /// The agent can ask whether its session stands.
    pub const V1_2: Self = Self(3);

    /// Numbered messages that carry the agent's id.
    pub const V2_0: Self = Self(4);

    /// What this release speaks.
    pub const SPOKEN: Versions<Self> = Versions { min: Self::V1_0, max: Self::V2_0 };

    /// Every version that has a name, oldest first.
    pub const KNOWN: [Self; TABLE.len()] = [Self::V1_0, Self::V1_1, Self::V1_2, Self::V2_0];

    /// The version of this number.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The version of this name, as `v1.2`.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.version)
    }

    /// As a number, for the wire.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is a version at all: zero is what a body without one decodes to.
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// Whether the guest can call for more (`/try-upscale`).
    pub fn asks_for_more(self) -> bool {
        self.row().is_some_and(|row| row.asks_for_more)
    }

    /// Whether the agent can ask if its session stands (`/health-check`).
    pub fn checks_health(self) -> bool {
        self.row().is_some_and(|row| row.checks_health)
    }

    /// Whether `/downscale` and `/upscale` say whose they are, and carry a number.
    pub fn numbers_sizes(self) -> bool {
        self.row().is_some_and(|row| row.numbers_sizes)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.version == self)
    }
}

impl fmt::Display for InformantVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name(f, self.0, &TABLE.map(|row| row.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_version_once_and_in_order() {
        let listed: Vec<_> = TABLE.iter().map(|row| row.version).collect();
        assert_eq!(listed, InformantVersion::KNOWN);
        for (version, number) in InformantVersion::KNOWN.into_iter().zip(1..) {
            assert_eq!(version.number(), number);
            assert_eq!(InformantVersion::from_name(&version.to_string()), Some(version));
        }
        assert_eq!(InformantVersion::from_name("v1.3"), None);
    }

    #[test]
    fn a_version_without_a_row_can_say_nothing() {
        for version in [0, 5, u32::MAX].map(InformantVersion::from_number) {
            assert!(!version.asks_for_more() && !version.checks_health());
            assert!(!version.numbers_sizes());
        }
    }
}
