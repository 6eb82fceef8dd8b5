//! What people and misfortune do to a world.

use super::{Driver, Grouping, Lie, Muted, Part, Unplug, World};
use crate::chance::Faults;
use crate::process::Process;
use crate::queue::Happening;
use crate::sides::Cut;
use crate::vm::{Speaks, Vm};
use crate::vms::Id;
use std::time::Duration;
use windlass_agent_core::{Event, Order};
use windlass_protocol::{Bytes, PluginVersion, Resources, RunState, Versions, VmInfo, VmName};

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
    /// An agent starts, if there is none.
    AgentStarts(VmName),
    /// A second agent starts, with a monitor of its own, if there is one only.
    SecondAgentStarts(VmName),
    /// Of two agents the newer one ends, or the older one.
    OneAgentEnds(VmName, bool),
    /// Of two agents the newer one has its way to the guest cut, or the older one.
    Cut(VmName, bool, Cut),
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
    /// The connection to the monitor breaks, and is made again.
    Reconnects(VmName),
    /// The hypervisor has the VM in this state for so long, and then runs it again.
    Stands(VmName, RunState, Duration),
    /// The guest gives memory back in this way.
    Unplug(VmName, Unplug),
    /// Memory moves slowly in the guest, or as it should.
    SlowMemory(VmName, bool),
    /// The guest's workload takes what is left as soon as the guest has agreed to less.
    Rises(VmName, bool),
    /// The informant lies in this way, or no more.
    Lies(VmName, Option<Lie>),
    /// The guest's kernel brings no vCPU online, or does again.
    ShortOfVcpus(VmName, bool),
    /// The hypervisor makes this of what it is asked for.
    Driver(VmName, Driver),
    /// Something is done to the group of the hypervisor's process, if it has one.
    Group(VmName, Grouping),
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
    /// This node's host has so much memory available; `None`: nobody knows.
    HostMemory(usize, Option<Bytes>),
    /// The VM is moved to this node.
    Moves(VmName, usize),
    /// An agent takes its place that speaks these versions, if they are others; an informant does
    /// from its next start on.
    Speaks(VmName, Speaks),
    /// The books of its node hear that the VM is about to be moved, or stays after all.
    MoveIsDue(VmName, bool),
    /// An agent of another release takes over, and speaks to the plugin in these versions.
    AgentSpeaks(VmName, Versions<PluginVersion>),
    /// The books of this node are asked in these versions from here on.
    BooksSpeak(usize, Versions<PluginVersion>),
    /// The network treats this VM in its own way, or as the others.
    Link(VmName, Option<Faults>),
    /// This process stops for a while, and then goes on.
    Pauses(Part, Duration),
    /// Everything that this process does takes it so long.
    Slow(Part, Duration),
    /// This process ends after so many effects, between two of them, and starts again; zero: it
    /// does not.
    Crashes(Part, u32),
    /// The wall clock where this process runs is off by so many milliseconds from here on.
    WallClock(Part, i64),
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
            Step::AgentDies(vm) => self.with(&vm, |vm| vm.front.agent = None),
            Step::AgentRestarts(vm) => self.to(&vm, Self::start_agent),
            Step::AgentStarts(vm) => {
                if self.vms.of(&vm).is_some_and(|vm| vm.front.agent.is_none()) {
                    self.to(&vm, Self::start_agent);
                }
            }
            Step::SecondAgentStarts(vm) => self.to(&vm, Self::start_second_agent),
            Step::OneAgentEnds(vm, newer) => self.with(&vm, |vm| {
                // Who stays is in front.
                if vm.newest_in_front() == newer {
                    vm.turn_round();
                }
                vm.leave_one();
                vm.front.cut = Cut::default();
            }),
            Step::Cut(vm, newer, cut) => self.with(&vm, |vm| {
                if vm.newest_in_front() != newer {
                    vm.turn_round();
                }
                vm.front.cut = cut;
            }),
            Step::HostRestarts(node) => self.restart_host(node),
            Step::InformantDies(vm) => self.to(&vm, Self::kill_informant),
            // By somebody in the guest, once that goes on.
            Step::InformantStarts(vm) => self.to(&vm, |world, who| {
                let boot = world.vms.get(who).map_or(0, |vm| vm.guest.boot);
                let starts = Happening::InformantStarts { boot };
                if let Some(until) = world.stands_until(who) {
                    world.queue.arrange(until, who, starts);
                } else {
                    world.deliver(who, starts);
                }
            }),
            Step::Reboots(vm) => self.to(&vm, Self::reboot),
            Step::Dies(vm) => {
                let Some(who) = self.vms.id(&vm) else { return };
                if let Some(gone) = self.vms.remove(who) {
                    self.nodes[gone.node].leave(&mut self.met, &vm);
                }
                self.queue.forget(who);
            }
            Step::Deaf(vm, deaf) => self.to(&vm, |world, who| world.set_deaf(who, deaf)),
            Step::Reconnects(vm) => self.to(&vm, Self::reconnect),
            Step::Stands(vm, state, time) => {
                self.to(&vm, |world, who| world.stand(who, state, time));
            }
            Step::Unplug(vm, unplug) => self.with(&vm, |vm| vm.guest.unplug = unplug),
            Step::SlowMemory(vm, slow) => self.with(&vm, |vm| vm.guest.slow = slow),
            Step::Rises(vm, rises) => self.with(&vm, |vm| vm.guest.rises = rises),
            Step::Lies(vm, lie) => self.with(&vm, |vm| vm.lie = lie),
            Step::ShortOfVcpus(vm, short) => self.with(&vm, |vm| vm.guest.short_of_vcpus = short),
            Step::Driver(vm, driver) => self.with(&vm, |vm| vm.guest.driver = driver),
            Step::Group(vm, grouping) => self.to(&vm, |world, who| world.group(who, grouping)),
            Step::Mute(vm, muted) => self.with(&vm, |vm| {
                // A figure that was known until now may still count.
                let goes_on =
                    muted.zip(vm.guest.muted).is_some_and(|(now, before)| now.goes_on(before));
                let before = vm.muted_since.filter(|_| goes_on);
                vm.guest.muted = muted;
                vm.muted_since = muted.and(before.or(Some(now)));
            }),
            Step::Unparks(vm) => self.with(&vm, |vm| {
                vm.guest.unpark();
                vm.unruly = true;
            }),
            Step::Told(info) => {
                let name = info.name.clone();
                self.to(&name, |world, who| {
                    let Some(vm) = world.vms.get_mut(who) else { return };
                    vm.may_have(info.bounds.max);
                    vm.info = info.clone();
                    world.nodes[vm.node].presume(&info, vm.most);
                    let told =
                        |world: &mut Self, who| world.notify(who, Event::Told(info.clone().into()));
                    world.for_each_agent(who, told);
                });
            }
            Step::Ordered(vm, order) => {
                if let (Order::Release(Some(size)), Some(who)) = (order, self.vms.id(&vm)) {
                    self.vms.get_mut(who).into_iter().for_each(|vm| vm.may_have(size));
                }
                self.to(&vm, |world, who| {
                    let told = |world: &mut Self, who| world.notify(who, Event::Ordered(order));
                    world.for_each_agent(who, told);
                });
            }
            Step::Room(node, room) => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.set_room(room);
                }
            }
            Step::HostMemory(node, available) => self.host_memory(node, available),
            Step::Moves(vm, node) => self.to(&vm, |world, who| world.move_to(who, node)),
            Step::Speaks(vm, speaks) => self.set_speaks(&vm, speaks),
            Step::MoveIsDue(vm, due) => {
                if let Some(node) = self.node_of(&vm) {
                    self.nodes[node].set_moving(&vm, due);
                }
            }
            Step::AgentSpeaks(vm, versions) => {
                self.with(&vm, |vm| vm.plugin_versions = versions);
                self.to(&vm, Self::start_agent);
            }
            Step::BooksSpeak(node, versions) => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.versions = versions;
                }
            }
            Step::Link(vm, faults) => self.with(&vm, |vm| vm.link = faults),
            Step::Pauses(part, time) => {
                let until = now.after(time);
                self.each_process(&part, |process| process.pause(until));
            }
            Step::Slow(part, time) => self.each_process(&part, |process| process.slow = time),
            Step::Crashes(part, effects) => self.light(&part, effects),
            Step::WallClock(part, millis) => self.set_wall_clock(&part, millis),
        }
    }

    fn set_speaks(&mut self, name: &VmName, speaks: Speaks) {
        let other = self.vms.of(name).is_some_and(|vm| vm.speaks.agent != speaks.agent);
        self.with(name, |vm| vm.speaks = speaks);
        if other {
            self.to(name, Self::start_agent);
        }
        // Of two, both are of that release from here on.
        if other && self.vms.of(name).is_some_and(|vm| vm.other_run().is_some()) {
            self.with(name, Vm::turn_round);
            self.to(name, Self::start_agent);
        }
    }

    /// Its agent becomes one that speaks everything, so that it finds a version with any informant.
    pub(crate) fn speaks_all(&mut self, name: &VmName) {
        if let Some(vm) = self.vms.of(name) {
            let speaks = Speaks { agent: Speaks::default().agent, ..vm.speaks };
            self.set_speaks(name, speaks);
        }
    }

    /// Each process of this part: a host has the agents of its VMs in it, if they are not apart.
    fn each_process(&mut self, part: &Part, change: impl Fn(&mut Process)) {
        match part {
            Part::Agent(vm) => self.with(vm, |vm| change(&mut vm.front.process)),
            Part::Informant(vm) => self.with(vm, |vm| change(&mut vm.informant_process)),
            Part::Host(number) => {
                if let Some(node) = self.nodes.get_mut(*number) {
                    change(&mut node.process);
                }
                let with_it = |vm: &&mut Vm| vm.node == *number && !self.setup.listed;
                for vm in self.vms.iter_mut().filter(with_it) {
                    change(&mut vm.front.process);
                }
            }
        }
    }

    /// A process ends after so many effects; books, after so many answers.
    fn light(&mut self, part: &Part, effects: u32) {
        let fuse = (effects > 0).then_some(effects);
        match part {
            Part::Agent(vm) => self.with(vm, |vm| vm.front.process.fuse = fuse),
            Part::Informant(vm) => self.with(vm, |vm| vm.informant_process.fuse = fuse),
            Part::Host(number) => {
                if let Some(node) = self.nodes.get_mut(*number) {
                    node.process.fuse = fuse;
                }
            }
        }
    }

    fn set_wall_clock(&mut self, part: &Part, millis: i64) {
        let number = match part {
            Part::Informant(vm) => return self.with(vm, |vm| vm.wall = millis),
            Part::Agent(vm) => self.node_of(vm),
            Part::Host(number) => Some(*number),
        };
        if let Some(node) = number.and_then(|number| self.nodes.get_mut(number)) {
            node.wall = millis;
        }
    }

    fn host_memory(&mut self, number: usize, available: Option<Bytes>) {
        let Some(node) = self.nodes.get_mut(number) else { return };
        node.available = available;
        for who in self.on_node(number) {
            let told = |world: &mut Self, who| world.notify(who, Event::HostMemory(available));
            self.for_each_agent(who, told);
        }
    }

    /// A VM goes on running on another node, with its guest as it is; there its agent is another.
    fn move_to(&mut self, who: Id, number: usize) {
        let number = number.min(self.nodes.len() - 1);
        let Some(vm) = self.vms.get_mut(who).filter(|vm| vm.node != number) else { return };
        let before = std::mem::replace(&mut vm.node, number);
        vm.other = None;
        vm.front.agent = None;
        vm.epochs += 1;
        vm.group_anew(self.now);
        self.nodes[before].leave(&mut self.met, &vm.info.name);
        self.start_agent(who);
        // What was still on its way to the monitor that it left is lost.
        if let Some(vm) = self.vms.get_mut(who) {
            vm.front.monitor.serves = vm.epochs;
        }
    }

    fn on_node(&self, number: usize) -> Vec<Id> {
        self.vms.iter().filter(|(_, vm)| vm.node == number).map(|(who, _)| who).collect()
    }

    fn to(&mut self, name: &VmName, happens: impl FnOnce(&mut Self, Id)) {
        if let Some(who) = self.vms.id(name) {
            happens(self, who);
        }
    }

    fn with(&mut self, name: &VmName, change: impl FnOnce(&mut Vm)) {
        if let Some(vm) = self.vms.id(name).and_then(|who| self.vms.get_mut(who)) {
            change(vm);
        }
    }

    fn restart_host(&mut self, node: usize) {
        let Some(lost) = self.nodes.get_mut(node) else { return };
        lost.forget();
        lost.up_at = self.now;
        if self.setup.listed {
            return self.read_list(node);
        }
        for who in self.on_node(node) {
            if let Some(vm) = self.vms.get_mut(who) {
                vm.other = None;
            }
            self.start_agent(who);
        }
    }

    /// Books that begin know who is there, and nothing else; agents go on. A request to the process that is gone does not
    /// reach the next one.
    fn read_list(&mut self, node: usize) {
        let here = self.on_node(node);
        self.queue.drop_all(|who, happening| happening.is_permit() && here.contains(&who));
        for vm in self.vms.iter().map(|(_, vm)| vm).filter(|vm| vm.node == node) {
            self.nodes[node].presume(&vm.info, vm.most);
        }
    }

    /// A second agent starts, with a monitor of its own.
    fn start_second_agent(&mut self, who: Id) {
        let alone = |vm: &&mut Vm| vm.other.is_none() && vm.front.agent.is_some();
        if let Some(vm) = self.vms.get_mut(who).filter(alone) {
            vm.make_room();
            self.start_agent(who);
        }
    }

    /// A host ends between two effects, with the agents in it, and starts again a while later.
    pub(super) fn crash_host(&mut self, node: usize) {
        let Some(lost) = self.nodes.get_mut(node) else { return };
        lost.forget();
        let at = self.now.after(Duration::from_millis(500 + self.chance.below(3_000)));
        lost.up_at = at;
        self.tell(|| format!("host {node} ends"));
        if self.setup.listed {
            return self.read_list(node);
        }
        for who in self.on_node(node) {
            if let Some(vm) = self.vms.get_mut(who) {
                vm.other = None;
                vm.front.agent = None;
            }
            self.queue.arrange(at, who, Happening::AgentStarts);
        }
    }

    pub(super) fn kill_informant(&mut self, who: Id) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        if let Some(informant) = vm.informant.take() {
            vm.consents = informant.consents;
            // What was allowed is forgotten; the next informant keeps parked what is stored so.
            vm.allow_no_more(vm.guest.seen().plugged.saturating_sub(vm.parked_for_good()));
        }
    }

    fn reboot(&mut self, who: Id) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        vm.guest.reboot(now);
        if !vm.front.restarted_unheard {
            vm.outdated.clear();
        }
        let known = vm.consents().to_vec();
        vm.outdated.extend(known);
        vm.informant = None;
        vm.turn_round();
        vm.front.restarted_unheard = true;
        vm.turn_round();
        (vm.front.restarted_unheard, vm.booted_at) = (true, now);
        vm.ended_with_boot = vm.epochs;
        vm.consents.clear();
        vm.stored.clear();
        vm.noted = Duration::ZERO;
        vm.allowed = None;
        vm.unruly = true;
        let boot = vm.guest.boot;
        vm.moves_in = Some(boot);
        let up = now.after(BOOT);
        self.queue.arrange(up, who, Happening::InformantStarts { boot });
        self.queue.arrange(up, who, Happening::MemoryMoves { boot });
        self.monitors_notice(who, Event::Reset);
    }
}
