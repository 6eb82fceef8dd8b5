//! Labels the pod of the plugin that leads, so that a Service selects it alone.
//!
//! Each plugin labels its own pod while it answers, and takes the label away when it does not. One that was killed or hangs cannot:
//! the next leader takes the label from every other pod of its namespace first.

use crate::books::ClusterBooks;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::connect::within;
use windlass_kit_kubernetes::objects::PodObject;
use windlass_protocol::timing::API_SERVER_ANSWERS;

/// Between two looks at whether the plugin answers.
const EVERY: Duration = Duration::from_millis(250);

/// The label is written again after this.
const SHOWN_FOR: Duration = Duration::from_secs(30);

/// The pod that the plugin runs in, and what it is labelled with.
pub struct OwnPod {
    /// How the API server is reached.
    pub client: Client,
    /// The pod's namespace, which has the pods of all plugins.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The label of the leader's pod, and its value.
    pub label: (String, String),
}

/// Keeps the label until told to stop.
///
/// # Errors
/// None.
pub async fn run(
    own: OwnPod,
    books: ClusterBooks,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    // What the pod shows, and until when that is believed: a person may change labels.
    let (mut shown, mut has_failed) = (None::<(bool, Instant)>, false);
    while pulse.rest("the next look at whether the plugin leads", EVERY, &stop).await {
        let leads = books.serves().is_ok();
        if shown.is_some_and(|(shows, until)| shows == leads && Instant::now() < until) {
            continue;
        }
        // A request whose answer is lost may have changed it.
        shown = None;
        pulse.turn("the API server, for the label of the leader's pod");
        match within(API_SERVER_ANSWERS, own.show(leads)).await {
            Ok(()) => (shown, has_failed) = (Some((leads, Instant::now() + SHOWN_FOR)), false),
            Err(failed) => {
                if !std::mem::replace(&mut has_failed, true) {
                    warn!(
                        pod = own.name,
                        why = %failed, "the leader's pod is not labelled; it is tried again"
                    );
                }
            }
        }
    }
    Ok(())
}

// === impl OwnPod ===

impl OwnPod {
    async fn show(&self, leads: bool) -> kube::Result<()> {
        let Self { client, namespace, name, label: (key, value) } = self;
        let pods: Api<PodObject> = Api::namespaced(client.clone(), namespace);
        let put = async |pod: &str, value: Option<&str>| {
            let patch = json!({ "metadata": { "labels": { key: value } } });
            let params = PatchParams::default();
            pods.patch_metadata(pod, &params, &Patch::Merge(&patch)).await.map(drop)
        };
        if !leads {
            return put(name, None).await;
        }
        let labelled = ListParams::default().labels(&format!("{key}={value}"));
        for pod in pods.list_metadata(&labelled).await? {
            if let Some(other) = pod.meta().name.as_ref().filter(|other| *other != name) {
                put(other, None).await?;
            }
        }
        put(name, Some(value)).await
    }
}
