//! `windlass log-level`: what a running host logs, until its next start.

use crate::api::LogFilter;
use crate::client;
use crate::failure::Failure;
use crate::options::HostOptions;
use axum::http::Method;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A level is error, warn, info, debug or trace; parts as target=level, separated by commas, set it for
parts of the program. It holds until the host ends; `windlass host --log` says it for the start.

Examples:
  windlass log-level
  windlass log-level debug
  windlass log-level info,windlass_agent=debug")]
pub(crate) struct Args {
    /// What is to be logged; without it, what is logged is printed.
    level: Option<String>,
    #[command(flatten)]
    host: HostOptions,
}

/// Prints what is logged, or changes it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    const PATH: &str = "/v1/log-level";
    let Some(level) = &args.level else {
        let now: LogFilter = args.host.get(PATH)?;
        return args.host.answer(&now, |now| format!("{}\n", now.filter));
    };
    let body = LogFilter { filter: level.clone() };
    args.host.say(&client::run(args.host.client()?.send(Method::PUT, PATH, &body))?)
}
