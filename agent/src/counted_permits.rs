//! Counts what a plugin answers, by status.

use crate::metrics::reference::Reference;
use crate::plugin::{Asked, Permits};
use bytes::Bytes;
use std::sync::Arc;

/// A plugin whose answers are counted.
pub(crate) struct CountedPermits {
    pub(crate) permits: Arc<dyn Permits>,
    pub(crate) counts: Reference,
}

/// One request that counts as unanswered until there is an answer: the caller may give up.
struct Open<'a> {
    counts: &'a Reference,
    status: Option<u16>,
}

// === impl CountedPermits ===

impl Permits for CountedPermits {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(async move {
            let mut open = Open { counts: &self.counts, status: None };
            let answer = self.permits.ask(body).await;
            open.status = answer.as_ref().ok().map(|(status, _)| *status);
            answer
        })
    }

    fn place(&self) -> String {
        self.permits.place()
    }
}

// === impl Open ===

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.counts.plugin_answered(self.status);
    }
}
