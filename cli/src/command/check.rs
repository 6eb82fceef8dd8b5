//! `windlass check`: what is wrong with a file, or a folder of them, before it is used.

mod folder;
mod verdict;

use super::cluster;
use super::configured::Kind;
use crate::failure::Failure;
use crate::host::keys::HOST;
use crate::options::Format;
use crate::out::{self, Output};
use crate::problem::Report;
use crate::server::ServerOptions;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use verdict::{Verdict, verdict};
use windlass_agent_config::keys::AGENT;
use windlass_plugin_config::keys::{LISTED, NODE, PLUGIN, POOL};
use windlass_protocol::config::Row;
use windlass_protocol::neighbours::Findings;
use windlass_protocol::vm_file::VM;
use windlass_protocol::vm_view::VmViews;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
What a file is about is known by its name (host.toml, agent.toml, plugin.toml), by its folder (one that
ends in `vms.d`), or by a key that only files of its kind have; --kind says it of any other, which is
otherwise read as host.toml, and a warning. Agent and plugin are read from the reference's JSON, too. All problems of all files are named together, each with
the field, what stands there, and what may stand there; a file that cannot be read hides none of the
others. The exit code is 65 if any file is invalid or cannot be read, else 66 if any is not there. A
[node] that has more than this machine has is allowed, and a warning; one that reserves all memory of
this machine is invalid, as for `windlass host`.

Of a folder, all files of these kinds are checked, also against each other: a monitor or an informant
that two VMs name, minima that are more than the node has, an informant that cannot call back. VM files
are those beside host.toml, and those in `vms.d`; where there are none, those in the vms_dir of host.toml
or agent.toml. --kind is then that of files that do not tell it. Nothing is asked of a running program:
`windlass doctor` does that.

With --server no file is checked, but the VMs of a cluster, as its plugin knows them: each that does not follow its load is
named, with the reason and what to do, and so is a VerticalPodAutoscaler, a descheduler or a node autoscaler that works against them.
The exit code is 1 if there is any.

Examples:
  windlass check /etc/windlass
  windlass check /etc/windlass/host.toml
  windlass check /etc/windlass/vms.d/*.toml
  windlass check eu1.toml --kind agent
  windlass check --server https://127.0.0.1:10296 --ca ca.crt --token token
  windlass check --keys")]
pub(crate) struct Args {
    /// Files of configuration, VM files, or a folder of them.
    #[arg(value_name = "FILE", required_unless_present_any = ["keys", "server"])]
    files: Vec<PathBuf>,
    /// What the files are about; of a folder, those that do not tell.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// List every key of every kind of file: default, range, meaning.
    #[arg(long, conflicts_with_all = ["files", "kind"])]
    keys: bool,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    server: ServerOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.keys {
        return keys(args.format.output);
    }
    if let Some(url) = args.server.server.as_ref().filter(|_| args.files.is_empty()) {
        return of_cluster(args, url);
    }
    let each = |file: &PathBuf| {
        if file.is_dir() {
            folder::verdicts(file, args.kind)
        } else {
            vec![verdict(file, args.kind)]
        }
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

/// What is said of a cluster.
#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    views: VmViews,
    neighbours: Findings,
}

/// What is wrong with the VMs of a cluster.
fn of_cluster(args: &Args, url: &str) -> Result<(), Failure> {
    let views = args.server.list(url)?;
    let neighbours = args.server.findings(url)?;
    let (text, is_wrong) = cluster::findings(&views);
    let text = format!("{}{text}", cluster::neighbours(&neighbours));
    let is_wrong = is_wrong || neighbours.findings.iter().any(|finding| finding.is_wrong);
    out::answer(args.format.output, &Checked { views, neighbours }, |_| text)?;
    if is_wrong { Err(Failure::Reported) } else { Ok(()) }
}

/// Every key by the file that it stands in.
fn keys(output: Output) -> Result<(), Failure> {
    let files = [
        ("host", "host.toml", HOST),
        ("agent", "agent.toml", AGENT),
        ("plugin", "plugin.toml", PLUGIN),
        ("node", "plugin.toml, of each [[node]]", NODE),
        ("listed", "plugin.toml, of each [[vm]]", LISTED),
        ("pool", "plugin.toml, of each [[kubernetes.pool]]", POOL),
        ("vm", "vms.d/VM.toml", VM),
    ];
    if output == Output::Json {
        let tables = files.map(|(name, _, table)| (name, table.rows()));
        return out::json(&BTreeMap::from(tables));
    }
    let mut text = String::new();
    for (_, file, table) in files {
        text.push_str(&format!("{file}\n"));
        for Row { name, kind, default, range, meaning } in table.rows() {
            text.push_str(&format!(
                "  {name}: {kind}\n      {meaning}\n      default: {default}; range: {range}\n"
            ));
        }
    }
    out::text(&text)
}
