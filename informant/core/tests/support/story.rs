//! A guest and some agents around an informant, and a transcript of what is said.
//!
//! Agents answer as the reference's do: numbers that rise, 404 to another's id, 400 to a
//! command that they have followed already.

use expect_test::Expect;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;
use windlass_informant_core::{
    Action, Ask, Change, Event, Failure, Informant, MachineSeen, Memory, Refusal, Settings,
};
use windlass_protocol::informant::{AgentDesc, ResourceMessage};
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::{AgentId, Bytes, MilliCpu, Moment, Resources, Sequence};

/// What the kernel keeps of a VM's memory.
const KERNEL: Bytes = Bytes::from_mib(50);

pub(crate) struct Story {
    pub(crate) informant: Informant,
    now: Moment,
    began: Moment,
    said: String,
    agents: BTreeMap<AgentId, Agent>,
    size: Bytes,
    used: Bytes,
    cached: bool,
    zoneinfo: bool,
    seen: MachineSeen,
    stuck: BTreeSet<u32>,
    remembered: BTreeSet<u32>,
    noted: Duration,
    stores_nothing: bool,
    stuck_blocks: BTreeSet<u32>,
    meanwhile: Option<(Ask, Happens)>,
}

/// Something that happens in a story.
type Happens = fn(&mut Story);

struct Agent {
    alive: bool,
    running: bool,
    answers_as: AgentId,
    refuses: Option<u16>,
    lose: Option<Ask>,
    /// Every answer has the number of the one before.
    stutters: bool,
    /// The number of its last message.
    said: u64,
    waits: bool,
}

pub(crate) fn id(agent: u128) -> AgentId {
    AgentId::from_u128(agent)
}

pub(crate) fn mib(mib: u64) -> Bytes {
    Bytes::from_mib(mib)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Story {
    /// A guest of 512 MiB with one vCPU, 100 MiB in use, sampled for two seconds.
    pub(crate) fn new() -> Self {
        let began = Moment::from_millis(1_000_000);
        let mut story = Self {
            informant: Informant::new(Settings::default()),
            now: began,
            began,
            said: String::new(),
            agents: BTreeMap::new(),
            size: mib(512),
            used: mib(100),
            cached: false,
            zoneinfo: true,
            seen: MachineSeen {
                present: BTreeSet::from([0]),
                online: BTreeSet::from([0]),
                offline_blocks: BTreeSet::new(),
            },
            stuck: BTreeSet::new(),
            remembered: BTreeSet::new(),
            noted: Duration::ZERO,
            stores_nothing: false,
            stuck_blocks: BTreeSet::new(),
            meanwhile: None,
        };
        story.run(secs(2));
        story.began = story.now;
        story
    }

    /// The same with an agent that counts, from which on the transcript is kept.
    pub(crate) fn with_agent(agent: u128) -> Self {
        let mut story = Self::new();
        story.register(agent);
        story.run(secs(1));
        assert_eq!(story.informant.current(), Some(id(agent)));
        story.said.clear();
        story.began = story.now;
        story
    }

    // --- the guest ---

    pub(crate) fn machine(&mut self, cpus: u32, offline: &[u32], blocks: &[u32]) {
        self.seen.present = (0..cpus).collect();
        self.seen.online = (0..cpus).filter(|cpu| !offline.contains(cpu)).collect();
        self.seen.offline_blocks = blocks.iter().copied().collect();
        self.hear(Event::Stirred);
    }

    pub(crate) fn machine_gets(&mut self, cpu: u32) {
        self.seen.present.insert(cpu);
    }

    pub(crate) fn stuck_cpu(&mut self, cpu: u32) {
        self.stuck.insert(cpu);
    }

    pub(crate) fn no_cpu_is_stuck(&mut self) {
        self.stuck.clear();
    }

    /// Memory was added, and will not come online.
    pub(crate) fn stuck_block(&mut self, block: u32) {
        self.seen.offline_blocks.insert(block);
        self.stuck_blocks.insert(block);
        self.hear(Event::Stirred);
    }

    pub(crate) fn stores_nothing(&mut self, nothing: bool) {
        self.stores_nothing = nothing;
    }

    pub(crate) fn online(&self) -> usize {
        self.seen.online.len()
    }

    pub(crate) fn coming_online(&self) -> Option<u32> {
        self.informant.coming_online()
    }

    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    pub(crate) fn uses(&mut self, used: Bytes) {
        self.used = used;
    }

    pub(crate) fn cache_fills(&mut self) {
        self.cached = true;
    }

    pub(crate) fn grow(&mut self, more: Bytes) {
        self.size = self.size.saturating_add(more);
    }

    pub(crate) fn shrink(&mut self, less: Bytes) {
        self.size = self.size.saturating_sub(less);
    }

    pub(crate) fn no_zoneinfo(&mut self) {
        self.zoneinfo = false;
    }

    pub(crate) fn stalls(&mut self) {
        self.note(format_args!("! tasks wait for memory"));
        self.hear(Event::Stalled);
    }

    pub(crate) fn restart(&mut self) {
        let parked = self.remembered.clone();
        self.note(format_args!("! the informant restarts, remembering {parked:?}"));
        let leased = self.noted;
        self.informant = Informant::new(Settings { parked, leased, ..Settings::default() });
    }

    /// An informant that speaks no more than these versions.
    pub(crate) fn limit(&mut self, versions: Versions<InformantVersion>) {
        self.informant = Informant::new(Settings { versions, ..Settings::default() });
    }

    // --- the agents ---

    fn agent(&mut self, agent: u128) -> &mut Agent {
        self.agents.entry(id(agent)).or_insert(Agent {
            alive: true,
            running: false,
            answers_as: id(agent),
            refuses: None,
            lose: None,
            stutters: false,
            said: 0,
            waits: false,
        })
    }

    pub(crate) fn dead(&mut self, agent: u128) {
        self.agent(agent).alive = false;
    }

    pub(crate) fn answers_as(&mut self, agent: u128, other: u128) {
        self.agent(agent).answers_as = id(other);
    }

    pub(crate) fn stutters(&mut self, agent: u128) {
        self.agent(agent).stutters = true;
    }

    pub(crate) fn answers_with(&mut self, agent: u128, failure: Failure) {
        let Failure::Refused(status) = failure else { return self.dead(agent) };
        self.agent(agent).refuses = Some(status);
    }

    /// Something happens while the next such call is under way.
    pub(crate) fn while_called(&mut self, ask: Ask, happens: Happens) {
        self.meanwhile = Some((ask, happens));
    }

    /// The agent acts on the next such call, and its answer is lost.
    pub(crate) fn lose_next(&mut self, agent: u128, ask: Ask) {
        self.agent(agent).lose = Some(ask);
    }

    pub(crate) fn register(&mut self, agent: u128) {
        self.register_as(agent, &format!("10.0.2.2:{}", 20_000 + agent), 1, 4);
    }

    pub(crate) fn register_as(&mut self, agent: u128, addr: &str, min: u32, max: u32) {
        let version = InformantVersion::from_number;
        let desc = AgentDesc {
            agent_id: id(agent),
            serve_addr: addr.to_owned(),
            versions: Versions { min: version(min), max: version(max) },
        };
        self.note(format_args!("< agent {agent} registers"));
        match self.informant.register(&desc) {
            Ok(()) => self.agent(agent).waits = true,
            Err(refusal) => self.refused(&refusal),
        }
        self.step();
    }

    pub(crate) fn unregister(&mut self, agent: u128) {
        self.unregister_from(agent, &format!("10.0.2.2:{}", 20_000 + agent));
    }

    pub(crate) fn unregister_from(&mut self, agent: u128, addr: &str) {
        let desc = AgentDesc {
            agent_id: id(agent),
            serve_addr: addr.to_owned(),
            versions: Versions::default(),
        };
        self.note(format_args!("< agent {agent} unregisters"));
        let answer = self.informant.unregister(&desc);
        self.note(format_args!("  {answer:?}"));
    }

    pub(crate) fn health_check(&mut self, agent: u128) {
        self.note(format_args!("< agent {agent} asks whether it is registered"));
        match self.informant.health_check(self.now, id(agent)) {
            Ok(()) => self.note(format_args!("  yes")),
            Err(refusal) => self.refused(&refusal),
        }
    }

    pub(crate) fn downscale(&mut self, agent: u128, cpus: u64, mem: Bytes) {
        let number = self.next_number(agent);
        self.downscale_numbered(agent, number, cpus, mem);
    }

    pub(crate) fn downscale_numbered(&mut self, agent: u128, number: u64, cpus: u64, mem: Bytes) {
        let message = message(agent, number, cpus, mem);
        self.note(format_args!("< #{number} of {agent}: live with {}?", message.resources));
        match self.informant.downscale(self.now, &message) {
            Ok(result) => {
                let verdict = if result.ok { "yes" } else { "no" };
                self.note(format_args!("  {verdict}: {}", result.status));
            }
            Err(refusal) => self.refused(&refusal),
        }
    }

    pub(crate) fn upscale(&mut self, agent: u128, cpus: u64, mem: Bytes) {
        let number = self.next_number(agent);
        self.upscale_numbered(agent, number, cpus, mem);
    }

    pub(crate) fn upscale_numbered(&mut self, agent: u128, number: u64, cpus: u64, mem: Bytes) {
        let message = message(agent, number, cpus, mem);
        self.note(format_args!("< #{number} of {agent}: use {}", message.resources));
        match self.informant.upscale(self.now, &message) {
            Ok(()) => {}
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// A change of the machine is under way while something happens, and fails.
    pub(crate) fn meanwhile(&mut self, change: Change, happens: impl FnOnce(&mut Self)) {
        self.hear(Event::Sent(Action::Do(change)));
        happens(self);
        self.hear(Event::Done(false));
    }

    /// The machine is looked at, and something happens before that is told.
    pub(crate) fn while_it_looks(&mut self, happens: impl FnOnce(&mut Self)) {
        let seen = self.seen.clone();
        self.hear(Event::Sent(Action::Look));
        happens(self);
        self.hear(Event::Seen(Some(seen)));
    }

    // --- time ---

    pub(crate) fn silence(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    /// Lets time pass, with a sample every 100 ms.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now.after(time);
        loop {
            if (self.now.millis() - self.began.millis()).is_multiple_of(100) {
                self.hear(Event::Sampled(self.memory()));
            }
            self.step();
            if self.now >= end {
                return;
            }
            self.now = self.now.after(Duration::from_millis(10));
        }
    }

    pub(crate) fn check(&self, expected: Expect) {
        expected.assert_eq(&self.said);
    }

    fn memory(&self) -> Memory {
        let total = self.size.saturating_sub(KERNEL);
        let available = total.saturating_sub(self.used);
        let free = if self.cached { mib(10) } else { available };
        Memory { total, available, free, overhead: self.zoneinfo.then_some(KERNEL) }
    }

    fn step(&mut self) {
        for _ in 0..1000 {
            let plan = self.informant.plan(self.now);
            let again = self.informant.plan(self.now);
            assert_eq!(plan, again, "a plan said twice is the same");
            if plan.actions.is_empty() {
                return self.registered();
            }
            for action in plan.actions {
                self.hear(Event::Sent(action.clone()));
                self.act(action);
            }
        }
        panic!("the plan is never done: {:?}", self.informant.plan(self.now));
    }

    fn registered(&mut self) {
        let waiting: Vec<AgentId> =
            self.agents.iter().filter(|(_, agent)| agent.waits).map(|(id, _)| *id).collect();
        for agent in waiting {
            let number = agent.uuid().as_u128();
            match self.informant.registration(agent) {
                None => continue,
                Some(Ok(desc)) => {
                    let port = desc.metrics_port.unwrap();
                    self.note(format_args!(
                        "> agent {number} is registered, {}, metrics at {port}",
                        desc.version
                    ));
                }
                Some(Err(refusal)) => self.refused(&refusal),
            }
            self.agents.get_mut(&agent).unwrap().waits = false;
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Look => self.hear(Event::Seen(Some(self.seen.clone()))),
            Action::Do(change) => {
                let done = self.change(&change);
                let failed = if done { "" } else { ", which fails" };
                self.note(format_args!("> {change:?}{failed}"));
                self.hear(Event::Done(done));
            }
            Action::Call { agent, ask, .. } => {
                if let Some((_, happens)) = self.meanwhile.take_if(|(waits, _)| *waits == ask) {
                    happens(self);
                }
                let event = self.called(agent, ask);
                let answer = match &event {
                    Event::Answered { by, sequence, .. } if *by == agent => format!("#{sequence}"),
                    Event::Failed(_, failure) => format!("{failure:?}"),
                    Event::Answered { by, .. } => format!("as {by}"),
                    Event::Sampled(_)
                    | Event::Stalled
                    | Event::Stirred
                    | Event::Sent(_)
                    | Event::Seen(_)
                    | Event::Done(_) => unreachable!("an answer to a call"),
                };
                let number = agent.uuid().as_u128();
                let known = self.agents.get(&agent).is_some_and(|agent| agent.alive);
                // Checks of agents that are there would fill the transcript.
                if ask != Ask::Id || !known || !answer.starts_with('#') {
                    self.note(format_args!("> {ask:?} to agent {number}: {answer}"));
                }
                self.hear(event);
            }
        }
    }

    fn called(&mut self, id: AgentId, ask: Ask) -> Event {
        let agent = self.agent(id.uuid().as_u128());
        if !agent.alive {
            return Event::Failed(id, Failure::NoAnswer);
        }
        if let Some(status) = agent.refuses {
            return Event::Failed(id, Failure::Refused(status));
        }
        let followed = match ask {
            Ask::Id => true,
            Ask::Resume => !std::mem::replace(&mut agent.running, true),
            Ask::Suspend => std::mem::replace(&mut agent.running, false),
            Ask::MoreMemory => agent.running,
        };
        if !followed {
            return Event::Failed(id, Failure::Refused(400));
        }
        agent.said += u64::from(!agent.stutters);
        if agent.lose == Some(ask) {
            agent.lose = None;
            return Event::Failed(id, Failure::NoAnswer);
        }
        Event::Answered {
            agent: id,
            by: agent.answers_as,
            sequence: Sequence::from_number(agent.said),
        }
    }

    fn change(&mut self, change: &Change) -> bool {
        match change {
            Change::AddedIsMovable => true,
            Change::OnlineMemory(block) if self.stuck_blocks.contains(block) => false,
            Change::OnlineMemory(block) => self.seen.offline_blocks.remove(block),
            Change::OnlineCpu(cpu) => !self.stuck.contains(cpu) && self.seen.online.insert(*cpu),
            Change::OfflineCpu(cpu) => !self.stuck.contains(cpu) && self.seen.online.remove(cpu),
            Change::Remember(_) | Change::Note(_) if self.stores_nothing => false,
            Change::Note(lease) => {
                self.noted = *lease;
                true
            }
            Change::Remember(parked) => {
                self.remembered.clone_from(parked);
                true
            }
        }
    }

    fn next_number(&mut self, agent: u128) -> u64 {
        let agent = self.agent(agent);
        agent.said += 1;
        agent.said
    }

    fn hear(&mut self, event: Event) {
        self.informant.observe(self.now, event);
    }

    fn refused(&mut self, refusal: &Refusal) {
        self.note(format_args!("  {}: {refusal}", refusal.status()));
    }

    fn note(&mut self, line: std::fmt::Arguments<'_>) {
        let at = self.now.since(self.began).as_secs_f64();
        writeln!(self.said, "{at:.2}s {line}").unwrap();
    }
}

fn message(agent: u128, number: u64, cpus: u64, mem: Bytes) -> ResourceMessage {
    ResourceMessage {
        resources: Resources::new(MilliCpu::from_cores(cpus), mem),
        id: id(agent),
        sequence: Sequence::from_number(number),
    }
}
