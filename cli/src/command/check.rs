//! `windlass check`: what is wrong with a file, or a folder of them, before it is used.

mod folder;
mod verdict;

use crate::failure::Failure;
use crate::host::keys::HOST;
use crate::options::Format;
use crate::out::{self, Output};
use crate::problem::Report;
use serde::Serialize;
use std::path::PathBuf;
use verdict::{Kind, Verdict, verdict};
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

Of a folder, its host.toml and its VM files are checked, also against each other: a monitor or an
informant that two VMs name, minima that are more than the node has, an informant that cannot call
back. VM files are those beside host.toml, and those in `vms.d`; where there are none, those in the
vms_dir of host.toml. Nothing is asked of a running host: `windlass doctor` does that.

Examples:
  windlass check /etc/windlass
  windlass check /etc/windlass/host.toml
  windlass check /etc/windlass/vms.d/*.toml
  windlass check db1.toml --kind vm
  windlass check --keys")]
pub struct Args {
    /// host.toml, VM files, or a folder of them.
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
    let each = |file: &PathBuf| {
        if file.is_dir() { folder::verdicts(file) } else { vec![verdict(file, args.kind)] }
    };
    let verdicts: Vec<Verdict> = args.files.iter().flat_map(each).collect();
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
            if args.format.output == Output::Text && !verdict.passed_over {
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
