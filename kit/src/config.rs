//! Files that people write, as typed values.
//!
//! Unknown keys are the type's business (`deny_unknown_fields`); this module adds that every
//! error names the file, the line and the field. Ranges and combinations are checked by the
//! type that the text is turned into.

use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A configuration that is longer is not read: a person did not write it.
const MAX_FILE: u64 = 256 * 1024;

/// Why a file did not become a value.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is longer than any configuration.
    #[error("{}: longer than {} KiB, the limit for a configuration", path.display(), MAX_FILE / 1024)]
    TooLong {
        /// Which file.
        path: PathBuf,
    },
    /// What it says is not what is expected.
    #[error("{}{problem}", path.as_deref().map(|p| format!("{}: ", p.display())).unwrap_or_default())]
    Problem {
        /// Which file, if it came from one.
        path: Option<PathBuf>,
        /// What is wrong, and where.
        problem: Problem,
    },
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}{message}", at(line), named(field))]
pub struct Problem {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The field, with the tables that it is in; empty if no field is meant.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

/// Reads a TOML file.
///
/// # Errors
/// Names the file, and what is wrong with it.
pub fn load_toml<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    // A limit on what is read, not on the file's length: a device or a pipe has none.
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_FILE) {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    parse_toml(&text)
        .map_err(|problem| ConfigError::Problem { path: Some(path.to_owned()), problem })
}

/// Reads a TOML text.
///
/// # Errors
/// Names the line, the field, and what is wrong.
pub fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let whole = |error: &toml::de::Error| Problem {
        line: line_of(text, error),
        field: String::new(),
        message: one_line(error.message()),
    };
    let deserializer = toml::Deserializer::parse(text).map_err(|error| whole(&error))?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        Problem { field, ..whole(error.inner()) }
    })
}

// === impl ConfigError ===

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self::Problem { path: None, problem }
    }
}

fn at(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

fn named(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

fn line_of(text: &str, error: &toml::de::Error) -> Option<usize> {
    let before = text.as_bytes().get(..error.span()?.start)?;
    Some(before.split(|byte| *byte == b'\n').count())
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Host {
        #[expect(dead_code, reason = "only whether it parses is tested")]
        node: Node,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Node {
        #[expect(dead_code, reason = "only whether it parses is tested")]
        cpu: u8,
    }

    #[test]
    fn a_problem_names_the_line_and_the_field() {
        for (text, problem) in [
            ("[node]\ncpu = 300", "line 2: node.cpu: invalid value: integer `300`, expected u8"),
            (
                "[node]\ncpu = \"six\"",
                "line 2: node.cpu: invalid type: string \"six\", expected u8",
            ),
            (
                "[node]\ncpu = 1\ncpus = 2",
                "line 3: node.cpus: unknown field `cpus`, expected `cpu`",
            ),
            ("[node]", "line 1: node: missing field `cpu`"),
            ("", "line 1: missing field `node`"),
        ] {
            assert_eq!(parse_toml::<Host>(text).unwrap_err().to_string(), problem, "{text}");
        }
        let syntax = parse_toml::<Host>("[node]\ncpu = \n").unwrap_err();
        assert_eq!(syntax.line, Some(2), "{syntax}");
    }

    #[test]
    fn a_file_is_named_and_bounded() {
        let missing = load_toml::<Host>(Path::new("/nonexistent/host.toml")).unwrap_err();
        assert!(missing.to_string().starts_with("/nonexistent/host.toml: "), "{missing}");
        let endless = load_toml::<Host>(Path::new("/dev/zero")).unwrap_err();
        assert!(endless.to_string().contains("longer than 256 KiB"), "{endless}");
    }
}
