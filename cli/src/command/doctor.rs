//! `windlass doctor`: what is right and what is wrong with a host, from machine to guest.
//!
//! Each part is looked at as far as it can be: without a host that answers, its files and the machine
//! are. Nothing is changed, and no monitor is connected to: it serves one client, which is the host.

mod cgroup;
mod files;
mod host;
mod machine;
mod report;
#[cfg(test)]
mod tests;
mod vms;

use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::{Connection, DEFAULT_CONFIG, Format};
use crate::out::{self, Output};
use report::Report;
use std::path::PathBuf;

/// Columns of a line, where it can be broken.
const WIDTH: usize = 100;

/// Options of `windlass doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
✓ is as it should be; ‼ works, within limits; ✗ does not work. Below each ‼ and ✗ stand what to do and
where docs/ says more. The exit code is 1 if there is any ✗. As root it sees most: which process has a
monitor, and the limits of that process. NO_COLOR turns colours off.

Examples:
  windlass doctor
  windlass doctor --output json | jq '.sections[].checks[] | select(.verdict == \"failed\")'")]
pub struct Args {
    /// host.toml; without it, that of the host which answers, else /etc/windlass/host.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Looks at everything.
///
/// # Errors
/// Something does not work.
pub fn run(args: &Args) -> Result<(), Failure> {
    let report = client::run(async { Ok(examine(args).await) })?;
    match args.format.output {
        Output::Json => out::json(&report)?,
        Output::Text => out::text(&report.text(out::is_coloured(), WIDTH))?,
    }
    if report.has_failed() { Err(Failure::Reported) } else { Ok(()) }
}

async fn examine(args: &Args) -> Report {
    let socket = &args.connection.socket;
    let client = Client::to(socket);
    let seen = host::look(client.as_ref()).await;
    let of_host = seen.facts.as_ref().map(|facts| facts.config.clone());
    let config = args.config.clone().or(of_host).unwrap_or_else(|| DEFAULT_CONFIG.into());
    let files = files::read(&config);
    let mut report = Report::default();
    report.add("machine", machine::checks(&files));
    report.add("host", host::checks(socket, client.as_ref().err(), &seen).await);
    report.add("files", files::checks(&config, &files));
    report.add("ports", machine::ports(&files, seen.facts.is_some()));
    for vm in vms::of(&files, &seen) {
        let checks = vm.checks(client.as_ref().ok()).await;
        report.add(&format!("VM {}", vm.name()), checks);
    }
    report
}
