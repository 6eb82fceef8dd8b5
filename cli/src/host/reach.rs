//! How the host reaches a VM: by QEMU's monitor, with a look at what can scale.
//!
//! A monitor serves one client, so what `windlass vm check` tells is found out at the moment
//! at which nobody has it yet: just before the first attach.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_drivers_qemu::{Qemu, QemuDriver};
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;

/// What was found out about each VM, by name, and when.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<ByVm>>);

type ByVm = BTreeMap<String, (Moment, Vec<Finding>)>;

/// The way to one VM.
#[derive(Clone, Debug)]
pub struct Reach {
    vm: String,
    qemu: Qemu,
    findings: Findings,
    clock: Clock,
}

// === impl Findings ===

impl Findings {
    /// What was found about a VM.
    pub fn of(&self, vm: &str) -> Option<(Moment, Vec<Finding>)> {
        self.all().get(vm).cloned()
    }

    /// Forgets a VM: it will be looked at anew.
    pub fn forget(&self, vm: &str) {
        self.all().remove(vm);
    }

    fn all(&self) -> MutexGuard<'_, ByVm> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Reach ===

impl Reach {
    /// The way to the VM of this name.
    pub fn new(vm: &str, qemu: Qemu, findings: &Findings, clock: Clock) -> Self {
        Self { vm: vm.to_owned(), qemu, findings: findings.clone(), clock }
    }
}

impl Attach for Reach {
    type Driver = QemuDriver;

    async fn attach(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        if self.findings.of(&self.vm).is_none() {
            let found = self.qemu.check().await;
            // Nobody there is no finding about the VM, but for the attach itself to say.
            if !found.iter().any(is_unreached) {
                self.findings.all().insert(self.vm.clone(), (self.clock.now(), found));
            }
        }
        self.qemu.attach().await
    }
}

fn is_unreached(finding: &Finding) -> bool {
    finding.topic == Topic::Monitor && finding.verdict == Verdict::Blocked
}
