//! `windlass freeze` and `windlass thaw`: every VM of a host keeps its size, or no longer.

use crate::api::Done;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::{Connection, Format};
use crate::out::{self, Output};

/// Options of `windlass freeze` and `windlass thaw`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A frozen host changes no size: nothing grows, nothing shrinks. Load is read and shown; no goal is
computed, and no decision recorded, until `windlass thaw`. It stays frozen over a restart.

Examples:
  windlass freeze
  windlass thaw
  windlass top --output json | jq .frozen")]
pub struct Args {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Freezes the host.
///
/// # Errors
/// The host does not answer, or refuses.
pub fn freeze(args: &Args) -> Result<(), Failure> {
    order(args, "/v1/freeze")
}

/// Thaws the host.
///
/// # Errors
/// The host does not answer, or refuses.
pub fn thaw(args: &Args) -> Result<(), Failure> {
    order(args, "/v1/thaw")
}

fn order(args: &Args, path: &str) -> Result<(), Failure> {
    let client = Client::to(&args.connection.socket)?;
    say(client::run(client.post(path, &()))?, args.format.output)
}

/// Prints what an order led to.
pub(super) fn say(done: Done, output: Output) -> Result<(), Failure> {
    match output {
        Output::Text => out::text(&format!("{}\n", done.message)),
        Output::Json => out::json(&done),
    }
}
