//! The command line of `windlass-agent`, and the configuration that it names.

use clap::Parser;
use std::path::PathBuf;
use windlass_agent_config::config::{AgentConfig, CommandLine};
use windlass_agent_host::Settings;
use windlass_kit::problem::{Problem, Report};
use windlass_kit::program::{Failure, config_text};
use windlass_kit::telemetry::Format;

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
    /// What overrides the file, and what it does not say.
    #[command(flatten)]
    pub command_line: CommandLine,
    /// What is logged: a level, or `target=level` parts.
    #[arg(long, value_name = "FILTER", env = "WINDLASS_LOG", default_value = "info")]
    pub log: String,
    /// How: `plain` or `json`.
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", default_value = "plain")]
    pub log_format: Format,
}

/// The configuration as it was read, and how it is read again after SIGHUP: all of it takes effect at
/// the next start, so what can be done is to say whether that will go well.
pub(crate) struct AgentSettings {
    /// What problems call the file.
    name: &'static str,
    read: Read,
    command_line: CommandLine,
    pub(crate) config: AgentConfig,
}

type Read = fn(&str, &CommandLine) -> Result<AgentConfig, Vec<Problem>>;

// === impl Args ===

impl Args {
    /// Reads the configuration.
    ///
    /// # Errors
    /// It is not there, is neither .toml nor .json, or everything that is wrong with it.
    pub(crate) fn read(&self) -> Result<AgentSettings, Failure> {
        let path = self.config.display();
        let ending = self.config.extension().and_then(|ending| ending.to_str());
        let (name, read): (_, Read) = match ending.map(str::to_lowercase).as_deref() {
            Some("toml") => ("agent.toml", AgentConfig::from_toml),
            Some("json") => ("the configuration", AgentConfig::from_json),
            _ => return Err(Failure::Usage(format!("{path}: must end in .toml or .json"))),
        };
        let command_line = self.command_line.clone();
        let config = read(&config_text(&self.config)?, &command_line).map_err(|problems| {
            let subject = path.to_string();
            Failure::Invalid(Report { subject, problems, meanwhile: String::new() }.to_string())
        })?;
        Ok(AgentSettings { name, read, command_line, config })
    }
}

// === impl AgentSettings ===

impl Settings for AgentSettings {
    fn file(&self) -> &'static str {
        self.name
    }

    fn follow(&mut self, text: &str) -> Result<Vec<&'static str>, Vec<Problem>> {
        Ok((self.read)(text, &self.command_line)?.needs_restart(&self.config))
    }
}
