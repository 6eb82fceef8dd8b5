//! The versions of both protocols, as the kit knows them.

use std::fmt;

/// One version: its number on the wire and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// On the wire.
    pub number: u32,
    /// For people.
    pub name: &'static str,
}

/// The versions in which a case holds, both ends included, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub from: u32,
    /// The last.
    pub to: u32,
}

/// Agent and informant.
pub const INFORMANT: [Version; 4] =
    [version(1, "v1.0"), version(2, "v1.1"), version(3, "v1.2"), version(4, "v2.0")];

/// Agent and plugin.
pub const PLUGIN: [Version; 7] = [
    version(1, "v1.0"),
    version(2, "v1.1"),
    version(3, "v2.0"),
    version(4, "v2.1"),
    version(5, "v3.0"),
    version(6, "v4.0"),
    version(7, "v5.0"),
];

const fn version(number: u32, name: &'static str) -> Version {
    Version { number, name }
}

/// The versions of this table from `min` to `max`, by their names (`v1.1`) or one name.
///
/// # Errors
/// Names what is no version, and those that there are.
pub fn select(table: &[Version], text: &str) -> Result<Vec<Version>, String> {
    let known = |name: &str| {
        let name = name.trim();
        table.iter().find(|version| version.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = table.iter().map(|version| version.name).collect();
            format!("{name:?} is not a version: {} or a range such as v1.0-v2.0", names.join(", "))
        })
    };
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let (min, max) = (known(min)?, known(max)?);
    if min > max {
        return Err(format!("{text:?}: {min} is above {max}"));
    }
    Ok(table.iter().copied().filter(|version| (min..=max).contains(version)).collect())
}

// === impl Span ===

impl Span {
    /// Every version.
    pub const ALL: Self = Self { from: 1, to: u32::MAX };

    /// From this on.
    pub const fn from(number: u32) -> Self {
        Self { from: number, to: u32::MAX }
    }

    /// Up to this one, included.
    pub const fn up_to(number: u32) -> Self {
        Self { from: 1, to: number }
    }

    /// Only this one.
    pub const fn only(number: u32) -> Self {
        Self { from: number, to: number }
    }

    /// Whether this version is one of them.
    pub const fn holds(self, version: Version) -> bool {
        self.from <= version.number && version.number <= self.to
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_with_both_ends() {
        let names = |text| {
            let found = select(&INFORMANT, text);
            found.map(|found| found.iter().map(|version| version.name).collect::<Vec<_>>())
        };
        assert_eq!(names("v1.1-v2.0"), Ok(vec!["v1.1", "v1.2", "v2.0"]));
        assert_eq!(names("v1.0"), Ok(vec!["v1.0"]));
        assert_eq!(names("v2.0-v1.0"), Err("\"v2.0-v1.0\": v2.0 is above v1.0".to_owned()));
        assert!(
            names("v3.0")
                .is_err_and(|said| said.starts_with("\"v3.0\" is not a version: v1.0, v1.1"))
        );
    }
}
