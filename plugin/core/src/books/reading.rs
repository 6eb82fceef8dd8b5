//! What is read of the books: what they come to, and what is known and reserved of each VM.

use super::Books;
use crate::ask::Granted;
use crate::entry::{Basis, Entry};
use crate::summary::Summary;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, Resources, VmName, VmRecord};

// === impl Books ===

impl Books {
    /// What is known of a VM, if it entered.
    pub fn record(&self, vm: &VmName) -> Option<&VmRecord> {
        self.vms.get(vm).map(|entry| &entry.record)
    }

    /// Whether an agent speaks for this VM. A VM that no agent speaks for counts with the most that may
    /// have been reserved for it, or with what it was seen to have.
    pub fn is_spoken_for(&self, vm: &VmName) -> bool {
        let spoken = |entry: &Entry| matches!(entry.basis, Basis::Spoken { .. });
        self.vms.get(vm).is_some_and(spoken)
    }

    /// Whether an answer to this `wanted` may be less than a VM has that no agent has spoken for. Its agent would name it
    /// as its last permit, and a plugin that does not know better would believe it: so it is not told.
    pub fn says_too_little(&self, vm: &VmName, wanted: Resources, granted: &Granted) -> bool {
        let may_have = self.vms.get(vm).map(Entry::promised_before).unwrap_or_default();
        let is_less = !granted.permit.covers(wanted.min(may_have));
        granted.is_unrecorded && is_less && !self.is_spoken_for(vm)
    }

    /// Whether more is reserved for a VM than its agent was answered last, since the request may have come late.
    pub fn is_doubted(&self, vm: &VmName) -> bool {
        self.vms.get(vm).is_some_and(Entry::is_doubted)
    }

    /// When and why a VM lately got less than it asked for, the oldest first.
    pub fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.vms.get(vm).map(|entry| entry.journal.notes()).unwrap_or_default()
    }

    /// By how much the minima of all VMs exceed the room, if they do: then some VM never gets its
    /// minimum, whatever the others give back.
    pub fn minima_over(&self) -> Option<Resources> {
        let minima = self.tally.min();
        (!self.room.covers(minima)).then(|| minima.saturating_sub(self.room))
    }

    /// What is reserved in all.
    pub fn reserved(&self) -> Resources {
        self.tally.reserved()
    }

    /// What VMs asked for and did not get, as far as their claims last.
    pub fn missing(&mut self, now: Moment) -> Resources {
        self.forget_old_claims(now);
        self.tally.missing()
    }

    /// The room that is reserved for no VM.
    pub fn free(&self) -> Resources {
        self.room.saturating_sub(self.reserved())
    }

    /// What is read of these books without their lock.
    pub fn summary(&self) -> Summary {
        Summary { room: self.room, reserved: self.reserved() }
    }

    /// What is reserved for a VM, if it entered.
    pub fn reserved_for(&self, vm: &VmName) -> Option<Resources> {
        self.vms.get(vm).map(Entry::reserved)
    }

    /// Whether more is reserved than the node has room for.
    pub fn is_over(&self) -> bool {
        !self.room.covers(self.reserved())
    }

    /// The books at this moment, VMs by name.
    pub fn status(&self, now: Moment) -> NodeStatus {
        NodeStatus {
            room: self.room,
            reserved: self.reserved(),
            vms: self.vms.in_order().into_iter().map(|(_, entry)| entry.booked(now)).collect(),
        }
    }
}
