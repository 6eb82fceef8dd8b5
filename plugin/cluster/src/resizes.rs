//! Resizes VMs' own pods, as the books say, on nodes whose pool says so.
//!
//! The books let the cap of a VM fall to what its pod asks for before a resize is sent, and raise it when the watch shows what the
//! kubelet has allocated. A resize carries the uid and the revision of its pod: it takes effect on what the books know, or not
//! at all. One is under way for a VM at a time, and all together a few; no lock is held across one. What fails is counted and
//! logged once.

use crate::answers::{Failure, answered};
use crate::binder::ApiError;
use crate::books::ClusterBooks;
use crate::metrics::ResizeWrites;
use crate::objects::PodObject;
use crate::pace::Pace;
use crate::proposals::Turn;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_plugin_core::pods::{Kind, Resize, Written};
use windlass_protocol::pod::Limits;
use windlass_protocol::quantity::cpu_text;
use windlass_protocol::{Bytes, MilliCpu};

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

/// Failures in a row.
#[derive(Default)]
struct Failures {
    pace: Pace,
    are_refused: bool,
}

/// Resizes pods until told to stop.
///
/// # Errors
/// None.
pub async fn run(books: ClusterBooks, resizes: Resizes) -> Result<(), Infallible> {
    let (mut writes, mut failures) = (FuturesUnordered::new(), Failures::default());
    let (mut next_look, mut said) = (Instant::now(), BTreeSet::new());
    loop {
        resizes.pulse.turn("pods of VMs to resize");
        let now = Instant::now();
        if now >= next_look {
            next_look = now + LOOKS;
            look(&books, &mut said);
        }
        while writes.len() < failures.pace.at_once(now)
            && let Some(turn) = books.resizes().take()
        {
            writes.push(resizes.serve(&books, turn));
        }
        let wakes = failures.pace.rests_until(now).unwrap_or(next_look);
        tokio::select! {
            biased;
            () = resizes.stop.cancelled() => return Ok(()),
            Some((turn, failed)) = writes.next(), if !writes.is_empty() => {
                failures.note(&turn, failed);
                books.resizes().end(turn);
            }
            () = books.resizes().more() => {}
            () = tokio::time::sleep_until(wakes) => {}
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
    /// Resizes the pod of the VM whose turn it is, if that is due. `None`: nothing was sent.
    async fn serve(
        &self,
        books: &ClusterBooks,
        turn: Turn,
    ) -> (Turn, Option<Result<(), ApiError>>) {
        let Some(resize) = books.resize_due(&turn.vm).filter(|_| books.serves().is_ok()) else {
            return (turn, None);
        };
        // Right before the write: another may lead since the pod's revision was seen.
        let act = books.leadership().act();
        if act.is_none() || !books.resize_sent(&resize) {
            return (turn, None);
        }
        let sent = self.send(&resize).await;
        let (written, answer) = match &sent {
            Ok(true) => (Written::Answered, "done"),
            // A busy API server says so, too; then no watch shows another revision, and the same is written again.
            Ok(false) => (Written::Unknown, "conflict"),
            Err(ApiError::Refused(_) | ApiError::NotSent) => (Written::Refused, "refused"),
            Err(ApiError::Unknown(_)) => (Written::Unknown, "no-answer"),
        };
        let why = match resize.kind {
            Kind::Grows | Kind::Shrinks => None,
            Kind::GivesUp(why) => Some(why.word()),
        };
        self.counts.count(resize.kind.word(), answer, why);
        books.resize_written(&resize, written);
        (turn, Some(sent.map(drop)))
    }

    /// `false`: the pod has another revision, or is gone. The watch will show it.
    async fn send(&self, resize: &Resize) -> Result<bool, ApiError> {
        let Resize { vm, uid, revision, container, to, limits, .. } = resize;
        let pods: Api<PodObject> = Api::namespaced(self.client.clone(), &vm.namespace);
        let resources = resources(amounts(Some(to.cpu), Some(to.mem)), *limits);
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": uid, "resourceVersion": revision},
            "spec": {"containers": [{"name": container, "resources": resources}]},
        }));
        let params = PatchParams::default();
        match answered(pods.patch_subresource("resize", &vm.name, &params, &patch)).await {
            Ok(_) => Ok(true),
            Err(Failure::Gone(_) | Failure::Conflict(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
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

// === impl Failures ===

impl Failures {
    fn note(&mut self, turn: &Turn, sent: Option<Result<(), ApiError>>) {
        let vm = &turn.vm;
        match sent {
            None | Some(Err(ApiError::NotSent)) => return,
            Some(Err(ApiError::Unknown(why))) => {
                if self.pace.fail() {
                    warn!(%vm, why, "no pod is resized; no VM grows beyond its own meanwhile");
                }
                return;
            }
            Some(Err(ApiError::Refused(why))) if !self.are_refused => {
                self.are_refused = true;
                warn!(%vm, why, "the API server refuses to resize a pod; the VM does not grow");
            }
            Some(Err(ApiError::Refused(why))) => debug!(%vm, why, "a pod is not resized"),
            Some(Ok(())) => self.are_refused = false,
        }
        let failures = self.pace.answered();
        if failures > 0 {
            info!(failures, "pods are resized again");
        }
    }
}
