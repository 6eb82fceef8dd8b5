//! What others read of a VM that is acted on: its scaler is asked at that moment.

use super::Managed;
use crate::view::{BilledVm, GuestSnapshot, Session, View};
use windlass_protocol::Moment;
use windlass_protocol::status::VmStatus;

impl Managed {
    /// What people read of the VM.
    pub(crate) fn view(&self, now: Moment) -> View {
        View {
            status: Some(VmStatus { limit_counts: self.limit_counts, ..self.scaler.status(now) }),
            open: self.scaler.open_decision().cloned(),
            can: self.scaler.capabilities(),
            errors: self.errors.clone(),
            guest: self.guest(),
            ..View::default()
        }
    }

    /// What billing reads of the VM.
    pub(crate) fn billed(&self, now: Moment) -> BilledVm {
        BilledVm {
            vm: self.vm.info.name.clone(),
            charge: self.scaler.charge(now),
            mode: Some(self.vm.info.mode),
            silent: self.alarms.silent(),
        }
    }

    /// What was last heard of the guest.
    fn guest(&self) -> GuestSnapshot {
        let at = Some(self.scaler.heard_at()).filter(|at| *at > self.since);
        let session = |(id, sequence)| Session { id, sequence, callback: self.announced };
        GuestSnapshot {
            at,
            version: at.map(|_| self.scaler.version()),
            session: self.scaler.numbered().map(session),
            metrics_port: self.scaler.metrics_port(),
            sample: self.scaler.reading().copied(),
        }
    }
}
