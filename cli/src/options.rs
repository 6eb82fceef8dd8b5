//! Options that several commands have.

use crate::out::Output;
use clap::Args;
use std::path::PathBuf;

/// Where a host serves its socket unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/windlass/host.sock";

/// Which host.toml a host reads unless told otherwise.
pub const DEFAULT_CONFIG: &str = "/etc/windlass/host.toml";

/// How a running host is reached.
#[derive(Debug, Args)]
pub struct Connection {
    /// The host's socket; access to it is a matter of file permissions.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

/// How the answer is written.
#[derive(Debug, Args)]
pub struct Format {
    /// For people, or for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Output,
}
