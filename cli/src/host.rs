//! `windlass host`: the agent and the plugin of one host, in one process.
//!
//! `run` composes them: permits go through the plugin's codec, called in memory, and what the
//! agent sees goes into the books. Everything else is [`windlass_agent_host`], as it is for
//! `windlass-agent`: VM files, state and history, and the socket by which the command line looks
//! and orders. What is left here judges host.toml: [`config`], `room`, `together`.

mod books;
pub mod config;
pub mod keys;
pub(crate) mod room;
mod serve;
#[cfg(test)]
mod tests;
pub(crate) mod together;

use crate::failure::Failure;
use crate::options::DEFAULT_CONFIG;
use crate::problem::Report;
use config::HostConfig;
use std::path::PathBuf;
use windlass_kit::config::{Unread, read_text};
use windlass_kit::program;
use windlass_kit::telemetry::Format;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It attaches to the VMs that files in vms_dir describe, and follows changes of those files within
a second or two. SIGHUP reads host.toml again (what may be reserved for VMs); SIGTERM ends it, and
every VM keeps its size. Logs go to standard error.

A smallest host.toml is an empty one: everything has a default, which `windlass check --keys`
lists. Exit codes: 64 for the command line, 65 for a broken host.toml, 73 if the socket or the
state cannot be had, 1 if a part of the host failed.

Examples:
  windlass host --config /etc/windlass/host.toml
  windlass host --config host.toml --log debug
  systemctl reload windlass-host")]
pub(crate) struct Args {
    /// What the host is told about itself.
    #[arg(
        long,
        value_name = "FILE",
        env = "WINDLASS_CONFIG",
        default_value = DEFAULT_CONFIG
    )]
    config: PathBuf,
    /// What is logged: a level, or `target=level` parts.
    #[arg(long, value_name = "FILTER", env = "WINDLASS_LOG", default_value = "info")]
    log: String,
    /// How: `plain` or `json`.
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", default_value = "plain")]
    log_format: Format,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = read(args)?;
    let log_level = windlass_kit::telemetry::init(args.log_format, &args.log)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    program::block_on(serve::serve(config, args.config.clone(), log_level))
}

fn read(args: &Args) -> Result<HostConfig, Failure> {
    let path = args.config.display();
    let text = read_text(&args.config).map_err(|unread| match unread {
        Unread::Missing => Failure::Missing(format!("{path}: {unread}; an empty one will do")),
        Unread::NoFile | Unread::TooLong { .. } | Unread::NotText | Unread::Failed(_) => {
            Failure::Invalid(format!("{path}: {unread}"))
        }
    })?;
    HostConfig::from_text(&text).map_err(|problems| {
        let report = Report { subject: path.to_string(), problems, meanwhile: String::new() };
        Failure::Invalid(report.to_string())
    })
}
