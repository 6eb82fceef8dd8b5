//! Makes sure that no binding of an earlier leader takes effect once this process answers.
//!
//! A leader that was killed, or has lost its lease, may have sent a binding that the API server has not carried out yet. Such a
//! binding carries the revision of its pod: when this process begins to lead, each pod that is not bound is given an annotation,
//! so that its revision is another. Until then, or until such a binding is too old, nothing is answered: what it takes of a node is
//! not known.

use crate::binder::{ApiError, Binder};
use crate::books::ClusterBooks;
use futures_util::StreamExt;
use futures_util::stream::iter;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::backoff::Backoff;
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_protocol::VmName;
use windlass_protocol::annotations::BINDING_SETTLED;

/// Between two looks at what is left to do.
const EVERY: Duration = Duration::from_millis(100);

/// Between two rounds that left something.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };

/// Pods that are changed at the same time.
const AT_ONCE: usize = 16;

/// Takes over whenever this process begins to lead, until told to stop.
///
/// # Errors
/// None.
pub async fn run(
    books: ClusterBooks,
    binder: Binder,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let (mut failures, mut failed) = (0_u32, BTreeSet::new());
    loop {
        let wait = if failures == 0 { EVERY } else { BACKOFF.wait(failures, 0).min(TURN) };
        if !pulse.rest("pods that were not bound when this plugin began to lead", wait, &stop).await
        {
            return Ok(());
        }
        let Some(epoch) = books.leadership().epoch() else { continue };
        for (pod, _) in books.take_too_old() {
            warn!(%pod, "the pod could not be changed; an earlier binding of it is too old by now");
        }
        let inherited = books.inherited();
        if inherited.is_empty() {
            failures = 0;
            failed.clear();
            continue;
        }
        let many = inherited.len();
        // A pod that does not change keeps its revision.
        let value = format!("epoch {} at {}ms", epoch.0, books.now().millis());
        // One that cannot be changed holds up no other.
        let (last, first): (Vec<_>, Vec<_>) =
            inherited.into_iter().partition(|pod| failed.contains(pod));
        let mut unanswered = 0;
        let mut taken = iter(first.into_iter().chain(last))
            .map(|pod| take(&books, &binder, pod, &value))
            .buffer_unordered(AT_ONCE);
        while let Some((pod, is_taken)) = taken.next().await {
            pulse.turn(
                "the API server, for a pod that was not bound when this plugin began to lead",
            );
            if !is_taken {
                failed.insert(pod);
                unanswered += 1;
            }
            if unanswered == AT_ONCE {
                break;
            }
        }
        drop(taken);
        if books.inherited().is_empty() {
            info!(pods = many, "no binding of an earlier leader can take effect");
        } else {
            failures = failures.saturating_add(1);
        }
    }
}

/// Changes a pod; whether it was changed, or is gone.
async fn take(
    books: &ClusterBooks,
    binder: &Binder,
    inherited: (VmName, String),
    value: &str,
) -> ((VmName, String), bool) {
    let (name, uid) = &inherited;
    match binder.annotate(name, uid, BINDING_SETTLED, value).await {
        Ok(pod) => {
            books.inherit(&inherited, pod);
            return (inherited, true);
        }
        Err(ApiError::Refused(why) | ApiError::Unknown(why)) => {
            debug!(pod = %name, why, "an earlier binding of the pod may still take effect");
        }
        Err(ApiError::NotSent) => {}
    }
    (inherited, false)
}
