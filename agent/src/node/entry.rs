//! One VM, as the agent has it: its file, its orders, and the runner that follows them.

use crate::runner::{self, End, Start};
use crate::shared::lock;
use crate::told::{Standing, Told};
use crate::view::View;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tracing::{Instrument, info, info_span};
use windlass_agent_core::Order;
use windlass_drivers::Attach;
use windlass_kit::tasks::Tasks;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Moment, Resources, VmName};

/// All VMs, by name.
pub(super) type Vms<A> = Arc<Mutex<BTreeMap<VmName, Entry<A>>>>;

/// One VM, as the agent has it.
pub(super) struct Entry<A> {
    pub(super) told: watch::Sender<Told<A>>,
    /// When it became known.
    pub(super) since: Moment,
    pub(super) view: Arc<Mutex<View>>,
    pub(super) port: watch::Receiver<Option<u16>>,
    /// What the file says, without the pause that a person asked for.
    pub(super) file: Option<VmFile>,
    pub(super) paused_until: Option<Moment>,
    /// The size that it is let go with.
    pub(super) release: Option<Resources>,
    pub(super) standing: Standing,
    pub(super) tasks: Tasks,
}

// === impl Entry ===

impl<A> Entry<A> {
    pub(super) fn order(&self, frozen: bool) -> Order {
        match self.standing {
            // Moving to the size that it is let go with waits for the thaw.
            Standing::Released if frozen && self.release.is_some() => Order::Freeze,
            Standing::Released => Order::Release(self.release),
            Standing::Removed => Order::Release(None),
            Standing::Managed if frozen => Order::Freeze,
            Standing::Managed => Order::Follow,
        }
    }

    /// The file, with the later of its own pause and the one that a person asked for.
    pub(super) fn told_file(&self) -> Option<VmFile> {
        let mut file = self.file.clone()?;
        file.info.paused_until = file.info.paused_until.max(self.paused_until);
        Some(file)
    }
}

/// Runs one VM until it is not needed any more; another start is this VM's only.
pub(super) async fn keep_running<A: Attach>(
    start: Start<A>,
    vms: Vms<A>,
) -> Result<(), Infallible> {
    let span = info_span!("vm", name = %start.vm);
    loop {
        let (vm, shared) = (start.vm.clone(), start.shared.clone());
        match runner::run(start.clone()).instrument(span.clone()).await {
            End::Stopped => return Ok(()),
            End::Removed => {
                let mut vms = lock(&vms);
                // Its file may have come back in this very moment.
                if vms.get(&vm).is_some_and(|entry| entry.standing == Standing::Removed)
                    && let Some(entry) = vms.remove(&vm)
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
