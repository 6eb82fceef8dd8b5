//! What the ledger was told about one VM.
//!
//! It hears of a VM once it is there, of each size that is seen, and of its end; it is told in
//! the order in which things happened, before anything is planned on them.

use crate::ledger::NodeEvent;
use crate::metrics::Presence;
use crate::node::Shared;
use std::sync::Arc;
use windlass_protocol::{Resources, VmInfo, VmName};

/// What the ledger was told about one VM.
pub(super) struct Account {
    shared: Arc<Shared>,
    vm: VmName,
    /// Set while the ledger has the VM.
    present: Option<Presence>,
    /// The most that the VM may have, as last seen.
    upper: Option<Resources>,
}

// === impl Account ===

impl Account {
    /// Of a VM that had `last` before a restart, if that is known: nobody may be given that,
    /// even before the VM answers.
    pub(super) fn open(shared: Arc<Shared>, vm: VmName, last: Option<Resources>) -> Self {
        let mut account = Self { shared, vm, present: None, upper: None };
        if let Some(upper) = last {
            account.counted(upper);
        }
        account
    }

    /// Which VM it is about.
    pub(super) fn vm(&self) -> &VmName {
        &self.vm
    }

    /// The most that the VM may have, as last seen; `None` if it was not seen or is gone.
    pub(super) fn upper(&self) -> Option<Resources> {
        self.upper
    }

    /// Whether the ledger has the VM.
    pub(super) fn is_present(&self) -> bool {
        self.present.is_some()
    }

    /// The VM is there and was never seen: it counts with the most that it may have.
    pub(super) fn unseen(&mut self, info: &VmInfo) {
        self.enter(info, None);
    }

    /// A VM that is managed was seen. Permits are asked for it if it is acted on.
    pub(super) fn seen(&mut self, info: &VmInfo, upper: Resources, acted_on: bool) {
        self.enter(info, Some(upper));
        if acted_on {
            self.upper = Some(upper);
            self.tell(NodeEvent::Witnessed { vm: self.vm.clone(), upper });
        } else {
            self.counted(upper);
        }
    }

    /// A VM for which no permits are asked was seen.
    pub(super) fn counted(&mut self, upper: Resources) {
        self.upper = Some(upper);
        self.present.get_or_insert_with(|| self.shared.metrics.present());
        self.tell(NodeEvent::Counted { vm: self.vm.clone(), upper });
    }

    /// What the VM should be changed.
    pub(super) fn updated(&self, info: VmInfo) {
        if self.is_present() {
            self.tell(NodeEvent::Updated { info: Box::new(info) });
        }
    }

    /// The VM is managed anew: it is entered again when it is seen.
    pub(super) fn anew(&mut self) {
        self.present = None;
    }

    /// There is no VM. Returns whether there was one.
    pub(super) fn left(&mut self) -> bool {
        self.upper = None;
        let was_there = self.present.take().is_some();
        if was_there {
            self.shared.metrics.gone();
            self.tell(NodeEvent::Left { vm: self.vm.clone() });
        }
        was_there
    }

    fn enter(&mut self, info: &VmInfo, upper: Option<Resources>) {
        if self.present.is_none() {
            self.present = Some(self.shared.metrics.present());
            self.tell(NodeEvent::Entered { info: Box::new(info.clone()), upper });
        }
    }

    fn tell(&self, event: NodeEvent) {
        self.shared.ledger.note(event);
    }
}
