//! `windlass explain`: why a VM has the size that it has.

use crate::args::{Connection, Format};
use crate::client::{self, Client};
use crate::explain::{Explained, page};
use crate::failure::Failure;
use crate::out::{self, Output};

/// Options of `windlass explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each decision is one sentence: what the guest reported, what that called for, what the plugin
allowed, what the guest agreed to, what was done, what became of it. Where there was less than
was asked for, the books say who has the room. At the end stands what the VM waits for now.

Examples:
  windlass explain db1
  windlass explain db1 --minutes 5
  windlass explain db1 --output json | jq '.decisions[-1].reason'")]
pub struct Args {
    /// Which VM.
    pub vm: String,
    /// How far to look back; a host keeps an hour.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub minutes: u64,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Prints the story of a VM.
///
/// # Errors
/// The host does not answer, or knows no such VM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let path = client::vm_path("/v1/explain", &args.vm, &format!("?minutes={}", args.minutes))?;
    let client = Client::to(&args.connection.socket)?;
    let explained: Explained = client::run(client.get(&path))?;
    match args.format.output {
        Output::Text => out::text(&page(&explained)),
        Output::Json => out::json(&explained),
    }
}
