//! Finds out what became of bindings whose answers were lost.
//!
//! A placement that is still open at a second look is settled by reading its pod. While the pod has the revision that a
//! binding was sent for, the binding may still take effect: the pod is given an annotation, so that its revision is another
//! and that binding is refused, and is read again at the next look.

use crate::binder::{ApiError, Binder};
use crate::books::ClusterBooks;
use std::convert::Infallible;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::Pulse;
use windlass_plugin_core::pods::{Outcome, Settled};
use windlass_plugin_core::settling::{SETTLE_EVERY, Settling};
use windlass_protocol::VmName;
use windlass_protocol::annotations::BINDING_SETTLED;

/// Settles placements until told to stop.
///
/// # Errors
/// None.
pub async fn run(
    books: ClusterBooks,
    binder: Binder,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let mut settling = Settling::default();
    while pulse.rest("the next look at placements", SETTLE_EVERY, &stop).await {
        if books.leadership().epoch().is_none() {
            continue;
        }
        for placed in settling.look(books.placements().into_iter().collect()) {
            let (name, uid) = &placed;
            pulse.turn("the API server, for a pod that was placed");
            settling.reads(placed.clone());
            match settle(&books, &binder, name, uid).await {
                Ok(()) => {}
                Err(ApiError::Refused(why)) => {
                    warn!(pod = %name, why, "the API server refuses what settles a placement");
                }
                Err(ApiError::Unknown(why)) => {
                    debug!(pod = %name, why, "a placement is not settled yet");
                    break;
                }
                Err(ApiError::NotSent) => break,
            }
        }
    }
    Ok(())
}

/// No binding of the pod is made meanwhile: what was read would be old by the time it counts.
async fn settle(
    books: &ClusterBooks,
    binder: &Binder,
    name: &VmName,
    uid: &str,
) -> Result<(), ApiError> {
    let Some(_busy) = binder.begin(name) else { return Ok(()) };
    let pod = binder.read(name).await?;
    let revision = pod.as_ref().map(|pod| pod.revision.clone()).unwrap_or_default();
    match books.settle(name, uid, Outcome::Read(pod.map(Box::new))) {
        Settled::Bound => debug!(pod = %name, "the pod is bound: its placement stays"),
        Settled::Released(_) => info!(pod = %name, "the pod is not bound: its placement ends"),
        Settled::Open => {
            binder.annotate(name, uid, BINDING_SETTLED, &revision).await?;
        }
        Settled::Unknown => {}
    }
    Ok(())
}
