//! `windlass top`: every VM of a host, live.
//!
//! On a terminal the table is drawn again each second, and keys select, sort, explain and pause;
//! elsewhere it is printed once.

mod app;
mod columns;
mod live;
mod order;
mod screen;
mod sight;
mod table;
#[cfg(test)]
mod tests;

use crate::client;
use crate::command::cluster;
use crate::failure::Failure;
use crate::options::HostOptions;
use crate::out::{self, Output};
use crate::server::ServerOptions;
use order::{Column, Sorting};
use sight::look;
use std::io::IsTerminal;
use windlass_protocol::status::HostStatus;

#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
On a terminal: arrows or j and k select a VM, Enter explains it, p pauses or resumes it, left and right
sort, ? explains the rest, q ends. NO_COLOR turns colours off.

With --server the VMs of a cluster are listed once, as its plugin knows them: those first that do not follow their load.

{}
Examples:
  windlass top                 live on a terminal, once elsewhere
  windlass top --sort load     the highest load first
  windlass top --once          once
  windlass top --server https://127.0.0.1:10296 --namespace shop
  windlass top --output json | jq '.vms[] | {{name: .name.name, upper}}'", screen::COLUMNS))]
pub(crate) struct Args {
    /// Print the table once, also on a terminal.
    #[arg(long)]
    once: bool,
    /// Sort by this column at first.
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: Column,
    #[command(flatten)]
    host: HostOptions,
    #[command(flatten)]
    server: ServerOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(url) = &args.server.server {
        return out::answer(args.host.format.output, &args.server.list(url)?, cluster::table);
    }
    let client = args.host.client()?;
    let sorting = Sorting { by: args.sort, reversed: false };
    match args.host.format.output {
        Output::Json => out::json(&client::run(client.get::<HostStatus>("/v1/state"))?),
        Output::Text if args.once || !std::io::stdout().is_terminal() => {
            let sight = client::run(look(&client))?;
            out::text(&table::plain(&sight, sorting))
        }
        Output::Text => live::run(&client, sorting),
    }
}
