//! The agents of nodes: their processes, what reaches them, and what becomes of what they send.

use crate::cluster::call::{Answer, Call, Kind, Told};
use crate::cluster::laws::{Law, Life};
use crate::cluster::neonvm::Session;
use crate::cluster::node_agent::{NodeAgent, Out, Turn};
use crate::cluster::nodes::node_name;
use crate::cluster::plugin::{Asks, Clock};
use crate::cluster::{ClusterWorld, Due, State};
use std::time::Duration;
use windlass_drivers_neonvm_core::{DEADLINE, WRITTEN_WITHIN};
use windlass_protocol::timing::{LEASE_GIVEN, LEASE_USED};
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Moment, Resources, VmName};

/// An agent takes a turn this often, in milliseconds of true time.
const TURN: u64 = 400;

/// The agent of a node and its process.
#[derive(Debug)]
pub(super) struct NodeProcess {
    pub(super) agent: NodeAgent,
    clock: Clock,
    /// How often it has started.
    life: u64,
    pub(super) state: State,
    /// What has come while it was stopped.
    inbox: Vec<NodeReaching>,
}

/// What reaches the agent of a node.
#[derive(Clone, Debug)]
pub(super) enum NodeReaching {
    Turn,
    Answer { id: u64, answer: Answer },
    Watch { kind: Kind, upto: u64 },
}

/// A request of the agent of a node on its way to the API server.
#[derive(Clone, Debug)]
pub(super) struct NodeRequest {
    nth: usize,
    life: u64,
    id: u64,
    call: Call,
    back: Option<u64>,
    half_done: bool,
    sent: Moment,
}

// === impl ClusterWorld ===

impl ClusterWorld {
    /// An agent starts on each of so many nodes.
    pub(super) fn start_node_agents(&mut self, nodes: usize) {
        for nth in 0..nodes {
            let rate = 985 + self.chance.below(31);
            let clock = Clock { offset: 1_000_000 * (nth as u64 + 10), rate };
            let agent = NodeAgent::start(node_name(nth));
            let (state, inbox) = (State::Runs, Vec::new());
            self.node_agents.push(NodeProcess { agent, clock, life: 1, state, inbox });
            let first = self.chance.below(TURN);
            self.arrange(first, Due::NodeReaches { nth, life: 1, what: NodeReaching::Turn });
        }
    }

    pub(super) fn node_watch_later(&mut self, nth: usize, kind: Kind, upto: u64) {
        let (life, lag) = (self.node_agents[nth].life, self.network.lag(&mut self.chance));
        let what = NodeReaching::Watch { kind, upto };
        self.arrange(lag, Due::NodeReaches { nth, life, what });
    }

    /// Something reaches an agent, which may be stopped or gone.
    pub(super) fn node_reach(&mut self, nth: usize, life: u64, what: NodeReaching) {
        let process = &mut self.node_agents[nth];
        if process.life != life || process.state == State::Dead {
            return;
        }
        if process.state == State::Stopped {
            return process.inbox.push(what);
        }
        match what {
            NodeReaching::Turn => {
                self.renew_leases(nth);
                self.with_node_agent(nth, NodeAgent::tick);
                let what = NodeReaching::Turn;
                self.arrange(TURN, Due::NodeReaches { nth, life, what });
            }
            NodeReaching::Answer { id, answer } => {
                self.with_node_agent(nth, |agent, turn| agent.answered(turn, id, answer));
            }
            NodeReaching::Watch { kind, upto } => self.node_watch(nth, kind, upto),
        }
    }

    fn with_node_agent(&mut self, nth: usize, act: impl FnOnce(&mut NodeAgent, &mut Turn<'_>)) {
        let (mut out, world) = (Vec::new(), self.now);
        let process = &mut self.node_agents[nth];
        let (now, life) = (process.clock.at(self.now), process.life);
        let (met, scalers) = (&mut self.met, &self.agents);
        act(&mut process.agent, &mut Turn { now, world, out: &mut out, met, scalers });
        for out in out {
            match out {
                Out::Call { id, call } => self.node_sends(nth, id, call),
                Out::CatchUp(kind) => self.node_watch_later(nth, kind, self.api.revision),
                Out::Manages(pod) => {
                    self.met.note("VMs that the agent of a node found");
                    self.tell(|| format!("the agent of node {nth} manages {}", pod.name));
                }
                Out::Forgets { pod, is_quiet, why } => self.forgets(nth, &pod, is_quiet, why),
                Out::Releases(pod) => self.release(nth, &pod),
                Out::Asks(pod, wanted) => self.runner_asks(nth, &pod, wanted),
                Out::Ends => {
                    let wait = 200 + self.chance.below(8_000);
                    return self.end_node_agent(nth, life, wait);
                }
            }
        }
    }

    fn node_sends(&mut self, nth: usize, id: u64, call: Call) {
        let fate = self.network.fate(&mut self.chance);
        if self.now < self.down_until {
            return self.met.note("requests while the API server was down");
        }
        let Some(there) = fate.there else {
            return self.met.note("requests that were lost");
        };
        let life = self.node_agents[nth].life;
        if let Some(status) = fate.refused {
            let what = NodeReaching::Answer { id, answer: Answer::Status(status) };
            return self.arrange(there, Due::NodeReaches { nth, life, what });
        }
        let (back, half_done, sent) = (fate.back, fate.half_done, self.now);
        let request = NodeRequest { nth, life, id, call, back, half_done, sent };
        self.arrange(there, Due::NodeArrives(Box::new(request)));
    }

    pub(super) fn node_arrives(&mut self, request: NodeRequest) {
        let NodeRequest { nth, life, id, call, back, half_done, sent } = request;
        if self.now < self.down_until {
            return self.met.note("requests while the API server was down");
        }
        let took = self.now.since(sent);
        if let Call::Patch { looked, .. } = &call {
            // The API server begins none after its deadline, nor one that its client has given up.
            if took >= WRITTEN_WITHIN.min(DEADLINE + Duration::from_millis(900)) {
                return self.met.note("writes of agents that came too late");
            }
            self.met.note_if("writes of agents that came late", took.as_millis() > 500);
            self.look_at_write(looked);
        }
        let before = self.api.revision;
        let answer = self.api.serve(&call);
        let has_changed = self.api.revision != before;
        if let (Call::Patch { looked, patch }, true) = (&call, has_changed) {
            let to = &patch[3]["value"];
            self.tell(|| format!("the agent of node {nth}: {} to {to}", looked.name.name));
            self.met.note("writes of agents that took effect");
            let is_dead = self.node_agents[nth].life != life;
            self.met.note_if("writes of agents that took effect after their agent", is_dead);
        }
        let answer = if half_done && has_changed {
            self.met.note("500 though it took effect");
            Answer::Status(500)
        } else {
            answer
        };
        match back {
            Some(back) => {
                let what = NodeReaching::Answer { id, answer };
                self.arrange(back, Due::NodeReaches { nth, life, what });
            }
            None => self.met.note_if("answers that were lost", has_changed),
        }
        if let (Call::Patch { looked, .. }, true) = (&call, has_changed) {
            self.judge_write(looked);
        }
    }

    /// What a write would change, as it is before that.
    fn look_at_write(&mut self, looked: &Machine) {
        let now = self.api.vms.get(&looked.name).map(|stored| &stored.shown.machine);
        self.meant = now.map(|it| (it.uid.clone(), it.generation, it.pod.clone()));
        let is_same = self.meant.as_ref().is_some_and(|(uid, generation, pod)| {
            (uid, *generation, pod) == (&looked.uid, looked.generation, &looked.pod)
        });
        self.met
            .note_if("writes of agents that came to another state than was looked at", !is_same);
        let is_other = self.meant.as_ref().is_some_and(|(uid, ..)| *uid != looked.uid);
        self.met.note_if("writes of agents that came to another object of the name", is_other);
    }

    /// A write that took effect was meant for what it changed.
    fn judge_write(&mut self, looked: &Machine) {
        let meant = (looked.uid.clone(), looked.generation, looked.pod.clone());
        if let Some(found) = self.meant.take().filter(|found| *found != meant) {
            let seen = format!("a write for {meant:?} changes {found:?}, {}", looked.name);
            self.judge.say(self.now, Law::MeantForIt, seen);
        }
    }

    fn node_watch(&mut self, nth: usize, kind: Kind, upto: u64) {
        let Some(at) = self.node_agents[nth].agent.follows(kind).filter(|at| *at < upto) else {
            return;
        };
        for (_, told) in self.api.told(kind, at, upto) {
            // Agents have no audit: one that was not told that an object is gone would take it for the next of its name.
            let may_be_lost = match &told {
                Told::Object(shown) => shown.was == shown.label,
                Told::ObjectGone(_) => false,
                Told::Pod(_) | Told::PodGone(_) => true,
                Told::Node(_) | Told::NodeGone(_) | Told::Migration(_) | Told::MigrationGone(_) => {
                    false
                }
            };
            if self.chance.below(1000) < self.network.gaps && may_be_lost {
                self.met.note("watch events that the agent of a node lost");
            } else {
                self.with_node_agent(nth, |agent, turn| agent.tell(turn, told));
            }
            if self.chance.below(1000) < self.network.gaps {
                let drawn = usize::try_from(self.chance.below(40)).unwrap_or(0);
                self.with_node_agent(nth, |agent, turn| agent.repeat(turn, kind, drawn));
            }
        }
        self.node_agents[nth].agent.came_to(kind, upto);
    }

    /// Guests let agents act that reach them: one session at a time, for as long as its lease lasts.
    fn renew_leases(&mut self, nth: usize) {
        let process = &mut self.node_agents[nth];
        let (clock, life) = (process.clock.at(self.now), process.life);
        for (pod, runner) in &mut process.agent.runners {
            let is_of = |of: &(VmName, String)| of.0 == *pod && of.1 == runner.uid;
            let mut guests = self.neonvms.values_mut();
            let guest = guests.find(|vm| vm.pod.as_ref().is_some_and(is_of));
            let Some(guest) = guest.filter(|_| self.agents.contains_key(&runner.uid)) else {
                continue;
            };
            let session: Session = (nth, life, runner.session);
            let is_free = guest.lease.is_none_or(|(of, until)| of == session || until <= self.now);
            if is_free {
                guest.lease = Some((session, self.now.after(LEASE_GIVEN)));
                runner.leased_until = clock.after(LEASE_USED);
            }
        }
    }

    /// An agent lets a guest go: another may act at once.
    fn release(&mut self, nth: usize, pod: &VmName) {
        let life = self.node_agents[nth].life;
        for vm in self.neonvms.values_mut() {
            let is_of = vm.pod.as_ref().is_some_and(|(name, _)| name == pod);
            let is_held =
                vm.lease.is_some_and(|((of, in_life, _), _)| (of, in_life) == (nth, life));
            if is_of && is_held {
                vm.lease = None;
            }
        }
    }

    fn forgets(&mut self, nth: usize, pod: &VmName, is_quiet: bool, why: Option<String>) {
        self.met.note("VMs that the agent of a node forgot");
        self.tell(|| format!("the agent of node {nth} forgets {}", pod.name));
        if let Some(why) = why {
            let seen = format!("{pod} is withdrawn, and {why}");
            self.judge.say(self.now, Law::NothingWithdrawn, seen);
        }
        self.forget_permits(nth, |it| it == pod);
        if is_quiet {
            self.release(nth, pod);
        }
    }

    /// What an agent knew of permits is gone.
    fn forget_permits(&mut self, nth: usize, is_of: impl Fn(&VmName) -> bool) {
        let node = node_name(nth);
        let all = self.agents.values_mut().filter(|agent| agent.object.is_some());
        all.filter(|agent| agent.node == node && is_of(&agent.pod)).for_each(|it| it.restart());
    }

    fn runner_asks(&mut self, nth: usize, pod: &VmName, wanted: Resources) {
        let uid = self.node_agents[nth].agent.runners.get(pod).map(|runner| runner.uid.clone());
        let Some(uid) = uid else { return };
        let Some(agent) = self.agents.get_mut(&uid) else { return };
        let (number, ask) = agent.ask_for(self.now, wanted);
        let asks = Asks { uid, vm: pod.clone(), node: node_name(nth), number, ask, begun: 0 };
        self.send_to_plugin(&asks);
    }

    /// Whether what a plugin answers reaches the agent that asked, if that is the one of a node.
    pub(super) fn runner_hears(
        &mut self,
        asks: &Asks,
        by: Life,
        permit: Option<Resources>,
    ) -> bool {
        let Some(agent) = self.agents.get(&asks.uid).filter(|it| it.object.is_some()) else {
            return true;
        };
        let process = self.node_agents.iter().find(|it| it.agent.node == agent.node);
        match process.map(|process| process.state) {
            Some(State::Runs) => true,
            Some(State::Stopped) => {
                self.arrange(500, Due::Permitted { asks: asks.clone(), by, permit });
                false
            }
            Some(State::Dead) | None => false,
        }
    }

    /// The agent of a node asks for this VM again after about so long. `false`: the VM has an agent of its own.
    pub(super) fn runner_asks_after(&mut self, uid: &str, about: u64) -> bool {
        let Some(agent) = self.agents.get(uid).filter(|it| it.object.is_some()) else {
            return false;
        };
        let wait = about / 2 + self.chance.below(about);
        if let Some(process) = self.node_agents.iter_mut().find(|it| it.agent.node == agent.node) {
            let at = process.clock.at(self.now).after(Duration::from_millis(wait));
            let mut runners = process.agent.runners.values_mut();
            runners.find(|it| it.uid == uid).into_iter().for_each(|runner| runner.asks_at = at);
        }
        true
    }

    pub(super) fn kill_node_agent(&mut self, nth: usize, time: u64) {
        let Some(process) = self.node_agents.get(nth) else { return };
        if process.state != State::Dead {
            let life = process.life;
            self.met.note("agents of nodes that were killed");
            self.end_node_agent(nth, life, time);
        }
    }

    pub(super) fn node_agent_leaves(&mut self, nth: usize) {
        let Some(process) = self.node_agents.get_mut(nth) else { return };
        if process.state == State::Runs {
            process.agent.leave(process.clock.at(self.now));
            self.met.note("agents of nodes that were told to end");
        }
    }

    pub(super) fn stop_node_agent(&mut self, nth: usize, time: u64) {
        let Some(process) = self.node_agents.get_mut(nth) else { return };
        if process.state == State::Runs {
            process.state = State::Stopped;
            let life = process.life;
            self.met.note("agents of nodes that were stopped");
            self.arrange(time, Due::NodeGoesOn { nth, life });
        }
    }

    pub(super) fn node_agent_goes_on(&mut self, nth: usize, life: u64) {
        let process = &mut self.node_agents[nth];
        if process.life != life || process.state != State::Stopped {
            return;
        }
        process.state = State::Runs;
        for what in std::mem::take(&mut process.inbox) {
            // What waits in its sockets is read by and by.
            let wait = self.chance.below(if let NodeReaching::Turn = what { 50 } else { 400 });
            self.arrange(wait, Due::NodeReaches { nth, life, what });
        }
    }

    pub(super) fn cut_node_agent(&mut self, nth: usize) {
        let Some(process) = self.node_agents.get_mut(nth) else { return };
        let clock = process.clock.at(self.now);
        for kind in [Kind::Pods, Kind::Objects] {
            process.agent.cut(clock, kind);
        }
        self.met.note("watches of the agent of a node that broke");
    }

    /// Nothing tells an agent of an event that its watch lost, but another list.
    pub(super) fn list_for_node_agents(&mut self) {
        for process in &mut self.node_agents {
            let clock = process.clock.at(self.now);
            for kind in [Kind::Pods, Kind::Objects] {
                process.agent.list_again(clock, kind);
            }
        }
    }

    fn end_node_agent(&mut self, nth: usize, life: u64, after: u64) {
        let process = &mut self.node_agents[nth];
        if process.life != life {
            return;
        }
        process.state = State::Dead;
        process.inbox.clear();
        self.tell(|| format!("the agent of node {nth} is gone"));
        self.forget_permits(nth, |_| true);
        self.arrange(after.max(1), Due::NodeStarts { nth });
    }

    pub(super) fn start_node_agent(&mut self, nth: usize) {
        let process = &mut self.node_agents[nth];
        process.life += 1;
        let life = process.life;
        process.state = State::Runs;
        process.agent = NodeAgent::start(node_name(nth));
        self.arrange(1, Due::NodeReaches { nth, life, what: NodeReaching::Turn });
    }

    /// A VM that runs, and is not managed by the agent of its node, or whose object is not labelled with that.
    pub(super) fn unmanaged(&self) -> Option<String> {
        for process in &self.node_agents {
            if process.state != State::Runs {
                return Some(format!("no agent runs on {}", process.agent.node));
            }
        }
        for (uid, vm) in &self.neonvms {
            let Some(shown) = self.api.vm(&vm.object, uid) else {
                return Some(format!("{} is deleted, and its VM is there", vm.object));
            };
            let Some((pod, of)) = &vm.pod else { return Some(format!("{} has no pod", vm.object)) };
            let Some(agent) = self.agents.get(of) else { continue };
            if shown.label.as_ref() != Some(&agent.node) {
                return Some(format!("{} is on {}: {shown:?}", vm.object, agent.node));
            }
            let process = self.node_agents.iter().find(|it| it.agent.node == agent.node)?;
            let runner = process.agent.runners.get(pod).filter(|runner| runner.uid == *of);
            if runner.is_none() {
                return Some(format!("{pod} runs on {}, and is not managed", agent.node));
            }
        }
        let mut all = self.node_agents.iter().flat_map(|process| {
            let here = process.agent.runners.iter();
            here.map(|(pod, runner)| (&process.agent.node, pod, runner))
        });
        let is_left =
            |(node, _, runner): &(&String, &VmName, &crate::cluster::node_agent::Runner)| {
                self.agents.get(&runner.uid).is_none_or(|agent| agent.node != **node)
            };
        let (node, pod, _) = all.find(is_left)?;
        Some(format!("{node} manages {pod}, which does not run there"))
    }
}
