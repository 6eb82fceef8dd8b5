//! `windlass doctor`: what is right and what is wrong, from the machine to each guest.
//!
//! Each part is looked at as far as it can be: without a host that answers, its files and the machine
//! are, and so is windlass-agent or windlass-plugin where it has a file. Nothing is changed, and no monitor is connected to: it serves one client, which is the host.

mod cgroup;
mod conflicts;
mod files;
mod host;
mod machine;
mod named;
mod programs;
mod report;
#[cfg(test)]
mod tests;
mod vms;

use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::{DEFAULT_CONFIG, DEFAULT_SOCKET, Format};
use crate::out;
use files::Read;
use report::{Check, Report};
use std::path::{Path, PathBuf};

/// Where the files of programs are.
const FOLDER: &str = "/etc/windlass";

/// Columns of a line, where it can be broken.
const WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
✓ is as it should be; ‼ works, within limits; ✗ does not work. Below each ‼ and ✗ stand what to do and
where docs/ says more. The exit code is 1 if there is any ✗. As root it sees most: which process has a
monitor, and the limits of that process. NO_COLOR turns colours off.

Examples:
  windlass doctor
  windlass doctor --output json | jq '.sections[].checks[] | select(.verdict == \"failed\")'")]
pub(crate) struct Args {
    /// host.toml, agent.toml or plugin.toml; without it, that of the host which answers, else those that
    /// are in /etc/windlass.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The host's socket; without it, that of the file.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = client::run(async { Ok(examine(args, Path::new(FOLDER)).await) })?;
    out::answer(args.format.output, &report, |report| report.text(out::is_coloured(), WIDTH))?;
    if report.has_failed() { Err(Failure::Reported) } else { Ok(()) }
}

/// `folder` is where the files of programs are.
async fn examine(args: &Args, folder: &Path) -> Report {
    let configs = args.config.clone().map_or_else(|| installed(folder), |config| vec![config]);
    let mut files: Vec<Read> = configs.iter().map(|config| files::read(config)).collect();
    let (socket, client) =
        reach(args.socket.clone().map_or_else(|| sockets(&files), |at| vec![at]));
    let seen = host::look(client.as_ref()).await;
    // Of the files that are set up here, the host that answers has one, or none of them.
    let mut unused = Vec::new();
    let of_host = seen.facts.as_ref().map(|facts| &facts.config);
    if let Some(config) = of_host.filter(|_| args.config.is_none()) {
        unused = files.extract_if(.., |file| file.path != *config).collect();
        if files.is_empty() {
            files.push(files::read(config));
        }
    }
    let mut report = Report::default();
    report.add("machine", machine::checks(&files));
    if seen.facts.is_some() || files.iter().any(Read::serves_people) {
        report.add("host", host::checks(&socket, client.as_ref().err(), &seen, &files).await);
    }
    let mut ports = Vec::new();
    for files in &files {
        let program = programs::checks(files).await;
        let runs = match &program {
            Some((_, checks)) => checks.first().is_some_and(Check::is_good),
            None => seen.facts.is_some(),
        };
        if let Some((name, checks)) = program {
            report.add(name, checks);
        }
        report.add("files", files::checks(files));
        ports.extend(machine::ports(files, runs));
    }
    ports.extend(conflicts::checks(&files.iter().chain(&unused).collect::<Vec<_>>()));
    report.add("ports", ports);
    for (name, checks) in vms::checks(&files, &seen, client.as_ref().ok()).await {
        report.add(&format!("VM {name}"), checks);
    }
    report
}

/// The files of the programs that are set up here; host.toml where none is.
fn installed(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        ["host.toml", "agent.toml", "plugin.toml"].map(|file| folder.join(file)).into();
    files.retain(|file| file.exists());
    if files.is_empty() { vec![DEFAULT_CONFIG.into()] } else { files }
}

/// Where the command line reaches the programs of these files.
fn sockets(files: &[Read]) -> Vec<PathBuf> {
    let sockets: Vec<PathBuf> =
        files.iter().filter_map(Read::socket).map(Path::to_path_buf).collect();
    if sockets.is_empty() { vec![DEFAULT_SOCKET.into()] } else { sockets }
}

/// The first of these sockets that a host serves, or the first of all and why no host does.
fn reach(sockets: Vec<PathBuf>) -> (PathBuf, Result<Client, Failure>) {
    let tried = sockets.into_iter().map(|socket| (Client::to(&socket), socket));
    let mut tried: Vec<_> = tried.collect();
    let served = tried.iter().position(|(client, _)| client.is_ok());
    let (client, socket) = tried.swap_remove(served.unwrap_or(0));
    (socket, client)
}
