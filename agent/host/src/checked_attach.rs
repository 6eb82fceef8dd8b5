//! How the host reaches a VM: by the monitor of a hypervisor, with a look at what can scale.
//!
//! A monitor serves one client, so what `windlass vm check` tells is found out while no client has
//! the monitor: just before the first attach. Each attach that fails takes the place of what was found
//! before: it is what a person has to know now, and a VM that comes back may be another machine.
//!
//! The hypervisor is QEMU, or what a test puts in its place ([`CheckedAttach::by`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{info, warn};
use windlass_drivers::any::{AnyAttach, AnyDriver};
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_drivers_qemu::Qemu;
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;

/// To connect, look at what can scale, and attach: each command has a shorter limit of its own.
const ATTACHED_WITHIN: Duration = Duration::from_secs(30);

/// What was found out about each VM, by name, and when.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<ByVm>>);

type ByVm = BTreeMap<String, (Moment, Vec<Finding>)>;

/// The way to one VM.
pub struct CheckedAttach {
    vm: String,
    attach: AnyAttach,
    /// What can say what can scale, if this kind of hypervisor can.
    qemu: Option<Qemu>,
    findings: Findings,
    clock: Clock,
}

type Attached = Result<(AnyDriver, mpsc::Receiver<Notice>), DriverError>;

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

// === impl CheckedAttach ===

impl CheckedAttach {
    /// The way to the VM of this name, by QEMU's monitor.
    pub fn new(vm: &str, qemu: Qemu, findings: &Findings, clock: Clock) -> Self {
        Self { qemu: Some(qemu.clone()), ..Self::by(vm, qemu, findings, clock) }
    }

    /// The way to the VM of this name by anything that attaches, and knows nothing else.
    pub fn by(vm: &str, attach: impl Attach, findings: &Findings, clock: Clock) -> Self {
        let (vm, attach) = (vm.to_owned(), AnyAttach::new(attach));
        Self { vm, attach, qemu: None, findings: findings.clone(), clock }
    }

    /// Finds out what can scale, unless that is known, and attaches.
    async fn found(&self) -> Attached {
        let known = self.findings.of(&self.vm);
        if known.is_none_or(|(_, found)| found.iter().any(Finding::is_unreached))
            && let Some(qemu) = &self.qemu
        {
            let found = qemu.try_check().await?;
            found.iter().for_each(say_limit);
            self.findings.set(&self.vm, self.clock.now(), found);
        }
        self.attach.attach().await
    }
}

/// Says which limit of the host holds, or why none does.
fn say_limit(finding: &Finding) {
    let found = &finding.text;
    match (finding.topic, finding.verdict) {
        // The configuration asks for a limit that is not possible.
        (Topic::Limit, Verdict::Blocked) => warn!(%found, "cannot limit the vm's cpu as ordered"),
        (Topic::Limit, Verdict::Good | Verdict::Limited) => info!(%found, "limit of the vm's cpu"),
        (
            Topic::Monitor
            | Topic::Version
            | Topic::Accelerator
            | Topic::Cpu
            | Topic::Memory
            | Topic::Hugepages
            | Topic::Vfio
            | Topic::Balloon
            | Topic::Informant,
            _,
        ) => {}
    }
}

impl Attach for CheckedAttach {
    type Driver = AnyDriver;

    fn place(&self) -> String {
        self.attach.place()
    }

    fn is_same_way(&self, other: &Self) -> bool {
        self.attach == other.attach
    }

    async fn attach(&self) -> Attached {
        let silent = DriverError::NoAnswer { command: "attach", limit: ATTACHED_WITHIN };
        let found = timeout(ATTACHED_WITHIN, self.found()).await.unwrap_or(Err(silent));
        found.inspect_err(|error| {
            let found = vec![Finding::unreached(error)];
            self.findings.set(&self.vm, self.clock.now(), found);
        })
    }
}
