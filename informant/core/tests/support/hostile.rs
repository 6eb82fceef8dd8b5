//! A guest and agents that do their worst, and keep books of their own.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_informant_core::{
    Action, Ask, Change, Event, Failure, Informant, MachineSeen, Memory, Refusal, Settings,
};
use windlass_protocol::informant::{AgentDesc, ResourceMessage};
use windlass_protocol::version::InformantVersion;
use windlass_protocol::{AgentId, Bytes, MilliCpu, Moment, Resources, Sequence};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Time passes, in milliseconds; a sample is taken at its end.
    Pass(u64),
    Register(u8),
    Unregister(u8),
    Kill(u8),
    /// One of the calls under way gets its answer.
    Answer(usize, Fate),
    Use(u64),
    Size(u64),
    /// Numbers: the next, the last again, or one before it.
    Downscale(u8, Number, u64, u64),
    /// The agent that counts asks for so many MiB less than the VM has.
    Less(u64, u64),
    /// It asks for so many MiB more than would do for what is in use at this moment.
    Fitting(u64),
    Upscale(u8, Number, u64),
    Stall,
    AddCpu(u32),
    /// From here on changes of the machine succeed, or not.
    Stubborn(bool),
    NoZoneinfo,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Next,
    Again,
    Before,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// The agent answers as it should.
    Good,
    /// It acts, and its answer is lost.
    Lost,
    /// It never hears of it.
    Unheard,
    /// It acts, and its answer has an old number.
    Old,
    /// Its answer has another's id.
    Other,
    /// It refuses, whatever its state.
    Refused(u16),
}

pub(crate) struct World {
    pub(crate) informant: Informant,
    pub(crate) now: Moment,
    agents: BTreeMap<AgentId, Agent>,
    /// Those that registered, in that order.
    joined: Vec<AgentId>,
    under_way: Vec<(AgentId, Ask)>,
    kind: bool,
    size: Bytes,
    used: Bytes,
    samples: Vec<(Moment, Bytes)>,
    read: Memory,
    zoneinfo: bool,
    seen: MachineSeen,
    stubborn: bool,
    /// What an agreed shrink allows.
    may_use: Option<usize>,
    pub(crate) changes: usize,
    /// The last shrink that was agreed to, and memory as it was read last.
    pub(crate) agreed: Option<(Bytes, Memory)>,
    pub(crate) surprises: Vec<String>,
}

#[derive(Default)]
struct Agent {
    dead: bool,
    running: bool,
    said: u64,
    asked: u64,
    /// The highest number that was answered.
    mark: u64,
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let agent = 1_u8..6;
    let number =
        prop_oneof![4 => Just(Number::Next), 2 => Just(Number::Again), 1 => Just(Number::Before)];
    let fate = prop_oneof![
        8 => Just(Fate::Good),
        2 => Just(Fate::Lost),
        2 => Just(Fate::Unheard),
        1 => Just(Fate::Old),
        1 => Just(Fate::Other),
        1 => prop_oneof![Just(400), Just(404), Just(500)].prop_map(Fate::Refused),
    ];
    let step = prop_oneof![
        12 => prop_oneof![4 => 1_u64..150, 1 => 150_u64..15_000].prop_map(Step::Pass),
        4 => agent.clone().prop_map(Step::Register),
        1 => agent.clone().prop_map(Step::Unregister),
        1 => agent.clone().prop_map(Step::Kill),
        8 => (0_usize..4, fate).prop_map(|(at, fate)| Step::Answer(at, fate)),
        2 => (0_u64..2000).prop_map(Step::Use),
        1 => (64_u64..4096).prop_map(Step::Size),
        4 => (agent.clone(), number.clone(), 0_u64..5000, 0_u64..4096)
            .prop_map(|(agent, number, cpu, mem)| Step::Downscale(agent, number, cpu, mem)),
        1 => (0_u64..5000, 0_u64..200).prop_map(|(cpu, mib)| Step::Less(cpu, mib)),
        2 => (0_u64..200).prop_map(Step::Fitting),
        2 => (agent, number, 0_u64..5000).prop_map(|(a, n, cpu)| Step::Upscale(a, n, cpu)),
        1 => Just(Step::Stall),
        1 => (1_u32..8).prop_map(Step::AddCpu),
        1 => any::<bool>().prop_map(Step::Stubborn),
        1 => Just(Step::NoZoneinfo),
    ];
    vec(step, 0..most)
}

fn id(agent: u8) -> AgentId {
    AgentId::from_u128(u128::from(agent))
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            informant: Informant::new(Settings::default()),
            now: Moment::from_millis(1_000_000),
            agents: BTreeMap::new(),
            joined: Vec::new(),
            under_way: Vec::new(),
            kind: false,
            size: Bytes::from_mib(1024),
            used: Bytes::from_mib(100),
            samples: Vec::new(),
            read: Memory::default(),
            zoneinfo: true,
            seen: MachineSeen {
                present: (0..3).collect(),
                online: (0..2).collect(),
                offline_blocks: BTreeSet::from([40, 41]),
            },
            stubborn: false,
            may_use: None,
            changes: 0,
            agreed: None,
            surprises: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Pass(millis) => {
                self.now = self.now.after(Duration::from_millis(millis));
                self.read = self.memory();
                self.samples.push((self.now, self.used.min(self.read.total)));
                self.tell(Event::Sampled(self.read));
            }
            Step::Register(agent) => self.register(id(agent)),
            Step::Unregister(agent) => drop(self.informant.unregister(&desc(id(agent)))),
            Step::Kill(agent) => self.agents.entry(id(agent)).or_default().dead = true,
            Step::Answer(at, fate) => self.answer(at, fate),
            Step::Use(mib) => self.used = Bytes::from_mib(mib),
            Step::Size(mib) => self.size = Bytes::from_mib(mib),
            Step::Downscale(agent, number, cpu, mem) => {
                let message = self.message(id(agent), number, cpu, mem);
                self.downscale(message);
            }
            Step::Less(cpu, mib) => self.shrink(cpu, self.size.mib().saturating_sub(mib)),
            Step::Fitting(mib) => {
                let used = self.used.mib();
                // The margin is a share of what would be left.
                self.shrink(1000, used + used / 5 + 200 + mib);
            }
            Step::Upscale(agent, number, cpu) => {
                let message = self.message(id(agent), number, cpu, self.size.mib());
                self.upscale(message);
            }
            Step::Stall => self.tell(Event::Stalled),
            Step::AddCpu(cpu) => drop(self.seen.present.insert(cpu)),
            Step::Stubborn(stubborn) => self.stubborn = stubborn && !self.kind,
            Step::NoZoneinfo => self.zoneinfo = false,
        }
        self.drive();
    }

    /// From here on nothing is lost, and those that live answer as they should.
    pub(crate) fn be_kind(&mut self) {
        self.kind = true;
        self.stubborn = false;
        for (agent, _) in std::mem::take(&mut self.under_way) {
            self.tell(Event::Failed(agent, Failure::NoAnswer));
        }
    }

    /// Those that are registered, oldest first.
    pub(crate) fn registered(&self) -> Vec<AgentId> {
        let here = |agent: &&AgentId| matches!(self.informant.registration(**agent), Some(Ok(_)));
        self.joined.iter().filter(here).copied().collect()
    }

    pub(crate) fn is_alive(&self, agent: AgentId) -> bool {
        !self.agents[&agent].dead
    }

    pub(crate) fn samples_lately(&self) -> usize {
        self.samples.iter().filter(|(at, _)| self.now.since(*at) <= Duration::from_secs(2)).count()
    }

    pub(crate) fn most_used_lately(&self) -> Bytes {
        let lately =
            self.samples.iter().filter(|(at, _)| self.now.since(*at) <= Duration::from_secs(2));
        lately.map(|(_, used)| *used).max().unwrap_or(Bytes::ZERO)
    }

    fn memory(&self) -> Memory {
        let kernel = Bytes::from_mib(50);
        let total = self.size.saturating_sub(kernel);
        let available = total.saturating_sub(self.used);
        let overhead = self.zoneinfo.then_some(kernel);
        Memory { total, available, free: Bytes::from_bytes(available.bytes() / 2), overhead }
    }

    fn register(&mut self, agent: AgentId) {
        if self.informant.register(&desc(agent)).is_ok() {
            let number = self.agents.get(&agent).map_or(0, |agent| agent.said);
            let fresh = Agent { said: number, asked: number, ..Agent::default() };
            self.agents.insert(agent, fresh);
            self.joined.retain(|joined| *joined != agent);
            self.under_way.retain(|(called, _)| *called != agent);
        }
    }

    fn answer(&mut self, at: usize, fate: Fate) {
        if at >= self.under_way.len() {
            return;
        }
        let (id, ask) = self.under_way.remove(at);
        let agent = self.agents.get_mut(&id).unwrap();
        let lost = Event::Failed(id, Failure::NoAnswer);
        if agent.dead || matches!(fate, Fate::Unheard) {
            return self.tell(lost);
        }
        if let Fate::Refused(status) = fate {
            return self.tell(Event::Failed(id, Failure::Refused(status)));
        }
        let followed = match ask {
            Ask::Id => true,
            Ask::Resume => !std::mem::replace(&mut agent.running, true),
            Ask::Suspend => std::mem::replace(&mut agent.running, false),
            Ask::MoreMemory => agent.running,
        };
        if !followed {
            return self.tell(Event::Failed(id, Failure::Refused(400)));
        }
        agent.said += 1;
        let number = match fate {
            Fate::Old => agent.said / 2,
            Fate::Good | Fate::Lost | Fate::Unheard | Fate::Other | Fate::Refused(_) => agent.said,
        };
        let by = if matches!(fate, Fate::Other) { AgentId::from_u128(77) } else { id };
        if matches!(fate, Fate::Lost) {
            return self.tell(lost);
        }
        self.tell(Event::Answered { agent: id, by, sequence: Sequence::from_number(number) });
    }

    fn message(&mut self, agent: AgentId, number: Number, cpu: u64, mem: u64) -> ResourceMessage {
        let known = self.agents.entry(agent).or_default();
        let sequence = match number {
            Number::Next => {
                known.said += 1;
                known.asked = known.said;
                known.asked
            }
            Number::Again => known.asked,
            Number::Before => known.asked.saturating_sub(1),
        };
        ResourceMessage {
            resources: Resources::new(MilliCpu::from_milli(cpu), Bytes::from_mib(mem)),
            id: agent,
            sequence: Sequence::from_number(sequence),
        }
    }

    fn shrink(&mut self, cpu: u64, mib: u64) {
        if let Some(agent) = self.informant.current() {
            let message = self.message(agent, Number::Next, cpu, mib);
            self.downscale(message);
        }
    }

    fn downscale(&mut self, message: ResourceMessage) {
        let (before, current) = (format!("{:?}", self.informant), self.informant.current());
        let first = self.informant.downscale(self.now, &message);
        let once = format!("{:?}", self.informant);
        // Said again, also later and after memory has changed: the same.
        let second = self.informant.downscale(self.now, &message);
        self.expect(first == second, "a second answer differs", &message);
        self.expect(once == format!("{:?}", self.informant), "a second effect", &message);
        match first {
            Err(refusal) => {
                let unchanged = once == before && current != Some(message.id);
                self.expect(unchanged, "a refusal that has an effect", &message);
                self.expect(refusal == Refusal::NotActive(message.id), "a strange one", &message);
            }
            Ok(result) => {
                self.expect(current == Some(message.id), "an answer to another", &message);
                // What was already answered, or older, is not examined anew.
                if self.is_new(&message) && result.ok {
                    self.agreed = Some((message.resources.mem, self.read));
                    self.may_use = Some(usize::try_from(message.resources.cpu.cores_up()).unwrap());
                }
            }
        }
    }

    fn upscale(&mut self, message: ResourceMessage) {
        let current = self.informant.current();
        let first = self.informant.upscale(self.now, &message);
        let once = format!("{:?}", self.informant);
        let second = self.informant.upscale(self.now, &message);
        self.expect(first == second, "a second answer differs", &message);
        self.expect(once == format!("{:?}", self.informant), "a second effect", &message);
        self.expect(first.is_ok() == (current == Some(message.id)), "not its turn", &message);
        if first.is_ok() {
            self.is_new(&message);
        }
    }

    fn is_new(&mut self, message: &ResourceMessage) -> bool {
        let agent = self.agents.entry(message.id).or_default();
        let mark = agent.mark.max(message.sequence.number());
        std::mem::replace(&mut agent.mark, mark) < mark
    }

    fn drive(&mut self) {
        for _ in 0..2000 {
            let plan = self.informant.plan(self.now);
            self.expect(plan == self.informant.plan(self.now), "two plans at once", &plan.wake_at);
            let later = plan.wake_at.is_none_or(|at| at > self.now);
            self.expect(later, "a plan that is due and not made", &plan.wake_at);
            if plan.actions.is_empty() {
                return;
            }
            for action in plan.actions {
                self.tell(Event::Sent(action.clone()));
                self.act(action);
            }
        }
        self.surprises.push("the plan is never done".to_owned());
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Look => self.tell(Event::Seen(Some(self.seen.clone()))),
            Action::Do(change) => {
                self.changes += 1;
                let done = !self.stubborn && self.change(&change);
                self.tell(Event::Done(done));
            }
            Action::Call { agent, ask, .. } => {
                let busy = self.under_way.iter().any(|(called, _)| *called == agent);
                self.expect(!busy, "two calls at once", &agent);
                self.under_way.push((agent, ask));
                if self.kind {
                    self.answer(self.under_way.len() - 1, Fate::Good);
                }
            }
        }
    }

    fn change(&mut self, change: &Change) -> bool {
        match change {
            Change::AddedIsMovable | Change::Remember(_) | Change::Note(_) => true,
            Change::OnlineMemory(block) => self.seen.offline_blocks.remove(block),
            Change::OnlineCpu(cpu) => self.seen.online.insert(*cpu),
            Change::OfflineCpu(cpu) => {
                let allowed = self.may_use.is_some_and(|least| self.seen.online.len() > least);
                self.expect(allowed && *cpu != 0, "parked without an agreement", cpu);
                self.seen.online.remove(cpu)
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.informant.observe(self.now, event);
        for agent in self.agents.keys() {
            let registered = matches!(self.informant.registration(*agent), Some(Ok(_)));
            if registered && !self.joined.contains(agent) {
                self.joined.push(*agent);
            }
        }
    }

    fn expect(&mut self, holds: bool, otherwise: &str, what: &dyn std::fmt::Debug) {
        if !holds {
            self.surprises.push(format!("{otherwise}: {what:?}"));
        }
    }
}

fn desc(agent: AgentId) -> AgentDesc {
    AgentDesc {
        agent_id: agent,
        serve_addr: format!("10.0.2.2:{}", agent.uuid().as_u128() + 20_000),
        versions: InformantVersion::SPOKEN,
    }
}
