//! `windlass freeze` and `windlass thaw`: every VM of a host keeps its size, or no longer.

use crate::failure::Failure;
use crate::options::HostOptions;

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
    host: HostOptions,
}

/// Freezes the host.
///
/// # Errors
/// The host does not answer, or refuses.
pub fn freeze(args: &Args) -> Result<(), Failure> {
    args.host.order("/v1/freeze", &())
}

/// Thaws the host.
///
/// # Errors
/// The host does not answer, or refuses.
pub fn thaw(args: &Args) -> Result<(), Failure> {
    args.host.order("/v1/thaw", &())
}
