//! NeonVM: its controller, and the hypervisors of VMs that have objects of their own.
//!
//! The controller makes a pod for each object, and gives a VM what its object asks for: late, vCPUs before memory, a step at a time; the
//! status shows each step a turn later. A VM whose pod is gone gets another pod. A VM that moves gets a second pod on another
//! node; the status names that pod at the switch-over, and then the first pod goes. A move that fails is taken back.

use crate::cluster::agent::Agent;
use crate::cluster::pods::vm_pod;
use crate::cluster::steps::{Container, cu};
use crate::cluster::vm_objects::Status;
use crate::cluster::{ClusterWorld, Due};
use std::time::Duration;
use windlass_plugin_core::pods::Migration;
use windlass_protocol::pod::{Phase, Pod};
use windlass_protocol::{Bounds, Bytes, Moment, Resources, VmName};

/// The names of a VM's pods end with one of so many numbers: a name comes again.
const SUFFIXES: u64 = 3;
/// A move whose second pod does not run by then is taken back.
const PLACED_WITHIN: Duration = Duration::from_secs(25);
/// Of memory, a step.
const STEP: Bytes = Bytes::from_gib(1);

/// A VM that has an object of its own, by the truth.
#[derive(Debug)]
pub(crate) struct NeonVm {
    pub(crate) object: VmName,
    /// The size of its first pod, in compute units.
    units: u64,
    bounds: Bounds,
    goal: Resources,
    /// What its hypervisor has.
    has: Resources,
    /// The pod that runs it, by name and uid.
    pub(crate) pod: Option<(VmName, String)>,
    moves: Option<Moving>,
    /// Whose guest lets which session of which agent act, and until when.
    pub(crate) lease: Option<(Session, Moment)>,
    migrations: u64,
}

/// An agent's process, by number and life, and its session with a guest.
pub(crate) type Session = (usize, u64, u64);

/// A move to another node.
#[derive(Clone, Debug)]
struct Moving {
    /// The pod that it moves to.
    to: Option<(VmName, String)>,
    since: Moment,
    fails: bool,
    /// When it is over, once the second pod runs.
    until: Option<Moment>,
    migration: Migration,
}

// === impl ClusterWorld ===

impl ClusterWorld {
    /// A person makes an object.
    pub(super) fn make_vm(&mut self, name: VmName, units: u64, (least, most): (u64, u64)) {
        let bounds = Bounds { min: cu(least), max: cu(most.max(least)) };
        let units = units.clamp(least, most.max(least));
        if !self.api.create_vm(&name, cu(units), bounds) {
            return;
        }
        let uid = self.api.vms[&name].shown.machine.uid.clone();
        let vm = NeonVm {
            object: name,
            units,
            bounds,
            goal: cu(units),
            has: Resources::ZERO,
            pod: None,
            moves: None,
            lease: None,
            migrations: 0,
        };
        self.neonvms.insert(uid.clone(), vm);
        self.reconcile_soon(uid);
    }

    /// A person deletes an object. Its pods are deleted after it.
    pub(super) fn delete_vm(&mut self, name: &VmName) {
        if self.api.vms.contains_key(name) {
            self.met.note("objects of VMs that were deleted");
            self.api.remove_vm(name);
        }
    }

    /// The pod that runs the VM of an object.
    pub(super) fn pod_of_vm(&self, name: &VmName) -> Option<VmName> {
        let vm = self.neonvms.values().find(|vm| vm.object == *name && vm.pod.is_some())?;
        vm.pod.as_ref().map(|(pod, _)| pod.clone())
    }

    /// A VM's signals call for this.
    pub(super) fn vm_wants(&mut self, name: &VmName, goal: Resources) {
        for vm in self.neonvms.values_mut().filter(|vm| vm.object == *name) {
            vm.goal = goal.max(vm.bounds.min).min(vm.bounds.max);
            for agent in self.agents.values_mut().filter(|it| it.object.as_ref() == Some(name)) {
                agent.want(vm.goal);
            }
        }
    }

    /// Somebody moves a VM to another node.
    pub(super) fn move_vm(&mut self, name: &VmName, fails: bool) {
        let mut all = self.neonvms.iter_mut();
        let Some((uid, vm)) = all.find(|(_, vm)| vm.object == *name) else { return };
        let uid = &uid.clone();
        let runs = vm.pod.as_ref().is_some_and(|(_, pod)| self.agents.contains_key(pod));
        if !runs || vm.moves.is_some() || self.api.vm(name, uid).is_none() {
            return;
        }
        vm.migrations += 1;
        let number = vm.migrations;
        let migration = Migration {
            name: VmName::on_host(format!("{uid}-{number}")),
            uid: format!("migration {uid} {number}"),
            vm: name.clone(),
            is_ours: false,
            is_over: false,
        };
        self.api.put_migration(migration.clone());
        self.begin_to_move(uid, migration, fails);
    }

    /// A migration that a plugin asked for begins, once its VM runs; one that was deleted ends.
    fn look_at_migrations(&mut self, uid: &str) {
        let Some(vm) = self.neonvms.get(uid) else { return };
        let is_gone = |moving: &Moving| !self.api.has_migration(&moving.migration);
        if vm.moves.as_ref().is_some_and(is_gone) {
            self.take_move_back(uid);
            return self.say_status(uid, "Running");
        }
        let asked = self.api.migration_of(&vm.object).filter(|_| vm.moves.is_none());
        if let Some(asked) = asked.map(|it| Migration::clone(it)) {
            let fails = self.chance.happens(15);
            self.begin_to_move(uid, asked, fails);
        }
    }

    fn begin_to_move(&mut self, uid: &str, migration: Migration, fails: bool) {
        let since = self.now;
        self.change_neonvm(uid, |vm| {
            vm.moves = Some(Moving { to: None, since, fails, until: None, migration });
        });
        self.met.note("VMs that were to move");
        self.say_status(uid, "PreMigrating");
    }

    /// A pod of an object's VM runs from here on. `false`: it has no object.
    pub(super) fn boots(&mut self, uid: &str, pod: &VmName) -> bool {
        let is_of = |it: &Option<(VmName, String)>| it.as_ref().is_some_and(|(_, it)| it == uid);
        let arrives = |vm: &NeonVm| is_of(&vm.moves.as_ref().and_then(|moves| moves.to.clone()));
        let mut all = self.neonvms.values_mut();
        let Some(vm) = all.find(|vm| is_of(&vm.pod) || arrives(vm)) else { return false };
        let Some(node) = self.api.pods.get(pod).and_then(|pod| pod.node.clone()) else {
            return false;
        };
        if is_of(&vm.pod) {
            vm.has = vm.bounds.min;
        }
        let rate = 985 + self.chance.below(31);
        let mut agent = Agent::of(pod.clone(), node, (vm.has, vm.bounds.min), rate);
        agent.object = Some(vm.object.clone());
        agent.want(vm.goal);
        self.agents.insert(uid.to_owned(), agent);
        true
    }

    /// What VMs with objects have, or may be given at any time.
    pub(super) fn size_vms(&mut self) {
        for (uid, vm) in &self.neonvms {
            let Some((pod, pod_uid)) = &vm.pod else { continue };
            let Some(agent) = self.agents.get_mut(pod_uid) else { continue };
            let shown = self.api.vm(&vm.object, uid).map(|shown| &shown.machine);
            let named = shown.filter(|it| it.pod.as_deref() == Some(pod.name.as_str()));
            agent.size = vm.has.max(named.map(|it| it.sizes.used).unwrap_or_default());
        }
    }

    pub(super) fn reconcile_soon(&mut self, uid: String) {
        let late = if self.chance.happens(10) { 3_000 } else { 700 };
        let wait = 300 + self.chance.below(late);
        self.arrange(wait, Due::Reconciles(uid));
    }

    /// The controller looks at an object.
    pub(super) fn reconcile(&mut self, uid: &str) {
        let Some(vm) = self.neonvms.get(uid) else { return };
        let object = vm.object.clone();
        let Some(shown) = self.api.vm(&object, uid).cloned() else { return self.collect(uid) };
        self.reconcile_soon(uid.to_owned());
        let Some(vm) = self.neonvms.get(uid) else { return };
        let runs_in = |(name, uid): &(VmName, String)| {
            self.api.pod(name, uid).is_some_and(|pod| !pod.phase.is_ended())
        };
        match vm.pod.clone() {
            None => {
                let pod = self.make_pod(uid);
                self.change_neonvm(uid, |vm| vm.pod = pod);
                self.say_status(uid, "Pending");
            }
            Some(pod) if !runs_in(&pod) => {
                self.met.note("VMs that got another pod");
                self.take_move_back(uid);
                self.delete(&pod.0, 0);
                self.change_neonvm(uid, |vm| {
                    (vm.pod, vm.has, vm.lease) = (None, Resources::ZERO, None)
                });
                self.say_status(uid, "Pending");
            }
            Some((_, pod)) if self.agents.contains_key(&pod) => {
                self.look_at_migrations(uid);
                if self.neonvms.get(uid).is_some_and(|vm| vm.moves.is_some()) {
                    self.moves(uid);
                } else {
                    self.scale(uid, shown.machine.sizes.used);
                }
            }
            Some(_) => {}
        }
    }

    /// One step towards what the object asks for. The status shows what was there before it.
    fn scale(&mut self, uid: &str, used: Resources) {
        let Some(vm) = self.neonvms.get_mut(uid) else { return };
        let before = vm.has;
        if before.cpu != used.cpu {
            vm.has.cpu = used.cpu;
        } else if before.mem < used.mem {
            vm.has.mem = before.mem.saturating_add(STEP).min(used.mem);
        } else if before.mem > used.mem {
            vm.has.mem = before.mem.saturating_sub(STEP).max(used.mem);
        }
        let is_half = vm.has.cpu != before.cpu && vm.has.mem != used.mem;
        self.met.note_if("VMs that got their vCPUs before their memory", is_half);
        let phase = if before == used { "Running" } else { "Scaling" };
        self.put_status(uid, phase, Some(before));
    }

    /// A move goes on.
    fn moves(&mut self, uid: &str) {
        let Some(moving) = self.neonvms.get(uid).and_then(|vm| vm.moves.clone()) else { return };
        let Some(to) = moving.to else {
            let to = self.make_pod(uid);
            return self.change_move(uid, |moves| moves.to = to);
        };
        let is_there = self.agents.contains_key(&to.1);
        match moving.until {
            None if is_there => {
                let until = self.now.after(Duration::from_millis(1_000 + self.chance.below(5_000)));
                self.change_move(uid, |moves| moves.until = Some(until));
                self.say_status(uid, "Migrating");
            }
            None if self.now.since(moving.since) < PLACED_WITHIN => {}
            Some(until) if self.now < until && is_there => {}
            Some(_) if is_there && !moving.fails => self.switch_over(uid, to),
            None | Some(_) => {
                self.met.note("moves of VMs that were taken back");
                self.take_move_back(uid);
                self.say_status(uid, "Running");
            }
        }
    }

    /// The VM runs in its second pod from here on.
    fn switch_over(&mut self, uid: &str, to: (VmName, String)) {
        let Some(vm) = self.neonvms.get_mut(uid) else { return };
        let (from, moving) = (vm.pod.replace(to.clone()), vm.moves.take());
        self.controls(&to.0, Some(uid));
        self.met.note("VMs that moved");
        self.say_status(uid, "Running");
        if let Some(moving) = moving.filter(|it| self.api.has_migration(&it.migration)) {
            self.api.put_migration(Migration { is_over: true, ..moving.migration });
        }
        if let Some((pod, _)) = from {
            self.controls(&pod, None);
            let grace = self.chance.below(3_000);
            self.delete(&pod, grace);
        }
    }

    fn take_move_back(&mut self, uid: &str) {
        let moving = self.neonvms.get_mut(uid).and_then(|vm| vm.moves.take());
        let Some(moving) = moving else { return };
        if self.api.has_migration(&moving.migration) {
            self.api.put_migration(Migration { is_over: true, ..moving.migration });
        }
        if let Some((pod, of)) = moving.to
            && self.api.pod(&pod, &of).is_some()
        {
            self.delete(&pod, 300);
        }
    }

    /// The object is gone, and so go its pods.
    fn collect(&mut self, uid: &str) {
        self.take_move_back(uid);
        let Some(vm) = self.neonvms.get(uid) else { return };
        let object = vm.object.clone();
        if !self.api.vms.contains_key(&object) {
            self.api.remove_migrations_of(&object);
        }
        let Some(vm) = self.neonvms.get(uid) else { return };
        match vm.pod.clone().filter(|(pod, of)| self.api.pod(pod, of).is_some()) {
            None => drop(self.neonvms.remove(uid)),
            Some((pod, _)) => {
                let is_going = self.api.pods.get(&pod).is_some_and(|pod| pod.is_terminating);
                if !is_going {
                    let grace = self.chance.below(1_500);
                    self.delete(&pod, grace);
                }
                self.arrange(1_000, Due::Reconciles(uid.to_owned()));
            }
        }
    }

    /// A pod for a VM, which a scheduler places; `None`: its name is taken.
    fn make_pod(&mut self, uid: &str) -> Option<(VmName, String)> {
        let suffix = self.chance.below(SUFFIXES);
        let vm = self.neonvms.get(uid)?;
        let name = VmName { name: format!("{}-{suffix}", vm.object.name), ..vm.object.clone() };
        let own = cu(vm.units);
        let mut pod = vm_pod(&name, "windlass", own, vm.bounds, Container::default());
        if let Some(of) = &mut pod.vm {
            of.object = vm.object.clone();
            of.may_move = true;
            // The pod that a VM moves to is its migration's until the switch-over.
            of.controller = vm.moves.is_none().then(|| uid.into());
        }
        if self.api.pods.contains_key(&name) {
            return None;
        }
        self.create(pod);
        Some((name.clone(), self.api.pods.get(&name)?.uid.clone()))
    }

    /// The object with this uid controls a pod, or does so no longer.
    fn controls(&mut self, pod: &VmName, uid: Option<&str>) {
        self.api.change(pod, |pod| {
            if let Some(vm) = &mut pod.vm {
                vm.controller = uid.map(Into::into);
            }
        });
    }

    fn change_neonvm(&mut self, uid: &str, change: impl FnOnce(&mut NeonVm)) {
        if let Some(vm) = self.neonvms.get_mut(uid) {
            change(vm);
        }
    }

    fn change_move(&mut self, uid: &str, change: impl FnOnce(&mut Moving)) {
        if let Some(moves) = self.neonvms.get_mut(uid).and_then(|vm| vm.moves.as_mut()) {
            change(moves);
        }
    }

    /// The status says what is.
    fn say_status(&mut self, uid: &str, phase: &'static str) {
        let has = self.neonvms.get(uid).map(|vm| vm.has);
        self.put_status(uid, phase, has);
    }

    fn put_status(&mut self, uid: &str, phase: &'static str, has: Option<Resources>) {
        let Some(vm) = self.neonvms.get(uid) else { return };
        let pod = vm.pod.as_ref();
        let runs = pod.is_some_and(|(_, pod)| self.agents.contains_key(pod));
        let node = pod.filter(|_| runs).and_then(|(_, pod)| self.agents.get(pod));
        let node = node.map(|agent| agent.node.clone());
        let status = Status {
            phase,
            pod: pod.map(|(pod, _)| pod),
            node: node.as_deref(),
            has: has.filter(|_| runs),
        };
        let object = vm.object.clone();
        self.api.put_status(&object, status);
    }

    /// The node that a pod must not be placed on: the VM that moves to it runs there.
    pub(super) fn node_left(&self, pod: &Pod) -> Option<String> {
        let object = pod.vm.as_ref().map(|vm| &vm.object)?;
        let others = self.api.pods.values().filter(|it| it.name != pod.name);
        let mut of_vm = others.filter(|it| it.vm.as_ref().is_some_and(|vm| vm.object == *object));
        of_vm.find(|it| it.phase != Phase::Failed)?.node.clone()
    }
}
