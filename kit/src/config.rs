//! Files that people write, as typed values.
//!
//! Unknown keys are the type's business (`deny_unknown_fields`); this module adds that every
//! error names the line and the field, and of a file too long its size and the limit.
//! Ranges and combinations are checked by the type that the text is turned into.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use thiserror::Error;
use windlass_protocol::vm_file::Node;
use windlass_protocol::words::defused;

/// A configuration that is longer is not read: a person did not write it.
const MAX_FILE: u64 = 256 * 1024;

/// Characters of a field's name, and of what is wrong with it: both may quote the file.
const LONGEST: usize = 300;

/// Why a file was not read; whoever asked for it names it.
#[derive(Debug, Error)]
pub enum Unread {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is a folder, a device, a pipe.
    #[error("is no file")]
    NoFile,
    /// It is longer than any configuration.
    #[error("has {size} bytes and is longer than {} KiB, the limit for a configuration", MAX_FILE / 1024)]
    TooLong {
        /// How many bytes it has, at least.
        size: u64,
    },
    /// It is something else than text.
    #[error("is not UTF-8 text")]
    NotText,
    /// The system refused.
    #[error("cannot be read: {0}")]
    Failed(std::io::Error),
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

/// Reads the text of a file.
///
/// # Errors
/// There is none, it is no file, is too long, is no text, or cannot be read.
pub fn read_text(path: &Path) -> Result<String, Unread> {
    // Before it is opened: a pipe would be waited for.
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() {
        return Err(Unread::NoFile);
    }
    let mut bytes = Vec::new();
    // A limit on what is read, not on the file's length: it may grow, and some have none.
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    let size = facts.len().max(bytes.len() as u64);
    if size > MAX_FILE {
        return Err(Unread::TooLong { size });
    }
    String::from_utf8(bytes).map_err(|_| Unread::NotText)
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
        let field = if path == "." { String::new() } else { defused(&path, LONGEST) };
        Problem { field, ..whole(error.inner()) }
    })
}

/// Reads a JSON text that must be one object.
///
/// # Errors
/// Names the line and what is wrong.
pub fn parse_json(text: &str) -> Result<BTreeMap<String, Node>, Problem> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let at = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string().replace(&at, "");
        Problem { line: Some(error.line()), field: String::new(), message }
    })?;
    let Node::Table(table) = node(value) else {
        let message = "is not a JSON object".to_owned();
        return Err(Problem { line: None, field: String::new(), message });
    };
    Ok(table)
}

fn node(value: Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Bool(truth) => Node::Bool(truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Node::Whole(whole),
            (None, Some(float)) => Node::Float(float),
            // What does not fit keeps its digits, and is refused where a number is expected.
            (None, None) => Node::Text(number.to_string()),
        },
        Value::String(text) => Node::Text(text),
        Value::Array(list) => Node::List(list.into_iter().map(node).collect()),
        Value::Object(table) => {
            Node::Table(table.into_iter().map(|(key, value)| (key, node(value))).collect())
        }
    }
}

// === impl Unread ===

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::NotFound { Self::Missing } else { Self::Failed(error) }
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
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    defused(&lines.collect::<Vec<_>>().join("; "), LONGEST)
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
    fn what_a_problem_quotes_is_short_and_moves_no_cursor() {
        let key = "\\u001b[2J".repeat(1000);
        for text in [format!("\"{key}\" = 1"), format!("[node]\n\"{key}\" = 1")] {
            let problem = parse_toml::<Host>(&text).unwrap_err().to_string();
            assert!(problem.len() < 2000, "{} bytes", problem.len());
            assert!(!problem.contains('\u{1b}'), "{problem}");
        }
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
    fn what_is_not_read_is_said_with_its_size_and_the_limit() {
        let folder = std::env::temp_dir().join(format!("windlass-kit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let said = |name: &str| read_text(&folder.join(name)).unwrap_err().to_string();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
        write("long", &[b'#'; 300_000]);
        write("longest", &[b'#'; 256 * 1024]);
        write("latin", b"# \xe4");
        assert_eq!(said("none"), "there is no such file");
        assert_eq!(said("."), "is no file");
        assert_eq!(said("/dev/zero"), "is no file");
        let limit = "has 300000 bytes and is longer than 256 KiB, the limit for a configuration";
        assert_eq!(said("long"), limit);
        assert_eq!(said("latin"), "is not UTF-8 text");
        assert!(said("latin/x").starts_with("cannot be read: "));
        assert_eq!(
            read_text(&folder.join("longest")).map(|text| text.len()).ok(),
            Some(256 * 1024)
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
