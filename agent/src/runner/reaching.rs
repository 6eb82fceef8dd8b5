//! How a runner reaches the hypervisor of its VM: it looks where the VM is declared to be, and the phase of the VM follows from what
//! it finds there.

use super::Runner;
use super::hypervisor::{Happening, Hypervisor};
use super::managed::Managed;
use super::phase::Phase;
use crate::lock::lock;
use std::sync::{Arc, Mutex};
use tracing::{debug, info, warn};
use windlass_agent_core::{Event, Lifecycle};
use windlass_drivers::any::AnyAttach;
use windlass_drivers::{Attach, DriverError};
use windlass_protocol::{Capabilities, Moment};

// === impl Runner ===

impl Runner {
    /// The hypervisor is declared to be elsewhere, or to be used in another way. A VM that is there
    /// is not taken for gone because no VM is found at the new place.
    pub(super) fn seek(&mut self, now: Moment) {
        let attach = self.told.borrow().attach.clone();
        let elsewhere = attach.place() != self.hypervisor.way().place();
        self.other = None;
        if elsewhere && self.account.is_present() {
            self.other = Some(Hypervisor::new(attach, self.shared.seed()));
        } else {
            self.reach_anew(now, attach);
        }
    }

    /// Gives up the connection, and makes the next one in this way. What is known of the VM is
    /// found out again.
    pub(super) fn reach_anew(&mut self, now: Moment, attach: AnyAttach) {
        self.leave_phase(now);
        self.hypervisor = Hypervisor::new(attach, self.shared.seed());
        self.account.anew();
    }

    /// What was decided for the VM ends here.
    fn leave_phase(&mut self, now: Moment) {
        if let Some(mut managed) = self.phase.managed() {
            managed.interrupted(now);
        }
        self.phase = Phase::Absent;
    }

    /// What came of looking for the hypervisor where it is declared to be.
    pub(super) fn found(&mut self, happening: Happening) {
        match happening {
            Happening::Attached(capabilities) => {
                info!("vm is reached another way");
                if let Some(other) = self.other.take() {
                    let now = self.shared.clock.now();
                    self.leave_phase(now);
                    self.hypervisor = other;
                    self.account.anew();
                    self.attached(now, capabilities);
                }
            }
            Happening::Gone(error) | Happening::Unreachable(error) => {
                debug!(%error, "no vm at the hypervisor's new place; the old one is used");
            }
            Happening::Answered(_) | Happening::Noticed(_) => {}
        }
    }

    pub(super) fn attached(&mut self, now: Moment, capabilities: Capabilities) {
        let told = self.told.borrow();
        let vm = match (&told.desired.vm, told.desired.lifecycle) {
            (Some(vm), Lifecycle::Managed) => Some(vm.clone()),
            (Some(vm), Lifecycle::Released) if !self.let_go => Some(vm.clone()),
            (_, Lifecycle::Managed | Lifecycle::Released | Lifecycle::Removed) => None,
        };
        drop(told);
        match (&self.phase, vm) {
            (Phase::Managed(managed), _) => lock(managed).attached_again(now, capabilities),
            (Phase::Absent | Phase::Counted { .. }, Some(vm)) => {
                info!(place = self.hypervisor.way().place(), "attached");
                let (shared, port) = (self.shared.clone(), self.port.clone());
                let seed = shared.seed();
                let mut managed = Managed::new(shared, vm, port, seed, now);
                managed.hear(now, Event::Attached(capabilities));
                self.phase = Phase::Managed(Arc::new(Mutex::new(managed)));
            }
            (Phase::Absent | Phase::Counted { .. }, None) => self.begin_counting(now),
        }
    }

    pub(super) fn unreachable(&mut self, error: &DriverError) {
        self.shared.metrics.lost.inc();
        if self.account.is_present() {
            debug!(%error, "the hypervisor cannot be reached");
        } else if let Some(vm) = &self.told.borrow().desired.vm.clone() {
            warn!(%error, "the hypervisor cannot be reached; the vm counts with the most it may have");
            self.account.unseen(&vm.info);
        }
    }

    pub(super) fn gone(&mut self, now: Moment, error: &DriverError) {
        self.leave_phase(now);
        if self.account.left() {
            info!(why = %error, "vm is gone");
        }
        if let Some(other) = self.other.take() {
            self.hypervisor = other;
        }
    }
}
