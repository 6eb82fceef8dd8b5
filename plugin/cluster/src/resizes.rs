//! Resizes VMs' own pods, as the books say, on nodes whose pool says so.
//!
//! The books let the cap of a VM fall to what its pod asks for before a resize is sent, and raise it when the watch shows what the
//! kubelet has allocated. A resize carries the uid and the revision of its pod: it takes effect on what the books know, or not
//! at all. One is under way for a VM at a time, and all together a few; no lock is held across one. What fails is counted and
//! logged once.

use crate::books::ClusterBooks;
use crate::metrics::ResizeWrites;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_kit_kubernetes::objects::PodObject;
use windlass_plugin_core::pods::{Kind, Resize, Written};
use windlass_plugin_core::writes::{Heard, Reach};
use windlass_protocol::pod::Limits;
use windlass_protocol::quantity::cpu_text;
use windlass_protocol::{Bytes, MilliCpu, VmName};

/// Between two looks at all VMs.
const LOOKS: Duration = Duration::from_secs(1);

/// Pods that cannot be resized are logged once; as many are remembered.
const MOST_SAID: usize = 10_000;

/// What the resizing of pods needs.
pub struct Resizes {
    /// How the API server is reached.
    pub client: Client,
    /// Its writes are counted there.
    pub counts: ResizeWrites,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Resizes pods until told to stop.
///
/// # Errors
/// None.
pub async fn run(books: ClusterBooks, resizes: Resizes) -> Result<(), Infallible> {
    let (mut writes, queue) = (FuturesUnordered::new(), books.resizes());
    let (mut next_look, mut said, mut are_refused) = (books.now(), BTreeSet::new(), false);
    loop {
        resizes.pulse.turn("pods of VMs to resize");
        let now = books.now();
        if now >= next_look {
            next_look = now.after(LOOKS);
            look(&books, &mut said);
        }
        while let Some(vm) = queue.take(now) {
            writes.push(resizes.serve(&books, vm));
        }
        let wakes = queue.tries_at(now).unwrap_or(next_look);
        tokio::select! {
            biased;
            () = resizes.stop.cancelled() => return Ok(()),
            Some((vm, heard, why)) = writes.next(), if !writes.is_empty() => {
                let reach = queue.end(books.now(), &vm, heard);
                if heard == Heard::Answered && why.is_none() {
                    are_refused = false;
                }
                say(&vm, why, reach, &mut are_refused);
            }
            () = queue.more() => {}
            () = tokio::time::sleep(wakes.since(now)) => {}
            () = tokio::time::sleep(TURN) => {}
        }
    }
}

/// Calls for what is to be written though no event says so: a proposal may have ended, and an answer may be lost.
fn look(books: &ClusterBooks, said: &mut BTreeSet<String>) {
    if books.serves().is_err() {
        return;
    }
    for vm in books.resized() {
        match books.fixed(&vm) {
            Some((uid, fixed)) => {
                let is_news = said.len() < MOST_SAID && said.insert(uid);
                if is_news {
                    let why = fixed.words();
                    warn!(%vm, why, "the pod of a VM cannot be resized; the VM stays at what it requests");
                }
            }
            None if books.resize_due(&vm).is_some() => books.resizes().call_for(&vm),
            None => {}
        }
    }
}

// === impl Resizes ===

impl Resizes {
    /// Resizes the pod of the VM whose turn it is, if that is due. The failure is one to be said.
    async fn serve(&self, books: &ClusterBooks, vm: VmName) -> (VmName, Heard, Option<Failure>) {
        let Some(resize) = books.resize_due(&vm).filter(|_| books.serves().is_ok()) else {
            return (vm, Heard::NotSent, None);
        };
        // Right before the write: another may lead since the pod's revision was seen.
        let act = books.leadership().act();
        if act.is_none() || !books.resize_sent(&resize) {
            return (vm, Heard::NotSent, None);
        }
        let sent = self.send(&resize).await;
        let (written, heard) = Written::of_resize(&sent.as_ref().map_err(Failure::kind));
        let why = match resize.kind {
            Kind::Grows | Kind::Shrinks => None,
            Kind::GivesUp(why) => Some(why.word()),
        };
        let answer = match (written, heard) {
            (Written::Answered, _) => "done",
            (Written::Refused, _) => "refused",
            (Written::Unknown, Heard::NoAnswer) => "no-answer",
            (Written::Unknown, Heard::Answered | Heard::NotSent) => "conflict",
        };
        self.counts.count(resize.kind.word(), answer, why);
        books.resize_written(&resize, written);
        (vm, heard, sent.err().filter(|_| answer != "conflict"))
    }

    async fn send(&self, resize: &Resize) -> Result<(), Failure> {
        let Resize { vm, uid, revision, container, to, limits, overhead, kind: _ } = resize;
        let (to, limits) = (to.saturating_add(*overhead), limits.with(*overhead));
        let pods: Api<PodObject> = Api::namespaced(self.client.clone(), &vm.namespace);
        let resources = resources(amounts(Some(to.cpu), Some(to.mem)), limits);
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": uid, "resourceVersion": revision},
            "spec": {"containers": [{"name": container, "resources": resources}]},
        }));
        let params = PatchParams::default();
        answered(pods.patch_subresource("resize", &vm.name, &params, &patch)).await.map(drop)
    }
}

fn resources(requests: Value, limits: Limits) -> Value {
    let limits = amounts(limits.cpu, limits.mem);
    if limits == json!({}) {
        json!({"requests": requests})
    } else {
        json!({"requests": requests, "limits": limits})
    }
}

fn amounts(cpu: Option<MilliCpu>, mem: Option<Bytes>) -> Value {
    let cpu = cpu.map(|cpu| ("cpu".to_owned(), Value::from(cpu_text(cpu))));
    let mem = mem.map(|mem| ("memory".to_owned(), Value::from(mem.bytes().to_string())));
    Value::Object(cpu.into_iter().chain(mem).collect())
}

/// Failures in a row are said once.
fn say(vm: &VmName, failure: Option<Failure>, reach: Reach, are_refused: &mut bool) {
    let is_refusal = failure.as_ref().is_some_and(|failure| failure.kind().is_refusal());
    let why = failure.map(|failure| failure.to_string()).unwrap_or_default();
    match (reach, is_refusal) {
        (Reach::Lost, _) => {
            warn!(%vm, why, "no pod is resized; no VM grows beyond its own meanwhile");
        }
        (Reach::Back(failures), _) => info!(failures, "pods are resized again"),
        (Reach::Same, true) if !std::mem::replace(are_refused, true) => {
            warn!(%vm, why, "the API server refuses to resize a pod; the VM does not grow");
        }
        (Reach::Same, true) => debug!(%vm, why, "a pod is not resized"),
        (Reach::Same, false) => {}
    }
}
