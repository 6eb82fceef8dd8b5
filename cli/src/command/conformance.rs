//! `windlass conformance`: does a component keep to its protocol?

use crate::failure::Failure;
use crate::host::amount;
use crate::out;
use clap::Subcommand;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_conformance::case::Choice;
use windlass_conformance::report::{Outcome, Report};
use windlass_conformance::versions::{INFORMANT, PLUGIN, Version, select};
use windlass_conformance::{agent, informant, plugin};
use windlass_protocol::Bytes;

/// Options of `windlass conformance`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The kit plays the peers of the component and tries every rule of docs/protocol that can be seen from
outside, in every version. Each case names its rules. Try a component that is there to be tried: the
peers that it has meanwhile are taken from it.

The exit code is 1 if a case failed.

Examples:
  windlass conformance informant --target 127.0.0.1:10301
  windlass conformance informant --target 127.0.0.2:10301 --advertise 10.0.2.2 --versions v1.1-v2.0
  windlass conformance plugin --target http://127.0.0.1:10299 --vm default/a --other default/b
  windlass conformance agent --run 'windlass-agent --config agent.toml'")]
pub struct Args {
    /// Which component.
    #[command(subcommand)]
    pub component: Component,
}

/// What is tried.
#[derive(Debug, Subcommand)]
pub enum Component {
    /// Play agents against an informant.
    Informant(Informant),
    /// Play the agents of two VMs against a plugin.
    Plugin(Plugin),
    /// Play informant, plugin and QMP monitor for an agent.
    Agent(Agent),
}

/// Options that every component has.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Only these versions: `v1.0`, or a range such as `v1.1-v2.0`.
    #[arg(long, value_name = "RANGE")]
    pub versions: Option<String>,
    /// Only this case; may be repeated.
    #[arg(long, value_name = "CASE")]
    pub only: Vec<String>,
    /// Write the report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Options for an informant.
#[derive(Debug, clap::Args)]
pub struct Informant {
    /// Where it listens.
    #[arg(long, value_name = "ADDR")]
    pub target: SocketAddr,
    /// How it reaches this machine; absent: the local address that reaches it.
    #[arg(long, value_name = "IP")]
    pub advertise: Option<IpAddr>,
    /// A command that makes memory short at the target and enough again, run with `on` or `off`.
    #[arg(long, value_name = "CMD")]
    pub provoke: Option<String>,
    /// The guest may be asked for fewer vCPUs than are online.
    #[arg(long)]
    pub disruptive: bool,
    #[command(flatten)]
    common: Common,
}

/// Options for a plugin.
#[derive(Debug, clap::Args)]
pub struct Plugin {
    /// Where it listens: `ip:port`, or `http://ip:port`.
    #[arg(long, value_name = "URL")]
    pub target: String,
    /// A VM that it knows, as NAMESPACE/NAME.
    #[arg(long, value_name = "VM", value_parser = vm)]
    pub vm: plugin::Vm,
    /// Another on the same node, where nobody else changes size.
    #[arg(long, value_name = "VM", value_parser = vm)]
    pub other: plugin::Vm,
    /// One of 1 vCPU and 8 slots that is about to be moved.
    #[arg(long, value_name = "VM", value_parser = vm)]
    pub moving: Option<plugin::Vm>,
    /// The slot of memory of these VMs.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = amount::memory)]
    pub slot: Bytes,
    #[command(flatten)]
    common: Common,
}

/// Options for an agent.
#[derive(Debug, clap::Args)]
pub struct Agent {
    /// A command of the shell that starts the agent in the present folder, where agent.toml and
    /// vms.d/a.toml are; it is run anew for every case.
    #[arg(long, value_name = "CMD")]
    pub run: String,
    /// Only these versions of the informant's protocol.
    #[arg(long, value_name = "RANGE")]
    pub informant_versions: Option<String>,
    /// Only these versions of the plugin's protocol.
    #[arg(long, value_name = "RANGE")]
    pub plugin_versions: Option<String>,
    /// Only this case; may be repeated.
    #[arg(long, value_name = "CASE")]
    pub only: Vec<String>,
    /// So many cases are run at once.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub at_once: usize,
    /// Write the report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Tries a component.
///
/// # Errors
/// A case failed, or an option makes no sense.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.component {
        Component::Informant(args) => informant(args),
        Component::Plugin(args) => plugin(args),
        Component::Agent(args) => agent(args),
    }
}

fn informant(args: &Informant) -> Result<(), Failure> {
    let choice = args.common.choice(&INFORMANT, &informant::catalogue())?;
    let advertise = args.advertise.map_or_else(|| local_address(args.target), Ok)?;
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
    let (target, slot) = (socket(&args.target)?, args.slot.bytes());
    let options = plugin::Options { target, vm, other, moving, slot, choice };
    conclude(&plugin::run(&options, &mut tell), args.common.json.as_deref())
}

fn agent(args: &Agent) -> Result<(), Failure> {
    let cases = agent::catalogue();
    let options = agent::Options {
        start: Arc::new(agent::Shell(args.run.clone())),
        informant: versions("--informant-versions", &INFORMANT, args.informant_versions.as_ref())?,
        plugin: versions("--plugin-versions", &PLUGIN, args.plugin_versions.as_ref())?,
        only: known(&args.only, &cases)?,
        at_once: args.at_once,
    };
    conclude(&agent::run(&options, &mut tell), args.json.as_deref())
}

fn vm(text: &str) -> Result<plugin::Vm, String> {
    Ok(plugin::Vm::named(text))
}

/// Where a URL points, which is an address with a port: the kit looks no names up.
fn socket(url: &str) -> Result<SocketAddr, Failure> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let place = rest.split('/').next().unwrap_or_default();
    let wrong = |_| Failure::Usage(format!("--target: {url} is no ip:port or http://ip:port"));
    place.parse().map_err(wrong)
}

/// A line for each outcome, as it comes.
fn tell(outcome: &Outcome) {
    // Whoever no longer reads does not stop the run; its report may still be wanted.
    let _ = out::text(&format!("{outcome}\n"));
}

fn conclude(report: &Report, json: Option<&Path>) -> Result<(), Failure> {
    if let Some(file) = json {
        let cannot = |why: String| Failure::CannotCreate(format!("{}: {why}", file.display()));
        let text =
            serde_json::to_string_pretty(report).map_err(|error| cannot(error.to_string()))?;
        std::fs::write(file, text + "\n").map_err(|error| cannot(error.to_string()))?;
    }
    out::text(&format!("\n{report}\n"))?;
    match report.failed {
        _ if report.holds() => Ok(()),
        0 => Err(Failure::Usage("no case was run: the versions have none of these".to_owned())),
        failed => Err(Failure::Failed(format!("{failed} cases failed"))),
    }
}

/// The address of this machine from which the target is reached.
fn local_address(target: SocketAddr) -> Result<IpAddr, Failure> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let found = UdpSocket::bind(any).and_then(|socket| {
        // Nothing is sent: the system only chooses a way.
        socket.connect(target)?;
        socket.local_addr()
    });
    let none = |error| Failure::Usage(format!("no way to {target} ({error}); say --advertise"));
    found.map(|addr| addr.ip()).map_err(none)
}

// === impl Common ===

impl Common {
    fn choice(&self, table: &[Version], cases: &[Named]) -> Result<Choice, Failure> {
        let versions = versions("--versions", table, self.versions.as_ref())?;
        Ok(Choice { versions, only: known(&self.only, cases)? })
    }
}

/// A case and its rules.
type Named = (&'static str, &'static [&'static str]);

fn versions(
    option: &str,
    table: &[Version],
    given: Option<&String>,
) -> Result<Vec<Version>, Failure> {
    let usage = |why| Failure::Usage(format!("{option}: {why}"));
    given.map_or_else(|| Ok(table.to_vec()), |text| select(table, text).map_err(usage))
}

/// The names, each of which is a case's.
fn known(only: &[String], cases: &[Named]) -> Result<Vec<String>, Failure> {
    match only.iter().find(|name| !cases.iter().any(|(case, _)| case == name)) {
        Some(name) => Err(Failure::Usage(format!("--only: there is no case {name:?}"))),
        None => Ok(only.to_vec()),
    }
}
