//! What an API server says of a cluster, as far as the plugin reads it: seeded nodes and pods, in pages, and then
//! events of pods at a steady pace.
//!
//! It keeps of each pod its revision, and its ceiling once that is written: each object is made when it is asked for. It
//! takes every write for done.

mod objects;

pub(crate) use objects::{node_name, pod_name, token};

use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Events come in bursts of this long.
const BEAT: Duration = Duration::from_millis(10);
const EVENTS_OF_A_BEAT: u64 = 10;
/// Per second.
pub(crate) const EVENTS: u64 = 1_000 / 10 * EVENTS_OF_A_BEAT;
/// The revision of everything at first.
const FIRST: u64 = 1_000;
/// Writes that the watch may be behind.
const WRITES: usize = 1 << 14;

/// A cluster of so many nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: usize,
    pods_of_a_node: usize,
    /// The first of them are VMs.
    vms_of_a_node: usize,
    /// Whether pods change all the time.
    changes: bool,
}

#[derive(Clone)]
struct Served {
    cluster: Cluster,
    /// The last of anything.
    revision: Arc<AtomicU64>,
    /// By pod.
    revisions: Arc<Vec<AtomicU64>>,
    ceilings: Arc<Mutex<BTreeMap<usize, String>>>,
    /// Events of pods that were written.
    written: broadcast::Sender<String>,
}

/// A watch of pods.
struct Watch {
    served: Served,
    written: broadcast::Receiver<String>,
    beats: Option<Interval>,
}

type Asked = BTreeMap<String, String>;

// === impl Cluster ===

impl Cluster {
    /// Nodes with many pods, of which few are VMs. They change all the time.
    pub(crate) const fn large(nodes: usize) -> Self {
        Self { nodes, pods_of_a_node: 30, vms_of_a_node: 8, changes: true }
    }

    /// Nodes with VMs alone, eight each. Nothing changes but what is written.
    pub(crate) const fn of_vms(vms: usize) -> Self {
        let each = 8;
        Self {
            nodes: vms.div_ceil(each),
            pods_of_a_node: each,
            vms_of_a_node: each,
            changes: false,
        }
    }

    /// How many pods there are.
    pub(crate) const fn pods(self) -> usize {
        self.nodes * self.pods_of_a_node
    }

    /// The node of a pod.
    pub(crate) const fn node_of(self, pod: usize) -> usize {
        pod / self.pods_of_a_node
    }

    /// Serves for as long as what is returned lives; where it listens.
    pub(crate) async fn serve(self) -> Result<(SocketAddr, JoinSet<()>)> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let served = Served {
            cluster: self,
            revision: Arc::new(AtomicU64::new(FIRST)),
            revisions: Arc::new((0..self.pods()).map(|_| AtomicU64::new(FIRST)).collect()),
            ceilings: Arc::default(),
            written: broadcast::channel(WRITES).0,
        };
        let review = |Json(asked): Json<Value>| async move { Json(objects::review(&asked)) };
        let router = Router::new()
            .route("/api/v1/nodes", get(nodes))
            .route("/api/v1/pods", get(pods))
            .route("/api/v1/namespaces/{namespace}/pods/{name}", get(read).patch(write))
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(review))
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

async fn nodes(
    State(served): State<Served>,
    Query(asked): Query<Asked>,
    head: HeaderMap,
) -> Response {
    if asked.contains_key("watch") {
        // Nodes do not change.
        return Body::from_stream(stream::pending::<Result<String, Infallible>>()).into_response();
    }
    let (cluster, whole) = (served.cluster, is_whole(&head));
    served.page("NodeList", cluster.nodes, &asked, |index| cluster.node(index, whole))
}

async fn pods(
    State(served): State<Served>,
    Query(asked): Query<Asked>,
    head: HeaderMap,
) -> Response {
    let (cluster, whole) = (served.cluster, is_whole(&head));
    if !asked.contains_key("watch") {
        return served.page("PodList", cluster.pods(), &asked, |index| served.pod(index, whole));
    }
    let beats = cluster.changes.then(|| {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Burst);
        beats
    });
    let watch = Watch { written: served.written.subscribe(), served, beats };
    let lines = stream::unfold(watch, |mut watch| async move {
        Some((Ok::<_, Infallible>(watch.next().await), watch))
    });
    Body::from_stream(lines).into_response()
}

/// One pod.
async fn read(
    State(served): State<Served>,
    Path((_, name)): Path<(String, String)>,
    head: HeaderMap,
) -> Response {
    let index = objects::index_of(&name).unwrap_or_default();
    let pod = served.pod(index, is_whole(&head));
    ([("content-type", "application/json")], pod).into_response()
}

/// Takes a ceiling of a VM for written, as a JSON patch or as a merge patch, and shows the pod with it.
async fn write(
    State(served): State<Served>,
    Path((_, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let ceiling = match said.as_array().and_then(|steps| steps.last()) {
        Some(step) => &step["value"],
        None => &said["metadata"]["annotations"]["windlass.dev/ceiling"],
    };
    let index = objects::index_of(&name).unwrap_or_default();
    if let Some(ceiling) = ceiling.as_str() {
        served.ceilings().insert(index, ceiling.to_owned());
    }
    let pod = served.changed(index);
    // Without a watch no peer is behind.
    let _watches = served.written.send(event(&pod));
    ([("content-type", "application/json")], pod).into_response()
}

// === impl Served ===

impl Served {
    /// A pod, with a revision that it has from here on.
    fn changed(&self, index: usize) -> String {
        let now = self.revision.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(revision) = self.revisions.get(index) {
            revision.store(now, Ordering::Relaxed);
        }
        self.pod(index, true)
    }

    /// A pod; `whole`: not its metadata alone.
    fn pod(&self, index: usize, whole: bool) -> String {
        let revision = self.revisions.get(index);
        let revision = revision.map_or(FIRST, |revision| revision.load(Ordering::Relaxed));
        let ceiling = self.ceilings().get(&index).cloned();
        self.cluster.pod(index, revision, ceiling.as_deref(), whole)
    }

    fn ceilings(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        self.ceilings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of a list, which goes on where the last one ended.
    fn page(
        &self,
        kind: &str,
        many: usize,
        asked: &Asked,
        object: impl Fn(usize) -> String,
    ) -> Response {
        let number = |key: &str| asked.get(key).and_then(|text| text.parse().ok());
        let from: usize = number("continue").unwrap_or(0);
        let to = many.min(from.saturating_add(number("limit").unwrap_or(many)));
        let next = if to < many { to.to_string() } else { String::new() };
        let revision = self.revision.load(Ordering::Relaxed).to_string();
        let items: Vec<String> = (from..to).map(object).collect();
        let meta = json!({
            "resourceVersion": revision, "continue": next, "remainingItemCount": many - to,
        });
        let list = format!(
            r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{meta},"items":[{}]}}"#,
            items.join(",")
        );
        ([("content-type", "application/json")], list).into_response()
    }
}

// === impl Watch ===

impl Watch {
    /// What the watch tells next.
    async fn next(&mut self) -> String {
        let Self { served, written, beats } = self;
        let beat = async {
            match beats {
                Some(beats) => drop(beats.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = written.recv() => line.unwrap_or_default(),
            () = beat => {
                let many = served.cluster.pods() as u64;
                let line = |_| {
                    // A stride that meets all pods.
                    let now = served.revision.load(Ordering::Relaxed).wrapping_mul(7_919);
                    event(&served.changed(usize::try_from(now % many).unwrap_or_default()))
                };
                (0..EVENTS_OF_A_BEAT).map(line).collect()
            }
        }
    }
}

fn event(pod: &str) -> String {
    format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n")
}

/// Whether objects are asked for, and not their metadata alone.
fn is_whole(head: &HeaderMap) -> bool {
    let accepts = head.get("accept").and_then(|accepts| accepts.to_str().ok());
    !accepts.is_some_and(|accepts| accepts.contains("PartialObjectMetadata"))
}
