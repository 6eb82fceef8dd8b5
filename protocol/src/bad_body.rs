//! Why a body was not understood: which field, what it holds, what is allowed.

use crate::words::defused;
use std::fmt;
use thiserror::Error;

/// A body that is not what the protocol says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadBody {
    /// It is not JSON.
    #[error("byte {at}: {why}")]
    NotJson {
        /// Where reading stopped, counted from zero.
        at: usize,
        /// What was found.
        why: &'static str,
    },
    /// A field holds what it must not.
    #[error("{field}: {value} is not {expected}")]
    Field {
        /// The path of the field, as `resources.mem`; `body` for the whole.
        field: String,
        /// What it holds, shortened.
        value: String,
        /// What is allowed, limit included.
        expected: String,
    },
    /// A field that has no zero value is not there.
    #[error("{field}: is missing")]
    Missing {
        /// The path of the field.
        field: String,
    },
}

// === impl BadBody ===

impl BadBody {
    /// A field that holds what it must not; the value is shortened and made harmless.
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

/// A value of somebody else's, in a message of ours.
pub(crate) fn shortened(text: &str) -> String {
    defused(text, 60)
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
