//! Counts what a plugin answers, by status, whoever it is.

use crate::metrics::reference::Reference;
use crate::plugin::{Asked, Permits};
use bytes::Bytes;
use std::sync::Arc;

/// Somebody who gives permits, whose answers are counted.
pub(crate) struct Counted {
    pub(crate) permits: Arc<dyn Permits>,
    pub(crate) counts: Reference,
}

/// One request that counts as unanswered until there is an answer: the caller may give up.
struct Open<'a> {
    counts: &'a Reference,
    status: Option<u16>,
}

// === impl Counted ===

impl Permits for Counted {
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
