//! Writes the condition of each VM on its pod, and an event on its object when the reason changes.
//!
//! [`Pacing`] says what is written. The condition is on the pod, whatever the VM's object is: the status of a VirtualMachine is
//! replaced as a whole by its controller, while a kubelet leaves a condition that is not its own where it is. The event is on the VM's object,
//! where `kubectl describe` shows it. Writes are bounded in number and time; what fails is counted, logged once, and made again.

use crate::books::ClusterBooks;
use crate::metrics::ConditionWrites;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_kit_kubernetes::objects::PodObject;
use windlass_plugin_core::conditions::{Due, Pacing};
use windlass_protocol::vm_view::CONDITION;
use windlass_protocol::{Moment, VmName};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// VMs of which is written per look, at most.
const AT_ONCE: usize = 20;
/// Who says it.
const COMPONENT: &str = "windlass-plugin";
/// The longest message of an event.
const LONGEST: usize = 1000;

/// What the writer of conditions needs.
pub struct Conditions {
    /// How the API server is reached.
    pub client: Client,
    /// Whether anything is written.
    pub are_written: bool,
    /// Its writes are counted there.
    pub counts: ConditionWrites,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Keeps the conditions of VMs until told to stop.
///
/// # Errors
/// None.
pub async fn run(books: ClusterBooks, conditions: Conditions) -> Result<(), Infallible> {
    let (mut pacing, mut is_failing) = (Pacing::default(), false);
    while conditions.pulse.rest("the conditions of VMs", EVERY, &conditions.stop).await {
        books.greet();
        let looks = match conditions.are_written {
            true => books.looks(),
            // From the first look on silence counts, for whoever asks.
            false => books.listening_since().map(|_| Vec::new()),
        };
        let Ok(looks) = looks else {
            pacing = Pacing::default();
            continue;
        };
        let due = pacing.due(books.now(), looks, AT_ONCE);
        if due.is_empty() {
            continue;
        }
        conditions.pulse.turn("the API server, for conditions of VMs");
        let written = join_all(due.iter().map(|due| conditions.write(&books, due))).await;
        let failed = due.iter().zip(written).find_map(|(due, said)| Some((due, said.err()?)));
        match (failed, is_failing) {
            (Some((Due { look, .. }, why)), false) => {
                is_failing = true;
                warn!(vm = %look.pod, why, "the condition of a VM is not written; it is tried again");
            }
            (None, true) => {
                is_failing = false;
                info!("conditions of VMs are written again");
            }
            (Some(_), true) | (None, false) => {}
        }
    }
    Ok(())
}

// === impl Conditions ===

impl Conditions {
    async fn write(&self, books: &ClusterBooks, due: &Due) -> Result<(), String> {
        // Right before the writes: another may lead since the look began.
        let Some(_act) = books.leadership().act() else { return Ok(()) };
        let on_pod = self.count("condition", self.patch(due).await);
        // What the pod does not show is written again, and the event with it.
        on_pod?;
        self.count("event", self.tell(due).await)
    }

    async fn patch(&self, Due { look, since }: &Due) -> Result<(), Failure> {
        let reason = look.condition.reason;
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": look.uid},
            "status": {"conditions": [{
                "type": CONDITION,
                "status": reason.status().to_string(),
                "reason": reason.to_string(),
                "message": look.condition.message,
                "lastTransitionTime": time(*since),
            }]},
        }));
        let pods: Api<PodObject> = Api::namespaced(self.client.clone(), &look.pod.namespace);
        let (params, name) = (PatchParams::default(), &look.pod.name);
        answered(pods.patch_subresource("status", name, &params, &patch)).await.map(drop)
    }

    async fn tell(&self, due: &Due) -> Result<(), Failure> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &due.look.pod.namespace);
        answered(events.create(&PostParams::default(), &event(due))).await.map(drop)
    }

    /// Counts what came of a write. A pod that is gone or another by now needs none.
    fn count(&self, write: &'static str, answer: Result<(), Failure>) -> Result<(), String> {
        let (word, said) = match answer {
            Ok(()) => ("done", Ok(())),
            Err(Failure::Gone(_) | Failure::Conflict(_)) => ("conflict", Ok(())),
            Err(Failure::Invalid(why) | Failure::Refused(why)) => ("refused", Err(why)),
            Err(Failure::Unknown(why)) => ("no-answer", Err(why)),
        };
        self.counts.count(write, word);
        said
    }
}

fn event(Due { look, since }: &Due) -> Event {
    let reason = look.condition.reason;
    let VmName { namespace, name } = &look.object;
    let of = |api: &str, kind: &str, name: &str, uid: &str| ObjectReference {
        api_version: Some(api.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.clone()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let involved_object = match &look.object_uid {
        Some(uid) => of("vm.neon.tech/v1", "VirtualMachine", name, uid),
        None => of("v1", "Pod", &look.pod.name, &look.uid),
    };
    let at = Timestamp::from_millisecond(i64::try_from(since.millis()).unwrap_or(i64::MAX));
    let at = Some(Time(at.unwrap_or_default()));
    Event {
        metadata: ObjectMeta {
            generate_name: Some(format!(
                "{}.",
                look.pod.name.chars().take(200).collect::<String>()
            )),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object,
        reason: Some(reason.to_string()),
        message: Some(look.condition.message.chars().take(LONGEST).collect()),
        type_: Some(if reason.is_meant() { "Normal" } else { "Warning" }.to_owned()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        first_timestamp: at.clone(),
        last_timestamp: at,
        count: Some(1),
        ..Event::default()
    }
}

/// As Kubernetes writes it.
fn time(at: Moment) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at.millis()).unwrap_or(i64::MAX));
    let seconds = at.unwrap_or_default().as_second();
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}
