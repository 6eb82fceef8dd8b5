//! Names of VMs' pods that were on a node before: a request of such a VM's agent may still arrive, and names a pod by its name
//! alone. Whatever that agent says of its VM, it is not of the pod that has the name now, or not of its stay on this node.
//!
//! Bounded: the oldest is forgotten. So many pods do not leave within the time that a request may be late.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_protocol::VmName;

/// As many are remembered.
const MOST: usize = 1_000;

/// The names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namesakes {
    names: BTreeSet<Arc<VmName>>,
    /// In the order in which they first went.
    order: VecDeque<Arc<VmName>>,
}

// === impl Namesakes ===

impl Namesakes {
    /// The pod of a VM with this name has left its node.
    pub(crate) fn left(&mut self, name: &Arc<VmName>) {
        if self.names.insert(Arc::clone(name)) {
            self.order.push_back(Arc::clone(name));
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }

    /// Whether a pod of this name was on a node before.
    pub(crate) fn have(&self, name: &VmName) -> bool {
        self.names.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut namesakes = Namesakes::default();
        let name = |nth: usize| Arc::new(VmName::on_host(nth.to_string()));
        for nth in (0..=MOST).chain([1]) {
            namesakes.left(&name(nth));
        }
        assert!(!namesakes.have(&name(0)) && namesakes.have(&name(1)));
        assert_eq!((namesakes.names.len(), namesakes.order.len()), (MOST, MOST));
    }
}
