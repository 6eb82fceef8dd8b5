//! The command line of `windlass-plugin`.

use crate::source::Source;
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use windlass_kit::program::Failure;
use windlass_kit::telemetry::Format;
use windlass_plugin_config::keys::PLUGIN;

/// Where the configuration is unless something else is said.
pub const DEFAULT_CONFIG: &str = "/etc/windlass/plugin.toml";
/// Where the reference's plugin has its configuration.
pub const REFERENCE_CONFIG: &str = "/etc/scheduler-plugin-config/autoscale-enforcer-config.json";

/// Keeps the books of nodes, and answers the agents that ask for permits.
#[derive(Debug, Parser)]
#[command(
    name = "windlass-plugin",
    version,
    max_term_width = 100,
    after_help = "\
SIGHUP reads the lists again, and a list with a problem changes nothing; SIGTERM ends it. Logs go
to standard error, the addresses that it serves to standard output.

Exit codes: 64 for the command line, 65 for a broken file, 66 for one that is not there, 73 if an
address cannot be had, 1 if a part of it failed.

Examples:
  windlass-plugin --config /etc/windlass/plugin.toml
  windlass-plugin --config autoscale-enforcer-config.json --books nodes.toml"
)]
pub struct Args {
    /// plugin.toml, or the reference's JSON [default: the reference's path if a file is there,
    /// else /etc/windlass/plugin.toml].
    #[arg(long, value_name = "FILE", env = "CONFIG_PATH")]
    pub config: Option<PathBuf>,
    /// With a .json: the .toml that lists nodes and VMs.
    #[arg(long, value_name = "FILE", env = "WINDLASS_BOOKS")]
    pub books: Option<PathBuf>,
    /// In place of `admin`.
    #[arg(long, value_name = "ADDR", env = "WINDLASS_ADMIN", help = PLUGIN.field("admin").help())]
    pub admin: Option<SocketAddr>,
    /// A unix socket at which the log level can be changed, by its owner and root alone; without
    /// it, by a restart alone.
    #[arg(long, value_name = "PATH", env = "WINDLASS_ADMIN_SOCKET")]
    pub admin_socket: Option<PathBuf>,
    /// In a cluster: the pod that the plugin runs in, which is labelled while it leads.
    #[arg(long, value_name = "POD", env = "K8S_POD_NAME")]
    pub pod: Option<String>,
    /// What is logged: a level, or `target=level` parts. A watch that fails is logged once, by the plugin, and not
    /// at each try by its client.
    #[arg(
        long,
        value_name = "FILTER",
        env = "WINDLASS_LOG",
        default_value = "info,kube_client=off,kube_runtime=off"
    )]
    pub log: String,
    /// How: `plain` or `json`.
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", default_value = "plain")]
    pub log_format: Format,
}

// === impl Args ===

impl Args {
    /// The files that are meant, if they make sense together.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        let config = self.config.clone().unwrap_or_else(|| {
            let theirs = PathBuf::from(REFERENCE_CONFIG);
            if theirs.is_file() { theirs } else { DEFAULT_CONFIG.into() }
        });
        Source::of(config, self.books.clone(), self.admin)
    }
}
