//! Time, the VMs, and what people do to them.

mod agents;
mod convergence;
mod deliver;
mod hypervisors;
mod informants;
mod limits;
pub(crate) mod stands;
mod steps;

use crate::agent::Agent;
use crate::chance::{Chance, Faults};
use crate::coverage::Coverage;
use crate::guest::GuestSpec;
use crate::informant::InformantRun;
use crate::instant::Instant;
use crate::laws::{Law, Violation};
use crate::node::Node;
use crate::queue::{Happening, Queue};
use crate::vm::Vm;
use crate::vms::{Id, Vms};
use std::time::Duration;
use windlass_agent_core::{Event, Order, Periods, Scaler, Settings};
use windlass_informant_core as informant;
use windlass_plugin_core::Note;
use windlass_protocol::status::{HostStatus, NodeStatus, VmStatus};
use windlass_protocol::timing::LONGEST_ACT;
use windlass_protocol::{
    Bytes, ComputeUnit, CpuLimit, Decision, Moment, Resources, VmInfo, VmName,
};

pub use crate::group::Grouping;
pub use crate::guest::{Driver, Muted, Unplug};
pub use crate::informant::Lie;
pub use crate::process::Part;
pub use crate::sides::Cut;
pub use crate::vm::Speaks;
pub use steps::Step;

/// When worlds begin: 2026-01-01T00:00:00Z.
pub const BEGINNING: Moment = Moment::from_millis(1_767_225_600_000);
/// An agent that plans more often than this without time going by has run away.
const MOST_PLANS: usize = 64;

/// What an agent said before it heard of a restart has arrived by then.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

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
    /// Whether the books are a process of their own that knows of VMs by a list alone, and not one
    /// with the agents of its node, which see what hypervisors have.
    pub listed: bool,
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
    pub(crate) vms: Vms,
    violations: Vec<Violation>,
    events: u64,
    moves: u64,
    most_arranged: usize,
    instant: Instant,
    met: Coverage,
    /// A line per event, while somebody listens.
    story: Option<Vec<String>>,
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
            nodes: (0..setup.nodes.max(1)).map(|_| Node::new(setup.room, setup.listed)).collect(),
            vms: Vms::default(),
            violations: Vec::new(),
            events: 0,
            moves: 0,
            most_arranged: 0,
            instant: Instant::default(),
            met: Coverage::new(),
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
        self.add_speaking(node, info, spec, Speaks::default());
    }

    /// The same, with an informant and agents that speak no more than this.
    pub fn add_speaking(&mut self, node: usize, info: VmInfo, spec: GuestSpec, speaks: Speaks) {
        let node = node.min(self.nodes.len() - 1);
        let mut vm = Vm::new(node, info, spec, self.now);
        vm.speaks = speaks;
        vm.may_have(vm.info.bounds.max);
        let who = self.vms.insert(vm);
        self.start_informant(who);
        self.start_agent(who);
    }

    /// Lets time go by.
    pub fn run(&mut self, duration: Duration) {
        let until = self.now.after(duration);
        while let Some((place, who, happening)) = self.queue.next(until) {
            self.now = place.at();
            self.bring_to_front(who, &happening);
            if let Some(later) = self.runs_at(who, &happening).filter(|later| *later > self.now) {
                // A plugin that was stopped passes over requests that came before: their agents have given up.
                let is_given_up = later.since(self.now) > LONGEST_ACT && self.setup.listed;
                if !(is_given_up && happening.is_permit()) {
                    self.queue.defer(place, later, who, happening);
                }
                continue;
            }
            self.events += 1;
            let Self { instant, vms, setup, .. } = self;
            instant
                .happens(place.at(), setup.seed, || format!("{}: {happening:?}", vms.name_of(who)));
            if self.story.is_some() {
                let name = self.name_of(who);
                self.tell(|| format!("{name}: {happening:?}"));
            }
            self.worked(who, &happening);
            self.deliver(who, happening);
            self.watch(who);
            self.most_arranged = self.most_arranged.max(self.queue.len());
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
        self.vms.iter().map(|(_, vm)| &vm.info.name)
    }

    /// The present.
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// How much has happened.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// What happened to whom so far, and in which state.
    pub const fn coverage(&self) -> &Coverage {
        &self.met
    }

    /// The most agents that an informant keeps, registered or not.
    pub fn most_agents(&self) -> usize {
        let runs = self.vms.iter().filter_map(|(_, vm)| vm.informant.as_ref());
        runs.map(|run| run.core.agents() + run.core.joining()).max().unwrap_or(0)
    }

    /// How much is arranged to happen.
    pub fn arranged(&self) -> usize {
        self.queue.len()
    }

    /// How much was arranged at once, at most.
    pub const fn most_arranged(&self) -> usize {
        self.most_arranged
    }

    /// How often an agent asked for a size, spoke of one, or registered.
    pub const fn moves(&self) -> u64 {
        self.moves
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
        self.vms.of(vm).map_or(Resources::ZERO, |vm| vm.has(self.setup.trust_guest_parking))
    }

    /// What the guest can use now: vCPUs online, as far as the host's limit lets it, and memory present.
    pub fn uses(&self, vm: &VmName) -> Resources {
        self.vms.of(vm).map_or(Resources::ZERO, |vm| Resources {
            cpu: vm.guest.usable(),
            mem: vm.guest.seen().memory.present(),
        })
    }

    /// How often what was in use in this guest did not fit.
    pub fn ooms(&self, vm: &VmName) -> u64 {
        self.vms.of(vm).map_or(0, |vm| vm.guest.ooms)
    }

    /// Whether a guest could use this much memory now.
    pub fn fits(&self, vm: &VmName, used: Bytes) -> bool {
        self.vms.of(vm).is_some_and(|vm| vm.guest.fits(used))
    }

    /// The state of one VM, as its agent has it.
    pub fn status(&self, vm: &VmName) -> Option<VmStatus> {
        let vm = self.vms.of(vm)?;
        Some(vm.front.agent.as_ref()?.scaler.status(vm.front.process.clock(self.now)))
    }

    /// The books of the first node.
    pub fn books(&self) -> NodeStatus {
        self.books_of(0)
    }

    /// The books of a node; of the last one, if there are not so many.
    pub fn books_of(&self, node: usize) -> NodeStatus {
        self.nodes[node.min(self.nodes.len() - 1)].status(self.now)
    }

    /// How many nodes there are.
    pub const fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The number of a VM's node.
    pub fn node_of(&self, vm: &VmName) -> Option<usize> {
        Some(self.vms.of(vm)?.node)
    }

    /// Whether the books of every node have the VMs that are there, and no others.
    pub fn books_have_who_is_there(&self) -> bool {
        (0..self.nodes.len()).all(|node| {
            let here = self.vms.iter().filter(|(_, vm)| vm.node == node);
            let booked = self.books_of(node).vms;
            here.map(|(_, vm)| &vm.info.name).eq(booked.iter().map(|vm| &vm.name))
        })
    }

    /// Laws 1 and 6, after each event of a VM.
    fn watch(&mut self, who: Id) {
        let now = self.now;
        if self.vms.get(who).is_some_and(|vm| vm.both_act(now)) && self.violations.is_empty() {
            let what = Some("two agents act".to_owned());
            self.broken(Law::NewestSessionCounts, Some(who), what);
        }
        self.watch_limit(who);
        let (trust, booked) = (self.setup.trust_guest_parking, self.booked(who));
        let Some(vm) = self.vms.get_mut(who) else { return };
        let presumed = self.nodes[vm.node].presumes(&vm.info.name);
        let has = vm.has(trust);
        if booked.covers(has) {
            // Whatever its guest did by itself, it is under again.
            let beyond = vm.allowed.is_some_and(|allowed| vm.guest.online() > allowed);
            let restarted = vm.front.restarted_unheard
                || self.now.since(vm.front.restart_heard_at) < ON_ITS_WAY;
            vm.unruly &= beyond || restarted || vm.lied || presumed;
            // Books that begin anew cover it only until its agent says what it was permitted.
            let recently = |since: &Moment| now.since(*since) < ON_ITS_WAY || presumed;
            vm.loose_since = vm.loose_since.filter(recently);
        } else if !vm.unruly && vm.loose_since.is_none() && self.violations.is_empty() {
            let what = format!("has {has}, booked {booked}");
            self.broken(Law::PermitBeforeGrowth, Some(who), Some(what));
        }
    }

    /// Why the books gave a VM less than it asked for, lately.
    pub fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.node_of(vm).map_or_else(Vec::new, |node| self.nodes[node].notes(vm))
    }

    /// The state of the first node's host, as it would be served.
    pub fn host(&self) -> HostStatus {
        let here = self.vms.iter().filter(|(_, vm)| vm.node == 0);
        let statuses = here.filter_map(|(_, vm)| self.status(&vm.info.name));
        HostStatus {
            at: self.now,
            frozen: false,
            ordered: None,
            host_available: None,
            node: Some(self.books()),
            vms: statuses.collect(),
        }
    }

    /// Decisions of one VM that were closed, oldest first.
    pub fn decisions(&self, vm: &VmName) -> &[Decision] {
        self.vms.of(vm).map_or(&[], |vm| &vm.decisions)
    }

    /// The decision of one VM that is under way.
    pub fn open_decision(&self, vm: &VmName) -> Option<&Decision> {
        self.vms.of(vm)?.front.agent.as_ref()?.scaler.open_decision()
    }

    pub(crate) fn broken(&mut self, law: Law, who: Option<Id>, what: Option<String>) {
        if let Some(what) = what {
            self.tell(|| format!("{law:?} is broken: {what}"));
            let vm = who.map(|who| self.name_of(who));
            self.violations.push(Violation { law, at: self.now, vm, what });
        }
    }

    fn name_of(&self, who: Id) -> VmName {
        self.vms.name_of(who)
    }

    pub(crate) fn start_agent(&mut self, who: Id) {
        let seed = self.chance.draw();
        let Setup { unit, trust_guest_parking, .. } = self.setup;
        let limit = if trust_guest_parking { CpuLimit::Trust } else { CpuLimit::None };
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let plugin_versions = vm.plugin_versions;
        let settings = Settings {
            unit: unit.into(),
            cpu_limit: Some(limit),
            plugin_versions,
            seed,
            periods: Periods::USUAL,
        };
        let host = &mut self.nodes[vm.node];
        if now < host.up_at && !self.setup.listed {
            self.queue.arrange(host.up_at, who, Happening::AgentStarts);
            return;
        }
        host.presume(&vm.info, vm.most);
        vm.epochs += 1;
        vm.front.process.starts(host.wall);
        vm.front.account = None;
        (vm.front.restarted_unheard, vm.front.order) = (false, Order::Follow);
        vm.front.heard.clone_from(&vm.info);
        let clock = vm.front.process.clock(now);
        let scaler = Scaler::new(vm.info.clone(), settings, clock);
        vm.front.agent = Some(Agent::new(scaler, vm.epochs));
        vm.front.runs.push(vm.epochs);
        let (can, available) = (vm.guest.capabilities(), host.available);
        self.tell_agent(who, Event::HostMemory(available));
        self.tell_agent(who, Event::Attached(can));
        self.pump_agent(who);
    }

    pub(crate) fn start_informant(&mut self, who: Id) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        vm.epochs += 1;
        vm.informant_process.starts(vm.wall);
        let settings = informant::Settings {
            versions: vm.speaks.informant,
            parked: vm.stored.clone(),
            leased: vm.noted,
            ..informant::Settings::default()
        };
        vm.informant = Some(InformantRun::new(vm.epochs, settings, vm.consents.clone()));
        let epoch = vm.epochs;
        self.queue.arrange(now, who, Happening::InformantSamples { epoch });
        self.pump_informant(who);
    }
}
