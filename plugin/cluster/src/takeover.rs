//! Makes sure at the start that no binding of an earlier plugin takes effect any more.
//!
//! A plugin that was killed may have sent a binding that the API server has not carried out yet, and its books are gone
//! with it. Such a binding carries the revision of its pod: each pod that is not bound is given an annotation, so that
//! its revision is another, and until then no pod is bound.

use crate::binder::{ApiError, Binder};
use crate::books::ClusterBooks;
use crate::settler::ANNOTATION;
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::Pulse;

/// Between two looks, until it is done.
const EVERY: Duration = Duration::from_millis(100);

/// Once it is done there is nothing to look at.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Takes over until told to stop.
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
        pulse.turn("pods that were not bound at the start");
        let wait = if books.is_taken_over() { AFTERWARDS } else { EVERY };
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(wait) => {}
        }
        let inherited = books.inherited().unwrap_or_default();
        let (many, value) = (inherited.len(), format!("start at {}ms", books.now().millis()));
        for pod in inherited {
            let (name, uid) = &pod;
            pulse.turn("the API server, for a pod that was not bound at the start");
            match binder.annotate(name, uid, ANNOTATION, &value).await {
                Ok(_) => {}
                Err(ApiError::Refused(why)) => {
                    warn!(pod = %name, why, "an earlier binding of the pod may still take effect");
                }
                Err(ApiError::Unknown(why)) => {
                    debug!(pod = %name, why, "the pod is tried again");
                    break;
                }
            }
            books.inherit(&pod);
        }
        if many > 0 && books.is_taken_over() {
            info!(pods = many, "no binding of an earlier plugin can take effect");
        }
    }
}
