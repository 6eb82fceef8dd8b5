//! What people and misfortune do to a world.

use super::{Driver, Muted, World};
use crate::queue::Happening;
use std::time::Duration;
use windlass_agent_core::{Event, Order};
use windlass_protocol::{Bytes, Resources, VmInfo, VmName};

/// A guest's kernel and user space take this long to come up.
const BOOT: Duration = Duration::from_secs(4);

/// Something that somebody does, or that goes wrong.
#[derive(Clone, Debug)]
pub enum Step {
    /// The workload runs this many tasks.
    Load(VmName, f64),
    /// The workload uses this much memory.
    Use(VmName, Bytes),
    /// The agent ends at once, and another starts.
    AgentRestarts(VmName),
    /// The agent ends at once.
    AgentDies(VmName),
    /// The process that keeps the books of this node is lost, with all its agents; all start
    /// again.
    HostRestarts(usize),
    /// The informant ends at once.
    InformantDies(VmName),
    /// An informant starts.
    InformantStarts(VmName),
    /// The guest restarts.
    Reboots(VmName),
    /// The VM ends.
    Dies(VmName),
    /// The monitor stops answering, or answers again.
    Deaf(VmName, bool),
    /// The guest gives no memory back, or does again.
    Stuck(VmName, bool),
    /// The guest's kernel brings no vCPU online, or does again.
    ShortOfVcpus(VmName, bool),
    /// The hypervisor makes this of what it is asked for.
    Driver(VmName, Driver),
    /// The guest's metrics are missing, or there again.
    Mute(VmName, Option<Muted>),
    /// Somebody in the guest brings every vCPU online.
    Unparks(VmName),
    /// The VM's file changes.
    Told(VmInfo),
    /// A person gives an order.
    Ordered(VmName, Order),
    /// This node may promise this much.
    Room(usize, Resources),
}

// === impl World ===

impl World {
    /// Does it, at this moment.
    pub fn step(&mut self, step: Step) {
        let now = self.now;
        self.tell(|| format!("-- {step:?}"));
        match step {
            Step::Load(vm, load) => self.with(&vm, |vm| vm.guest.demand(now, load)),
            Step::Use(vm, used) => self.with(&vm, |vm| vm.guest.use_memory(used)),
            Step::AgentDies(vm) => self.with(&vm, |vm| vm.agent = None),
            Step::AgentRestarts(vm) => self.start_agent(&vm),
            Step::HostRestarts(node) => self.restart_host(node),
            Step::InformantDies(vm) => self.kill_informant(&vm),
            Step::InformantStarts(vm) => {
                if self.vms.get(&vm).is_some_and(|vm| vm.informant.is_none()) {
                    self.start_informant(&vm);
                }
            }
            Step::Reboots(vm) => self.reboot(&vm),
            Step::Dies(vm) => {
                if let Some(gone) = self.vms.remove(&vm) {
                    self.nodes[gone.node].leave(&vm);
                }
                self.queue.forget(&vm);
            }
            Step::Deaf(vm, deaf) => self.with(&vm, |vm| vm.deaf = deaf),
            Step::Stuck(vm, stuck) => self.with(&vm, |vm| vm.guest.stuck = stuck),
            Step::ShortOfVcpus(vm, short) => self.with(&vm, |vm| vm.guest.short_of_vcpus = short),
            Step::Driver(vm, driver) => self.with(&vm, |vm| vm.guest.driver = driver),
            Step::Mute(vm, muted) => self.with(&vm, |vm| vm.guest.muted = muted),
            Step::Unparks(vm) => self.with(&vm, |vm| {
                vm.guest.unpark();
                vm.unruly = true;
            }),
            Step::Told(info) => {
                let name = info.name.clone();
                self.with(&name, |vm| {
                    vm.most = vm.most.max(info.bounds.max);
                    vm.info = info.clone();
                });
                self.notify(&name, Event::Told(info));
            }
            Step::Ordered(vm, order) => self.notify(&vm, Event::Ordered(order)),
            Step::Room(node, room) => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.set_room(room);
                }
            }
        }
    }

    fn with(&mut self, name: &VmName, change: impl FnOnce(&mut super::Vm)) {
        if let Some(vm) = self.vms.get_mut(name) {
            change(vm);
        }
    }

    pub(crate) fn notify(&mut self, name: &VmName, event: Event) {
        let now = self.now;
        if let Some(agent) = self.vms.get_mut(name).and_then(|vm| vm.agent.as_mut()) {
            agent.scaler.observe(now, event);
        }
        self.pump_agent(name);
    }

    fn restart_host(&mut self, node: usize) {
        let Some(lost) = self.nodes.get_mut(node) else { return };
        lost.forget();
        let here = self.vms.iter().filter(|(_, vm)| vm.node == node);
        let names: Vec<_> = here.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.start_agent(&name);
        }
    }

    fn kill_informant(&mut self, name: &VmName) {
        self.with(name, |vm| {
            if let Some(informant) = vm.informant.take() {
                vm.parked.clone_from(informant.core.parked());
                vm.consents = informant.consents;
                // What was allowed is forgotten; the next informant keeps parked what is parked.
                vm.keep_parked();
            }
        });
    }

    fn reboot(&mut self, name: &VmName) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(name) else { return };
        vm.guest.reboot(now);
        vm.informant = None;
        vm.parked.clear();
        vm.allowed = None;
        vm.consents.clear();
        vm.unruly = true;
        let boot = vm.guest.boot;
        vm.moves_in = Some(boot);
        let up = now.after(BOOT);
        self.queue.arrange(up, name, Happening::InformantStarts { boot });
        self.queue.arrange(up, name, Happening::MemoryMoves { boot });
        self.notify(name, Event::Reset);
    }
}
