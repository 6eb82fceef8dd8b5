//! The verdict on one file, by itself.

use crate::host::config::HostConfig;
use crate::host::room::Machine;

use crate::problem::Problem;
use serde::Serialize;
use std::path::{Path, PathBuf};
use windlass_kit::config::{Unread, read_text};

/// What a file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A host.
    Host,
    /// A VM of a host.
    Vm,
}

/// The verdict on one file.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) file: PathBuf,
    pub(super) kind: Kind,
    /// The file is not there, which is its only problem.
    pub(super) missing: bool,
    pub(super) problems: Vec<Problem>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<Problem>,
    /// The file is none of ours, and nothing is said of what it holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) passed_over: bool,
}

/// Reads a file as what it is about, unless `kind` says so, and checks it.
pub(super) fn verdict(file: &Path, kind: Option<Kind>) -> Verdict {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(unread) => {
            let missing = matches!(unread, Unread::Missing);
            let kind = kind.unwrap_or_else(|| guess(file, ""));
            let unread = Verdict::of(file.to_path_buf(), kind, vec![unread.into()], Vec::new());
            return Verdict { missing, ..unread };
        }
    };
    let kind = kind.unwrap_or_else(|| guess(file, &text));
    let judged = match kind {
        Kind::Host => {
            HostConfig::from_text(&text).map(|config| Machine::here().overcommitted(config.node))
        }
        Kind::Vm => {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            windlass_vm_files::text::parse(&stem.unwrap_or_default(), &text).map(|_| Vec::new())
        }
    };
    let (problems, warnings) = match judged {
        Ok(warnings) => (Vec::new(), warnings),
        Err(problems) => (problems, Vec::new()),
    };
    Verdict::of(file.to_path_buf(), kind, problems, warnings)
}

// === impl Verdict ===

impl Verdict {
    /// On a file that is there.
    pub(super) const fn of(
        file: PathBuf,
        kind: Kind,
        problems: Vec<Problem>,
        warnings: Vec<Problem>,
    ) -> Self {
        Self { file, kind, missing: false, problems, warnings, passed_over: false }
    }
}

/// What a file is about: by its folder, or by a key that only a VM file has, also where its syntax is broken.
pub(super) fn guess(file: &Path, text: &str) -> Kind {
    let folder = file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let of_a_vm = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        matches!(key, "qmp" | "informant")
    };
    if folder.is_some_and(|name| name.ends_with("vms.d")) || text.lines().any(of_a_vm) {
        Kind::Vm
    } else {
        Kind::Host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_file_is_known_by_its_folder_or_by_a_key() {
        for (file, text, kind) in [
            ("/etc/windlass/vms.d/db1.toml", "", Kind::Vm),
            ("/srv/old.vms.d/db1.toml", "socket = \"/s\"", Kind::Vm),
            ("/srv/db1.toml", "# no key\n qmp=\"/q\"\n[broken", Kind::Vm),
            ("db1.toml", "informant = 1", Kind::Vm),
            ("/etc/windlass/host.toml", "socket = \"/s\"\n# qmp", Kind::Host),
            ("host.toml", "", Kind::Host),
        ] {
            assert_eq!(guess(Path::new(file), text), kind, "{file}: {text}");
        }
    }
}
