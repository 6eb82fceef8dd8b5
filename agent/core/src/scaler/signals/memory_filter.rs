//! Memory figures that are read while memory is on its way out.
//!
//! The guest's kernel takes a block out of what is available well before it takes it out of what
//! there is, so what is read meanwhile looks like use, and would call the shrink off. What was
//! read before counts in its place, for so long as one consent can be acted on: a guest that is
//! stuck is believed again.

use windlass_protocol::Moment;
use windlass_protocol::timing::CONSENT_LASTS;
use windlass_scaling::{Sample, memory};

/// Which memory figures count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MemoryFilter {
    /// When figures were read that were believed.
    believed_at: Option<Moment>,
    /// When the present reading was asked for.
    asked_at: Moment,
    /// Whether memory was on its way out when the present reading was asked for.
    giving: bool,
}

// === impl MemoryFilter ===

impl MemoryFilter {
    /// A reading is asked for.
    pub(super) fn asked(&mut self, now: Moment, giving: bool) {
        (self.asked_at, self.giving) = (now, giving);
    }

    /// The reading as it counts, after the one that counted before it. Its age counts from when it
    /// was asked for: an answer may be long on its way, or be made by an informant that stopped
    /// before it was through.
    pub(super) fn counts(
        &mut self,
        sample: Sample,
        before: Option<&Sample>,
        giving: bool,
    ) -> Sample {
        let sample = Sample { at: sample.at.min(self.asked_at), ..sample };
        let lasts = |at: &Moment| sample.at.since(*at) < CONSENT_LASTS;
        // What is missing is not made up by what was read before.
        let both = |before: &&Sample| memory::used(before).and(memory::used(&sample)).is_some();
        let believed = self.believed_at.as_ref().is_some_and(lasts);
        match before.filter(|before| believed && both(before)) {
            Some(before) if giving || self.giving => {
                Sample { total: before.total, available: before.available, ..sample }
            }
            Some(_) | None => {
                self.believed_at = Some(sample.at);
                sample
            }
        }
    }
}
