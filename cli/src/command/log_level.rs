//! `windlass log-level`: what a running host logs, until its next start.

use super::freeze::say;
use crate::api::LogFilter;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::{Connection, Format};
use crate::out::{self, Output};

/// Options of `windlass log-level`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A level is error, warn, info, debug or trace; parts as target=level, separated by commas, set it for
parts of the program. It holds until the host ends; `windlass host --log` says it for the start.

Examples:
  windlass log-level
  windlass log-level debug
  windlass log-level info,windlass_agent=debug")]
pub struct Args {
    /// What is to be logged; without it, what is logged is printed.
    pub level: Option<String>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Prints what is logged, or changes it.
///
/// # Errors
/// The host does not answer, or refuses.
pub fn run(args: &Args) -> Result<(), Failure> {
    const PATH: &str = "/v1/log-level";
    let client = Client::to(&args.connection.socket)?;
    let Some(level) = &args.level else {
        let now: LogFilter = client::run(client.get(PATH))?;
        return match args.format.output {
            Output::Text => out::text(&format!("{}\n", now.filter)),
            Output::Json => out::json(&now),
        };
    };
    let body = LogFilter { filter: level.clone() };
    say(client::run(client.put(PATH, &body))?, args.format.output)
}
