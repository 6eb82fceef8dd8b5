//! What keeps the VMs of a node from growing, whatever room the node has.
//!
//! A cordon says that the node is to become empty or is not to be trusted: what its VMs have stays theirs, and none gets more. A
//! kubelet that is short of memory evicts pods: memory that a VM gets then costs another pod its life, and the VM
//! may be next. Neither frees or takes anything that is reserved.

use windlass_protocol::{Axis, Bytes, Held, MilliCpu, Resources, node};

/// What keeps the VMs of a node from growing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// The node is cordoned.
    pub is_cordoned: bool,
    /// Its kubelet is short of memory.
    pub has_memory_pressure: bool,
}

// === impl Hold ===

impl Hold {
    /// What a node's object says.
    pub(crate) const fn of(node: &node::Node) -> Self {
        Self { is_cordoned: node.is_unschedulable, has_memory_pressure: node.has_memory_pressure }
    }

    /// Why no VM grows on this axis, if none does.
    pub const fn on(self, axis: Axis) -> Option<Held> {
        match (self, axis) {
            (Self { is_cordoned: true, .. }, Axis::Cpu | Axis::Memory) => Some(Held::Cordoned),
            (Self { has_memory_pressure: true, .. }, Axis::Memory) => Some(Held::MemoryPressure),
            (Self { .. }, Axis::Cpu | Axis::Memory) => None,
        }
    }

    /// The room that VMs may grow into: none on an axis that is held.
    pub(crate) fn opens(self, room: Resources) -> Resources {
        let is_held = |axis| self.on(axis).is_some();
        Resources {
            cpu: if is_held(Axis::Cpu) { MilliCpu::ZERO } else { room.cpu },
            mem: if is_held(Axis::Memory) { Bytes::ZERO } else { room.mem },
        }
    }
}
