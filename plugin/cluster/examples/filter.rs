//! What filter and prioritize take in a large cluster, without a socket and without a machine's noise: the least of
//! many rounds, in nanoseconds for each name of a request.
//!
//!     cargo run --release -p windlass-plugin-cluster --example filter
//!
//! `make bench` asks the program itself, over its socket and while pods change. This says where its time goes.

#![expect(clippy::unwrap_used, reason = "a measurement fails with what went wrong")]

use axum::body::Bytes as Body;
use http::Request;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::time::{Duration, Instant};
use windlass_kit::clock::Clock;
use windlass_kit::server::{OpenSince, Service};
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::{Binder, ClusterBooks, Epoch, Extender, Leadership};
use windlass_plugin_core::pods::Pools;
use windlass_protocol::extender::ExtenderArgs;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Resources};

const NODES: usize = 5_000;
const PODS_OF_A_NODE: usize = 30;
const ROUNDS: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (extender, books) = extender();
    let mut out = stdout();
    for (names, vcpus) in [(500, 1), (500, 40), (5_000, 1), (5_000, 40)] {
        let args = asked(names, vcpus).to_string();
        let decoded: ExtenderArgs = serde_json::from_str(&args).unwrap();
        let fit = books.filter(&decoded.pod, &decoded.nodes).fit.len();
        writeln!(out, "{names} names, of which {fit} fit").unwrap();
        let body = Body::from(args.clone());
        for path in ["/filter", "/prioritize"] {
            let mut least = Duration::MAX;
            for _ in 0..ROUNDS {
                let request = Request::post(path).body(body.clone()).unwrap();
                let begun = Instant::now();
                let answer = extender.answer(request, OpenSince::now()).await;
                least = least.min(begun.elapsed());
                assert_eq!(answer.status(), 200);
            }
            say(&mut out, path, least, names);
        }
        let read = || serde_json::from_str::<ExtenderArgs>(&args).unwrap();
        say(&mut out, "the request is read", least_of(read), names);
        let filter = || books.filter(&decoded.pod, &decoded.nodes);
        say(&mut out, "filter in the books", least_of(filter), names);
        let prioritize = || books.prioritize(&decoded.pod, decoded.nodes.clone());
        say(&mut out, "prioritize in the books", least_of(prioritize), names);
    }
}

fn least_of<T>(act: impl Fn() -> T) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        let done = act();
        let took = begun.elapsed();
        drop(done);
        took
    };
    (0..ROUNDS).map(once).min().unwrap()
}

fn say(out: &mut impl Write, what: &str, took: Duration, names: usize) {
    let each = took.as_nanos() / names as u128;
    writeln!(out, "  {what:24} {:>8} us {each:>6} ns each", took.as_micros()).unwrap();
}

/// An extender whose books have every node and pod, and that reaches no API server.
fn extender() -> (Extender, ClusterBooks) {
    let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).unwrap();
    let terms = Terms { unit, reserve: Resources::ZERO, pools: Pools::default() };
    let books = ClusterBooks::new(terms, Clock::system(), Leadership::sole(Epoch(1)));
    let nodes = (0..NODES).map(|index| serde_json::from_value(node(index)).unwrap());
    books.nodes_listed(nodes.collect());
    let pods = (0..NODES * PODS_OF_A_NODE).map(|index| serde_json::from_value(pod(index)).unwrap());
    books.pods_listed(pods.collect());
    let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
    let counts = Counts::default();
    let binder = Binder::new(client, books.clone(), counts.bindings.clone());
    (Extender::new(books.clone(), binder, counts.calls.clone()), books)
}

fn name_of_node(index: usize) -> String {
    format!("node-{index:05}.eu-central-1.compute.internal")
}

fn node(index: usize) -> Value {
    let size = json!({"cpu": "64", "memory": "256Gi"});
    json!({"metadata": {"name": name_of_node(index)}, "status": {"allocatable": size}})
}

/// Half of the nodes have much room left, and half have little.
fn pod(index: usize) -> Value {
    let (node, place) = (index / PODS_OF_A_NODE, index % PODS_OF_A_NODE);
    let labels = if place < 8 { json!({"windlass.dev/enabled": "true"}) } else { json!({}) };
    let cpu = if node.is_multiple_of(2) { "500m" } else { "2" };
    let requests = json!({"cpu": cpu, "memory": "1Gi"});
    json!({
        "metadata": {
            "namespace": format!("team-{:03}", index % 200), "name": format!("workload-{index:06}"),
            "uid": format!("uid-{index}"), "resourceVersion": "1", "labels": labels,
        },
        "spec": {
            "nodeName": name_of_node(node),
            "containers": [{"name": "vm", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    })
}

/// A pod that waits for this many vCPUs, and the names of nodes.
fn asked(names: usize, vcpus: usize) -> Value {
    let nodes = (0..names).map(|nth| name_of_node(nth * 7 % NODES));
    json!({
        "Pod": {
            "metadata": {
                "namespace": "team", "name": "waiting", "uid": "waiting", "resourceVersion": "1",
                "labels": {"windlass.dev/enabled": "true"},
            },
            "spec": {"containers": [
                {"name": "vm", "resources": {"requests": {"cpu": vcpus.to_string(), "memory": "4Gi"}}},
            ]},
            "status": {"phase": "Pending"},
        },
        "Nodes": null, "NodeNames": nodes.collect::<Vec<_>>(),
    })
}
