//! How the host reaches a VM: by the monitor of a hypervisor, with a look at what can scale.
//!
//! A monitor serves one client, so what `windlass vm check` tells is found out at the moment
//! at which nobody has it yet: just before the first attach. Each attach that fails takes the
//! place of what was found before: it is what a person has to know now, and a VM that comes
//! back may be another machine.
//!
//! The hypervisor is QEMU, or what a test puts in its place ([`Reach::by`]).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_qemu::Qemu;
use windlass_drivers_qemu::check::Finding;
use windlass_kit::clock::Clock;
use windlass_kit::errand::Work;
use windlass_protocol::{Capabilities, Moment, Resize, Seen};

/// To connect, look at what can scale, and attach: each command has a shorter limit of its own.
const ATTACHED_WITHIN: Duration = Duration::from_secs(30);

/// What was found out about each VM, by name, and when.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<ByVm>>);

type ByVm = BTreeMap<String, (Moment, Vec<Finding>)>;

/// The way to one VM.
#[derive(Clone)]
pub struct Reach {
    vm: String,
    way: Arc<dyn Way>,
    findings: Findings,
    clock: Clock,
}

/// A connection to a VM.
pub struct AnyDriver(Box<dyn Drives>);

/// A kind of hypervisor.
trait Way: Send + Sync {
    fn monitor(&self) -> &Path;

    /// What can scale. `None`: this kind cannot say.
    fn check(&self) -> Work<Result<Option<Vec<Finding>>, DriverError>>;

    fn attach(&self) -> Work<Attached>;
}

type Attached = Result<(AnyDriver, mpsc::Receiver<Notice>), DriverError>;

/// [`Driver`], of whatever type.
trait Drives: Send {
    fn capabilities(&self) -> Capabilities;
    fn see(&mut self) -> Answer<'_, Seen>;
    fn resize(&mut self, resize: Resize) -> Answer<'_, ()>;
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + Send + 'a>>;

/// What attaches, and knows nothing else.
struct Plain<A>(A);

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
    /// The way to the VM of this name, by QEMU's monitor.
    pub fn new(vm: &str, qemu: Qemu, findings: &Findings, clock: Clock) -> Self {
        Self { vm: vm.to_owned(), way: Arc::new(qemu), findings: findings.clone(), clock }
    }

    /// The way to the VM of this name by anything that attaches.
    pub fn by<A: Attach + Clone>(vm: &str, attach: A, findings: &Findings, clock: Clock) -> Self {
        let way = Arc::new(Plain(attach));
        Self { vm: vm.to_owned(), way, findings: findings.clone(), clock }
    }

    /// Finds out what can scale, unless that is known, and attaches.
    async fn found(&self) -> Attached {
        let known = self.findings.of(&self.vm);
        if known.is_none_or(|(_, found)| found.iter().any(Finding::is_unreached))
            && let Some(found) = self.way.check().await?
        {
            self.findings.set(&self.vm, self.clock.now(), found);
        }
        self.way.attach().await
    }
}

impl Attach for Reach {
    type Driver = AnyDriver;

    fn monitor(&self) -> &Path {
        self.way.monitor()
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

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("vm", &self.vm).finish_non_exhaustive()
    }
}

// === impl Way ===

impl Way for Qemu {
    fn monitor(&self) -> &Path {
        Attach::monitor(self)
    }

    fn check(&self) -> Work<Result<Option<Vec<Finding>>, DriverError>> {
        let qemu = self.clone();
        Box::pin(async move { qemu.try_check().await.map(Some) })
    }

    fn attach(&self) -> Work<Attached> {
        attach(self.clone())
    }
}

impl<A: Attach + Clone> Way for Plain<A> {
    fn monitor(&self) -> &Path {
        self.0.monitor()
    }

    fn check(&self) -> Work<Result<Option<Vec<Finding>>, DriverError>> {
        Box::pin(async { Ok(None) })
    }

    fn attach(&self) -> Work<Attached> {
        attach(self.0.clone())
    }
}

fn attach<A: Attach>(to: A) -> Work<Attached> {
    Box::pin(async move {
        let (driver, notices) = to.attach().await?;
        Ok((AnyDriver(Box::new(driver)), notices))
    })
}

// === impl AnyDriver ===

impl<D: Driver> Drives for D {
    fn capabilities(&self) -> Capabilities {
        Driver::capabilities(self)
    }

    fn see(&mut self) -> Answer<'_, Seen> {
        Box::pin(Driver::see(self))
    }

    fn resize(&mut self, resize: Resize) -> Answer<'_, ()> {
        Box::pin(Driver::resize(self, resize))
    }
}

impl Driver for AnyDriver {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        self.0.see().await
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        self.0.resize(resize).await
    }
}
