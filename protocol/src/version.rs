//! Versions of the two protocols, and ranges of them.
//!
//! On the wire a version is a small number, and zero is invalid; people read `v2.0`. A future version has a
//! number without a name, and still prints. Each peer states the range that it speaks, both ends included;
//! the session uses the latest version in both ranges.

mod informant;
mod plugin;

pub use informant::InformantVersion;
pub use plugin::{PluginFeatures, PluginVersion};

use std::fmt;

/// What the versions of both protocols share: a number on the wire and a name, oldest first.
macro_rules! numbered {
    ($type:ident, $names:expr) => {
        impl $type {
            /// The version of this number.
            pub const fn from_number(number: u32) -> Self {
                Self(number)
            }

            /// As a number, for the wire.
            pub const fn number(self) -> u32 {
                self.0
            }

            /// Whether this is a version. A body without a version decodes to zero, which is not.
            pub const fn is_valid(self) -> bool {
                self.0 != 0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                super::name(f, self.0, $names)
            }
        }
    };
}

use numbered;

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions<V> {
    /// The oldest version.
    pub min: V,
    /// The latest version.
    pub max: V,
}

// === impl Versions ===

impl<V: Copy + Ord> Versions<V> {
    /// A range with a single version.
    pub const fn only(version: V) -> Self {
        Self { min: version, max: version }
    }

    /// The latest version in both ranges.
    pub fn latest_shared(self, other: Self) -> Option<V> {
        let (min, max) = (self.min.max(other.min), self.max.min(other.max));
        (max >= min).then_some(max)
    }

    /// Whether the range contains this version.
    pub fn contains(self, version: V) -> bool {
        self.min <= version && version <= self.max
    }
}

/// `v1.0 to v2.0`, or `v2.0` for a single version.
impl<V: fmt::Display + PartialEq> fmt::Display for Versions<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

/// The name of a version in the reference's words, for every number.
fn name(f: &mut fmt::Formatter<'_>, number: u32, names: &[&str]) -> fmt::Result {
    let Some(index) = number.checked_sub(1) else { return f.pad("<invalid: zero>") };
    let known = usize::try_from(index).ok().and_then(|index| names.get(index));
    match (known, names.last()) {
        (Some(known), _) => f.pad(known),
        (None, Some(latest)) => {
            let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
            write!(f, "<unknown = {latest} + {}>", number.saturating_sub(count))
        }
        (None, None) => write!(f, "<unknown = {number}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: u32, max: u32) -> Versions<InformantVersion> {
        Versions { min: InformantVersion(min), max: InformantVersion(max) }
    }

    #[test]
    fn the_latest_version_in_both_ranges_is_used() {
        assert_eq!(range(1, 4).latest_shared(range(4, 9)), Some(InformantVersion::V2_0));
        assert_eq!(range(1, 3).latest_shared(range(2, 9)), Some(InformantVersion(3)));
        assert_eq!(range(1, 3).latest_shared(range(4, 9)), None);
        assert_eq!(range(4, 1).latest_shared(range(1, 9)), None, "an empty range has no version");
    }

    #[test]
    fn a_range_contains_its_ends_and_the_versions_between() {
        let held: Vec<u32> =
            (0..7).filter(|number| range(2, 4).contains(InformantVersion(*number))).collect();
        assert_eq!(held, [2, 3, 4]);
        assert_eq!(Versions::only(InformantVersion(3)), range(3, 3));
    }

    #[test]
    fn ranges_print_in_the_reference_s_words() {
        assert_eq!(range(4, 4).to_string(), "v2.0");
        assert_eq!(range(1, 3).to_string(), "v1.0 to v1.2");
        assert_eq!(range(0, 6).to_string(), "<invalid: zero> to <unknown = v2.0 + 2>");
    }
}
