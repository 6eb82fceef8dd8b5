//! Time, the VMs, and what people do to them.

mod deliver;
mod steps;

use crate::agent::Agent;
use crate::chance::{Chance, Faults};
use crate::guest::{Guest, GuestSpec};
use crate::informant::InformantRun;
use crate::laws::{Consent, Law, Violation};
use crate::node::Node;
use crate::queue::{Happening, Queue};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_agent_core::{Event, Scaler, Settings};
use windlass_plugin_core::Note;
use windlass_protocol::status::{HostStatus, NodeStatus, VmStatus};
use windlass_protocol::{
    Bytes, ComputeUnit, Decision, MilliCpu, Moment, Resources, VmInfo, VmName,
};

pub use crate::guest::{Driver, Muted};
pub use steps::Step;

/// When worlds begin: 2026-01-01T00:00:00Z.
pub const BEGINNING: Moment = Moment::from_millis(1_767_225_600_000);
/// An agent that plans more often than this without time going by has run away.
const MOST_PLANS: usize = 64;

/// What a world is like.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many nodes; at least one.
    pub nodes: usize,
    /// What each node may promise.
    pub room: Resources,
    /// The step that sizes move in.
    pub unit: ComputeUnit,
    /// Whether a parked vCPU counts as given back.
    pub trust_guest_parking: bool,
    /// Everything that chance decides follows from this.
    pub seed: u64,
}

/// Agents, informants, guests and nodes, under one clock.
#[derive(Debug)]
pub struct World {
    setup: Setup,
    now: Moment,
    pub(crate) chance: Chance,
    /// How unkind the network is.
    pub faults: Faults,
    pub(crate) queue: Queue,
    pub(crate) nodes: Vec<Node>,
    pub(crate) vms: BTreeMap<VmName, Vm>,
    violations: Vec<Violation>,
    events: u64,
    /// A line per event, while somebody listens.
    story: Option<Vec<String>>,
}

/// One VM, with everything that belongs to it.
#[derive(Debug)]
pub(crate) struct Vm {
    /// The number of its node.
    pub(crate) node: usize,
    pub(crate) info: VmInfo,
    pub(crate) guest: Guest,
    pub(crate) agent: Option<Agent>,
    pub(crate) informant: Option<InformantRun>,
    /// Counts runs of agents and informants.
    pub(crate) epochs: u64,
    /// vCPUs that the last `/upscale` allowed; until one is agreed away, all that are plugged.
    pub(crate) allowed: Option<MilliCpu>,
    /// The largest maximum that it ever had.
    pub(crate) most: Resources,
    /// What informants that are gone had agreed to.
    pub(crate) consents: Vec<Consent>,
    /// What was in use when it last agreed to less: more than that is the guest's doing.
    pub(crate) used_then: Bytes,
    /// When resizes were asked for in the last minute.
    pub(crate) resized: Vec<Moment>,
    /// The boot in which memory is moved step by step.
    pub(crate) moves_in: Option<u64>,
    /// Un-parked by itself, so law 1 is the guest's matter until it is under again.
    pub(crate) unruly: bool,
    /// The run of the agent that the monitor serves.
    pub(crate) connected: u64,
    /// The monitor does not answer.
    pub(crate) deaf: bool,
    pub(crate) decisions: Vec<Decision>,
    /// What informants of this VM parked since it booted.
    pub(crate) parked: BTreeSet<u32>,
}

// === impl World ===

impl World {
    /// Empty nodes.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            now: BEGINNING,
            chance: Chance::new(setup.seed),
            faults: Faults::default(),
            queue: Queue::default(),
            nodes: (0..setup.nodes.max(1)).map(|_| Node::new(setup.room)).collect(),
            vms: BTreeMap::new(),
            violations: Vec::new(),
            events: 0,
            story: None,
        }
    }

    /// From here on every event is told.
    pub fn tell_story(&mut self) {
        self.story.get_or_insert_default();
    }

    /// What happened since it is told: a line per event.
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let since = self.now.since(BEGINNING).as_millis();
            story.push(format!("{:>7}.{:03} {}", since / 1000, since % 1000, line()));
        }
    }

    /// A VM starts on the first node, with an informant in it and an agent for it.
    pub fn add(&mut self, info: VmInfo, spec: GuestSpec) {
        self.add_on(0, info, spec);
    }

    /// A VM starts on this node; on the last one, if there are not so many.
    pub fn add_on(&mut self, node: usize, info: VmInfo, spec: GuestSpec) {
        let node = node.min(self.nodes.len() - 1);
        let name = info.name.clone();
        let vm = Vm {
            node,
            most: info.bounds.max,
            info,
            guest: Guest::new(spec, self.now),
            agent: None,
            informant: None,
            epochs: 0,
            allowed: None,
            consents: Vec::new(),
            used_then: Bytes::ZERO,
            resized: Vec::new(),
            moves_in: None,
            unruly: false,
            connected: 0,
            deaf: false,
            decisions: Vec::new(),
            parked: BTreeSet::new(),
        };
        self.vms.insert(name.clone(), vm);
        self.start_informant(&name);
        self.start_agent(&name);
    }

    /// Lets time go by.
    pub fn run(&mut self, duration: Duration) {
        let until = self.now.after(duration);
        while let Some((at, vm, happening)) = self.queue.next(until) {
            self.now = at;
            self.events += 1;
            self.tell(|| format!("{vm}: {happening:?}"));
            self.deliver(&vm, happening);
        }
        self.now = until;
    }

    /// Lets time go by until something holds, at most for `limit`. Says whether it does.
    pub fn run_until(&mut self, limit: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let until = self.now.after(limit);
        while self.now < until {
            if holds(self) {
                return true;
            }
            self.run(Duration::from_millis(100));
        }
        holds(self)
    }

    /// The VMs.
    pub fn names(&self) -> impl Iterator<Item = &VmName> {
        self.vms.keys()
    }

    /// The present.
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// How much has happened.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// How much is arranged to happen.
    pub fn arranged(&self) -> usize {
        self.queue.len()
    }

    /// What broke a law, oldest first.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// What broke this law.
    pub fn violations_of(&self, law: Law) -> Vec<&Violation> {
        self.violations.iter().filter(|violation| violation.law == law).collect()
    }

    /// What a VM has by the truth: law 1's figure.
    pub fn has(&self, vm: &VmName) -> Resources {
        self.vms.get(vm).map_or(Resources::ZERO, |vm| vm.has(self.setup.trust_guest_parking))
    }

    /// What the guest can use now: vCPUs online, memory present.
    pub fn uses(&self, vm: &VmName) -> Resources {
        self.vms.get(vm).map_or(Resources::ZERO, |vm| Resources {
            cpu: vm.guest.online(),
            mem: vm.guest.seen().memory.present(),
        })
    }

    /// How often what was in use in this guest did not fit.
    pub fn ooms(&self, vm: &VmName) -> u64 {
        self.vms.get(vm).map_or(0, |vm| vm.guest.ooms)
    }

    /// Whether a guest could use this much memory now.
    pub fn fits(&self, vm: &VmName, used: Bytes) -> bool {
        self.vms.get(vm).is_some_and(|vm| vm.guest.fits(used))
    }

    /// The state of one VM, as its agent has it.
    pub fn status(&self, vm: &VmName) -> Option<VmStatus> {
        Some(self.vms.get(vm)?.agent.as_ref()?.scaler.status(self.now))
    }

    /// The books of the first node.
    pub fn books(&self) -> NodeStatus {
        self.books_of(0)
    }

    /// The books of a node; of the last one, if there are not so many.
    pub fn books_of(&self, node: usize) -> NodeStatus {
        self.nodes[node.min(self.nodes.len() - 1)].status(self.now)
    }

    /// The number of a VM's node.
    pub fn node_of(&self, vm: &VmName) -> Option<usize> {
        Some(self.vms.get(vm)?.node)
    }

    /// Whether a VM uses what its agent would have, and the books have for it what it has.
    pub fn is_at_goal(&self, vm: &VmName) -> bool {
        let (Some(status), Some(there)) = (self.status(vm), self.vms.get(vm)) else { return false };
        let booked = self.nodes[there.node].booked(self.now, vm);
        status.goal == Some(self.uses(vm)) && booked == Some(self.has(vm))
    }

    /// Why the books gave a VM less than it asked for, lately.
    pub fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.node_of(vm).map_or_else(Vec::new, |node| self.nodes[node].notes(vm))
    }

    /// The state of the first node's host, as it would be served.
    pub fn host(&self) -> HostStatus {
        let here = self.vms.values().filter(|vm| vm.node == 0);
        let scalers = here.filter_map(|vm| vm.agent.as_ref());
        HostStatus {
            at: self.now,
            frozen: false,
            host_available: None,
            node: self.books(),
            vms: scalers.map(|agent| agent.scaler.status(self.now)).collect(),
        }
    }

    /// Decisions of one VM that were closed, oldest first.
    pub fn decisions(&self, vm: &VmName) -> &[Decision] {
        self.vms.get(vm).map_or(&[], |vm| &vm.decisions)
    }

    /// The decision of one VM that is under way.
    pub fn open_decision(&self, vm: &VmName) -> Option<&Decision> {
        self.vms.get(vm)?.agent.as_ref()?.scaler.open_decision()
    }

    pub(crate) fn broken(&mut self, law: Law, vm: Option<&VmName>, what: Option<String>) {
        if let Some(what) = what {
            self.tell(|| format!("{law:?} is broken: {what}"));
            self.violations.push(Violation { law, at: self.now, vm: vm.cloned(), what });
        }
    }

    pub(crate) fn start_agent(&mut self, name: &VmName) {
        let seed = self.chance.draw();
        let settings = Settings {
            unit: self.setup.unit,
            trust_guest_parking: self.setup.trust_guest_parking,
            seed,
        };
        let now = self.now;
        let Some(vm) = self.vms.get_mut(name) else { return };
        vm.epochs += 1;
        let mut scaler = Scaler::new(vm.info.clone(), settings, now);
        scaler.observe(now, Event::Attached(vm.guest.capabilities()));
        vm.agent = Some(Agent::new(scaler, vm.epochs));
        self.pump_agent(name);
    }

    pub(crate) fn start_informant(&mut self, name: &VmName) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(name) else { return };
        vm.epochs += 1;
        vm.informant = Some(InformantRun::new(vm.epochs, vm.parked.clone(), vm.consents.clone()));
        let epoch = vm.epochs;
        self.queue.arrange(now, name, Happening::InformantSamples { epoch });
        self.pump_informant(name);
    }

    /// Carries out what the agent plans.
    pub(crate) fn pump_agent(&mut self, name: &VmName) {
        let now = self.now;
        for _ in 0..MOST_PLANS {
            let Some(vm) = self.vms.get_mut(name) else { return };
            let Some(agent) = &mut vm.agent else { return };
            vm.decisions.extend(agent.scaler.drain_decisions());
            let plan = agent.scaler.plan(now);
            let pure = plan == agent.scaler.plan(now);
            let epoch = agent.epoch;
            if plan.actions.is_empty() {
                if let Some(at) = plan.wake_at.filter(|at| agent.alarm.set(*at)) {
                    self.queue.arrange(at, name, Happening::AgentWakes { epoch });
                }
                return;
            }
            for action in plan.actions {
                self.send(name, action);
            }
            self.broken(Law::PlansArePure, Some(name), (!pure).then(|| "two plans".to_owned()));
        }
        let what = Some(format!("{MOST_PLANS} plans without time going by"));
        self.broken(Law::PlansArePure, Some(name), what);
    }
}

// === impl Vm ===

impl Vm {
    /// What is parked is not allowed any more.
    pub(crate) fn keep_parked(&mut self) {
        let parked = MilliCpu::from_cores(self.parked.len() as u64);
        let kept = self.guest.seen().plugged.saturating_sub(parked);
        self.allowed = self.allowed.map(|allowed| allowed.min(kept));
    }

    pub(crate) fn has(&self, trust_guest_parking: bool) -> Resources {
        let seen = self.guest.seen();
        let online = self.guest.online();
        let cpu = match (trust_guest_parking, self.allowed) {
            (true, Some(allowed)) => online.max(allowed).min(seen.plugged),
            (true, None) | (false, _) => seen.plugged,
        };
        Resources { cpu, mem: seen.memory.upper() }
    }
}
