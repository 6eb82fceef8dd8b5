//! What the VMs of a node were last permitted, whatever its books have forgotten since.
//!
//! Books that know of VMs by a list alone presume, after a restart, the most that each may have:
//! then their own sum says nothing of what the node is good for.

use crate::laws;
use std::collections::BTreeMap;
use windlass_protocol::{Resources, VmName};

/// A VM that is there.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) vm: VmName,
    /// What it has.
    pub(crate) has: Resources,
    /// What it may have for all that an agent knows that has just begun, in whole slots.
    pub(crate) plugged: Resources,
}

/// What was last permitted to each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises(BTreeMap<VmName, Resources>);

// === impl Promises ===

impl Promises {
    /// A VM is permitted this, where these are, and the books keep `kept` for it: what a late request did not free.
    /// How law 2 is broken by it, if it is.
    pub(crate) fn permitted(
        &mut self,
        room: Resources,
        here: &[Present],
        vm: &VmName,
        permit: Resources,
        kept: Resources,
    ) -> Option<String> {
        // What it has anyhow is a fact, also where its guest had parked it.
        let fact = here.iter().find(|present| present.vm == *vm)?.plugged.min(permit);
        let fact = fact.max(kept.min(permit));
        let known = self.0.get(vm).map_or(fact, |known| known.max(fact));
        self.0.insert(vm.clone(), known);
        let before = self.sum(here);
        self.0.insert(vm.clone(), permit);
        laws::books(room, before, self.sum(here))
    }

    /// A VM is not on this node any more.
    pub(crate) fn leave(&mut self, vm: &VmName) {
        self.0.remove(vm);
    }

    fn sum(&self, here: &[Present]) -> Resources {
        let may_have = |here: &Present| self.0.get(&here.vm).copied().unwrap_or(here.plugged);
        here.iter().map(may_have).fold(Resources::ZERO, Resources::saturating_add)
    }
}
