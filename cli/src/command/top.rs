//! `windlass top`: every VM of a host, live.
//!
//! On a terminal the table is drawn again each second; elsewhere it is printed once.

mod columns;
mod live;
mod sight;
mod table;
#[cfg(test)]
mod tests;

use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::{Connection, Format};
use crate::out::{self, Output};
use sight::look;
use std::io::IsTerminal;
use windlass_protocol::status::HostStatus;

/// Options of `windlass top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Columns:
  CPU       what the VM has; `2 of 4` where 4 are plugged and the guest uses 2
  MEMORY    what the VM has, and how much of it is in use
  LOAD      load average over the VM's window
  GOAL      what the load calls for        GRANTED  what the books allow it
  STATE     at goal, or what keeps it from its goal; `windlass explain VM` says what to do

Examples:
  windlass top                 live on a terminal (q ends it), once elsewhere
  windlass top --once          once
  windlass top --output json | jq '.vms[] | {name: .name.name, upper}'")]
pub struct Args {
    /// Print the table once, also on a terminal.
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Shows the VMs.
///
/// # Errors
/// The host does not answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    let client = Client::to(&args.connection.socket)?;
    match args.format.output {
        Output::Json => out::json(&client::run(client.get::<HostStatus>("/v1/state"))?),
        Output::Text if args.once || !std::io::stdout().is_terminal() => {
            let sight = client::run(look(&client))?;
            out::text(&table::plain(&sight))
        }
        Output::Text => live::run(&client),
    }
}
