//! How fast and how small Windlass is: figures, printed and never judged.
//!
//! A clock on a busy machine says more about the machine than about the program. So each time
//! is printed beside that of the same burst in the same run, met by the lab itself over QMP:
//! the least that the mechanism takes. What Windlass adds is the ratio.

mod agent;
mod api_server;
mod arguments;
mod burst;
mod cluster_agent;
mod cluster_permits;
mod cluster_plugin;
mod cores;
mod crowd;
mod echo;
mod extender;
mod growth;
mod host;
mod permits;
mod plugin;
mod print;
mod program;
mod run;
mod scheduler;
mod scrape;
mod sizes;
mod summary;
mod tls;
mod wire;

use anyhow::Context;
use arguments::{Arguments, Part};
use std::io::Write;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, files)) = words.split_first()
        && first == echo::ARGUMENT
    {
        return echo::serve(files).await;
    }
    if let Some((first, vms)) = words.split_first()
        && first == scrape::ARGUMENT
    {
        return scrape::run(vms);
    }
    let arguments = Arguments::parse(words)?;
    if arguments.help {
        return Ok(std::io::stdout().write_all(arguments::HELP.as_bytes())?);
    }
    for part in &arguments.parts {
        match part {
            Part::Bursts => run::run(arguments.rounds).await?,
            Part::Permits => permits::run().await?,
            Part::ClusterPermits => cluster_permits::run().await?,
            Part::Extender => extender::run().await?,
            Part::Scheduler => scheduler::run().await?,
            Part::Agent => agent::run(arguments.vms).await?,
            Part::ClusterAgent => cluster_agent::run(arguments.rounds).await?,
            Part::Growth => {
                let against = arguments.against.as_deref().context("no --against")?;
                growth::run(arguments.rounds, against).await?;
            }
        }
    }
    Ok(())
}
