//! The VMs of a node: which are managed, by what orders, and what they are doing.
//!
//! Everything a runner is told goes through one watched value ([`DesiredState`]) that says how things
//! should be, not what to do; a runner that was busy, or that had to start anew, misses
//! nothing. What runners publish is read here without waiting for them.

mod callback_listener;
mod entry;

use crate::callback::Calls;
use crate::config::Config;
use crate::dump::{self, Pod};
use crate::history::Explained;
use crate::ledger::Ledger;
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::plugin::Permits;
use crate::runner::{Booked, DesiredState, Doing, Start};
use crate::shared::Shared;
use crate::view::{BilledVm, View};
use callback_listener::CallbackListener;
use entry::{Entry, Vms, keep_running};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tokio::sync::watch;
use tracing::info;
use windlass_agent_core::roster::Step;
use windlass_agent_core::sentences::told_unasked;
use windlass_agent_core::{Lifecycle, Roster, Vm};
use windlass_drivers::Attach;
use windlass_drivers::any::AnyAttach;
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::plugin::{SpokenVm, Told, Why};
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Bytes, Capabilities, Decision, Moment, Resources, VmName};

/// What is told of a VM that is not there yet.
const NOT_FOUND: &str =
    "The agent does not find the hypervisor of the VM, so the VM keeps its size.";

/// An agent. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    vms: Arc<Mutex<Vms>>,
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

impl Agent {
    /// An agent without VMs. Its tasks are part of `tasks`.
    pub fn new(
        config: Config,
        permits: Arc<dyn Permits>,
        ledger: Arc<dyn Ledger>,
        tasks: &Tasks,
        clock: Clock,
    ) -> Self {
        let shared = Shared::new(config, permits, ledger, clock);
        Self { shared: Arc::new(shared), vms: Arc::default(), tasks: tasks.clone() }
    }

    /// Manages a VM from here on, or takes note that what is declared changed; ends a release. Of a VM
    /// that does not [heed](Agent::heeds) what is declared, only a person's order is to say so.
    /// It is attached to anew if `attach` is another way than before.
    ///
    /// Must be called within the runtime.
    pub fn manage(&self, vm: Vm, attach: AnyAttach) {
        let name = vm.info.name.clone();
        let mut vms = lock(&self.vms);
        vms.roster.manage(vm);
        self.follow(&mut vms, &name, Some(attach), None);
    }

    /// Looks at a VM and counts it, without acting on it: one that was released or removed
    /// before a restart. `last` is what it had when it was last seen. Nothing if it is known.
    ///
    /// Must be called within the runtime.
    pub fn count(&self, vm: VmName, attach: AnyAttach, last: Resources, lifecycle: Lifecycle) {
        let mut vms = lock(&self.vms);
        if vms.roster.lifecycle(&vm).is_none() {
            vms.roster.recall(vm.clone(), lifecycle);
            self.follow(&mut vms, &vm, Some(attach), Some(last));
        }
    }

    /// Stops managing: the VM keeps its size, and is counted until its hypervisor is gone.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn forget(&self, vm: &VmName) -> Result<(), UnknownVm> {
        self.change(vm, |roster| roster.withdraw(vm))
    }

    /// Brings a VM to a size, or keeps the present one, and lets go of it: from then on it is
    /// counted. [`Agent::manage`] takes it back.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn release(&self, vm: &VmName, size: Option<Resources>) -> Result<(), UnknownVm> {
        if let Some(entry) = lock(&self.vms).entries.get(vm) {
            // It may be from an earlier release; the runner says anew when it has let go.
            let mut doing = lock(&entry.doing);
            if matches!(*doing, Doing::Counting) {
                *doing = Doing::Seeking;
            }
        }
        self.change(vm, |roster| roster.release(vm, size))
    }

    /// Nothing of any VM moves until this is taken back.
    pub fn freeze(&self, frozen: bool) {
        let mut vms = lock(&self.vms);
        vms.roster.freeze(frozen);
        let names: Vec<VmName> = vms.entries.keys().cloned().collect();
        for vm in names {
            self.follow(&mut vms, &vm, None, None);
        }
    }

    /// Whether nothing is to move.
    pub fn is_frozen(&self) -> bool {
        lock(&self.vms).roster.is_frozen()
    }

    /// How a VM stands, if it is known.
    pub fn lifecycle(&self, vm: &VmName) -> Option<Lifecycle> {
        lock(&self.vms).roster.lifecycle(vm)
    }

    /// Whether a VM follows what is declared of it: it does not while a person has let go of it.
    pub fn heeds(&self, vm: &VmName) -> bool {
        lock(&self.vms).roster.heeds(vm)
    }

    /// The VMs that are to be forgotten, because a source of declarations was read as a whole and
    /// does not have them.
    pub fn undeclared(&self, has: impl Fn(&VmName) -> bool) -> Vec<VmName> {
        lock(&self.vms).roster.undeclared(has)
    }

    /// The managed VMs that are there, by name. Never waits for one of them.
    pub fn status(&self) -> Vec<VmStatus> {
        let now = self.shared.clock.now();
        lock(&self.vms).entries.values().filter_map(|entry| entry.view(now).status).collect()
    }

    /// Every VM that is known, by name: its lifecycle, and the most that it may have as last
    /// seen, if it is there. What a host writes down for after a restart.
    pub fn lifecycles(&self) -> Vec<(VmName, Lifecycle, Option<Resources>)> {
        let vms = lock(&self.vms);
        let upper = |vm: &VmName| vms.entries.get(vm).and_then(|entry| entry.booked().1);
        let lifecycles = vms.roster.lifecycles();
        lifecycles.map(|(vm, lifecycle)| (vm.clone(), lifecycle, upper(vm))).collect()
    }

    /// Whether a VM was looked for and is not there, or is not known. What a VM was counted with
    /// before it was looked for is free from then on.
    pub fn is_absent(&self, vm: &VmName) -> bool {
        let found_none =
            |entry: &Entry| matches!(entry.doing(), Doing::Waiting) && !entry.booked().0;
        lock(&self.vms).entries.get(vm).is_none_or(found_none)
    }

    /// What is known of a VM, managed or not. Never waits for it.
    ///
    /// # Errors
    /// If there is no such VM.
    pub fn known(&self, vm: &VmName) -> Result<Known, UnknownVm> {
        let vms = lock(&self.vms);
        let entry = vms.entries.get(vm).ok_or_else(|| UnknownVm(vm.clone()))?;
        let View { can, present, upper, counted, .. } = entry.view(self.shared.clock.now());
        let let_go = counted && vms.roster.lifecycle(vm) != Some(Lifecycle::Managed);
        Ok(Known { can, present, upper, let_go })
    }

    /// Every VM that is known, by name, and what is billed of it. Never waits for one of them.
    pub fn charges(&self) -> Vec<BilledVm> {
        let (vms, now) = (lock(&self.vms), self.shared.clock.now());
        vms.entries.iter().map(|(vm, entry)| entry.billed(vm, now)).collect()
    }

    /// What is to be told of the VMs for which no permit is asked at the moment. Never waits for one of them.
    pub fn told_unasked(&self) -> Vec<SpokenVm> {
        let (vms, now) = (lock(&self.vms), self.shared.clock.now());
        let told = |(vm, entry): (&VmName, &Entry)| {
            let told = match entry.view(now).status {
                Some(status) => told_unasked(&status, now)?,
                None if vms.roster.lifecycle(vm) == Some(Lifecycle::Managed) => {
                    Told::new(None, Why::HypervisorSilent, NOT_FOUND)
                }
                None => return None,
            };
            Some(SpokenVm { pod: vm.clone(), told })
        };
        vms.entries.iter().filter_map(told).collect()
    }

    /// The decisions about a VM in the last hour, and what it waits for.
    ///
    /// # Errors
    /// If there is no such VM, and has not been one lately.
    pub fn decisions(&self, vm: &VmName) -> Result<Explained, UnknownVm> {
        let now = self.shared.clock.now();
        let view = lock(&self.vms).entries.get(vm).map(|entry| entry.view(now));
        let closed = lock(&self.shared.history).of(now, vm);
        if view.is_none() && closed.is_none() {
            return Err(UnknownVm(vm.clone()));
        }
        let View { open, status, .. } = view.unwrap_or_default();
        let waiting = status.map(|status| status.waiting).unwrap_or_default();
        Ok(Explained { closed: closed.unwrap_or_default(), open, waiting })
    }

    /// The decisions about a VM that were made after this moment and are closed, oldest first. Unlike
    /// [`Agent::decisions`] it asks no runner and copies only those.
    pub fn closed_after(&self, vm: &VmName, moment: Option<Moment>) -> Vec<Decision> {
        lock(&self.shared.history).after(self.shared.clock.now(), vm, moment)
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

    /// Which VM has which call-back port. Given back as [`Config::kept_ports`], it has the same
    /// after a restart.
    pub fn ports(&self) -> BTreeMap<VmName, u16> {
        lock(&self.shared.ports).assigned().clone()
    }

    /// The managed VMs whose informants cannot call back: no port could be had when one was last tried.
    pub fn without_port(&self) -> Vec<VmName> {
        let vms = lock(&self.vms);
        let managed = |vm: &&VmName| vms.roster.lifecycle(vm) == Some(Lifecycle::Managed);
        lock(&self.shared.ports).refused().iter().filter(managed).cloned().collect()
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
        dump::agent(vms.roster.is_frozen(), &self.pods(&vms))
    }

    /// The state in the shape of the reference's agent; `plugin` is where permits are asked for.
    pub fn reference_dump(&self, stopped: bool, plugin: IpAddr) -> serde_json::Value {
        let pods = self.pods(&lock(&self.vms));
        let unit = self.shared.config.unit;
        let pods = pods.iter().map(|pod| pod.reference(unit, plugin)).collect();
        dump::reference(stopped, pods)
    }

    /// What is shown of every VM, by name.
    fn pods(&self, vms: &Vms) -> Vec<Pod> {
        let now = self.shared.clock.now();
        let pod = |(vm, entry): (&VmName, &Entry)| {
            let told = entry.told.borrow();
            Pod {
                name: vm.clone(),
                since: entry.since,
                lifecycle: told.desired.lifecycle,
                port: *entry.port.borrow(),
                vm: told.desired.vm.clone(),
                place: told.attach.place(),
                view: entry.view(now),
            }
        };
        vms.entries.iter().map(pod).collect()
    }

    fn change(
        &self,
        vm: &VmName,
        change: impl FnOnce(&mut Roster) -> bool,
    ) -> Result<(), UnknownVm> {
        let mut vms = lock(&self.vms);
        let is_known = change(&mut vms.roster);
        self.follow(&mut vms, vm, None, None);
        is_known.then_some(()).ok_or_else(|| UnknownVm(vm.clone()))
    }

    /// Does what the roster says of a VM. `attach`: how it is reached from here on. `last`: what a
    /// VM that was not known had when it was last seen.
    fn follow(
        &self,
        vms: &mut Vms,
        vm: &VmName,
        attach: Option<AnyAttach>,
        last: Option<Resources>,
    ) {
        let Vms { roster, entries } = vms;
        let Some(entry) = entries.get(vm) else {
            if let (Some(Step::Start(desired)), Some(attach)) = (roster.plan(vm, None), attach) {
                let told = DesiredState { desired, attach, reach: 0 };
                entries.insert(vm.clone(), self.start(vm, told, last));
            }
            return;
        };
        let told = entry.told.borrow().desired.clone();
        match roster.plan(vm, Some(&told)) {
            Some(Step::Start(desired) | Step::Tell(desired)) => entry.tell(Some(desired), attach),
            Some(Step::Stop) => entry.tasks.stop(),
            None => entry.tell(None, attach),
        }
    }

    fn start(&self, name: &VmName, told: DesiredState, last: Option<Resources>) -> Entry {
        let tasks = self.tasks.child();
        let (declared, lifecycle) = (told.desired.vm.is_some(), told.desired.lifecycle);
        let (told, receiver) = watch::channel(told);
        let (port, heard) = watch::channel(None);
        let (doing, booked) =
            (Arc::default(), Arc::new(Mutex::new(Booked { present: None, upper: last })));
        let start = Start {
            shared: self.shared.clone(),
            vm: name.clone(),
            told: receiver,
            calls: Calls::default(),
            port: heard.clone(),
            doing: Arc::clone(&doing),
            stop: tasks.stopping(),
            booked: booked.clone(),
        };
        let callback_listener = CallbackListener { start: start.clone(), port };
        // At once, so that the first session need not wait; else as soon as it can.
        let mut listener = declared.then(|| callback_listener.listen().ok()).flatten();
        tasks.kept("call-back server", move || callback_listener.clone().serve(listener.take()));
        let (vms, metrics, mut again) = (self.vms.clone(), self.shared.metrics.clone(), false);
        tasks.kept("vm runner", move || {
            metrics.reference.started(std::mem::replace(&mut again, true));
            keep_running(start.clone(), vms.clone())
        });
        info!(vm = %name, %lifecycle, "vm known");
        let (since, port) = (self.shared.clock.now(), heard);
        Entry { told, since, doing, booked, port, tasks }
    }
}
