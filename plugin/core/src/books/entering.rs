//! What the books are told of a VM by others than its agent: that it enters, what its hypervisor shows, that it is about to
//! move, that it leaves.
//!
//! [`Books::count`], where no agent speaks for the VM any more, and [`Books::leave`] end the permit of its agent. The others
//! leave that as it is, or raise it.

use super::Books;
use crate::ceilings::Kept;
use crate::entry::{Basis, Moving};
use std::sync::Arc;
use windlass_protocol::{Resources, VmName, VmRecord};

// === impl Books ===

impl Books {
    /// A VM is on this node, and `ceiling` may have been reserved for it. Entering again changes its
    /// record, and never lowers what is reserved.
    pub fn enter(&mut self, vm: impl Into<Arc<VmName>>, record: VmRecord, ceiling: Resources) {
        let vm = vm.into();
        self.have(&vm, record, Basis::Silent(Resources::ZERO));
        self.change(&vm, |entry| {
            entry.record = record;
            entry.basis = match entry.basis {
                Basis::Presumed(most) | Basis::Silent(most) => Basis::Silent(most.max(ceiling)),
                Basis::Spoken { permit, has } => Basis::Spoken { permit, has: has.max(ceiling) },
            };
        });
    }

    /// A VM is on this node, and no process sees what it has: it counts with `ceiling` until its agent
    /// speaks. The books believe an agent that names the last permit; for an agent that names none,
    /// all that it asks for may have been reserved. A VM that an agent speaks for is only
    /// [updated](Self::update).
    pub fn presume(&mut self, vm: impl Into<Arc<VmName>>, record: VmRecord, ceiling: Resources) {
        let vm = vm.into();
        self.have(&vm, record, Basis::Presumed(ceiling));
        self.change(&vm, |entry| {
            entry.record = record;
            if let Basis::Presumed(most) = &mut entry.basis {
                *most = most.max(ceiling);
                entry.is_remote = true;
            }
        });
    }

    /// A VM's pod is on this node, and requests this much of it: no less is reserved for as long as the pod is
    /// there, whatever the VM has. Until its agent speaks, the VM counts with `ceiling`; a later ceiling that
    /// was recorded replaces an earlier one, but for one that these books had recorded, whose headroom nobody was promised;
    /// without one nothing lowers what may have been promised.
    /// `kept`: the pod is the VM, and its ceiling is recorded.
    pub fn enter_pod(
        &mut self,
        vm: impl Into<Arc<VmName>>,
        record: VmRecord,
        requests: Resources,
        ceiling: Resources,
        kept: Option<Kept>,
    ) {
        let vm = vm.into();
        self.have(&vm, record, Basis::Presumed(ceiling));
        self.change(&vm, |entry| {
            (entry.record, entry.floor, entry.is_remote) = (record, requests, true);
            entry.cover.keep(kept);
            let shown = kept.and_then(|kept| kept.shown);
            let own = entry.cover.recorded().zip(shown);
            let is_own = own.is_some_and(|(recorded, shown)| recorded.is_own(shown));
            if let Basis::Presumed(most) = &mut entry.basis {
                *most = match shown {
                    Some(_) if is_own => *most,
                    Some(_) => ceiling,
                    None => ceiling.max(*most),
                };
            }
        });
    }

    /// Another VM of this name was in books before: a request that names a last permit may be one of its agent, as long as no agent
    /// has spoken, and for as long as a request may be late. Unknown VMs are passed over.
    pub(crate) fn doubt_names(&mut self, vm: &VmName) {
        self.change(vm, |entry| entry.has_namesake = true);
    }

    /// A VM may have this much besides what its agent said: it is one that was there before.
    pub(crate) fn returned(&mut self, vm: &VmName, most: Resources) {
        self.change(vm, |entry| {
            entry.basis = match entry.basis {
                Basis::Presumed(known) => Basis::Presumed(known.max(most)),
                Basis::Silent(known) => Basis::Silent(known.max(most)),
                Basis::Spoken { permit, has } => Basis::Spoken { permit: permit.max(most), has },
            };
        });
    }

    /// What is known of a VM changed. Unknown VMs are passed over.
    pub fn update(&mut self, vm: &VmName, record: VmRecord) {
        self.change(vm, |entry| entry.record = record);
    }

    /// A VM left the node, and everything reserved for it is free.
    pub fn leave(&mut self, vm: &VmName) {
        if let Some(entry) = self.vms.remove(vm) {
            self.tally.change(&entry.name, Some(entry.part()), None);
        }
    }

    /// No agent speaks for this VM, or no longer: the VM counts with exactly this, until its
    /// hypervisor shows something else.
    pub fn count(&mut self, vm: &VmName, has: Resources) {
        self.change(vm, |entry| {
            entry.basis = Basis::Silent(has);
            entry.claim = None;
        });
    }

    /// The hypervisor shows that a VM has this much. More than was reserved is a fact, and counts; so
    /// does less, for a VM that no agent speaks for.
    pub fn witness(&mut self, vm: &VmName, has: Resources) {
        self.change(vm, |entry| {
            entry.is_remote = false;
            entry.basis = match entry.basis {
                Basis::Presumed(_) | Basis::Silent(_) => Basis::Silent(has),
                Basis::Spoken { permit, has: _ } => Basis::Spoken { permit, has },
            };
        });
    }

    /// A VM is about to be moved to another node, or stays after all. Unknown VMs are passed over.
    pub fn set_moving(&mut self, vm: &VmName, moving: bool) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.moving = match (entry.moving, moving) {
                (_, false) => Moving::No,
                (Moving::No | Moving::Held, true) => Moving::Due,
                (told @ (Moving::Due | Moving::Told(_)), true) => told,
            };
        }
    }

    /// Another pod of a VM was placed for what the VM has, or left. A VM that moves is passed over, and so are unknown ones.
    pub fn set_held(&mut self, vm: &VmName, held: bool) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.moving = match (entry.moving, held) {
                (Moving::No | Moving::Held, true) => Moving::Held,
                (Moving::No | Moving::Held, false) => Moving::No,
                (moves @ (Moving::Due | Moving::Told(_)), _) => moves,
            };
        }
    }
}
