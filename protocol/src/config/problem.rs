//! An error in something that a person wrote: field, value, limit.

use crate::words::sanitized;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most characters of a field's name; a person may have made it up.
const LONGEST_FIELD: usize = 150;
/// The most characters of a value: enough to recognise it.
const LONGEST_VALUE: usize = 80;

/// One problem of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The field with its table, `node.memory`; empty for the whole file.
    pub field: String,
    /// The value; empty if the field has no value.
    pub value: String,
    /// The allowed values, and why this one is invalid.
    pub limit: String,
}

// === impl Problem ===

impl Problem {
    /// A problem of a field with a value.
    pub fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        limit: impl Into<String>,
    ) -> Self {
        let field = sanitized(&field.into(), LONGEST_FIELD);
        Self { field, value: sanitized(&value.to_string(), LONGEST_VALUE), limit: limit.into() }
    }

    /// A problem of a missing field, or of the whole file.
    pub fn without_value(field: impl Into<String>, limit: impl Into<String>) -> Self {
        Self::new(field, "", limit)
    }

    /// The same problem inside `place`, which becomes a prefix of its field.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        let field = match self.field.as_str() {
            "" => place.to_owned(),
            field => format!("{place}.{field}"),
        };
        Self { field, ..self }
    }
}

/// ``node.memory = "lots": must be …``
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.field.is_empty(), self.value.is_empty()) {
            (true, true) => f.write_str(&self.limit),
            (true, false) => write!(f, "{}: {}", self.value, self.limit),
            (false, true) => write!(f, "{}: {}", self.field, self.limit),
            (false, false) => write!(f, "{} = {}: {}", self.field, self.value, self.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_field_value_and_limit_if_present() {
        let named = Problem::new("memory", "lots", "must be a size");
        let unnamed = Problem::new("", "lots", "must be a size");
        let absent = Problem::without_value("memory", "must be there");
        for (problem, alone, within) in [
            (&named, "memory = lots: must be a size", "node.memory = lots: must be a size"),
            (&unnamed, "lots: must be a size", "node = lots: must be a size"),
            (&absent, "memory: must be there", "node.memory: must be there"),
            (&Problem::without_value("", "is no TOML"), "is no TOML", "node: is no TOML"),
        ] {
            assert_eq!(problem.to_string(), alone);
            assert_eq!(problem.clone().within("node").to_string(), within);
        }
    }

    #[test]
    fn a_long_field_or_value_is_cut_short() {
        let problem = Problem::new("f".repeat(151), "v".repeat(81), "");
        assert_eq!(problem.field, format!("{}…", "f".repeat(150)));
        assert_eq!(problem.value, format!("{}…", "v".repeat(80)));
    }
}
