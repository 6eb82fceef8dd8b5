//! The VMs of an agent: how they should be, and the runners that follow that.

use crate::runner::{self, End, Start};
use crate::shared::lock;
use crate::told::Told;
use crate::view::View;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tracing::{Instrument, info, info_span};
use windlass_agent_core::{Desired, Roster};
use windlass_drivers::any::AnyAttach;
use windlass_kit::tasks::Tasks;
use windlass_protocol::{Moment, VmName};

/// The VMs of an agent. Each of the roster has an entry.
#[derive(Default)]
pub(super) struct Vms {
    pub(super) roster: Roster,
    pub(super) entries: BTreeMap<VmName, Entry>,
}

/// One VM, as the agent has it.
pub(super) struct Entry {
    pub(super) told: watch::Sender<Told>,
    /// When it became known.
    pub(super) since: Moment,
    pub(super) view: Arc<Mutex<View>>,
    pub(super) port: watch::Receiver<Option<u16>>,
    pub(super) tasks: Tasks,
}

// === impl Entry ===

impl Entry {
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
