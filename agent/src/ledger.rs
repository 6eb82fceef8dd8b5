//! What an agent reports to the books of its node, beside asking for permits.
//!
//! It is told at once and in order, before the next thing is asked or moved: a VM is entered
//! before its first permit is asked for, and a size is witnessed before anything is planned
//! on it. So [`Ledger::note`] must not wait.

use std::sync::Arc;
use windlass_protocol::{Resources, VmInfo, VmName};

/// The books of a node, as the agent reports to them.
pub trait Ledger: Send + Sync + 'static {
    /// Takes note. Called from the tasks of all VMs; must not block for longer than a short lock.
    fn note(&self, event: NodeEvent);
}

/// What happened to a VM of this node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeEvent {
    /// It is there. Said again after the VM was gone, or after its runner had to start anew.
    Entered {
        /// What it should be.
        info: Arc<VmInfo>,
        /// The most that it may have, as its hypervisor says. `None`: the hypervisor is there
        /// and does not say, so it counts with the maximum of its bounds until it does.
        upper: Option<Resources>,
    },
    /// What it should be changed.
    Updated {
        /// What it should be.
        info: Arc<VmInfo>,
    },
    /// It may have this much: the books must cover no less. Said at every look.
    Witnessed {
        /// Which VM.
        vm: VmName,
        /// The most that it may have.
        upper: Resources,
    },
    /// It may have this much, and its agent counts on no permit for it: the VM is only watched or
    /// was let go, or the agent does not act, or has yet to ask. The books hold exactly this. Said
    /// at every look, also for a VM that was never entered.
    Counted {
        /// Which VM.
        vm: VmName,
        /// The most that it may have.
        upper: Resources,
    },
    /// Its hypervisor is gone.
    Left {
        /// Which VM.
        vm: VmName,
    },
}

/// No ledger: for an agent whose plugin learns of VMs elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullLedger;

// === impl Ledger ===

impl Ledger for NullLedger {
    fn note(&self, _: NodeEvent) {}
}

impl<F: Fn(NodeEvent) + Send + Sync + 'static> Ledger for F {
    fn note(&self, event: NodeEvent) {
        self(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_function_can_be_a_ledger() {
        let (heard, events) = mpsc::channel();
        let left = NodeEvent::Left { vm: VmName::on_host("a") };
        let ledger = move |event| drop(heard.send(event));
        ledger.note(left.clone());
        assert_eq!(events.recv(), Ok(left));
    }
}
