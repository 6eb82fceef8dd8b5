//! Has the scheduler look again at a pod that was refused, once room came free.
//!
//! The scheduler tries a pod that an extender refused again when something that it knows of changes, or after a minute
//! and more; it does not know of room that a VM gave back. An annotation is a change of the pod. A pod is given one every two
//! seconds at most, and the API server is sent twenty of them per second at most.

use crate::binder::{ApiError, Binder};
use crate::books::ClusterBooks;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use windlass_kit::watchdog::Pulse;
use windlass_protocol::annotations::ROOM_CAME_FREE;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Annotations per look, at most.
const AT_ONCE: usize = 10;
/// Between two annotations of one pod, at least.
const PER_POD: Duration = Duration::from_secs(2);

/// Tells refused pods of room until told to stop.
///
/// # Errors
/// None.
pub async fn run(
    books: ClusterBooks,
    binder: Binder,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let mut told: BTreeMap<String, Instant> = BTreeMap::new();
    while pulse.rest("room that comes free", EVERY, &stop).await {
        if books.serves().is_err() {
            continue;
        }
        let now = Instant::now();
        told.retain(|_, at| now.duration_since(*at) < PER_POD);
        let mut left = AT_ONCE;
        for (node, waiting) in books.take_freed() {
            for (pod, uid) in waiting {
                if left == 0 || told.contains_key(&uid) {
                    // At the next look, or the one after.
                    books.note_freed(&node);
                    continue;
                }
                left -= 1;
                told.insert(uid.clone(), now);
                pulse.turn("the API server, for a pod that was refused");
                // No value of an earlier process: a pod that does not change is not tried again.
                let value = format!("{node} at {}ms", books.now().millis());
                let sent = binder.annotate(&pod, &uid, ROOM_CAME_FREE, &value).await;
                match sent {
                    Ok(Some(_)) => {}
                    Ok(None) => books.waits_no_longer(&pod, &uid),
                    Err(ApiError::Refused(why) | ApiError::Unknown(why)) => {
                        debug!(%pod, why, "a refused pod was not told of room");
                        books.note_freed(&node);
                    }
                    Err(ApiError::NotSent) => books.note_freed(&node),
                }
            }
        }
    }
    Ok(())
}
