//! From the configuration to an agent of this host, with permits of a plugin over HTTP.

use crate::args::{AgentSettings, Args};
use crate::{billing, metrics};
use clap::Parser;
use clap::error::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::Arc;
use tracing::{info, warn};
use windlass_agent::{Config, NoTrust, NullLedger, Remote};
use windlass_agent_host::run::Gather;
use windlass_agent_host::{Composition, Host};
use windlass_kit::client::Trust;
use windlass_kit::clock::Clock;
use windlass_kit::problem::Problem;
use windlass_kit::program::{self, Failure};
use windlass_kit::telemetry::{self, LogLevel};

/// Parses the command line, runs until told to end, and gives the exit code.
pub fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => program::end("windlass-agent", start(args)),
        Err(error) => {
            // Nothing is left to tell to whom, if the terminal is gone.
            let _ = error.print();
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                ExitCode::SUCCESS
            } else {
                Failure::Usage(String::new()).code()
            }
        }
    }
}

fn start(args: Args) -> Result<(), Failure> {
    let settings = args.read()?;
    let log_level = telemetry::init(args.log_format, &args.log)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    program::block_on_one_thread(run(args, settings, log_level))
}

async fn run(args: Args, settings: AgentSettings, log_level: LogLevel) -> Result<(), Failure> {
    let config = settings.config.clone();
    let clock = Clock::system();
    for Problem { field, value, limit } in &config.adjusted {
        warn!(field, value, limit, "a value of the configuration is valid and counts as another");
    }
    info!(node = args.command_line.node_name, plugin = %config.plugin, "starting");
    let trust =
        config.trust_files().map(Trust::load).transpose().map_err(|error| {
            Failure::Invalid(format!("plugin_{}: {error}", error.file.as_str()))
        })?;
    let permits = Remote::new(config.plugin.clone(), trust.clone(), config.times.permit).map_err(
        |NoTrust| Failure::Invalid(format!("plugin: {} cannot be asked", config.plugin)),
    )?;
    let plugin = config.plugin.ip().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let gather: Gather = Box::new(move |agent, stopped| agent.reference_dump(stopped, plugin));
    let composition = Composition {
        agent: Config {
            times: config.times,
            periods: config.periods,
            silence: config.silence,
            ..config.basics.agent()
        },
        permits: Arc::new(permits),
        ledger: Arc::new(NullLedger),
        books: None,
        settings: Box::new(settings),
        usual: config.usual,
    };
    let host = Host {
        composition,
        config: args.config,
        basics: config.basics.clone(),
        rival: "another agent",
        admin_socket: args.command_line.admin_socket,
        clock,
        log_level,
        gather: Some(gather),
        start: Box::new(move |parts, registry, tasks| {
            metrics::register(parts.agent.metrics(), &parts.figures, registry);
            if let Some(trust) = trust {
                let (pulse, stop) = (parts.watchdog.watch("the plugin's CA"), tasks.stopping());
                tasks.vital("the plugin's CA", trust.follow(pulse, stop));
            }
            billing::start(&config, parts, clock, registry, tasks)?;
            Ok(parts.agent.metrics().refusals())
        }),
    };
    windlass_agent_host::run(host).await
}
