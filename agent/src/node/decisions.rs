//! What an agent says of its decisions. The closed ones outlive the runners that made them.

use super::{Agent, UnknownVm};
use crate::history::Explained;
use crate::shared::lock;
use windlass_protocol::{Decision, Moment, VmName};

impl Agent {
    /// The decisions about a VM in the last hour, and what it waits for.
    ///
    /// # Errors
    /// If there is no such VM, and has not been one lately.
    pub fn decisions(&self, vm: &VmName) -> Result<Explained, UnknownVm> {
        let now = self.shared.clock.now();
        let view = lock(&self.vms).entries.get(vm).map(|entry| entry.view(now));
        let closed = lock(&self.shared.history).of(now, vm);
        if view.is_none() && closed.is_none() {
            return Err(UnknownVm(vm.clone()));
        }
        let mut explained =
            Explained { closed: closed.unwrap_or_default(), ..Explained::default() };
        if let Some(view) = view {
            explained.open = view.open;
            explained.waiting = view.status.map(|status| status.waiting).unwrap_or_default();
        }
        Ok(explained)
    }

    /// The decisions about a VM that were made after this moment and are closed, oldest first. Unlike
    /// [`Agent::decisions`] it asks no runner and copies only those.
    pub fn closed_after(&self, vm: &VmName, moment: Option<Moment>) -> Vec<Decision> {
        lock(&self.shared.history).after(self.shared.clock.now(), vm, moment)
    }

    /// The last decision about each VM in the last hour for which this holds, by name.
    pub fn last_decisions(&self, holds: impl Fn(&Decision) -> bool) -> Vec<Decision> {
        lock(&self.shared.history).last(self.shared.clock.now(), holds)
    }

    /// Takes back decisions that were written down before a restart.
    pub fn recall(&self, decisions: Vec<Decision>) {
        let now = self.shared.clock.now();
        let mut history = lock(&self.shared.history);
        for decision in decisions {
            history.add(now, decision);
        }
    }
}
