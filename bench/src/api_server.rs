//! What an API server says of a large cluster, as far as the plugin reads it: seeded nodes and pods, in pages, and then
//! events of pods at a steady pace.
//!
//! It keeps nothing: each object is made when it is asked for. It takes every write for done.

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Each node has so many pods, the first of which are VMs.
pub(crate) const PODS_OF_A_NODE: usize = 30;
const VMS_OF_A_NODE: usize = 8;
/// Events come in bursts of this long.
const BEAT: Duration = Duration::from_millis(10);
const EVENTS_OF_A_BEAT: u64 = 10;
/// Per second.
pub(crate) const EVENTS: u64 = 1_000 / 10 * EVENTS_OF_A_BEAT;

/// A cluster of so many nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: usize,
}

#[derive(Clone)]
struct Served {
    cluster: Cluster,
    revision: Arc<AtomicU64>,
}

type Asked = BTreeMap<String, String>;

// === impl Cluster ===

impl Cluster {
    /// How many pods there are.
    pub(crate) const fn pods(self) -> usize {
        self.nodes * PODS_OF_A_NODE
    }

    /// Serves for as long as what is returned lives; where it listens.
    pub(crate) async fn serve(self) -> Result<(SocketAddr, JoinSet<()>)> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let served = Served { cluster: self, revision: Arc::new(AtomicU64::new(1_000)) };
        let router = Router::new()
            .route("/api/v1/nodes", get(nodes))
            .route("/api/v1/pods", get(pods))
            .fallback(
                |uri: Uri| async move { format!("{{\"kind\":\"Status\",\"path\":\"{uri}\"}}") },
            )
            .with_state(served);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with its task alone.
            let _ended = axum::serve(listener, router).await;
        });
        Ok((address, tasks))
    }
}

async fn nodes(State(served): State<Served>, Query(asked): Query<Asked>) -> Response {
    if asked.contains_key("watch") {
        // Nodes do not change.
        return Body::from_stream(stream::pending::<Result<String, Infallible>>()).into_response();
    }
    page("NodeList", served.cluster.nodes, &asked, node)
}

async fn pods(State(served): State<Served>, Query(asked): Query<Asked>) -> Response {
    if !asked.contains_key("watch") {
        return page("PodList", served.cluster.pods(), &asked, |index| pod(index, 1_000));
    }
    let many = served.cluster.pods() as u64;
    let beats = stream::unfold(served.revision, move |revision| async move {
        tokio::time::sleep(BEAT).await;
        let mut lines = String::new();
        for _ in 0..EVENTS_OF_A_BEAT {
            let now = revision.fetch_add(1, Ordering::Relaxed) + 1;
            // A stride that meets all pods.
            let index = usize::try_from(now.wrapping_mul(7_919) % many).unwrap_or_default();
            lines.push_str(&json!({"type": "MODIFIED", "object": pod(index, now)}).to_string());
            lines.push('\n');
        }
        Some((Ok::<_, Infallible>(lines), revision))
    });
    Body::from_stream(beats).into_response()
}

/// A page of a list, which goes on where the last one ended.
fn page(kind: &str, many: usize, asked: &Asked, object: impl Fn(usize) -> Value) -> Response {
    let number = |key: &str| asked.get(key).and_then(|text| text.parse().ok());
    let from: usize = number("continue").unwrap_or(0);
    let to = many.min(from.saturating_add(number("limit").unwrap_or(many)));
    let next = if to < many { to.to_string() } else { String::new() };
    let items: Vec<Value> = (from..to).map(object).collect();
    let meta = json!({"resourceVersion": "1000", "continue": next});
    let list = json!({"kind": kind, "apiVersion": "v1", "metadata": meta, "items": items});
    ([("content-type", "application/json")], list.to_string()).into_response()
}

/// The name of a node.
pub(crate) fn node_name(index: usize) -> String {
    format!("node-{index:05}.eu-central-1.compute.internal")
}

fn node(index: usize) -> Value {
    let name = node_name(index);
    let size = json!({
        "cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "900Gi",
    });
    json!({
        "metadata": {
            "name": name, "uid": format!("node-uid-{index}"), "resourceVersion": "900",
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": format!("eu-central-1{}", ["a", "b", "c"][index % 3]),
                "node.kubernetes.io/instance-type": "m7i.16xlarge",
            },
        },
        "spec": {"providerID": format!("aws:///{index}")},
        "status": {"capacity": size, "allocatable": size},
    })
}

fn pod(index: usize, revision: u64) -> Value {
    let (node, place) = (index / PODS_OF_A_NODE, index % PODS_OF_A_NODE);
    let is_vm = place < VMS_OF_A_NODE;
    let units = 1 + (index * 31) % 4;
    let requests = json!({"cpu": format!("{}m", units * 500), "memory": format!("{units}Gi")});
    let bounds = r#"{"min":{"cpu":1,"mem":"1Gi"},"max":{"cpu":8,"mem":"32Gi"}}"#;
    let (labels, annotations) = if is_vm {
        let bounds = json!({"windlass.dev/bounds": bounds});
        (json!({"windlass.dev/enabled": "true", "app": "database"}), bounds)
    } else {
        let sum = json!({"checksum/config": "0f343b0931126a20f133d67c2b018a3b1c6c2f1d4b2c0a7e"});
        (json!({"app": "web", "pod-template-hash": "5d59d67564"}), sum)
    };
    json!({
        "metadata": {
            "name": format!("workload-{index:06}-5d59d67564-x7k2p"), "namespace": format!("team-{:03}", index % 200),
            "uid": format!("9f0f6c1e-2f0b-4f3b-9c55-{index:012x}"), "resourceVersion": revision.to_string(),
            "labels": labels, "annotations": annotations,
        },
        "spec": {
            "nodeName": node_name(node), "schedulerName": "windlass-scheduler",
            "containers": [{
                "name": "main", "image": "registry.example.com/team/workload:1.2.3",
                "resources": {"requests": requests, "limits": requests},
                "env": [{"name": "MODE", "value": "production"}], "ports": [{"containerPort": 8080}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Running", "podIP": format!("10.{}.{}.{place}", node / 250, node % 250), "qosClass": "Guaranteed",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "state": {"running": {}}}],
        },
    })
}

/// A VM pod that waits for a place, as the scheduler sends it.
pub(crate) fn waiting() -> Value {
    let mut pod = pod(0, 2_000);
    pod["metadata"]["name"] = "waiting".into();
    pod["metadata"]["uid"] = "waiting".into();
    pod["spec"]["nodeName"] = Value::Null;
    pod["status"] = json!({"phase": "Pending"});
    pod
}
