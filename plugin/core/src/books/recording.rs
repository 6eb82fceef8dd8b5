//! The ceilings of a node's VMs: which are to be recorded, and what became of them.
//!
//! [`Books::ceiling_due`] gives a write once it is about to be sent, and one of [`Books::ceiling_written`] and
//! [`Books::ceiling_given_up`] ends it. At most one write of a VM is under way. A new ceiling has headroom as long
//! as the node's VMs, each with the larger of its ceiling and of what is reserved for it, fit the node's room.

use super::Books;
use crate::ceilings::{CeilingWrite, FirstCeiling};
use crate::entry::{Basis, Entry, Moving};
use crate::tally::Sum;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::{Moment, Resources, VmName};

// === impl Books ===

impl Books {
    /// The ceiling of this VM that is to be recorded in this epoch, if any. From here on the write may take
    /// effect. Where none is, what was proposed is given up.
    pub fn ceiling_due(&mut self, vm: &VmName, epoch: u64) -> Option<CeilingWrite> {
        let room = self.room.saturating_sub(self.counted_later_but(vm));
        let mut sent = None;
        self.change(vm, |entry| {
            sent = entry.ceiling_of_before(epoch);
            let (needed, grain) = (entry.reserved(), entry.record.grain);
            let stays = !entry.moves() && !entry.is_awaited;
            let room = if stays { room } else { Resources::ZERO };
            let Some(recorded) = entry.cover.recorded_mut() else { return };
            let size = recorded.rounded(needed, grain, room);
            sent = recorded.send(epoch, size);
            if sent.is_none() {
                recorded.give_up();
            }
        });
        let (known, next) = sent?;
        Some(CeilingWrite { vm: vm.clone(), known, next })
    }

    /// The API server has recorded this ceiling. What was proposed is promised: its agent may be told at once.
    pub fn ceiling_written(&mut self, vm: &VmName, written: Ceiling) {
        self.change(vm, |entry| {
            if let Some(allotment) = entry.cover.allotment_mut() {
                allotment.ceiling_is(Some(written));
            }
            let recorded = entry.cover.recorded_mut();
            if let Some(proposal) = recorded.and_then(|recorded| recorded.confirm(written)) {
                entry.confirm(proposal);
            }
        });
    }

    /// The annotation was not what the write had been sent for, but this, by a read after it. The write is due again.
    pub fn ceiling_read(&mut self, vm: &VmName, read: Option<Ceiling>) {
        self.change(vm, |entry| {
            if let Some(allotment) = entry.cover.allotment_mut() {
                allotment.ceiling_is(read);
            }
            if let Some(recorded) = entry.cover.recorded_mut() {
                recorded.read(read);
                recorded.again();
            }
        });
    }

    /// A write was refused or not answered, or none can be sent. What was proposed is free again; whether a ceiling was
    /// recorded makes no difference.
    pub fn ceiling_given_up(&mut self, vm: &VmName) {
        self.change(vm, |entry| {
            if let Some(recorded) = entry.cover.recorded_mut() {
                recorded.give_up();
            }
        });
    }

    /// The size of the ceiling that the binding of this VM's pod records, if the VM's ceiling is recorded.
    pub fn first_ceiling(&self, vm: &VmName) -> Option<Resources> {
        let entry = self.vms.get(vm)?;
        let room = self.room.saturating_sub(self.counted_later_but(vm));
        Some(entry.cover.recorded()?.rounded(entry.reserved(), entry.record.grain, room))
    }

    /// The API server has bound the VM's pod, and recorded this ceiling with it.
    pub fn ceiling_bound(&mut self, vm: &VmName, first: FirstCeiling) {
        self.change(vm, |entry| {
            if let Some(recorded) = entry.cover.recorded_mut() {
                recorded.bound(first);
            }
        });
    }

    /// The VMs whose ceilings are to be lowered or raised though no agent asks: too high for long, for a node that is full
    /// or for a VM that is to leave its node, too low, or where nothing covers what a VM was permitted before its pod was resized.
    pub fn ceilings_to_mend(&mut self, now: Moment) -> Vec<VmName> {
        let all = self.vms.values().map(Entry::counted_later);
        let mut over = sum(all).saturating_sub(self.room);
        let mut due = Vec::new();
        for entry in self.vms.in_order_mut() {
            let (needed, grain) = (entry.reserved(), entry.record.grain);
            let leaves = entry.is_awaited || matches!(entry.moving, Moving::Due | Moving::Told(_));
            if entry.is_unrecorded() {
                due.push((*entry.name).clone());
            }
            let is_spoken = matches!(entry.basis, Basis::Spoken { .. });
            let Some(recorded) = entry.cover.recorded_mut().filter(|_| is_spoken) else { continue };
            if recorded.look(now, (needed, grain), leaves, &mut over) {
                due.push((*entry.name).clone());
            }
        }
        due
    }

    /// Another pod of a VM waits for a place, or does so no longer: the VM may be about to move, whoever moves it. Unknown VMs are
    /// passed over.
    pub(crate) fn set_awaited(&mut self, vm: &VmName, is_awaited: bool) {
        self.change(vm, |entry| entry.is_awaited = is_awaited);
    }

    /// The ceiling of this VM that is in force, as far as is known.
    pub(crate) fn recorded(&self, vm: &VmName) -> Option<Ceiling> {
        self.vms.get(vm)?.cover.recorded()?.known()
    }

    /// What a later leader may count this VM with, if it is in the books: where it moves, it comes with that.
    pub(crate) fn counted_later(&self, vm: &VmName) -> Option<Resources> {
        self.vms.get(vm).map(Entry::counted_later)
    }

    /// What a later leader may count the node's other VMs with.
    fn counted_later_but(&self, vm: &VmName) -> Resources {
        let others = self.vms.values().filter(|entry| *entry.name != *vm);
        sum(others.map(Entry::counted_later))
    }
}

fn sum(sizes: impl Iterator<Item = Resources>) -> Resources {
    let mut sum = Sum::default();
    sizes.for_each(|size| sum.change(Resources::ZERO, size));
    sum.resources()
}
