//! What people are told of a VM: what its agent said last, and what the books say of it.

use super::Books;
use crate::entry::Basis;
use crate::heard::{Heard, Last};
use windlass_protocol::plugin::{Told, Why};
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Moment, Resources, Shortage, VmName, VmRecord};

/// What the books know of a VM, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// What is reserved for it.
    pub reserved: Resources,
    /// What it asked for beyond that, and did not get yet.
    pub wanted: Option<Resources>,
    /// Why it did not.
    pub short: Vec<Shortage>,
    /// When its agent was heard last.
    pub heard: Option<Moment>,
    /// Of one that was not heard: since when the VM is here, if that is known.
    pub here_since: Option<Moment>,
    /// What its agent told then.
    pub told: Option<Told>,
    /// What its agent may use by the books; `None`: no agent speaks for it.
    pub permit: Option<Resources>,
    /// It is about to be moved.
    pub moves: bool,
}

// === impl Known ===

impl Known {
    /// Whether the books have permitted what its agent said that the VM waits for. An agent tells with a request, and so before
    /// it is answered: what it told of its permit is of before that.
    pub fn is_permitted(&self) -> bool {
        let waits = |told: &&Told| matches!(told.why, Why::Room | Why::NoPermit);
        let goal = self.told.as_ref().filter(waits).and_then(|told| told.goal);
        self.permit.zip(goal).is_some_and(|(permit, goal)| permit.covers(goal))
    }
}

// === impl Books ===

impl Books {
    /// The agent of a VM was heard, and told this. Unknown VMs are passed over.
    pub fn hear(&mut self, now: Moment, vm: &VmName, told: Option<Box<Told>>) {
        self.hear_by(now, vm, |_| told);
    }

    /// The same, where what it told is read by what is known of the VM.
    pub(crate) fn hear_by(
        &mut self,
        now: Moment,
        vm: &VmName,
        read: impl FnOnce(&VmRecord) -> Option<Box<Told>>,
    ) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.heard = Heard { last: Last::Heard(now), told: read(&entry.record) };
        }
    }

    /// A VM is here since about this moment. Unknown VMs are passed over.
    pub(crate) fn greet(&mut self, now: Moment, vm: &VmName) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.heard.last = match entry.heard.last {
                Last::Never => Last::Here(now),
                known @ (Last::Here(_) | Last::Heard(_)) => known,
            };
        }
    }

    /// What is known of a VM, if it entered.
    pub fn known(&self, now: Moment, vm: &VmName) -> Option<Known> {
        let entry = self.vms.get(vm)?;
        let claim = entry.claim.filter(|claim| now < claim.until);
        let note = entry.journal.last().filter(|note| now.since(note.last) < CLAIM_LASTS);
        let note = note.filter(|_| claim.is_some());
        let (heard, here_since) = match entry.heard.last {
            Last::Never => (None, None),
            Last::Here(since) => (None, Some(since)),
            Last::Heard(at) => (Some(at), None),
        };
        Some(Known {
            reserved: entry.reserved(),
            wanted: claim.map(|claim| claim.wanted),
            short: note.map(|note| note.short.clone()).unwrap_or_default(),
            heard,
            here_since,
            told: entry.heard.told.as_deref().cloned(),
            permit: match entry.basis {
                Basis::Presumed(_) | Basis::Silent(_) => None,
                Basis::Spoken { permit, .. } => Some(permit),
            },
            moves: entry.moves(),
        })
    }
}
