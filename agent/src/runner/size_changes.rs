//! By how much the sizes change that one VM's agent asks the plugin for, and says to the informant.

use crate::metrics::reference::Reference;
use windlass_agent_core::Event;
use windlass_protocol::Resources;

/// Counts changes of size, by what the VM had before.
#[derive(Debug)]
pub(super) struct SizeChanges {
    counts: Reference,
    /// What the VM had when the plugin was last asked.
    asked: Option<Resources>,
    /// The size that the informant agreed to or was told of last, or that it found.
    agreed: Option<Resources>,
    /// The size that the informant is asked for or told of.
    saying: Option<Resources>,
}

// === impl SizeChanges ===

impl SizeChanges {
    pub(super) const fn new(counts: Reference) -> Self {
        Self { counts, asked: None, agreed: None, saying: None }
    }

    /// The plugin is asked for `wanted` for a VM that has `had`.
    pub(super) fn asks(&mut self, had: Option<Resources>, wanted: Resources) {
        self.asked = had;
        if let Some(had) = had {
            self.counts.plugin_asked.add(had, wanted);
        }
    }

    /// The informant is asked for this size, or told of it.
    pub(super) fn says(&mut self, said: Resources) {
        self.saying = Some(said);
        if let Some(had) = self.agreed {
            self.counts.informant_asked.add(had, said);
        }
    }

    /// The informant finds what the VM has: it is a new one, or another agent may have told it.
    pub(super) fn finds(&mut self, has: Option<Resources>) {
        self.agreed = has;
    }

    /// Takes in an answer about a VM that has `has`.
    pub(super) fn heard(&mut self, event: &Event, has: Option<Resources>) {
        if let (Event::Permitted(permit), Some(had)) = (event, self.asked) {
            self.counts.plugin_accepted.add(had, *permit);
        }
        if matches!(event, Event::Registered { .. }) {
            self.finds(has);
        }
        if matches!(event, Event::Agreed { .. } | Event::Upscaled)
            && let Some(said) = self.saying.take()
            && let Some(had) = self.agreed.replace(said)
        {
            self.counts.informant_approved.add(had, said);
        }
    }
}
