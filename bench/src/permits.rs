//! How many permits a plugin gives per second, beside a bare echo.
//!
//! Some clients ask without a pause, each over a connection of its own, for VMs in turn: each VM
//! asks for one compute unit more and gives it back at its next turn, so each request changes
//! the books. The echo gets the same bytes over as many connections. Both are asked in turn, a
//! short while each, so both see the same machine.

use crate::echo::Echo;
use crate::plugin::Plugin;
use crate::print;
use crate::wire::{self, Line};
use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// As many as a node's agents have open at a time.
pub(crate) const CLIENTS: usize = 4;
/// How long each is asked at a time.
pub(crate) const TURN: Duration = Duration::from_secs(2);
/// How often each has its turn.
pub(crate) const TURNS: usize = 5;
/// How many VMs there are.
const CROWDS: [usize; 3] = [1, 100, 1000];

/// What came of one server, over all its turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    times: Vec<Duration>,
    spent: Duration,
}

/// Asks for permits, and prints what came of it.
pub(crate) async fn run() -> Result<()> {
    print::permits_head()?;
    for vms in CROWDS {
        let plugin = Plugin::start(vms)?;
        let echo = Echo::start()?;
        let requests = Arc::new(requests(vms));
        let (mut permits, mut echoes) = (Asked::default(), Asked::default());
        // The first turn of each warms up.
        for turn in 0..=TURNS {
            for (server, asked) in [(plugin.permits, &mut permits), (echo.address, &mut echoes)] {
                let came = ask(server, &requests).await?;
                if turn > 0 {
                    asked.add(came);
                }
            }
        }
        print::permits(vms, &permits, &echoes, plugin.resident()?)?;
    }
    Ok(())
}

// === impl Asked ===

impl Asked {
    fn add(&mut self, mut other: Self) {
        self.times.append(&mut other.times);
        self.spent += other.spent;
    }

    /// Answers per second, all clients together.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.spent.as_secs_f64()
    }

    /// The time within which so many of a hundred were answered.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default()
    }
}

/// Two requests per VM: one unit more, and back. Those of one client are of VMs of its own.
fn requests(vms: usize) -> Vec<[Vec<u8>; 2]> {
    let request = |vm: usize, units: u64| {
        let body = format!(
            "{{\"protoVersion\":7,\"pod\":{{\"namespace\":\"default\",\"name\":\"vm{vm}\"}},\
             \"computeUnit\":{{\"vCPUs\":1,\"mem\":\"1Gi\"}},\
             \"resources\":{{\"vCPUs\":{units},\"mem\":\"{units}Gi\"}},\"lastPermit\":null,\
             \"metrics\":{{\"loadAvg1M\":0.5}}}}"
        );
        wire::request("POST", "/", &body)
    };
    (0..vms).map(|vm| [request(vm, 2), request(vm, 1)]).collect()
}

/// One turn.
async fn ask(server: SocketAddr, requests: &Arc<Vec<[Vec<u8>; 2]>>) -> Result<Asked> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS.min(requests.len()) {
        let requests = Arc::clone(requests);
        clients.spawn(async move { one_client(server, client, &requests).await });
    }
    let mut asked = Asked::default();
    while let Some(times) = clients.join_next().await {
        asked.times.append(&mut times??);
    }
    asked.spent = begun.elapsed();
    Ok(asked)
}

async fn one_client(
    server: SocketAddr,
    client: usize,
    requests: &[[Vec<u8>; 2]],
) -> Result<Vec<Duration>> {
    let mut line = Line::to(server).await?;
    let mut times = Vec::with_capacity(1 << 16);
    let begun = Instant::now();
    for turn in 0.. {
        for pair in requests.iter().skip(client).step_by(CLIENTS) {
            let from = Instant::now();
            let answer = line.ask(&pair[turn % 2]).await?;
            times.push(from.elapsed());
            let text = || String::from_utf8_lossy(&answer.body).into_owned();
            ensure!(answer.status == 200, "{}: {}", answer.status, text());
            if begun.elapsed() > TURN {
                return Ok(times);
            }
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_quicker_than_the_median() {
        let times = (1..=100).map(Duration::from_millis).collect();
        let asked = Asked { times, spent: Duration::from_secs(4) };
        assert_eq!(asked.percentile(50), Duration::from_millis(51));
        assert_eq!(asked.percentile(99), Duration::from_millis(100));
        assert!((asked.per_second() - 25.0).abs() < 1e-9);
        assert_eq!(Asked::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn a_vm_takes_and_gives_back() {
        let [more, back] = &requests(1)[0];
        assert!(String::from_utf8_lossy(more).contains("\"vCPUs\":2,\"mem\":\"2Gi\""));
        assert!(String::from_utf8_lossy(back).contains("\"vCPUs\":1,\"mem\":\"1Gi\""));
    }
}
