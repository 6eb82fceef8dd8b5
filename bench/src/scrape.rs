//! Reads the metrics of VMs that are not there once a second, and does nothing with them: the least that an agent with as many VMs does.
//!
//! It runs as a process of its own on one thread, as the agent does, with a connection for each VM that stays open.

use crate::crowd;
use crate::program::cpu;
use crate::wire::{self, Line};
use anyhow::{Context, Result, ensure};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::{Instant as At, interval_at};
use windlass_lab::leash;

/// The argument that makes a process of this program read, followed by the number of VMs.
pub(crate) const ARGUMENT: &str = "scrape";

/// Between two looks at one VM.
const EVERY: Duration = Duration::from_secs(1);
/// Until each has a connection.
const SETTLED: Duration = Duration::from_secs(5);

/// A process that reads. It ends with this value.
struct Scraper(Child);

/// The share of a core that it takes to read the metrics of so many VMs, over this time.
pub(crate) async fn share(vms: usize, watched: Duration) -> Result<f64> {
    let mut command = leash::command(std::env::current_exe()?);
    command.arg(ARGUMENT).arg(vms.to_string()).stdin(Stdio::null());
    let scraper = Scraper(leash::spawn(command)?);
    tokio::time::sleep(SETTLED).await;
    let (from, before) = (Instant::now(), cpu(scraper.0.id())?);
    tokio::time::sleep(watched).await;
    let took = cpu(scraper.0.id())?.saturating_sub(before);
    Ok(took.as_secs_f64() / from.elapsed().as_secs_f64())
}

/// Reads until it is ended.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let vms = words.first().and_then(|word| word.parse().ok()).context("how many VMs?")?;
    let read = move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, read_all(vms))
    };
    std::thread::spawn(read).join().ok().context("it panicked")?
}

async fn read_all(vms: usize) -> Result<()> {
    let mut reading = tokio::task::JoinSet::new();
    for index in 0..vms {
        // They are spread over the time between two looks.
        let first = At::now() + EVERY * u32::try_from(index % vms)? / u32::try_from(vms)?;
        reading.spawn_local(read_one(index, first));
    }
    while let Some(ended) = reading.join_next().await {
        ended??;
    }
    Ok(())
}

async fn read_one(vm: usize, first: At) -> Result<()> {
    let (mut looks, mut line) = (interval_at(first, EVERY), None);
    let request = wire::request("GET", "/metrics", "");
    loop {
        looks.tick().await;
        let line = match &mut line {
            Some(line) => line,
            none => none.insert(Line::to(crowd::informant_of(vm)?).await?),
        };
        let answer = line.ask(&request).await?;
        ensure!(answer.status == 200, "{}", answer.status);
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
