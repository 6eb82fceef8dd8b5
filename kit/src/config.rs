//! Reads files that people write, from a path to a text, and from a text to a [`Reader`] of its keys.
//!
//! Each error names the line; a file that is too long, its size and the limit. `protocol::config` has the
//! keys and their ranges.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use thiserror::Error;
use toml::de::{DeInteger, DeTable, DeValue};
use windlass_protocol::config::{Form, Node, Problem, Reader, Table};
use windlass_protocol::words::sanitized;

/// The most characters of an error, which may quote the text.
const LONGEST: usize = 300;

/// What the TOML reader says of a key that is there twice; the place is that of the second one.
const DUPLICATE: &str = "duplicate key";

/// Why a file cannot be read; the caller names the file.
#[derive(Debug, Error)]
pub enum Unread {
    /// The file is missing.
    #[error("there is no such file")]
    Missing,
    /// It is a folder, a device, a pipe.
    #[error("is no file")]
    NoFile,
    /// It is longer than any configuration.
    #[error("has {size} bytes and is longer than {} KiB, the limit for a configuration", limit / 1024)]
    TooLong {
        /// At least this many bytes.
        size: u64,
        /// As many as it may have.
        limit: u64,
    },
    /// It is not text.
    #[error("is not UTF-8 text")]
    NotText,
    /// The system refused.
    #[error("cannot be read: {0}")]
    Failed(std::io::Error),
}

/// Reads the text of a file.
///
/// # Errors
/// The file is missing, not a file, too long, not text, or cannot be read.
pub fn read_text(path: &Path) -> Result<String, Unread> {
    // A longer one was not written by a person.
    read_up_to(path, 256 * 1024)
}

/// Reads the text of a file that may list nodes and VMs.
///
/// # Errors
/// As [`read_text`].
pub fn read_list(path: &Path) -> Result<String, Unread> {
    // It may have thousands of tables, and a program may write it.
    read_up_to(path, 4 * 1024 * 1024)
}

fn read_up_to(path: &Path, limit: u64) -> Result<String, Unread> {
    // Before opening: opening a pipe would block.
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() {
        return Err(Unread::NoFile);
    }
    let mut bytes = Vec::new();
    // Limits the reading, not the file's length: a file may grow, and some have no length.
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    let size = facts.len().max(bytes.len() as u64);
    if size > limit {
        return Err(Unread::TooLong { size, limit });
    }
    String::from_utf8(bytes).map_err(|_| Unread::NotText)
}

/// Reads a text with these keys, in the form that the table says.
///
/// # Errors
/// It is not of that form.
pub fn read(table: &'static Table, text: &str) -> Result<Reader, Vec<Problem>> {
    let nodes = match table.form {
        Form::Toml => parse_toml(text),
        Form::Json => parse_json(text),
    };
    Ok(Reader::of(table, nodes.map_err(|problem| vec![problem])?))
}

/// The keys that have changed, of keys and whether they have.
pub fn changed(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    keys.iter().filter_map(|(name, differs)| differs.then_some(*name)).collect()
}

/// Reads a TOML text.
///
/// # Errors
/// Names the line and what is wrong.
pub fn parse_toml(text: &str) -> Result<BTreeMap<String, Node>, Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        let before = error.span().and_then(|span| text.as_bytes().get(..span.start));
        let line = before.map(|before| before.split(|byte| *byte == b'\n').count());
        let lines = error.message().lines().map(str::trim).filter(|line| !line.is_empty());
        let mut said = lines.collect::<Vec<_>>().join("; ");
        if said == DUPLICATE {
            let key = error.span().and_then(|span| text.get(span));
            said = key.map_or(said, |key| format!("{DUPLICATE} {key}"));
        }
        unread(line, &said)
    })?;
    Ok(toml_table(table.into_inner()))
}

/// Reads a JSON text that must be one object.
fn parse_json(text: &str) -> Result<BTreeMap<String, Node>, Problem> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let at = format!(" at line {} column {}", error.line(), error.column());
        unread(Some(error.line()), &error.to_string().replace(&at, ""))
    })?;
    let Node::Table(table) = json_node(value) else {
        return Err(unread(None, "is not a JSON object"));
    };
    Ok(table)
}

fn unread(line: Option<usize>, message: &str) -> Problem {
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    Problem::without_value("", format!("{line}{}", sanitized(message, LONGEST)))
}

fn toml_table(table: DeTable<'_>) -> BTreeMap<String, Node> {
    let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<_>)| {
        (std::borrow::Cow::into_owned(key.into_inner()), toml_node(value.into_inner()))
    };
    table.into_iter().map(entry).collect()
}

fn toml_node(value: DeValue<'_>) -> Node {
    match value {
        DeValue::String(text) => Node::Text(text.into_owned()),
        DeValue::Integer(number) => whole(&number),
        DeValue::Float(number) => {
            let parsed = number.as_str().parse();
            parsed.map_or_else(|_| Node::Other(number.to_string()), Node::Float)
        }
        DeValue::Boolean(truth) => Node::Bool(truth),
        DeValue::Datetime(time) => Node::Other(time.to_string()),
        DeValue::Array(list) => {
            Node::List(list.into_iter().map(|value| toml_node(value.into_inner())).collect())
        }
        DeValue::Table(table) => Node::Table(toml_table(table)),
    }
}

/// What does not fit keeps its digits, and is refused like any other number beyond a range.
fn whole(number: &DeInteger<'_>) -> Node {
    let parsed = i64::from_str_radix(number.as_str(), number.radix());
    parsed.map_or_else(|_| Node::Other(number.to_string()), Node::Whole)
}

fn json_node(value: Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Bool(truth) => Node::Bool(truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Node::Whole(whole),
            (None, Some(float)) => Node::Float(float),
            (None, None) => Node::Other(number.to_string()),
        },
        Value::String(text) => Node::Text(text),
        Value::Array(list) => Node::List(list.into_iter().map(json_node).collect()),
        Value::Object(table) => {
            Node::Table(table.into_iter().map(|(key, value)| (key, json_node(value))).collect())
        }
    }
}

// === impl Unread ===

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::NotFound { Self::Missing } else { Self::Failed(error) }
    }
}

/// Of the file as a whole.
impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        Self::without_value("", unread.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_problem_quotes_is_short_and_moves_no_cursor() {
        let key = "\\u001b[2J".repeat(1000);
        for text in [format!("\"{key}\" = 1\n\"{key}\" = 1"), format!("{{\"{key}\" = 1")] {
            for problem in [parse_toml(&text).unwrap_err(), parse_json(&text).unwrap_err()] {
                let problem = problem.to_string();
                assert!(problem.len() < 2000, "{} bytes", problem.len());
                assert!(!problem.contains('\u{1b}'), "{problem}");
            }
        }
    }

    #[test]
    fn a_problem_names_the_line() {
        for (text, line) in [("[node]\ncpu = \n", 2), ("[node\n", 1), ("a = 1\n\na = 2", 3)] {
            let problem = parse_toml(text).unwrap_err().to_string();
            assert!(problem.starts_with(&format!("line {line}: ")), "{problem}");
        }
        for (text, named) in [
            ("[node]\ncpu = 1\ncpu = 2", "line 3: duplicate key cpu"),
            ("a = 1\n\"a\" = 2", "line 2: duplicate key \"a\""),
            ("[node]\n[node]", "line 2: duplicate key node"),
        ] {
            assert_eq!(parse_toml(text).unwrap_err().to_string(), named);
        }
        for (text, start) in [("{", "line 1: "), ("{}\n{", "line 2: "), ("[]", "is not a JSON")] {
            let problem = parse_json(text).unwrap_err().to_string();
            assert!(problem.starts_with(start), "{problem}");
        }
    }

    #[test]
    fn what_no_key_takes_is_shown_as_it_was_written() {
        let text = "a = 99999999999999999999999999999999999999999\nb = 0x7fffffffffffffffffff\n\
                    c = 2026-11-24T00:00:00Z\nd = -0x10\ne = 1e999\nf = 0x10\n";
        let Ok(nodes) = parse_toml(&text.replace("d = -0x10\n", "")) else { panic!("is TOML") };
        for (key, shown) in [
            ("a", "99999999999999999999999999999999999999999"),
            ("b", "0x7fffffffffffffffffff"),
            ("c", "2026-11-24T00:00:00Z"),
        ] {
            assert_eq!(nodes[key], Node::Other(shown.to_owned()));
        }
        assert_eq!((&nodes["e"], &nodes["f"]), (&Node::Float(f64::INFINITY), &Node::Whole(16)));
        assert!(parse_toml(text).is_err());
    }

    #[test]
    fn what_is_not_read_is_said_with_its_size_and_the_limit() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let said = |name: &str| read_text(&folder.at(name)).unwrap_err().to_string();
        folder.put("long", [b'#'; 300_000]);
        folder.put("longest", [b'#'; 256 * 1024]);
        folder.put("latin", b"# \xe4");
        assert_eq!(said("none"), "there is no such file");
        assert_eq!(said("."), "is no file");
        assert_eq!(said("/dev/zero"), "is no file");
        let limit = "has 300000 bytes and is longer than 256 KiB, the limit for a configuration";
        assert_eq!(said("long"), limit);
        assert_eq!(said("latin"), "is not UTF-8 text");
        assert!(said("latin/x").starts_with("cannot be read: "));
        assert_eq!(read_text(&folder.at("longest")).map(|text| text.len()).ok(), Some(256 * 1024));
        // A list of nodes and VMs may be longer.
        assert_eq!(read_list(&folder.at("long")).map(|text| text.len()).ok(), Some(300_000));
        folder.put("longer", "#".repeat(4 * 1024 * 1024 + 1));
        let limit = "has 4194305 bytes and is longer than 4096 KiB, the limit for a configuration";
        assert_eq!(read_list(&folder.at("longer")).unwrap_err().to_string(), limit);
    }
}
