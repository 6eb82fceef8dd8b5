//! The driver for NeonVM: sees and resizes a VM by its VirtualMachine at the API server.
//!
//! NeonVM's controller gives a VM what `spec.guest.cpus.use` and `spec.guest.memorySlots.use` say, in its own time, and shows in the
//! status what the VM has. The status is the truth. Until it shows less, a VM may have what its spec asks for; until it shows
//! more, the guest has no more. A look is at the object as the watch of [`Machines`] last showed it, and costs no request; a
//! look after a write waits until the watch shows that write.
//!
//! A write tests the UID, the generation and the pod: it takes effect on what was looked at, or not at all. So a look that is older
//! than it seems changes nothing, and a guest does not restart unheard: NeonVM gives a guest that restarts another pod, which is another VM
//! here. A VM is the pod that runs it; an object that names another pod says that this one is gone. What an object says, what a write
//! tests and what an answer means is decided in [`windlass_drivers_neonvm_core`].

mod machines;
mod write;

pub use machines::Machines;

use machines::Found;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_neonvm_core as core;
use windlass_drivers_neonvm_core::{Unwritten, WRITTEN_WITHIN, Writes};
use windlass_kit_kubernetes::Failure;
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Capabilities, Moment, NoSuccess, Resize, Seen, VmName};

/// The watch shows a write within this, and an object that is labelled anew.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// Notices that wait: each says no more than "look".
const NOTICES: usize = 1;

/// A VM of NeonVM, and how to reach it.
#[derive(Clone, Debug)]
pub struct NeonVm {
    machines: Machines,
    object: VmName,
    /// The pod that runs it.
    pod: String,
}

/// A connection to a VM of NeonVM.
#[derive(Debug)]
pub struct NeonDriver {
    vm: NeonVm,
    found: Found,
    capabilities: Capabilities,
    /// Since when it is attached: its moments are counted from there.
    attached: Instant,
    writes: Writes,
    /// Passes changes on as notices; ends with the connection.
    _notices: JoinSet<()>,
}

// === impl NeonVm ===

impl NeonVm {
    /// The way to the VM that this object names, and that this pod runs.
    pub const fn new(machines: Machines, object: VmName, pod: String) -> Self {
        Self { machines, object, pod }
    }

    /// The object, if it still says that this pod runs it.
    fn of(&self, machine: &Machine) -> Result<(), DriverError> {
        core::runs(machine, &self.pod).map_err(|why| self.gone(why))
    }

    /// The object as the watch shows it.
    async fn find(&self) -> Result<Found, DriverError> {
        self.followed().await?;
        match timeout(SHOWN_WITHIN, self.machines.find(&self.object)).await {
            Ok(found) => Ok(found),
            Err(_) => Err(self.not_followed().await),
        }
    }

    /// Waits for the watch, which may be listing.
    async fn followed(&self) -> Result<(), DriverError> {
        timeout(SHOWN_WITHIN, self.machines.are_followed()).await.map_err(|_| behind())
    }

    /// Why the watch does not show it: it is gone, or the watch is behind.
    async fn not_followed(&self) -> DriverError {
        match self.read().await.and_then(|machine| self.of(&machine)) {
            Ok(()) => behind(),
            Err(error) => error,
        }
    }

    /// The object as the API server has it.
    async fn read(&self) -> Result<Machine, DriverError> {
        self.machines.read(&self.object).await.map_err(|failure| match failure.kind() {
            NoSuccess::Gone => self.gone(failure.to_string()),
            NoSuccess::Conflict | NoSuccess::Invalid | NoSuccess::Refused | NoSuccess::Unknown => {
                DriverError::Broken(failure.to_string())
            }
        })
    }

    fn gone(&self, why: String) -> DriverError {
        DriverError::Gone { place: self.place(), why }
    }
}

impl Attach for NeonVm {
    type Driver = NeonDriver;

    fn place(&self) -> String {
        format!("virtualmachines/{} ({})", self.object, self.pod)
    }

    async fn attach(&self) -> Result<(NeonDriver, mpsc::Receiver<Notice>), DriverError> {
        let found = self.find().await?;
        let machine = found.get();
        self.of(&machine)?;
        let capabilities = core::capabilities(&machine).map_err(DriverError::Broken)?;
        let (tell, notices) = mpsc::channel(NOTICES);
        let mut changes = found.clone();
        let telling = async move {
            while changes.changed().await {
                // One that waits says the same.
                let _ = tell.try_send(Notice::Changed);
            }
        };
        let _notices = JoinSet::from_iter([telling]);
        let driver = NeonDriver {
            vm: self.clone(),
            found,
            capabilities,
            attached: Instant::now(),
            writes: Writes::default(),
            _notices,
        };
        Ok((driver, notices))
    }
}

// === impl NeonDriver ===

impl NeonDriver {
    /// Finds out what became of a write whose outcome is not known, once it can take effect no more: the watch may be behind, and silent.
    async fn settle(&mut self) -> Result<(), DriverError> {
        if self.writes.are_to_be_settled(self.now()) {
            self.writes.settled(self.vm.read().await?.generation);
        }
        Ok(())
    }

    fn now(&self) -> Moment {
        Moment::default().after(self.attached.elapsed())
    }

    /// The object as the watch last showed it, with the last write in it.
    async fn shown(&mut self) -> Result<Arc<Machine>, DriverError> {
        let writes = self.writes;
        let shown = self.found.wait_for(|machine| writes.are_shown(machine));
        match timeout(SHOWN_WITHIN, shown).await {
            Ok(Some(machine)) => Ok(machine),
            Ok(None) => Err(self.vm.not_followed().await),
            Err(_) => Err(behind()),
        }
    }
}

impl Driver for NeonDriver {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        self.vm.followed().await?;
        self.settle().await?;
        let machine = self.shown().await?;
        self.vm.of(&machine)?;
        self.writes.seen(&machine).map_err(DriverError::Broken)
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        let refused = |reason: String| DriverError::Refused { command: "patch", reason };
        let machine = self.found.get();
        self.vm.of(&machine)?;
        let change = core::change(&machine, resize).map_err(refused)?;
        self.writes.send(&machine);
        let written = self.vm.machines.write(&machine, change).await;
        let answer = written.as_ref().copied().map_err(Failure::kind);
        self.writes.answered(self.now(), answer).map_err(|unwritten| match unwritten {
            Unwritten::Refused => {
                refused(written.err().map(|failure| failure.to_string()).unwrap_or_default())
            }
            Unwritten::Unknown => DriverError::NoAnswer { command: "patch", limit: WRITTEN_WITHIN },
        })
    }
}

/// The watch does not show what it should in its time.
const fn behind() -> DriverError {
    DriverError::NoAnswer { command: "watch", limit: SHOWN_WITHIN }
}
