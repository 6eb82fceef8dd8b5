//! Which VMs of a host are in the books of its node, by what the host's agent sees.
//!
//! ```text
//!     presume                entered, counted
//!   ∅ ───────────► Presumed ──────────────────► Seen
//!   ▲ ◄───────────    │                          │
//!   │     refute      │ left                     │ left
//!   └─────────────────┴──────────────────────────┘
//! ```
//!
//! A VM that may be there and was not looked for yet is *presumed*: it counts with the most that it may
//! have, so that a restart promises its room to no other. Once it was *seen*, what its hypervisor says
//! counts, and no presumption changes that.

use crate::books::Books;
use std::collections::BTreeSet;
use windlass_protocol::{Resources, VmInfo, VmName, VmRecord};

/// The VMs of a host, seen or presumed. Each change is made in the books of the host's node, too.
#[derive(Clone, Debug, Default)]
pub struct HostVms {
    seen: BTreeSet<VmName>,
    presumed: BTreeSet<VmName>,
}

// === impl HostVms ===

impl HostVms {
    /// A VM may be there, and was not looked for yet: it counts with `ceiling`, or more if it was
    /// presumed to have more. Nothing if it was seen.
    pub fn presume(
        &mut self,
        books: &mut Books,
        vm: &VmName,
        record: VmRecord,
        ceiling: Resources,
    ) {
        if !self.seen.contains(vm) {
            self.presumed.insert(vm.clone());
            books.enter(vm.clone(), record, ceiling);
        }
    }

    /// VMs that are in the books without having been seen, by name.
    pub fn presumed(&self) -> impl Iterator<Item = &VmName> {
        self.presumed.iter()
    }

    /// Whether a VM is in the books without having been seen.
    pub fn is_presumed(&self, vm: &VmName) -> bool {
        self.presumed.contains(vm)
    }

    /// A presumed VM turned out not to be there.
    pub fn refute(&mut self, books: &mut Books, vm: &VmName) {
        if self.presumed.remove(vm) {
            books.leave(vm);
        }
    }

    /// A VM is there and may have `upper`; `None`: its hypervisor does not say, so it counts with the
    /// maximum of its bounds until it does.
    pub fn entered(&mut self, books: &mut Books, info: &VmInfo, upper: Option<Resources>) {
        self.sees(&info.name);
        let ceiling = upper.unwrap_or(info.bounds.max);
        books.enter(info.name.clone(), VmRecord::of(info), ceiling);
        if let Some(upper) = upper {
            // What was presumed before it was seen goes.
            books.witness(&info.name, upper);
        }
    }

    /// What a VM should be changed.
    pub fn updated(&self, books: &mut Books, info: &VmInfo) {
        books.update(&info.name, VmRecord::of(info));
    }

    /// A VM may have this much: the books cover no less.
    pub fn witnessed(&self, books: &mut Books, vm: &VmName, upper: Resources) {
        books.witness(vm, upper);
    }

    /// A VM may have this much, and its agent counts on no permit for it. The VM may never have been
    /// entered.
    pub fn counted(&mut self, books: &mut Books, vm: &VmName, upper: Resources) {
        self.sees(vm);
        let record = books.record(vm).copied().unwrap_or_default();
        books.enter(vm.clone(), record, Resources::ZERO);
        books.count(vm, upper);
    }

    /// The hypervisor of a VM is gone.
    pub fn left(&mut self, books: &mut Books, vm: &VmName) {
        self.presumed.remove(vm);
        self.seen.remove(vm);
        books.leave(vm);
    }

    fn sees(&mut self, vm: &VmName) {
        self.presumed.remove(vm);
        self.seen.insert(vm.clone());
    }
}
