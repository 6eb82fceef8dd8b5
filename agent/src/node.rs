//! The VMs of a node: which are managed, by what orders, and what they are doing.
//!
//! Everything a runner is told goes through one watched value ([`Told`]) that says how things
//! should be, not what to do; a runner that was busy, or that had to start anew, misses
//! nothing. What runners publish is read here without waiting for them.

mod ear;
mod entry;

use crate::callback::Calls;
use crate::charged::Charged;
use crate::config::Config;
use crate::dump::{self, Pod};
use crate::history::Explained;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::plugin::Permits;
use crate::runner::{Booked, Start};
use crate::shared::{Shared, lock};
use crate::told::{Standing, Told};
use crate::view::View;
use ear::Ear;
use entry::{Entry, Vms, keep_running};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tokio::sync::watch;
use tracing::info;
use windlass_agent_core::Order;
use windlass_drivers::Attach;
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::status::VmStatus;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Bytes, Capabilities, Decision, Moment, Resources, VmName};

/// An agent. Cheap to clone; all clones are one. `A` is the kind of hypervisor.
pub struct Agent<A: Attach> {
    shared: Arc<Shared>,
    vms: Vms<A>,
    tasks: Tasks,
}

/// What is known of a VM, managed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What its hypervisor can do, while the VM is managed.
    pub can: Option<Capabilities>,
    /// Whether its hypervisor is there.
    pub present: bool,
    /// The most that it may have, as last seen.
    pub upper: Option<Resources>,
    /// Whether it was let go, and is only counted.
    pub let_go: bool,
}

/// There is no such VM.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no vm {0} is managed here")]
pub struct UnknownVm(pub VmName);

// === impl Agent ===

impl<A: Attach> Agent<A> {
    /// An agent without VMs. Its tasks are part of `tasks`.
    pub fn new(
        config: Config,
        permits: Arc<dyn Permits>,
        ledger: Arc<dyn Ledger>,
        tasks: &Tasks,
        clock: Clock,
    ) -> Self {
        let shared = Shared::new(config, permits, ledger, clock);
        Self { shared: Arc::new(shared), vms: Vms::default(), tasks: tasks.clone() }
    }

    /// Manages a VM from here on, or takes note that its file changed; ends a release. How it
    /// is reached is made anew if `qmp` or `vcpu_removal` are others.
    ///
    /// Must be called within the runtime.
    pub fn manage(&self, file: VmFile, attach: A) {
        let vm = file.info.name.clone();
        let mut vms = lock(&self.vms);
        match vms.get_mut(&vm) {
            Some(entry) => {
                let same =
                    |old: &VmFile| old.qmp == file.qmp && old.vcpu_removal == file.vcpu_removal;
                let attach = (!entry.file.as_ref().is_some_and(same)).then(|| Arc::new(attach));
                (entry.file, entry.standing) = (Some(file), Standing::Managed);
                self.tell(entry, attach);
            }
            None => {
                let entry = self.start(&vm, Some(file), attach, Standing::Managed, None);
                vms.insert(vm, entry);
            }
        }
    }

    /// Looks at a VM and counts it, without acting on it: one that was released or removed
    /// before a restart. `last` is what it had when it was last seen.
    ///
    /// Must be called within the runtime.
    pub fn count(&self, vm: VmName, attach: A, last: Resources, standing: Standing) {
        let start = |vm: &VmName| self.start(vm, None, attach, standing, Some(last));
        lock(&self.vms).entry(vm).or_insert_with_key(start);
    }

    /// Stops managing: the VM keeps its size, and is counted until its hypervisor is gone.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn forget(&self, vm: &VmName) -> Result<(), UnknownVm> {
        self.change(vm, |entry| entry.standing = Standing::Removed)
    }

    /// Brings a VM to a size, or keeps the present one, and lets go of it: from then on it is
    /// counted. [`Agent::manage`] takes it back.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn release(&self, vm: &VmName, size: Option<Resources>) -> Result<(), UnknownVm> {
        self.change(vm, |entry| {
            (entry.standing, entry.release) = (Standing::Released, size);
            // It may be from an earlier release; the runner says anew when it has let go.
            lock(&entry.view).counted = false;
        })
    }

    /// Nothing of a VM moves until this moment; `None` ends that.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn pause(&self, vm: &VmName, until: Option<Moment>) -> Result<(), UnknownVm> {
        self.change(vm, |entry| entry.paused_until = until)
    }

    /// Nothing of any VM moves until this is taken back.
    pub fn freeze(&self, frozen: bool) {
        self.shared.frozen.store(frozen, Ordering::Relaxed);
        for entry in lock(&self.vms).values_mut() {
            self.tell(entry, None);
        }
    }

    /// Whether nothing is to move.
    pub fn is_frozen(&self) -> bool {
        self.shared.frozen.load(Ordering::Relaxed)
    }

    /// The managed VMs that are there, by name. Never waits for one of them.
    pub fn status(&self) -> Vec<VmStatus> {
        let views: Vec<_> = lock(&self.vms).values().map(|entry| entry.view.clone()).collect();
        views.iter().filter_map(|view| lock(view).status.clone()).collect()
    }

    /// Every VM that is known, by name: its standing, and the most that it may have as last
    /// seen, if it is there. What a host writes down for after a restart.
    pub fn standings(&self) -> Vec<(VmName, Standing, Option<Resources>)> {
        let vms = lock(&self.vms);
        vms.iter().map(|(vm, e)| (vm.clone(), e.standing, lock(&e.view).upper)).collect()
    }

    /// Whether a VM was looked for and is not there, or is not known. What a VM was counted with
    /// before it was looked for is free from then on.
    pub fn is_absent(&self, vm: &VmName) -> bool {
        lock(&self.vms).get(vm).is_none_or(|entry| lock(&entry.view).absent)
    }

    /// What is known of a VM, managed or not. Never waits for it.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn known(&self, vm: &VmName) -> Result<Known, UnknownVm> {
        let view = lock(&self.vms).get(vm).map(|entry| (entry.standing, entry.view.clone()));
        let (standing, view) = view.ok_or_else(|| UnknownVm(vm.clone()))?;
        let View { can, present, upper, counted, .. } = lock(&view).clone();
        let let_go = counted && standing != Standing::Managed;
        Ok(Known { can, present, upper, let_go })
    }

    /// Every VM that is known, by name, and what is billed of it. Never waits for one of them.
    pub fn charges(&self) -> Vec<Charged> {
        let vms = lock(&self.vms);
        let charged = |(vm, entry): (&VmName, &Entry<A>)| {
            let view = lock(&entry.view);
            let mode = view.status.as_ref().map(|status| status.mode);
            Charged { vm: vm.clone(), charge: view.charge, mode, silent: view.silent }
        };
        vms.iter().map(charged).collect()
    }

    /// Which VM has which call-back port. Given back as [`Config::kept_ports`], it has the same
    /// after a restart.
    pub fn ports(&self) -> BTreeMap<VmName, u16> {
        lock(&self.shared.ports).assigned().clone()
    }

    /// The decisions about a VM in the last hour, and what it waits for.
    ///
    /// # Errors
    /// If there is no such VM, and has not been one lately.
    pub fn decisions(&self, vm: &VmName) -> Result<Explained, UnknownVm> {
        let view = lock(&self.vms).get(vm).map(|entry| entry.view.clone());
        let now = self.shared.clock.now();
        let closed = lock(&self.shared.history).of(now, vm);
        if view.is_none() && closed.is_none() {
            return Err(UnknownVm(vm.clone()));
        }
        let mut explained =
            Explained { closed: closed.unwrap_or_default(), ..Explained::default() };
        if let Some(view) = view {
            let view = lock(&view);
            explained.open = view.open.clone();
            explained.waiting = view.status.iter().flat_map(|s| s.waiting.clone()).collect();
        }
        Ok(explained)
    }

    /// The last decision about each VM in the last hour for which this holds, by name.
    pub fn last_decisions(&self, holds: impl Fn(&Decision) -> bool) -> Vec<Decision> {
        lock(&self.shared.history).last(self.shared.clock.now(), holds)
    }

    /// Takes back decisions that were written down before a restart.
    pub fn recall(&self, decisions: Vec<Decision>) {
        let now = self.shared.clock.now();
        let mut history = lock(&self.shared.history);
        for decision in decisions {
            history.add(now, decision);
        }
    }

    /// Memory that the host itself has available, if it says.
    pub fn host_available(&self) -> Option<Bytes> {
        self.shared.host_memory.available(self.shared.clock.now())
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The state of every VM, for a person who looks for a fault.
    pub fn dump(&self) -> serde_json::Value {
        let vms = lock(&self.vms);
        let dumps = vms.iter().map(|(vm, entry)| {
            dump::vm(
                vm,
                entry.standing,
                *entry.port.borrow(),
                entry.file.as_ref(),
                &lock(&entry.view),
            )
        });
        dump::agent(self.is_frozen(), dumps.collect())
    }

    /// The state in the shape of the reference's agent; `plugin` is where permits are asked for.
    pub fn reference_dump(&self, stopped: bool, plugin: IpAddr) -> serde_json::Value {
        let pod = |(vm, entry): (&VmName, &Entry<A>)| Pod {
            name: vm.clone(),
            since: entry.since,
            standing: entry.standing,
            port: *entry.port.borrow(),
            file: entry.file.clone(),
            view: lock(&entry.view).clone(),
        };
        let pods: Vec<Pod> = lock(&self.vms).iter().map(pod).collect();
        let unit = self.shared.config.unit;
        let pods = pods.iter().map(|pod| pod.reference(unit, plugin)).collect();
        dump::reference(stopped, pods)
    }

    fn change(&self, vm: &VmName, change: impl FnOnce(&mut Entry<A>)) -> Result<(), UnknownVm> {
        let mut vms = lock(&self.vms);
        let entry = vms.get_mut(vm).ok_or_else(|| UnknownVm(vm.clone()))?;
        change(entry);
        self.tell(entry, None);
        Ok(())
    }

    /// Says how things should be, after something changed.
    fn tell(&self, entry: &mut Entry<A>, attach: Option<Arc<A>>) {
        let frozen = self.is_frozen();
        let (file, order, standing) = (entry.told_file(), entry.order(frozen), entry.standing);
        entry.told.send_modify(|told| {
            if let Some(attach) = attach {
                (told.attach, told.reach) = (attach, told.reach + 1);
            }
            (told.file, told.order, told.standing) = (file, order, standing);
        });
    }

    fn start(
        &self,
        vm: &VmName,
        file: Option<VmFile>,
        attach: A,
        standing: Standing,
        last: Option<Resources>,
    ) -> Entry<A> {
        let tasks = self.tasks.child();
        let calls = Calls::default();
        let order = if self.is_frozen() { Order::Freeze } else { Order::Follow };
        let told = Told { file: file.clone(), attach: Arc::new(attach), reach: 0, order, standing };
        let (told, receiver) = watch::channel(told);
        let (port, heard) = watch::channel(None);
        let ear = Ear {
            shared: self.shared.clone(),
            vm: vm.clone(),
            calls: calls.clone(),
            port,
            stop: tasks.stopping(),
        };
        let view = Arc::new(Mutex::new(View::default()));
        let start = Start {
            shared: self.shared.clone(),
            vm: vm.clone(),
            told: receiver,
            calls,
            port: heard.clone(),
            view: view.clone(),
            stop: tasks.stopping(),
            booked: Arc::new(Mutex::new(Booked::nothing(last))),
        };
        // At once, so that the first session need not wait; else as soon as it can.
        let mut listener = start.told.borrow().file.is_some().then(|| ear.listen().ok()).flatten();
        let told_ear = start.told.clone();
        tasks
            .kept("call-back server", move || ear.clone().serve(told_ear.clone(), listener.take()));
        let (vms, metrics, mut again) = (self.vms.clone(), self.shared.metrics.clone(), false);
        tasks.kept("vm runner", move || {
            metrics.reference.started(std::mem::replace(&mut again, true));
            keep_running(start.clone(), vms.clone())
        });
        info!(%vm, %standing, "vm known");
        let (since, port) = (self.shared.clock.now(), heard);
        let (paused_until, release) = (None, None);
        Entry { told, since, view, port, file, paused_until, release, standing, tasks }
    }
}

impl<A: Attach> Clone for Agent<A> {
    fn clone(&self) -> Self {
        let (shared, vms, tasks) = (self.shared.clone(), self.vms.clone(), self.tasks.clone());
        Self { shared, vms, tasks }
    }
}
