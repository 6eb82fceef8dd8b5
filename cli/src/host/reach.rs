//! How the host reaches a VM: by QEMU's monitor, with a look at what can scale.
//!
//! A monitor serves one client, so what `windlass vm check` tells is found out at the moment
//! at which nobody has it yet: just before the first attach. Each attach that fails takes the
//! place of what was found before: it is what a person has to know now, and a VM that comes
//! back may be another machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_drivers_qemu::check::Finding;
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

    /// Forgets every VM that is not to be kept.
    pub fn retain(&self, kept: impl Fn(&str) -> bool) {
        self.all().retain(|vm, _| kept(vm));
    }

    fn set(&self, vm: &str, at: Moment, found: Vec<Finding>) {
        self.all().insert(vm.to_owned(), (at, found));
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

    /// Finds out what can scale, unless that is known, and attaches.
    async fn found(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        let known = self.findings.of(&self.vm);
        if known.is_none_or(|(_, found)| found.iter().any(Finding::is_unreached)) {
            let found = self.qemu.try_check().await?;
            self.findings.set(&self.vm, self.clock.now(), found);
        }
        self.qemu.attach().await
    }
}

impl Attach for Reach {
    type Driver = QemuDriver;

    async fn attach(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        self.found().await.inspect_err(|error| {
            let found = vec![Finding::unreached(error)];
            self.findings.set(&self.vm, self.clock.now(), found);
        })
    }
}
