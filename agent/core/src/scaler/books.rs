//! What is asked of the plugin, and what comes of its answers.

use super::Scaler;
use crate::event::{Action, Asking, Failure};
use windlass_protocol::{Mode, Moment, Peer, Resources};

// === impl Scaler ===

impl Scaler {
    /// What to ask the plugin for, and when.
    pub(super) fn permit_due(&self, now: Moment) -> Option<(Moment, Action)> {
        if self.info.mode == Mode::Observe || !self.acts(now) || self.permit.is_blind {
            return None;
        }
        let ceiling = self.ceiling(now)?;
        let asking = Asking {
            version: self.spoken.stated(now),
            resources: ceiling,
            last_permit: self.permit.known(),
            unit: self.unit(),
        };
        Some((self.permit.due(ceiling), Action::AskPlugin(asking)))
    }

    /// Whether this agent may use more than what [the VM may have](Self::upper) by a permit that it has or
    /// asks for, or has yet to see what there is. If not, the books need hold no more than that.
    pub fn counts_on_a_permit(&self) -> bool {
        let permitted = self.permit.known().is_some() || self.lines.plugin.is_heard();
        permitted || self.permit.is_blind
    }

    pub(super) fn plugin_permits(&mut self, now: Moment, asked: Asking, permit: Resources) {
        self.spoken.took(asked.version);
        self.permit.answered(now, asked.resources, permit, &mut self.jitter);
        self.journal.permitted(asked.resources, permit);
    }

    /// Whether the plugin refused every version that is ours, and has taken none since.
    pub fn plugin_takes_no_version(&self) -> bool {
        self.spoken.takes_none()
    }

    /// What a failed request says of the plugin's versions; and whether another is tried at once.
    pub(super) fn tries_another_version(&mut self, peer: Peer, failure: Failure) -> bool {
        let Some(Action::AskPlugin(asked)) = self.lines.to(peer).busy() else { return false };
        match failure {
            Failure::Version => {
                let another = self.spoken.refused(asked.version);
                if another {
                    self.lines.plugin.answered();
                }
                return another;
            }
            Failure::NoAnswer => self.spoken.silent(),
            Failure::Refused(_) | Failure::Moving => self.spoken.took(asked.version),
        }
        false
    }

    /// What the books should cover: what the VM may have, and what it should get. The first word
    /// to books that permitted nothing yet is what there is: they may not know of this VM, or have
    /// restarted, and take what is said without a last permit for what was promised.
    pub(super) fn ceiling(&self, now: Moment) -> Option<Resources> {
        if let Some(permit) = self.permit.stays_until(now).and(self.permit.known()) {
            // Anything else is refused.
            return Some(permit);
        }
        let mut ceiling = self.upper()?;
        if let Some(goal) = self.permit.known().and_then(|_| self.goal(now)) {
            ceiling = ceiling.max(goal.size);
        }
        ceiling.mem = ceiling.mem.round_up(self.info.memory_slot);
        Some(ceiling)
    }
}
