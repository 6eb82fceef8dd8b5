//! The machines of a world, by the place of their monitors, and the way to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_fake::{FakeDriver, FakeVm};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, Resources, RunState, Seen,
    ShrinkCpu,
};

/// What QEMU's driver waits for a greeting, and for an answer.
const GREETED_WITHIN: Duration = Duration::from_secs(3);
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// So much at one virtual moment is no work but a circle.
const MOST_AT_ONCE: usize = 2_000;

/// All places. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Machines(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    places: BTreeMap<PathBuf, Place>,
    /// Machines that ended: none of them is forgotten by the judge.
    ended: Vec<FakeVm>,
    /// Events at this moment.
    at_once: Option<(Instant, usize)>,
    /// What went wrong.
    wrong: Option<String>,
}

/// Where a monitor may be.
#[derive(Default)]
pub(super) struct Place {
    pub(super) machine: Option<FakeVm>,
    /// How long its answers take.
    pub(super) slow: Duration,
    /// When the last machine there ended.
    pub(super) gone_since: Option<Instant>,
    /// Attempts to connect, to whatever machine.
    pub(super) tried: usize,
}

/// The way to whatever machine is there.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) machines: Machines,
    pub(super) monitor: PathBuf,
    /// Whether vCPUs may be taken out: another way to the same machine.
    pub(super) removal: bool,
}

/// A connection that may be slow.
pub(super) struct SlowDriver {
    way: Way,
    driver: FakeDriver,
}

// === impl Machines ===

impl Machines {
    /// A machine begins; one that was there ends.
    pub(super) fn begin(&self, monitor: &Path, units: u64) {
        self.end(monitor);
        let machine = machine(units).at(monitor.display().to_string());
        self.with(monitor, |place| place.machine = Some(machine));
    }

    pub(super) fn end(&self, monitor: &Path) {
        let ended = self.with(monitor, |place| {
            place.gone_since = Some(Instant::now());
            place.machine.take()
        });
        if let Some(machine) = ended {
            machine.end();
            self.lock().ended.push(machine);
        }
    }

    pub(super) fn at(&self, monitor: &Path) -> Option<FakeVm> {
        self.with(monitor, |place| place.machine.clone())
    }

    pub(super) fn with<T>(&self, monitor: &Path, look: impl FnOnce(&mut Place) -> T) -> T {
        look(self.lock().places.entry(monitor.to_owned()).or_default())
    }

    /// Every machine that there ever was.
    pub(super) fn all(&self) -> Vec<FakeVm> {
        let inner = self.lock();
        let there = inner.places.values().filter_map(|place| place.machine.clone());
        there.chain(inner.ended.iter().cloned()).collect()
    }

    pub(super) fn wrong(&self) -> Option<String> {
        self.lock().wrong.clone()
    }

    fn happens(&self, what: &str) {
        let (now, mut inner) = (Instant::now(), self.lock());
        let before = inner.at_once.filter(|(at, _)| *at == now).map_or(0, |(_, count)| count);
        inner.at_once = Some((now, before + 1));
        if before > MOST_AT_ONCE {
            inner.wrong = Some(format!("round in circles: {what}"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

/// A machine of so many units of a vCPU and 512 MiB, of at most four.
fn machine(units: u64) -> FakeVm {
    let (vcpus, unit) = (MilliCpu::from_cores, Bytes::from_mib(512));
    let capabilities = Capabilities {
        cpu_step: vcpus(1),
        limit_step: None,
        memory_step: Bytes::from_mib(128),
        shrink_cpu: ShrinkCpu::Removal,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: Resources::new(vcpus(1), unit),
        max: Resources::new(vcpus(4), unit.saturating_mul(4)),
    };
    let more = unit.saturating_mul(units - 1);
    let memory = MemorySeen { boot: unit, requested: more, size: more };
    FakeVm::new(
        capabilities,
        Seen {
            plugged: vcpus(units),
            limit: None,
            found_limit: None,
            memory,
            state: RunState::Running,
        },
    )
}

// === impl Way ===

impl Way {
    async fn is_slow(&self) {
        let slow = self.machines.with(&self.monitor, |place| place.slow);
        if !slow.is_zero() {
            sleep(slow).await;
        }
    }
}

impl Attach for Way {
    type Driver = SlowDriver;

    fn place(&self) -> String {
        self.monitor.display().to_string()
    }

    fn is_same_way(&self, other: &Self) -> bool {
        (&self.monitor, self.removal) == (&other.monitor, other.removal)
    }

    async fn attach(&self) -> Result<(SlowDriver, mpsc::Receiver<Notice>), DriverError> {
        self.machines.happens("attach");
        let place = self.place();
        let machine = self.machines.with(&self.monitor, |place| {
            place.tried += 1;
            place.machine.clone()
        });
        let Some(machine) = machine else {
            return Err(DriverError::Gone { place, why: "there is no machine".to_owned() });
        };
        self.is_slow().await;
        let taken = Err(DriverError::Taken { place });
        let attached = timeout(GREETED_WITHIN, machine.attach()).await.unwrap_or(taken);
        attached.map(|(driver, notices)| (SlowDriver { way: self.clone(), driver }, notices))
    }
}

// === impl SlowDriver ===

impl Driver for SlowDriver {
    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        self.way.machines.happens("look");
        self.way.is_slow().await;
        let silent = DriverError::NoAnswer { command: "see", limit: ANSWERED_WITHIN };
        timeout(ANSWERED_WITHIN, self.driver.see()).await.unwrap_or(Err(silent))
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        self.way.machines.happens("resize");
        self.way.is_slow().await;
        let silent = DriverError::NoAnswer { command: "resize", limit: ANSWERED_WITHIN };
        timeout(ANSWERED_WITHIN, self.driver.resize(resize)).await.unwrap_or(Err(silent))
    }
}
