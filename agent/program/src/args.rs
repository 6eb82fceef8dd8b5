//! The command line of `windlass-agent`.

use crate::config::{AgentConfig, CommandLine};
use crate::keys::AGENT;
use clap::Parser;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use windlass_agent::PluginAt;
use windlass_kit::problem::{Problem, Report};
use windlass_kit::program::{Failure, config_text};
use windlass_kit::telemetry::Format;
use windlass_protocol::{Bytes, MilliCpu, unit_choice};

/// Sizes the VMs of this host by their load, as far as a plugin permits.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "windlass-agent",
    version,
    max_term_width = 100,
    after_help = "\
It attaches to the VMs that files in vms_dir describe, and follows changes of those files within
a second or two. `windlass top`, `explain` and the other commands reach it at its socket. SIGTERM
ends it, and every VM keeps its size. Logs go to standard error, the addresses that it serves to
standard output.

Exit codes: 64 for the command line, 65 for a broken file, 66 for one that is not there, 73 if an
address, the socket or the state_dir cannot be had, 1 if a part of it failed.

Examples:
  windlass-agent --config /etc/windlass/agent.toml
  windlass-agent --config config.json --plugin http://10.0.0.5:10299"
)]
pub struct Args {
    /// agent.toml, or the reference's JSON.
    #[arg(
        long,
        value_name = "FILE",
        env = "CONFIG_PATH",
        default_value = "/etc/windlass/agent.toml"
    )]
    pub config: PathBuf,
    /// In place of `plugin`.
    #[arg(long, value_name = "URL", env = "WINDLASS_PLUGIN", help = help("plugin"))]
    pub plugin: Option<PluginAt>,
    /// In place of `vms_dir`.
    #[arg(long, value_name = "DIR", env = "WINDLASS_VMS_DIR", help = help("vms_dir"))]
    pub vms_dir: Option<PathBuf>,
    /// In place of `state_dir`.
    #[arg(long, value_name = "DIR", env = "WINDLASS_STATE_DIR", help = help("state_dir"))]
    pub state_dir: Option<PathBuf>,
    /// In place of `socket`.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", help = help("socket"))]
    pub socket: Option<PathBuf>,
    /// In place of `admin`.
    #[arg(long, value_name = "ADDR", env = "WINDLASS_ADMIN", help = help("admin"))]
    pub admin: Option<SocketAddr>,
    /// One more unix socket at which the log level can be changed, by its owner and root alone.
    #[arg(long, value_name = "PATH", env = "WINDLASS_ADMIN_SOCKET")]
    pub admin_socket: Option<PathBuf>,
    /// In place of `compute_unit.cpu`.
    #[arg(long, value_name = "N", env = "WINDLASS_COMPUTE_UNIT_CPU", value_parser = cpu,
        help = help("compute_unit.cpu"))]
    pub compute_unit_cpu: Option<MilliCpu>,
    /// In place of `compute_unit.memory`.
    #[arg(long, value_name = "SIZE", env = "WINDLASS_COMPUTE_UNIT_MEMORY", value_parser = memory,
        help = help("compute_unit.memory"))]
    pub compute_unit_memory: Option<Bytes>,
    /// The name of this node, for the log and for billing, which needs it.
    #[arg(long, value_name = "NAME", env = "K8S_NODE_NAME")]
    pub node_name: Option<String>,
    /// Where informants call back, unless the file says.
    #[arg(long, value_name = "IP", env = "K8S_POD_IP")]
    pub pod_ip: Option<IpAddr>,
    /// What is logged: a level, or `target=level` parts.
    #[arg(long, value_name = "FILTER", env = "WINDLASS_LOG", default_value = "info")]
    pub log: String,
    /// How: `plain` or `json`.
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", default_value = "plain")]
    pub log_format: Format,
}

/// How the configuration is read.
#[derive(Debug)]
pub struct Source {
    /// What problems call the file.
    pub(crate) name: &'static str,
    read: Read,
    command_line: CommandLine,
}

type Read = fn(&str, &CommandLine) -> Result<AgentConfig, Vec<Problem>>;

// === impl Args ===

impl Args {
    /// Reads the configuration.
    ///
    /// # Errors
    /// It is not there, is neither .toml nor .json, or everything that is wrong with it.
    pub fn read(&self) -> Result<AgentConfig, Failure> {
        let (path, source) = (self.config.display(), self.source()?);
        source.parse(&config_text(&self.config)?).map_err(|problems| {
            let subject = path.to_string();
            Failure::Invalid(Report { subject, problems, meanwhile: String::new() }.to_string())
        })
    }

    /// How the configuration is read.
    ///
    /// # Errors
    /// Its name ends neither in .toml nor in .json.
    pub fn source(&self) -> Result<Source, Failure> {
        let ending = self.config.extension().and_then(|ending| ending.to_str());
        let (name, read): (_, Read) = match ending.map(str::to_lowercase).as_deref() {
            Some("toml") => ("agent.toml", AgentConfig::from_toml),
            Some("json") => ("the configuration", AgentConfig::from_json),
            _ => {
                let path = self.config.display();
                return Err(Failure::Usage(format!("{path}: must end in .toml or .json")));
            }
        };
        let command_line = CommandLine {
            plugin: self.plugin.clone(),
            vms_dir: self.vms_dir.clone(),
            state_dir: self.state_dir.clone(),
            socket: self.socket.clone(),
            admin: self.admin,
            unit_cpu: self.compute_unit_cpu,
            unit_memory: self.compute_unit_memory,
            pod_ip: self.pod_ip,
            node_name: self.node_name.clone(),
        };
        Ok(Source { name, read, command_line })
    }
}

// === impl Source ===

impl Source {
    /// Reads the text of the configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(&self, text: &str) -> Result<AgentConfig, Vec<Problem>> {
        (self.read)(text, &self.command_line)
    }
}

/// What `--help` says of an option that a key of the file has too.
fn help(key: &str) -> String {
    AGENT.field(key).help()
}

fn cpu(text: &str) -> Result<MilliCpu, String> {
    unit_choice::CPU.parse(text)
}

fn memory(text: &str) -> Result<Bytes, String> {
    unit_choice::MEMORY.parse(text)
}
