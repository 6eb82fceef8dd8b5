//! The informant of a VM that is not there: it resumes each agent at once and agrees to all.

use super::{MIB, Machine, lock};
use crate::wire::{self, Line};
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::{delete, get, post, put};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Memory in use, whatever there is: load alone decides about sizes.
const IN_USE: u64 = 256 * MIB;

/// Agents that registered and were not resumed yet.
const WAITING: usize = 8;

#[derive(Clone)]
struct Shared {
    machine: Arc<Mutex<Machine>>,
    registered: mpsc::Sender<Value>,
    port: u16,
}

/// Binds now; serves what an agent asks, and resumes it.
pub(super) async fn serve(
    address: SocketAddr,
    machine: Arc<Mutex<Machine>>,
) -> Result<impl Future<Output = Result<()>> + Send + 'static> {
    let listener = TcpListener::bind(address).await.with_context(|| address.to_string())?;
    let (registered, mut agents) = mpsc::channel(WAITING);
    let resumed_machine = Arc::clone(&machine);
    let shared = Shared { machine, registered, port: address.port() };
    let router = Router::new()
        .route("/register", post(register))
        .route("/unregister", delete(|| async { "{\"wasActive\":true}" }))
        .route("/health-check", put(|| async { "{}" }))
        .route("/downscale", put(downscale))
        .route("/upscale", put(upscale))
        .route("/metrics", get(metrics))
        .with_state(shared);
    let resume = async move {
        while let Some(agent) = agents.recv().await {
            // An agent that does not take it registers again.
            let resumed = resume(&agent).await;
            lock(&resumed_machine).resumed |= resumed.is_ok_and(|status| status == 200);
        }
    };
    Ok(async move {
        tokio::select! {
            served = axum::serve(listener, router) => Ok(served?),
            () = resume => Ok(()),
        }
    })
}

async fn register(State(shared): State<Shared>, body: Bytes) -> String {
    let agent: Value = serde_json::from_slice(&body).unwrap_or_default();
    lock(&shared.machine).registered += 1;
    let version = agent["maxProtoVersion"].clone();
    // One that finds no place registers again.
    let _queued = shared.registered.try_send(agent);
    json!({"protoVersion": version, "metricsMethod": {"prometheus": {"port": shared.port}}})
        .to_string()
}

/// An agent takes this early, too. Its status.
async fn resume(agent: &Value) -> Result<u16> {
    let address = agent["agentServeAddr"].as_str().context("no address")?.parse()?;
    let body = json!({"expectedID": agent["agentID"]}).to_string();
    let answer = Line::to(address).await?.ask(&wire::request("POST", "/resume", &body)).await?;
    Ok(answer.status)
}

async fn downscale(State(shared): State<Shared>, body: Bytes) -> &'static str {
    allow(&shared, &body);
    "{\"Ok\":true,\"Status\":\"as asked\"}"
}

async fn upscale(State(shared): State<Shared>, body: Bytes) -> &'static str {
    allow(&shared, &body);
    "{}"
}

fn allow(shared: &Shared, body: &[u8]) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let cpu = message["data"]["cpu"].as_str().and_then(|cpu| cpu.parse().ok());
    if let Some(cpu) = cpu {
        lock(&shared.machine).allowed = cpu;
    }
}

async fn metrics(State(shared): State<Shared>) -> String {
    let machine = lock(&shared.machine).clone();
    let (load, online, total) = (machine.load(), machine.online(), machine.memory());
    let mut text = String::new();
    for (name, figure) in [
        ("host_load1", load),
        ("host_load5", load),
        ("windlass_load{window=\"5s\"}", load),
        ("windlass_load{window=\"15s\"}", load),
    ] {
        let _written = writeln!(text, "{name} {figure}");
    }
    for (name, figure) in [
        ("windlass_cpus_online", online),
        ("windlass_cpus_reach", online),
        ("windlass_cpus_present", machine.plugged),
        ("windlass_memory_total_bytes", total),
        ("windlass_memory_available_bytes", total - IN_USE),
    ] {
        let _written = writeln!(text, "{name} {figure}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Work;
    use super::*;

    #[tokio::test]
    async fn a_guest_uses_what_it_was_told_of() {
        let (registered, _agents) = mpsc::channel(1);
        let machine = Arc::new(Mutex::new(Machine::new(Work::Said(true))));
        lock(&machine).plugged = 4;
        let shared = Shared { machine, registered, port: 1 };
        let body = Bytes::from_static(b"{\"data\":{\"cpu\":\"3\",\"memory\":\"3Gi\"}}");
        upscale(State(shared.clone()), body).await;
        assert!(metrics(State(shared)).await.contains("windlass_cpus_online 3\n"));
    }
}
