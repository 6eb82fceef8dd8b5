//! What the agent tells people of a VM through the plugin: why it has its size, in one sentence.
//!
//! A host's `windlass explain` has the whole history; a plugin has this sentence of each VM, and shows it where a person looks first.

use super::Scaler;
use crate::sentences;
use windlass_protocol::Moment;
use windlass_protocol::plugin::Told;

// === impl Scaler ===

impl Scaler {
    /// Its goal, and the weightiest reason why it has its size.
    pub fn told(&self, now: Moment) -> Told {
        let goal = self.target_at(now).goal.map(|goal| goal.size);
        sentences::told(goal, &self.waiting(now), now)
    }
}
