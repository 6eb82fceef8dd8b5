//! Standard output, as the answer of a command, and standard error beside it.
//!
//! A reader that has seen enough (`windlass top | head -1`) closes the pipe; that is no failure of
//! ours, on either of the two.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{IsTerminal, Write, stderr, stdout};
use windlass_kit::program::say;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON value.
    Json,
}

/// Writes text to standard output as it is.
///
/// # Errors
/// Standard output cannot be written, for another reason than a reader that has left.
pub fn text(text: &str) -> Result<(), Failure> {
    Ok(say(text)?)
}

/// Whether standard output shows colours: a terminal does, unless `NO_COLOR` says otherwise.
pub(crate) fn is_coloured() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stdout().is_terminal() && !refused
}

/// Writes a line to standard error: a warning, or why a command failed. If the reader has left,
/// the exit code still says it.
pub fn aside(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Writes an answer: this text for people, the value for programs.
pub(crate) fn answer<T: Serialize>(
    output: Output,
    value: &T,
    words: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    match output {
        Output::Text => text(&words(value)),
        Output::Json => json(value),
    }
}

/// Writes one value as indented JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let body = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(format!("cannot write the answer as JSON: {error}")))?;
    text(&format!("{body}\n"))
}
