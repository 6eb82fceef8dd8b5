//! What the ledger was told about one VM.
//!
//! It hears of a VM once it is there, of each size that is seen, and of its end; it is told in
//! the order in which things happened, before anything is planned on them. What it has of a VM
//! outlives the runner ([`Booked`]): whichever runner finds the VM gone tells the ledger so.

use crate::ledger::NodeEvent;
use crate::lock::lock;
use crate::metrics::Presence;
use crate::shared::Shared;
use std::sync::{Arc, Mutex, MutexGuard};
use windlass_agent_core::BooksUpdate;
use windlass_protocol::{Resources, VmInfo, VmName};

/// What the ledger has of one VM, whichever runner told it.
#[derive(Debug, Default)]
pub(crate) struct Booked {
    /// Set while the ledger has the VM.
    pub(crate) present: Option<Presence>,
    /// The most that the VM may have, as last seen, perhaps before a restart; `None` if it was not seen
    /// or is gone.
    pub(crate) upper: Option<Resources>,
}

/// What the ledger was told about one VM.
pub(super) struct Account {
    shared: Arc<Shared>,
    vm: VmName,
    booked: Arc<Mutex<Booked>>,
    /// What the ledger was told that the VM should be, since it is managed over this connection.
    /// `None`: it is to be entered.
    entered: Option<Arc<VmInfo>>,
}

// === impl Account ===

impl Account {
    /// Of a VM that the ledger may have already.
    pub(super) fn open(shared: Arc<Shared>, vm: VmName, booked: Arc<Mutex<Booked>>) -> Self {
        Self { shared, vm, booked, entered: None }
    }

    /// Which VM it is about.
    pub(super) fn vm(&self) -> &VmName {
        &self.vm
    }

    /// The most that the VM may have, as last seen; `None` if it was not seen or is gone.
    pub(super) fn upper(&self) -> Option<Resources> {
        self.booked().upper
    }

    /// Whether the ledger has the VM.
    pub(super) fn is_present(&self) -> bool {
        self.booked().present.is_some()
    }

    /// What the VM should be changed.
    pub(super) fn updated(&mut self, info: &Arc<VmInfo>) {
        if self.entered.is_some() {
            self.enter(info, None);
        }
    }

    /// The VM is there and was never seen: it counts with the most that it may have.
    pub(super) fn unseen(&mut self, info: &Arc<VmInfo>) {
        self.enter(info, None);
    }

    /// A VM that is managed was seen. What was permitted goes once its agent counts on no permit.
    pub(super) fn seen(&mut self, info: &Arc<VmInfo>, due: BooksUpdate) {
        self.enter(info, Some(due.upper()));
        match due {
            BooksUpdate::Witnessed(upper) => {
                self.booked().upper = Some(upper);
                self.tell(NodeEvent::Witnessed { vm: self.vm.clone(), upper });
            }
            BooksUpdate::Counted(upper) => self.counted(upper),
        }
    }

    /// A VM for which no permit counts was seen.
    pub(super) fn counted(&mut self, upper: Resources) {
        self.book(Some(upper));
        self.tell(NodeEvent::Counted { vm: self.vm.clone(), upper });
    }

    /// The VM is managed anew: it is entered again when it is seen. Until then the ledger has it
    /// as it was, and hears of its end.
    pub(super) fn anew(&mut self) {
        self.entered = None;
    }

    /// There is no VM. Returns whether there was one.
    pub(super) fn left(&mut self) -> bool {
        self.entered = None;
        let was_there = std::mem::take(&mut *self.booked()).present.is_some();
        if was_there {
            self.shared.metrics.gone.inc();
            self.tell(NodeEvent::Left { vm: self.vm.clone() });
        }
        was_there
    }

    /// The ledger has the VM, and knows what it should be: what was said of it is said anew when
    /// it changed.
    fn enter(&mut self, info: &Arc<VmInfo>, upper: Option<Resources>) {
        if self.entered.as_ref() == Some(info) {
            return;
        }
        let event = match self.entered.replace(info.clone()) {
            Some(_) => NodeEvent::Updated { info: info.clone() },
            None => NodeEvent::Entered { info: info.clone(), upper },
        };
        self.book(upper);
        self.tell(event);
    }

    /// The ledger has the VM from here on.
    fn book(&self, upper: Option<Resources>) {
        let mut booked = self.booked();
        booked.present.get_or_insert_with(|| self.shared.metrics.present());
        booked.upper = upper.or(booked.upper);
    }

    fn booked(&self) -> MutexGuard<'_, Booked> {
        lock(&self.booked)
    }

    fn tell(&self, event: NodeEvent) {
        self.shared.ledger.note(event);
    }
}
