//! From the configuration to an agent of this host, or of a node of a cluster, with permits of a plugin over HTTP.

use crate::args::{AgentSettings, Args};
use crate::{billing, metrics};
use clap::Parser;
use clap::error::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::Arc;
use tracing::{info, warn};
use windlass_agent::{Config, NoTrust, NullLedger, Remote};
use windlass_agent_cluster::NodeAgent;
use windlass_agent_core::declared::Terms;
use windlass_agent_host::run::Gather;
use windlass_agent_host::{Composition, Host};
use windlass_kit::client::Trust;
use windlass_kit::clock::Clock;
use windlass_kit::problem::Problem;
use windlass_kit::program::{self, Failure};
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::{self, LogLevel};
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::connect;

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
    let agent = Config {
        times: config.times,
        periods: config.periods,
        silence: config.silence,
        ..config.basics.agent()
    };
    let permits = Arc::new(permits);
    if let Some(kubernetes) = config.kubernetes.clone() {
        let client = connect(kubernetes.kubeconfig.as_deref()).await;
        let node = NodeAgent {
            client: client.map_err(|error| Failure::Invalid(error.to_string()))?,
            node: kubernetes.node,
            pods_dir: kubernetes.pods_dir,
            terms: Terms { usual: config.usual, advertise: args.command_line.pod_ip },
            // A VM of NeonVM has what its spec asks for, whatever its guest says; a VM that is a pod says it itself.
            agent: Config { cpu_limit: None, ..agent },
            permits,
            admin: config.basics.admin,
            admin_socket: args.command_line.admin_socket,
            dump_state: config.basics.dump_state,
            gather,
            clock,
            log_level,
            start: Box::new(move |agent, watchdog, registry, tasks| {
                agent.metrics().register_reference(registry);
                follow(trust, watchdog, tasks);
            }),
        };
        return windlass_agent_cluster::run(node).await;
    }
    let composition = Composition {
        agent,
        permits,
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
            follow(trust, &parts.watchdog, tasks);
            billing::start(&config, parts, clock, registry, tasks)?;
            Ok(parts.agent.metrics().refusals())
        }),
    };
    windlass_agent_host::run(host).await
}

/// Has the files read again by which the plugin is known, whenever they change.
fn follow(trust: Option<Trust>, watchdog: &Watchdog, tasks: &Tasks) {
    let Some(trust) = trust else { return };
    let (pulse, stop) = (watchdog.watch("the plugin's CA"), tasks.stopping());
    tasks.vital("the plugin's CA", trust.follow(pulse, stop));
}
