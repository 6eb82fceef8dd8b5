//! Why a body is invalid: the field, its value, and the allowed values.

use crate::words::sanitized;
use std::fmt;
use thiserror::Error;

/// A body that violates the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadBody {
    /// The body is not JSON.
    #[error("byte {at}: {why}")]
    NotJson {
        /// The byte at which the parser stopped, counted from zero.
        at: usize,
        /// The error.
        why: &'static str,
    },
    /// A field has an invalid value.
    #[error("{field}: {value} is not {expected}")]
    Field {
        /// The path of the field, as `resources.mem`; `body` for the whole.
        field: String,
        /// Its value, shortened.
        value: String,
        /// The allowed values, limits included.
        expected: String,
    },
    /// A field without a zero value is missing.
    #[error("{field}: is missing")]
    Missing {
        /// The path of the field.
        field: String,
    },
}

// === impl BadBody ===

impl BadBody {
    /// A field with an invalid value, which is shortened and made safe to show.
    pub fn field(
        field: impl fmt::Display,
        value: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::Field {
            field: shortened(&field.to_string()),
            value: shortened(&value.to_string()),
            expected: expected.to_string(),
        }
    }
}

/// A value of a peer, for a message of ours.
pub(crate) fn shortened(text: &str) -> String {
    sanitized(text, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_value_is_shortened_and_defused() {
        let error = BadBody::field("pod.name", "x\u{1b}[2J".repeat(1000), "a name");
        let text = error.to_string();
        assert!(text.starts_with("pod.name: x\u{fffd}[2J"), "{text}");
        assert!(text.ends_with("… is not a name"), "{text}");
        assert!(text.chars().count() < 100, "{text}");
    }
}
