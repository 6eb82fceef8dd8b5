//! An extender that does as little as one can: every node fits and none is better, and a pod is bound by one request to the
//! API server.

use anyhow::Result;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::task::JoinSet;

/// A running extender. It ends with this value.
pub(super) struct Trivial {
    pub(super) address: SocketAddr,
    _serving: JoinSet<()>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Candidates {
    node_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Binding {
    pod_name: String,
    pod_namespace: String,
    #[serde(rename = "PodUID")]
    pod_uid: String,
    node: String,
}

// === impl Trivial ===

impl Trivial {
    /// Binds through this client.
    pub(super) async fn start(client: Client) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/filter", post(filter))
            .route("/prioritize", post(prioritize))
            .route("/bind", post(bind))
            .with_state(client);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // It ends with its task alone.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { address, _serving: serving })
    }
}

async fn filter(Json(asked): Json<Candidates>) -> Json<Value> {
    Json(json!({"NodeNames": asked.node_names, "FailedNodes": {}, "Error": ""}))
}

async fn prioritize(Json(asked): Json<Candidates>) -> Json<Value> {
    let score = |host: String| json!({"Host": host, "Score": 0});
    Json(asked.node_names.into_iter().map(score).collect())
}

async fn bind(State(client): State<Client>, Json(asked): Json<Binding>) -> Json<Value> {
    let bound = try_bind(&client, &asked).await;
    Json(json!({"Error": bound.err().map(|why| why.to_string()).unwrap_or_default()}))
}

async fn try_bind(client: &Client, asked: &Binding) -> Result<()> {
    let Binding { pod_name: name, pod_namespace: namespace, pod_uid: uid, node } = asked;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(&binding)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}
