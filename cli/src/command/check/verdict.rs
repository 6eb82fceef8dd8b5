//! The verdict on one file, by itself.

use crate::command::configured::{Configured, Kind, text};
use crate::host::room::Machine;
use crate::problem::Problem;
use serde::Serialize;
use std::path::{Path, PathBuf};
use windlass_kit::config::Unread;

/// Of a JSON, when neither its name nor a key says what it is.
const UNKNOWN: &str = "says nothing by which its kind is known: say --kind";
/// Of any other file.
const GUESSED: &str = "is read as host.toml; --kind says if it is something else";

#[derive(Debug, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) file: PathBuf,
    /// `None` where it is not known.
    pub(super) kind: Option<Kind>,
    /// The file is not there, which is its only problem.
    pub(super) missing: bool,
    pub(super) problems: Vec<Problem>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<Problem>,
    /// The file belongs to another program; its content is not judged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) passed_over: bool,
    /// What it says, if it can be read.
    #[serde(skip)]
    pub(super) configured: Option<Configured>,
}

/// Reads a file as what it is about, unless `kind` says so, and checks it.
pub(super) fn verdict(file: &Path, kind: Option<Kind>) -> Verdict {
    let text = match text(file, kind) {
        Ok(text) => text,
        Err(unread) => {
            let missing = matches!(unread, Unread::Missing);
            let kind = kind.or_else(|| Kind::of(file, ""));
            return Verdict { missing, ..Verdict::of(file, kind, vec![unread.into()]) };
        }
    };
    let told = kind.or_else(|| Kind::of(file, &text));
    let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let mut warnings = Vec::new();
    let kind = match told {
        Some(kind) => kind,
        None if is_json => {
            return Verdict::of(file, None, vec![Problem::without_value("", UNKNOWN)]);
        }
        None => {
            warnings.push(Problem::without_value("", GUESSED));
            Kind::Host
        }
    };
    match kind.read(file, &text) {
        Ok(configured) => {
            let mut problems = Vec::new();
            match &configured {
                Configured::Host(config) => {
                    let machine = Machine::here();
                    warnings.extend(machine.overcommitted(config.node));
                    problems.extend(machine.room(config.node).err());
                }
                Configured::Agent(config) => warnings.extend_from_slice(&config.adjusted),
                Configured::Plugin(_) | Configured::Vms => {}
            }
            let configured = Some(configured);
            Verdict { warnings, configured, ..Verdict::of(file, Some(kind), problems) }
        }
        Err(problems) => Verdict { warnings, ..Verdict::of(file, Some(kind), problems) },
    }
}

// === impl Verdict ===

impl Verdict {
    /// On a file that is there.
    pub(super) fn of(file: &Path, kind: Option<Kind>, problems: Vec<Problem>) -> Self {
        Self { file: file.to_path_buf(), kind, problems, ..Self::default() }
    }
}
