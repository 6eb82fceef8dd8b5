//! How soon the plugin tells the scheduler which of many nodes fit, beside a bare echo of the same bytes.
//!
//! The plugin follows a cluster of seeded objects, pods of which change all the time. One client asks as
//! the scheduler does, one request after another over one connection: filter, prioritize, echo in turn.

use crate::api_server::{Cluster, node_name};
use crate::cluster_plugin::{Api, ClusterPlugin, Shows};
use crate::cores;
use crate::echo::Echo;
use crate::print;
use crate::wire::{self, Line};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often each has its turn.
pub(crate) const TURNS: usize = 7;
/// Requests of a turn.
const REQUESTS: usize = 200;
const CLUSTER: Cluster = Cluster::large(5_000);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Filter,
    Prioritize,
    Echo,
}

/// The median and the slowest of a hundred, of each turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) p50: Vec<Duration>,
    pub(crate) p99: Vec<Duration>,
}

/// Asks, and prints what came of it.
pub(crate) async fn run() -> Result<()> {
    print::extender_head(CLUSTER.nodes, CLUSTER.pods())?;
    cores::take_any()?;
    let (server, _serving) = CLUSTER.serve().await?;
    let plugin =
        ClusterPlugin::start(cores::server(), &Api::Played(server), Shows::Nothing).await?;
    let ClusterPlugin { mut program, extender, listed, .. } = plugin;
    let echo = Echo::start()?;
    cores::take_second()?;
    for names in [500, CLUSTER.nodes] {
        for (verb, times) in one(names, extender, echo.address).await? {
            print::extender(names, verb, &times)?;
        }
    }
    program.check()?;
    print::extender_memory(listed, program.resident()?, CLUSTER.pods())?;
    cores::take_any()
}

/// One number of names.
async fn one(names: usize, plugin: SocketAddr, echo: SocketAddr) -> Result<[(Verb, Times); 3]> {
    let mut all = [Verb::Filter, Verb::Prioritize, Verb::Echo].map(|verb| (verb, Times::default()));
    let mut lines = (Line::to(plugin).await?, Line::to(echo).await?);
    // The first turn warms up.
    for turn in 0..=TURNS {
        for (verb, times) in &mut all {
            let mut took = Vec::with_capacity(REQUESTS);
            for request in 0..REQUESTS {
                let body = asked(names, turn * REQUESTS + request).to_string();
                let bytes = wire::request("POST", verb.path(), &body);
                let line = if *verb == Verb::Echo { &mut lines.1 } else { &mut lines.0 };
                let from = Instant::now();
                let answer = line.ask(&bytes).await?;
                took.push(from.elapsed());
                verb.check(&answer.body, names)?;
            }
            took.sort_unstable();
            if turn > 0 {
                times.p50.push(took[took.len() / 2]);
                times.p99.push(took[took.len() * 99 / 100]);
            }
        }
    }
    Ok(all)
}

/// A pod and the names of nodes, others at each request.
fn asked(names: usize, request: usize) -> Value {
    let first = request * 37;
    let nodes = (0..names).map(|nth| node_name((first + nth * 7) % CLUSTER.nodes));
    json!({"Pod": CLUSTER.waiting(), "Nodes": null, "NodeNames": nodes.collect::<Vec<_>>()})
}

// === impl Verb ===

impl Verb {
    /// As a table says it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Prioritize => "prioritize",
            Self::Echo => "echo",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Filter => "/filter",
            Self::Prioritize => "/prioritize",
            Self::Echo => "/",
        }
    }

    /// Fails if the answer is not about so many nodes.
    fn check(self, body: &[u8], names: usize) -> Result<()> {
        let of = |value: &Value| value.as_array().map_or(0, Vec::len);
        let told = match self {
            Self::Filter => {
                let answer: Value = serde_json::from_slice(body)?;
                ensure!(answer["Error"] == "", "{}", answer["Error"]);
                let failed = answer["FailedNodes"].as_object().map_or(0, serde_json::Map::len);
                of(&answer["NodeNames"]) + failed
            }
            Self::Prioritize => of(&serde_json::from_slice(body)?),
            Self::Echo => names,
        };
        ensure!(told == names, "{self:?} tells of {told} nodes, and was asked for {names}");
        Ok(())
    }
}
