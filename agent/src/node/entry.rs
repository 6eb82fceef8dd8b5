//! The VMs of an agent: how they should be, and the runners that follow that.

use crate::lock::lock;
use crate::runner::{self, Booked, DesiredState, Doing, End, Start};
use crate::view::{BilledVm, View};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tracing::{Instrument, info, info_span};
use windlass_agent_core::{Charge, Desired, Lifecycle, Roster, Scaler, Vm};
use windlass_drivers::any::AnyAttach;
use windlass_kit::tasks::Tasks;
use windlass_protocol::{Moment, Resources, VmName};

/// The VMs of an agent. Each of the roster has an entry.
#[derive(Default)]
pub(super) struct Vms {
    pub(super) roster: Roster,
    pub(super) entries: BTreeMap<VmName, Entry>,
}

/// One VM, as the agent has it.
pub(super) struct Entry {
    pub(super) told: watch::Sender<DesiredState>,
    /// When it became known.
    pub(super) since: Moment,
    pub(super) doing: Arc<Mutex<Doing>>,
    pub(super) booked: Arc<Mutex<Booked>>,
    pub(super) port: watch::Receiver<Option<u16>>,
    pub(super) tasks: Tasks,
}

// === impl Entry ===

impl Entry {
    /// What people read of the VM at this moment.
    pub(super) fn view(&self, now: Moment) -> View {
        let (present, upper) = self.booked();
        let view = match self.doing() {
            Doing::Managing(managed) => lock(&managed).view(now),
            Doing::Counting => View { counted: true, ..View::default() },
            Doing::Seeking | Doing::Waiting => {
                let unseen = self.unseen().filter(|_| present);
                let status = unseen.map(|vm| Scaler::unseen_status(&vm.info));
                View { status, ..View::default() }
            }
        };
        View { present, upper, ..view }
    }

    /// What billing reads of this VM at this moment.
    pub(super) fn billed(&self, vm: &VmName, now: Moment) -> BilledVm {
        let (present, _) = self.booked();
        let counted =
            BilledVm { vm: vm.clone(), charge: Charge::Nothing, mode: None, silent: false };
        match self.doing() {
            Doing::Managing(managed) => lock(&managed).billed(now),
            Doing::Counting => counted,
            Doing::Waiting if !present => counted,
            Doing::Seeking | Doing::Waiting => {
                let unseen = self.unseen().filter(|_| present);
                BilledVm { charge: Charge::Open, mode: unseen.map(|vm| vm.info.mode), ..counted }
            }
        }
    }

    /// Whether the VM is there, and the most that it may have, as last seen.
    pub(super) fn booked(&self) -> (bool, Option<Resources>) {
        let booked = lock(&self.booked);
        (booked.present.is_some(), booked.upper)
    }

    /// What the runner is doing.
    pub(super) fn doing(&self) -> Doing {
        lock(&self.doing).clone()
    }

    /// What is declared of a VM that is to be managed, for while it cannot be reached.
    fn unseen(&self) -> Option<Vm> {
        let told = self.told.borrow();
        let managed = told.desired.lifecycle == Lifecycle::Managed;
        told.desired.vm.clone().filter(|_| managed)
    }

    /// Tells the runner how things should be, and how the VM is reached, as far as that changed.
    pub(super) fn tell(&self, desired: Option<Desired>, attach: Option<AnyAttach>) {
        self.told.send_if_modified(|told| {
            // A VM that was only counted is attached to anew: what can be done with it is not known.
            let same = |attach: &AnyAttach| told.desired.vm.is_some() && told.attach == *attach;
            let attach = attach.filter(|attach| !same(attach));
            let changes = desired.is_some() || attach.is_some();
            if let Some(attach) = attach {
                (told.attach, told.reach) = (attach, told.reach + 1);
            }
            if let Some(desired) = desired {
                told.desired = desired;
            }
            changes
        });
    }
}

/// Runs one VM until it is not needed any more; another start is this VM's only.
pub(super) async fn keep_running(start: Start, vms: Arc<Mutex<Vms>>) -> Result<(), Infallible> {
    let span = info_span!("vm", name = %start.vm);
    loop {
        let (vm, shared) = (start.vm.clone(), start.shared.clone());
        match runner::run(start.clone()).instrument(span.clone()).await {
            End::Stopped => return Ok(()),
            End::Removed => {
                let mut vms = lock(&vms);
                // It may be declared again in this very moment.
                if vms.roster.gone(&vm)
                    && let Some(entry) = vms.entries.remove(&vm)
                {
                    entry.tasks.stop();
                    lock(&shared.ports).release(&vm);
                    info!(%vm, "vm forgotten");
                    return Ok(());
                }
            }
        }
    }
}
