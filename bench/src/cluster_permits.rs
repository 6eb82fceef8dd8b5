//! How many permits a plugin gives per second in a cluster, beside a bare echo, with TLS and without.
//!
//! With TLS the plugin knows who asks: the agent of each node shows its token, which the API server was asked about, and
//! asks for the VMs of its node alone. Clients ask as those of `permits` do. Each VM asks for one compute unit more and gives it back at
//! its next turn, within the ceiling that is recorded of it, so no request waits for a write.

use crate::api_server::{Cluster, pod_name, token};
use crate::cluster_plugin::{Api, ClusterPlugin, Shows};
use crate::cores;
use crate::echo::Echo;
use crate::permits::{CLIENTS, Requests, TURNS, ask};
use crate::print;
use crate::program;
use crate::summary::Spread;
use crate::tls::Files;
use crate::wire::{self, Line, Way};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

pub(crate) const VMS: usize = 1_000;
/// Memory is compared with that of so many.
pub(crate) const MANY: usize = 10_000;
/// As often an agent asks again whose answer waits for the API server.
const TRIES: usize = 100;

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Over TLS; the plugin knows who asks.
    Tls,
    /// The plugin answers whoever asks.
    Plain,
}

/// Of each turn, what came of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Answers per second.
    pub(crate) rates: Vec<f64>,
    /// Microseconds of a core for each answer.
    pub(crate) cpu: Vec<f64>,
}

/// Asks for permits, and prints what came of it.
pub(crate) async fn run() -> Result<()> {
    print::cluster_permits_head()?;
    cores::take_any()?;
    let files = Files::create()?;
    let cluster = Cluster::of_vms(VMS);
    let (server, _serving) = cluster.serve().await?;
    let plugin =
        ClusterPlugin::start(cores::server(), &Api::Played(server), Shows::Files(&files)).await?;
    let echoes = [Echo::start_with(Some(&files))?, Echo::start()?];
    cores::take_second()?;
    settle(&plugin, cluster).await?;
    let tls = Some(files.connector.clone());
    let permits = plugin.permits.context("no permits over TLS")?;
    let ways = [(By::Tls, permits, tls), (By::Plain, plugin.plain_permits, None)];
    let (mut came, requests) = (<[[Turns; 2]; 2]>::default(), requests(cluster));
    // The first turn of each warms up.
    for turn in 0..=TURNS {
        for ((came, (by, permits, tls)), echo) in came.iter_mut().zip(&ways).zip(&echoes) {
            let servers = [(*permits, plugin.program.pid()), (echo.address, echo.pid())];
            for (came, (address, pid)) in came.iter_mut().zip(servers) {
                let way = Way { address, tls: tls.clone() };
                let before = program::cpu(pid)?;
                let mut asked = ask(&way, &requests).await.with_context(|| format!("{by:?}"))?;
                asked.cpu = program::cpu(pid)?.saturating_sub(before);
                if turn > 0 {
                    came.rates.push(asked.per_second());
                    came.cpu.push(asked.cpu_each());
                }
            }
        }
    }
    for ([permits, echo], (by, ..)) in came.iter().zip(&ways) {
        print::cluster_permits(*by, permits, echo)?;
    }
    let few = plugin.program.resident()?;
    drop(plugin);
    print::memory_of_vms(few, many().await?)?;
    cores::take_any()
}

/// The memory of a plugin with many VMs, each of whose agents has asked.
async fn many() -> Result<crate::sizes::Resident> {
    cores::take_any()?;
    let cluster = Cluster::of_vms(MANY);
    let (server, _serving) = cluster.serve().await?;
    let plugin =
        ClusterPlugin::start(cores::server(), &Api::Played(server), Shows::Nothing).await?;
    cores::take_second()?;
    settle(&plugin, cluster).await?;
    plugin.program.resident()
}

// === impl Turns ===

impl Turns {
    /// Of both figures.
    pub(crate) fn spreads(&self) -> Option<[Spread; 2]> {
        Some([Spread::of(self.rates.clone())?, Spread::of(self.cpu.clone())?])
    }
}

/// Two requests per VM: one unit more, and back. Whoever answers without looking at tokens gets them too.
fn requests(cluster: Cluster) -> Requests {
    Arc::new(
        (0..cluster.pods()).map(|vm| [2, 1].map(|units| request(cluster, vm, units))).collect(),
    )
}

fn request(cluster: Cluster, vm: usize, units: u64) -> Vec<u8> {
    let (namespace, name) = pod_name(vm);
    let body = format!(
        "{{\"protoVersion\":7,\"pod\":{{\"namespace\":\"{namespace}\",\"name\":\"{name}\"}},\
         \"computeUnit\":{{\"vCPUs\":1,\"mem\":\"1Gi\"}},\
         \"resources\":{{\"vCPUs\":{units},\"mem\":\"{units}Gi\"}},\
         \"lastPermit\":{{\"vCPUs\":1,\"mem\":\"1Gi\"}},\"metrics\":{{\"loadAvg1M\":0.5}}}}"
    );
    let token = format!("authorization: Bearer {}\r\n", token(cluster.node_of(vm)));
    wire::request_with("POST", "/", &token, &body)
}

/// The agent of each VM says what it has, and grows once, so that a ceiling is recorded.
async fn settle(plugin: &ClusterPlugin, cluster: Cluster) -> Result<()> {
    let (mut agents, address) = (JoinSet::new(), plugin.plain_permits);
    for first in 0..CLIENTS * CLIENTS {
        agents.spawn(async move {
            let mut line = Line::to(address).await?;
            for vm in (first..cluster.pods()).step_by(CLIENTS * CLIENTS) {
                for units in [1, 2, 1] {
                    permitted(&mut line, &request(cluster, vm, units), units).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(settled) = agents.join_next().await {
        settled??;
    }
    Ok(())
}

/// An agent that is refused in passing, or told less than it wants until a ceiling is recorded, asks again.
async fn permitted(line: &mut Line, request: &[u8], units: u64) -> Result<()> {
    let mut said = String::new();
    for _ in 0..TRIES {
        let answer = line.ask(request).await?;
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status == 200 && told["permit"]["vCPUs"] == units {
            return Ok(());
        }
        said = format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("a VM has no permit for {units} vCPUs: {said}")
}
