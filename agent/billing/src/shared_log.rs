//! The usage log, as the parts of billing share it. A part that waits for the disk holds up no other part.

use crate::usage_log::UsageLog;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

/// The usage log. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct SharedLog(Arc<Mutex<UsageLog>>);

// === impl SharedLog ===

impl SharedLog {
    pub(crate) fn new(log: UsageLog) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }

    /// Does something to the usage log on a thread where waiting for the disk blocks no other task.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut UsageLog) -> T + Send + 'static,
    ) -> T {
        let log = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            what(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is going away, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
