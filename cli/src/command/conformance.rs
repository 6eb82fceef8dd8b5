//! `windlass conformance`: does a component keep to its protocol?

mod given;

use crate::failure::Failure;
use crate::out;
use clap::Subcommand;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_conformance::case::Choice;
use windlass_conformance::report::{Outcome, Report};
use windlass_conformance::versions::{INFORMANT, PLUGIN, Version};
use windlass_conformance::{Listed, agent, informant, plugin};
use windlass_protocol::Bytes;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The kit plays the peers of the component and tries every rule of docs/protocol that can be seen from
outside, in every version. Each case names its rules. Try a component that is there to be tried: the
peers that it has meanwhile are taken from it.

The last line says how many cases passed and failed. Exit codes: 0 all passed; 1 a case failed; 64 the
command line makes no sense; 69 no server listens at the target; 73 a file cannot be written.

Examples:
  windlass conformance informant --target 127.0.0.1:10301
  windlass conformance informant --target 127.0.0.2:10301 --advertise 10.0.2.2 --versions v1.1-v2.0
  windlass conformance plugin --target http://127.0.0.1:10299 --vm default/a --other default/b
  windlass conformance agent --run 'windlass-agent --config agent.toml'
  windlass conformance list")]
pub(crate) struct Args {
    /// Which component.
    #[command(subcommand)]
    component: Component,
}

/// What is tried.
#[derive(Debug, Subcommand)]
pub(crate) enum Component {
    /// Play agents against an informant.
    Informant(Informant),
    /// Play the agents of two VMs against a plugin.
    Plugin(Plugin),
    /// Play informant, plugin and QMP monitor for an agent.
    Agent(Agent),
    /// Name every case: its versions, its rules, and what it needs.
    List,
}

/// Options that every component has.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Only these versions: `v1.0`, or a range such as `v1.1-v2.0`.
    #[arg(long, value_name = "RANGE")]
    versions: Option<String>,
    /// Only this case; may be repeated. `windlass conformance list` names them.
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
    /// Leave out what only Windlass does: for a component of the reference.
    #[arg(long)]
    skip_ours: bool,
    /// Write the report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Informant {
    /// Where it listens: `ip:port`.
    #[arg(long, value_name = "ADDR", value_parser = given::address)]
    target: SocketAddr,
    /// How it reaches this machine; absent: the local address that reaches it.
    #[arg(long, value_name = "IP", value_parser = given::machine)]
    advertise: Option<IpAddr>,
    /// A command of the shell that makes memory short at the target and enough again, run with `on`
    /// or `off` as its last word; it is run with `off` first.
    #[arg(long, value_name = "CMD", value_parser = given::command)]
    provoke: Option<String>,
    /// The guest may be asked for fewer vCPUs than are online, for a moment.
    #[arg(long)]
    disruptive: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Plugin {
    /// Where it listens: `ip:port`, or `http://ip:port`.
    #[arg(long, value_name = "URL", value_parser = given::url)]
    target: SocketAddr,
    /// A VM that it knows, as NAMESPACE/NAME.
    #[arg(long, value_name = "VM", value_parser = given::vm)]
    vm: plugin::Vm,
    /// Another on the same node, where no other VM changes size.
    #[arg(long, value_name = "VM", value_parser = given::vm)]
    other: plugin::Vm,
    /// One of 1 vCPU and 8 slots that is about to be moved.
    #[arg(long, value_name = "VM", value_parser = given::vm)]
    moving: Option<plugin::Vm>,
    /// The slot of memory of these VMs.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = given::slot)]
    slot: Bytes,
    /// What a VM gave back is asked for again only when the plugin can be sure of it, as windlass-plugin's is.
    #[arg(long)]
    frees_late: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Agent {
    /// A command of the shell that starts the agent and stays; it is run anew for every case, in a
    /// folder where agent.toml and vms.d/a.toml are. An agent with other files finds its peers in
    /// WINDLASS_PLUGIN (a URL), WINDLASS_INFORMANT (ip:port) and WINDLASS_QMP (a path).
    #[arg(long, value_name = "CMD", value_parser = given::command)]
    run: String,
    /// Only these versions of the informant's protocol.
    #[arg(long, value_name = "RANGE")]
    informant_versions: Option<String>,
    /// Only these versions of the plugin's protocol.
    #[arg(long, value_name = "RANGE")]
    plugin_versions: Option<String>,
    /// Only this case; may be repeated. `windlass conformance list` names them.
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
    /// Leave out what only Windlass does: for another implementation.
    #[arg(long)]
    skip_ours: bool,
    /// So many cases are run at once, 1 to 64.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    at_once: u8,
    /// Keep what the agent of each case said, as CASE-VERSION.log in this folder.
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Write the report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.component {
        Component::Informant(args) => informant(args),
        Component::Plugin(args) => plugin(args),
        Component::Agent(args) => agent(args),
        Component::List => list(),
    }
}

fn informant(args: &Informant) -> Result<(), Failure> {
    let choice = args.common.choice(&INFORMANT, &informant::catalogue())?;
    let advertise = args.advertise.map_or_else(|| given::local_address(args.target), Ok)?;
    given::reach(args.target)?;
    given::report_file(args.common.json.as_ref())?;
    args.provoke.as_deref().map_or(Ok(()), given::provokes)?;
    let options = informant::Options {
        target: args.target,
        advertise,
        provoke: args.provoke.clone(),
        disruptive: args.disruptive,
        choice,
    };
    conclude(&informant::run(&options, &mut tell), args.common.json.as_deref())
}

fn plugin(args: &Plugin) -> Result<(), Failure> {
    let choice = args.common.choice(&PLUGIN, &plugin::catalogue())?;
    let Plugin { vm, other, moving, .. } = args;
    let (vm, other, moving) = (vm.clone(), other.clone(), moving.clone());
    if vm == other || moving.as_ref().is_some_and(|moving| *moving == vm || *moving == other) {
        let text = "--vm, --other and --moving are to name different VMs";
        return Err(Failure::Usage(format!("{text}; {vm} is named twice")));
    }
    given::reach(args.target)?;
    given::report_file(args.common.json.as_ref())?;
    let (target, slot) = (args.target, args.slot.bytes());
    let frees_late = args.frees_late;
    let options = plugin::Options { target, vm, other, moving, slot, frees_late, choice };
    conclude(&plugin::run(&options, &mut tell), args.common.json.as_deref())
}

fn agent(args: &Agent) -> Result<(), Failure> {
    let cases = [agent::informant_catalogue(), agent::plugin_catalogue()].concat();
    let (informant, plugin) = (args.informant_versions.as_ref(), args.plugin_versions.as_ref());
    let options = agent::Options {
        start: Arc::new(agent::Shell(args.run.clone())),
        informant: given::versions("--informant-versions", &INFORMANT, informant)?,
        plugin: given::versions("--plugin-versions", &PLUGIN, plugin)?,
        only: given::known(&args.only, &cases)?,
        skip_ours: args.skip_ours,
        logs: args.logs.clone(),
        at_once: usize::from(args.at_once),
    };
    given::report_file(args.json.as_ref())?;
    given::log_folder(args.logs.as_ref())?;
    conclude(&agent::run(&options, &mut tell), args.json.as_deref())
}

/// A line for each case, by component.
fn list() -> Result<(), Failure> {
    let parts = [
        ("informant", informant::catalogue(), &INFORMANT[..]),
        ("plugin", plugin::catalogue(), &PLUGIN[..]),
        ("agent, to its informant", agent::informant_catalogue(), &INFORMANT[..]),
        ("agent, to its plugin", agent::plugin_catalogue(), &PLUGIN[..]),
    ];
    for (what, cases, table) in parts {
        out::text(&format!("{what}: {} cases\n", cases.len()))?;
        for case in cases {
            out::text(&format!("{}\n", line(&case, table)))?;
        }
    }
    Ok(())
}

/// `  the-newest-counts  v1.0-v2.0  [I-CUR-1 I-CUR-2]`
fn line(case: &Listed, table: &[Version]) -> String {
    let spoken: Vec<&Version> = table.iter().filter(|version| case.span.holds(**version)).collect();
    let versions = match spoken[..] {
        [] => String::new(),
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
    };
    let needs = case.needs.map(|need| format!("  needs {need}")).unwrap_or_default();
    let ours = if case.ours { "  ours" } else { "" };
    format!("  {}  {versions}  [{}]{needs}{ours}", case.name, case.rules.join(" "))
}

/// A line for each outcome, as it comes.
fn tell(outcome: &Outcome) {
    // A reader that has left does not stop the run; its report may still be wanted.
    let _ = out::text(&format!("{outcome}\n"));
}

fn conclude(report: &Report, json: Option<&Path>) -> Result<(), Failure> {
    if let Some(file) = json {
        let text =
            serde_json::to_string_pretty(report).map_err(|why| given::not_made(file, &why))?;
        std::fs::write(file, text + "\n").map_err(|why| given::not_made(file, &why))?;
    }
    out::text(&format!("\n{report}\n"))?;
    match report.failed {
        _ if report.holds() => Ok(()),
        0 => Err(Failure::Usage(
            "no case was run: those of --only are not for these versions, or need an option"
                .to_owned(),
        )),
        _ => Err(Failure::Reported),
    }
}

// === impl Common ===

impl Common {
    fn choice(&self, table: &[Version], cases: &[Listed]) -> Result<Choice, Failure> {
        let versions = given::versions("--versions", table, self.versions.as_ref())?;
        let only = given::known(&self.only, cases)?;
        Ok(Choice { versions, only, skip_ours: self.skip_ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_good_only_if_something_passed_and_nothing_failed() {
        let ended = |passed, failed| {
            let (subject, outcomes, left_out) = ("x".to_owned(), Vec::new(), Vec::new());
            conclude(&Report { subject, passed, failed, outcomes, left_out }, None)
        };
        assert!(ended(2, 0).is_ok());
        assert!(matches!(ended(1, 1), Err(Failure::Reported)));
        assert!(matches!(ended(0, 1), Err(Failure::Reported)));
        let none = ended(0, 0).unwrap_err();
        assert!(matches!(&none, Failure::Usage(why) if why.starts_with("no case was run")));
    }

    #[test]
    fn a_command_that_ends_well_makes_memory_short() {
        assert!(given::provokes("true").is_ok());
        assert!(given::provokes("test no =").is_err());
    }
}
