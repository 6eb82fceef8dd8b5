//! A watch that says too little is noticed, and all is listed anew.

use crate::plane;
use axum::body::{Body as Open, Bytes as Chunk};
use futures_util::future::try_join_all;
use futures_util::stream;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_control_plane::{ControlPlane, Identity, Space};
use windlass_kit::admin::Readiness;
use windlass_kit::clock::Clock;
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::{Followed, Following};
use windlass_plugin_cluster::audit::{self, Auditing};
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::watch;
use windlass_plugin_cluster::{ClusterBooks, Epoch, Leadership};
use windlass_plugin_core::pods::Pools;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Resources};
use windlass_testkit::wait;

#[tokio::test]
async fn a_watch_that_loses_events_is_noticed() {
    Watcher::beside(plane().await, async |watcher| {
        let node = watcher.node().await;
        watcher.is_deaf.store(true, Ordering::SeqCst);
        // From the next list on the watch of pods says nothing.
        watcher.lists_again();
        wait::until_async("its watch is silent", async || watcher.hears_nothing()).await;
        watcher.pod("made", &node).await;
        watcher.until_counts("a pod that the watch did not tell of", &node, 1).await;
        watcher.delete("made").await;
        watcher.until_counts("that the pod is gone", &node, 0).await;
        let metrics = watcher.metrics();
        assert!(metrics.contains(r#"watch_audits_total{of="pods",found="off"}"#), "{metrics}");
        watcher.is_deaf.store(false, Ordering::SeqCst);
    })
    .await;
}

#[tokio::test]
async fn an_api_server_that_went_back_is_noticed() {
    let plane = ControlPlane::start().await;
    plane.apply(std::path::Path::new("../../deploy/kustomize/plugin")).await;
    Watcher::beside(&plane, async |watcher| {
        let node = watcher.node().await;
        watcher.pod("first", &node).await;
        watcher.until_counts("the first pod", &node, 1).await;
        plane.copy_store();
        for name in ["second", "third", "fourth"] {
            watcher.pod(name, &node).await;
        }
        watcher.until_counts("all pods", &node, 4).await;
        plane.go_back().await;
        watcher.until_counts("what the store has again", &node, 1).await;
        watcher.pod("later", &node).await;
        watcher.until_counts("a pod that is made then", &node, 2).await;
    })
    .await;
}

/// Books with their watches and audits.
struct Watcher<'a> {
    space: Space<'a>,
    books: ClusterBooks,
    registry: Registry,
    pods: Followed,
    /// Watches of pods that begin say nothing.
    is_deaf: Arc<AtomicBool>,
    silent: Arc<AtomicBool>,
}

impl<'a> Watcher<'a> {
    async fn beside(plane: &'a ControlPlane, test: impl AsyncFnOnce(&Self)) {
        let (is_deaf, silent) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let client = deaf(plane.client(Identity::Plugin).await, &is_deaf, &silent);
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).unwrap();
        let terms = Terms { unit, reserve: Resources::ZERO, pools: Pools::default() };
        let books = ClusterBooks::new(terms, Clock::system(), Leadership::sole(Epoch(1)));
        let (counts, mut registry) = (Counts::default(), Registry::default());
        counts.register(&books, &mut registry);
        let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
        let following = |of: &'static str, followed: &Followed| Following {
            client: client.clone(),
            watches: counts.watches.clone(),
            readiness: Readiness::default(),
            followed: followed.clone(),
            pulse: watchdog.watch(of),
            stop: stop.clone(),
        };
        let auditing = |of: &'static str, followed: &Followed| Auditing {
            client: client.clone(),
            audits: counts.audits.clone(),
            followed: followed.clone(),
            every: Duration::from_millis(100),
            page: 2,
            pulse: watchdog.watch(of),
            stop: stop.clone(),
        };
        let (nodes, pods) = (Followed::default(), Followed::default());
        let parts: Vec<Pin<Box<dyn Future<Output = _>>>> = vec![
            Box::pin(watch::nodes(books.clone(), following("nodes", &nodes))),
            Box::pin(watch::pods(books.clone(), following("pods", &pods))),
            Box::pin(audit::nodes(books.clone(), auditing("nodes", &nodes))),
            Box::pin(audit::pods(books.clone(), auditing("pods", &pods))),
        ];
        let space = Space::new(plane).await;
        let watcher = Self { space, books, registry, pods, is_deaf, silent };
        let tested = async {
            let rebuilt = async || watcher.books.is_rebuilt();
            wait::until_async("the books are rebuilt", rebuilt).await;
            test(&watcher).await;
        };
        tokio::select! {
            () = tested => {}
            ended = try_join_all(parts) => panic!("a part ended: {ended:?}"),
        }
    }

    async fn node(&self) -> String {
        let node = self.space.node("one", "4", "64Gi").await;
        self.until_counts("the node", &node, 0).await;
        node
    }

    /// A pod that is on the node from its first moment.
    async fn pod(&self, name: &str, node: &str) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "none"}],
            },
        }))
        .unwrap();
        self.space.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.space.pods().delete(name, &now).await.unwrap();
    }

    async fn until_counts(&self, what: &str, node: &str, pods: u64) {
        let counts = async || {
            let dump = serde_json::to_value(self.books.dump()).unwrap();
            let nodes = dump["nodes"].as_array().unwrap();
            nodes.iter().any(|it| it["name"] == node && it["pods"] == pods)
        };
        wait::until_async(what, counts).await;
    }

    fn lists_again(&self) {
        self.pods.list_again();
    }

    fn hears_nothing(&self) -> bool {
        self.silent.load(Ordering::SeqCst)
    }

    fn metrics(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).unwrap();
        page
    }
}

/// A way to the API server on which watches of pods that begin are silent, as long as it is deaf.
fn deaf(client: Client, is_deaf: &Arc<AtomicBool>, silent: &Arc<AtomicBool>) -> Client {
    let (is_deaf, silent) = (is_deaf.clone(), silent.clone());
    let carry = move |request: Request<Body>| {
        let (client, is_deaf, silent) = (client.clone(), is_deaf.clone(), silent.clone());
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let of_pods = request.uri().path().ends_with("/pods");
            if is_watch && of_pods && is_deaf.load(Ordering::SeqCst) {
                silent.store(true, Ordering::SeqCst);
                let nothing = stream::pending::<Result<Chunk, Infallible>>();
                return Ok(Response::new(Open::from_stream(nothing)));
            }
            client.send(request).await.map(|answer| answer.map(Open::new))
        }
    };
    Client::new(tower::service_fn(carry), "default")
}
