//! Makes sure that no binding of an earlier leader takes effect once this process answers.
//!
//! A leader that was killed, or has lost its lease, may have sent a binding that the API server has not carried out yet. Such a
//! binding carries the revision of its pod: when this process begins to lead, each pod that is not bound is given an annotation,
//! so that its revision is another. Until then nothing is answered: what such a binding takes of a node is not known.

use crate::binder::{ApiError, Binder};
use crate::books::ClusterBooks;
use crate::settler::ANNOTATION;
use futures_util::StreamExt;
use futures_util::stream::iter;
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::Pulse;
use windlass_protocol::VmName;

/// Between two looks at what is left to do.
const EVERY: Duration = Duration::from_millis(100);

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
    loop {
        pulse.turn("pods that were not bound when this plugin began to lead");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
        }
        let Some(epoch) = books.leadership().epoch() else { continue };
        let inherited = books.inherited();
        if inherited.is_empty() {
            continue;
        }
        let many = inherited.len();
        // A pod that does not change keeps its revision.
        let value = format!("epoch {} at {}ms", epoch.0, books.now().millis());
        let mut taken =
            iter(inherited).map(|pod| take(&books, &binder, pod, &value)).buffer_unordered(AT_ONCE);
        while let Some(is_taken) = taken.next().await {
            pulse.turn(
                "the API server, for a pod that was not bound when this plugin began to lead",
            );
            if !is_taken {
                break;
            }
        }
        drop(taken);
        if books.inherited().is_empty() {
            info!(pods = many, "no binding of an earlier leader can take effect");
        }
    }
}

/// Changes a pod; whether the API server answered.
async fn take(
    books: &ClusterBooks,
    binder: &Binder,
    inherited: (VmName, String),
    value: &str,
) -> bool {
    let (name, uid) = &inherited;
    let pod = match binder.annotate(name, uid, ANNOTATION, value).await {
        Ok(pod) => pod,
        Err(ApiError::Refused(why)) => {
            warn!(pod = %name, why, "an earlier binding of the pod may still take effect");
            None
        }
        Err(ApiError::Unknown(why)) => {
            debug!(pod = %name, why, "the pod is tried again");
            return false;
        }
        Err(ApiError::NotSent) => return false,
    };
    books.inherit(&inherited, pod);
    true
}
