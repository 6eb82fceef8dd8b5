//! The names in events: the billed endpoint and the reporting node, of bounded length.

use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Characters of a name.
const LONGEST: usize = 253;

/// The billed endpoint, from `neon/endpoint-id` or `autoscaling.neon.tech/billing-endpoint-id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint(String);

/// The name of the reporting node, which is part of each idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Source(String);

/// An invalid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?}: must be 1 to {LONGEST} letters, digits and punctuation of ASCII")]
pub struct NoEndpoint {
    /// How it begins.
    pub text: String,
}

/// The methods of both kinds of names.
macro_rules! names {
    ($($name:ident),+) => {$(
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NoEndpoint;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                if is_name(&text) {
                    return Ok(Self(text));
                }
                Err(NoEndpoint { text: text.chars().take(40).collect() })
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names!(Endpoint, Source);

fn is_name(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_and_of_bounded_length() {
        for (text, right) in [
            ("ep-cool-name-123456".to_owned(), true),
            ("x".repeat(253), true),
            ("x".repeat(254), false),
            (String::new(), false),
            ("two words".to_owned(), false),
            ("line\n".to_owned(), false),
            ("é".to_owned(), false),
        ] {
            assert_eq!(Endpoint::try_from(text.clone()).is_ok(), right, "{text}");
        }
        let refused = Source::try_from("é".repeat(200)).unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("must be 1 to 253 letters, digits and punctuation of ASCII")
        );
    }
}
