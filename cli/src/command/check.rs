//! `windlass check`: what is wrong with a file, before it is used.

use crate::failure::Failure;
use crate::host::config::HostConfig;
use crate::host::keys::HOST;
use crate::host::room::Machine;
use crate::host::vm_text;
use crate::options::Format;
use crate::out::{self, Output};
use crate::problem::{Problem, Report};
use serde::Serialize;
use std::path::{Path, PathBuf};
use windlass_kit::config::{Unread, read_text};
use windlass_protocol::config::Row;
use windlass_protocol::vm_file::VM;

/// Options of `windlass check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file with a `qmp` or `informant` key, or one in a folder that ends in `vms.d`, is read as a VM
file; every other as host.toml. All problems of all files are named together, each with the field,
what stands there, and what may stand there; a file that is not there hides none of the others.
The exit code is 65 if any file is invalid, else 66 if any is not there. A [node] that has more
than this machine has is allowed, and a warning.

Nothing is asked of a running host: whether two VM files fit together, and fit the node, is
checked by `windlass vm add` and shown by `windlass vm list`.

Examples:
  windlass check /etc/windlass/host.toml
  windlass check /etc/windlass/vms.d/*.toml
  windlass check db1.toml --kind vm
  windlass check --keys")]
pub struct Args {
    /// host.toml or VM files.
    #[arg(value_name = "FILE", required_unless_present = "keys")]
    pub files: Vec<PathBuf>,
    /// Read every file as this kind.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// List every key of both kinds of file: default, range, meaning.
    #[arg(long, conflicts_with_all = ["files", "kind"])]
    pub keys: bool,
    #[command(flatten)]
    format: Format,
}

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
struct Verdict {
    file: PathBuf,
    kind: Kind,
    /// The file is not there, which is its only problem.
    missing: bool,
    problems: Vec<Problem>,
    /// What is allowed and probably not meant.
    warnings: Vec<Problem>,
}

/// The tables of keys.
#[derive(Debug, Serialize)]
struct Keys {
    host: Vec<Row>,
    vm: Vec<Row>,
}

/// Checks the files.
///
/// # Errors
/// A file is invalid, or is not there.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.keys {
        return keys(args.format.output);
    }
    let verdicts: Vec<Verdict> = args.files.iter().map(|file| verdict(file, args.kind)).collect();
    if args.format.output == Output::Json {
        out::json(&verdicts)?;
    }
    let mut broken = Vec::new();
    for verdict in &verdicts {
        let subject = verdict.file.display().to_string();
        for warning in &verdict.warnings {
            out::aside(&format!("windlass: warning: {subject}: {warning}"));
        }
        if verdict.problems.is_empty() {
            if args.format.output == Output::Text {
                out::text(&format!("{subject}: valid\n"))?;
            }
        } else {
            let problems = verdict.problems.clone();
            broken.push(Report { subject, problems, meanwhile: String::new() }.to_string());
        }
    }
    let invalid = |verdict: &Verdict| !verdict.missing && !verdict.problems.is_empty();
    match broken.join("\n") {
        _ if broken.is_empty() => Ok(()),
        text if verdicts.iter().any(invalid) => Err(Failure::Invalid(text)),
        text => Err(Failure::Missing(text)),
    }
}

fn verdict(file: &Path, kind: Option<Kind>) -> Verdict {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(unread) => {
            let missing = matches!(unread, Unread::Missing);
            let kind = kind.unwrap_or_else(|| guess(file, ""));
            let problems = vec![unread.into()];
            let (file, warnings) = (file.to_path_buf(), Vec::new());
            return Verdict { file, kind, missing, problems, warnings };
        }
    };
    let kind = kind.unwrap_or_else(|| guess(file, &text));
    let judged = match kind {
        Kind::Host => {
            HostConfig::from_text(&text).map(|config| Machine::here().overcommitted(config.node))
        }
        Kind::Vm => {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            vm_text::parse(&stem.unwrap_or_default(), &text).map(|_| Vec::new())
        }
    };
    let (problems, warnings) = match judged {
        Ok(warnings) => (Vec::new(), warnings),
        Err(problems) => (problems, Vec::new()),
    };
    Verdict { file: file.to_path_buf(), kind, missing: false, problems, warnings }
}

/// By its folder, or by a key that only a VM file has, also where its syntax is broken.
fn guess(file: &Path, text: &str) -> Kind {
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

fn keys(output: Output) -> Result<(), Failure> {
    let keys = Keys { host: HOST.rows(), vm: VM.rows() };
    match output {
        Output::Json => out::json(&keys),
        Output::Text => {
            let mut text = String::new();
            for (file, rows) in [("host.toml", keys.host), ("vms.d/VM.toml", keys.vm)] {
                text.push_str(&format!("{file}\n"));
                for Row { name, kind, default, range, meaning } in rows {
                    text.push_str(&format!(
                        "  {name}: {kind}\n      {meaning}\n      default: {default}; range: {range}\n"
                    ));
                }
            }
            out::text(&text)
        }
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
