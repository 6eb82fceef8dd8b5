//! How many permits a plugin gives per second, beside a bare echo.
//!
//! Some clients ask without a pause, each over a connection of its own, for VMs in turn. On a node
//! with room each VM asks for one compute unit more and gives it back at its next turn, so each
//! request changes the books; on a full node each asks for one more and gets none. The echo gets
//! the same bytes over as many connections. Both are asked in turn, a short while each, so both
//! see the same machine; servers have a core of their own.

use crate::cores;
use crate::echo::Echo;
use crate::plugin::Plugin;
use crate::print;
use crate::program;
use crate::wire::{self, Line, Way};
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
    /// How long the server had a core.
    pub(crate) cpu: Duration,
}

/// Whether VMs can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// All of them.
    Free,
    /// None: each has what it may have, and waits for more.
    Full,
}

/// A pair of requests per VM, which take turns.
pub(crate) type Requests = Arc<Vec<[Vec<u8>; 2]>>;

/// Asks for permits, and prints what came of it.
pub(crate) async fn run() -> Result<()> {
    print::permits_head()?;
    for room in [Room::Free, Room::Full] {
        let mut rates = Vec::new();
        for vms in CROWDS {
            rates.push(one(vms, room).await?);
        }
        let [permits, echo] = [0, 1].map(|server| rates[2][server] / rates[1][server]);
        print::flat(room, permits, echo)?;
    }
    cores::take_any()
}

/// One line; the permits per second in it, and the echoes.
async fn one(vms: usize, room: Room) -> Result<[f64; 2]> {
    // What is started inherits its cores, so this comes between.
    cores::take_any()?;
    let plugin = Plugin::start_on(cores::server(), vms, room)?;
    let echo = Echo::start()?;
    cores::take_second()?;
    let requests = Arc::new(requests(vms, room));
    settle(plugin.permits, vms).await?;
    let (mut permits, mut echoes) = (Asked::default(), Asked::default());
    // The first turn of each warms up.
    for turn in 0..=TURNS {
        for (server, pid, asked) in
            [(plugin.permits, plugin.pid(), &mut permits), (echo.address, echo.pid(), &mut echoes)]
        {
            let before = program::cpu(pid)?;
            let mut came = ask(&Way { address: server, tls: None }, &requests).await?;
            came.cpu = program::cpu(pid)?.saturating_sub(before);
            if turn > 0 {
                asked.add(came);
            }
        }
    }
    print::permits(vms, room, &permits, &echoes, plugin.resident()?)?;
    Ok([permits, echoes].map(|asked| asked.per_second()))
}

// === impl Asked ===

impl Asked {
    fn add(&mut self, mut other: Self) {
        self.times.append(&mut other.times);
        self.spent += other.spent;
        self.cpu += other.cpu;
    }

    /// Answers per second, all clients together.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.spent.as_secs_f64()
    }

    /// Microseconds of a core that the server took for each answer.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.times.len() as f64
    }

    /// The time within which so many of a hundred were answered.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default()
    }
}

// === impl Room ===

impl Room {
    /// Compute units of a node with so many VMs, each of which has one.
    pub(crate) fn units(self, vms: usize) -> usize {
        match self {
            Self::Free => 4096,
            Self::Full => vms,
        }
    }

    /// As a table says it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Full => "full",
        }
    }
}

/// Two requests per VM: one unit more, and back; or one more each time, where there is none. Those
/// of one client are of VMs of its own.
fn requests(vms: usize, room: Room) -> Vec<[Vec<u8>; 2]> {
    // What it was permitted last is what it asked for, or the unit that it has.
    let (next, last) = match room {
        Room::Free => (1, 2),
        Room::Full => (2, 1),
    };
    (0..vms).map(|vm| [request(vm, 2, 1), request(vm, next, last)]).collect()
}

fn request(vm: usize, units: u64, last: u64) -> Vec<u8> {
    let body = format!(
        "{{\"protoVersion\":7,\"pod\":{{\"namespace\":\"default\",\"name\":\"vm{vm}\"}},\
         \"computeUnit\":{{\"vCPUs\":1,\"mem\":\"1Gi\"}},\
         \"resources\":{{\"vCPUs\":{units},\"mem\":\"{units}Gi\"}},\
         \"lastPermit\":{{\"vCPUs\":{last},\"mem\":\"{last}Gi\"}},\"metrics\":{{\"loadAvg1M\":0.5}}}}"
    );
    wire::request("POST", "/", &body)
}

/// The agent of each VM says that it has one unit: until then it counts with its maximum.
async fn settle(plugin: SocketAddr, vms: usize) -> Result<()> {
    let mut line = Line::to(plugin).await?;
    for vm in 0..vms {
        let answer = line.ask(&request(vm, 1, 1)).await?;
        ensure!(answer.status == 200, "{}: vm{vm} has no permit", answer.status);
    }
    Ok(())
}

/// One turn.
pub(crate) async fn ask(way: &Way, requests: &Requests) -> Result<Asked> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS.min(requests.len()) {
        let (way, requests) = (way.clone(), Arc::clone(requests));
        clients.spawn(async move { one_client(&way, client, &requests).await });
    }
    let mut asked = Asked::default();
    while let Some(times) = clients.join_next().await {
        asked.times.append(&mut times??);
    }
    asked.spent = begun.elapsed();
    Ok(asked)
}

async fn one_client(way: &Way, client: usize, requests: &[[Vec<u8>; 2]]) -> Result<Vec<Duration>> {
    let mut line = Line::by(way).await?;
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
        let asked = Asked { times, spent: Duration::from_secs(4), cpu: Duration::from_millis(1) };
        assert_eq!(asked.percentile(50), Duration::from_millis(51));
        assert_eq!(asked.percentile(99), Duration::from_millis(100));
        assert!((asked.per_second() - 25.0).abs() < 1e-9);
        assert!((asked.cpu_each() - 10.0).abs() < 1e-9);
        assert_eq!(Asked::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn a_vm_takes_and_gives_back_or_waits() {
        let holds = |request: &[u8], units: u64| {
            let words = format!("\"resources\":{{\"vCPUs\":{units},\"mem\":\"{units}Gi\"");
            String::from_utf8_lossy(request).contains(&words)
        };
        let [more, back] = &requests(1, Room::Free)[0];
        assert!(holds(more, 2) && holds(back, 1));
        let names = |request: &[u8], units: u64| {
            let words = format!("\"lastPermit\":{{\"vCPUs\":{units},");
            String::from_utf8_lossy(request).contains(&words)
        };
        assert!(names(more, 1) && names(back, 2), "an agent names its last permit");
        assert!(requests(1, Room::Full)[0].iter().all(|request| holds(request, 2)));
        assert_eq!(Room::Full.units(1000), 1000);
    }
}
