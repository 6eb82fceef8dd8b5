//! The informant's listener.
//!
//! An input is the bytes of one connection, or a history: requests of agents, answers to the
//! calls that they get, time, memory and vCPUs. A history goes the way that bytes go in the
//! program: endpoint, message, core, answer.

use crate::input::Input;
use crate::{talk, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windlass_informant::http::connection;
use windlass_informant::shared::Shared;
use windlass_informant::tree::Tree;
use windlass_informant_core::event::{Change, Event, MachineSeen, Memory};
use windlass_informant_core::wire::{self, Answer, Request, Unanswered};
use windlass_informant_core::{Action, Ask, Failure, Informant, Settings};
use windlass_protocol::informant::{
    AgentDesc, DOWNSCALE, DownscaleResult, Endpoint, HEALTH_CHECK, HealthCheck, Identified,
    InformantDesc, REGISTER, ResourceMessage, UNREGISTER, UPSCALE, Unregistered, v1_2,
};
use windlass_protocol::{AgentId, InformantVersion, Moment, Sequence, Versions};

/// As many as an informant keeps of each kind, by its own constants.
const AGENTS: usize = windlass_informant_core::registry::AGENTS;
const JOINING: usize = windlass_informant_core::registry::JOINING;

/// A plan is made and carried out no more often than this before it is done.
const STEPS: usize = 2000;

const ENDPOINTS: [Endpoint; 5] = [REGISTER, HEALTH_CHECK, DOWNSCALE, UPSCALE, UNREGISTER];
const METHODS: [&str; 6] = ["GET", "PUT", "POST", "DELETE", "get", ""];
const PATHS: [&str; 7] =
    ["/register", "/health-check", "/downscale", "/upscale", "/unregister", "/", "/upscale/"];

/// An informant and its guest.
struct History {
    informant: Informant,
    /// What it speaks.
    versions: Versions<InformantVersion>,
    /// The version of every agent that began to register, by what it said last.
    spoken: BTreeMap<AgentId, InformantVersion>,
    now: Moment,
    seen: MachineSeen,
    read: Option<(Moment, Memory)>,
    calls: Vec<(AgentId, Ask)>,
    /// The last request that was examined.
    answered: Option<(AgentId, Sequence)>,
    stubborn: bool,
}

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    if input.is() {
        converse(input.rest());
        return;
    }
    let mut history = History::new(&mut input);
    while !input.is_empty() {
        history.step(&mut input);
        history.follow();
    }
}

fn converse(said: &[u8]) {
    let heard = talk::run(talk::heard(said, |stream| {
        // No file of a kernel is below a device.
        let tree = Tree::new(Some(Path::new("/dev/null")));
        connection(
            Arc::new(Shared::new(Informant::new(Settings::default()), tree, ())),
            stream,
            Arc::default(),
        )
    }));
    let answers = talk::answers(said, &heard);
    for (status, body) in answers {
        // Where the head is no HTTP, hyper answers without words.
        if status != 200 && !body.is_empty() {
            words::is_refusal(status, &body);
        }
    }
}

// === impl History ===

impl History {
    fn new(input: &mut Input<'_>) -> Self {
        let cpus = u32::from(input.byte() % 5) + 1;
        let parked = u32::from(input.byte()) % cpus;
        let metrics_port = input.short();
        let versions = input.versions(&InformantVersion::KNOWN);
        Self {
            versions,
            spoken: BTreeMap::new(),
            informant: Informant::new(Settings {
                versions,
                metrics_port,
                parked: (cpus - parked..cpus).collect(),
                leased: Duration::ZERO,
            }),
            now: Moment::from_millis(1_000_000),
            seen: MachineSeen {
                present: (0..cpus).collect(),
                online: (0..cpus - parked).collect(),
                offline_blocks: BTreeSet::from([40]),
            },
            read: None,
            calls: Vec::new(),
            answered: None,
            stubborn: false,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(12) {
            0 => {
                let (method, path) = (input.one_of(&METHODS), input.one_of(&PATHS));
                self.request(method, path, input.chunk());
            }
            1 => self.describe(REGISTER, input),
            2 => self.describe(UNREGISTER, input),
            3 => self.say(HEALTH_CHECK, &HealthCheck(agent(input)).encode()),
            4 => self.size(DOWNSCALE, input),
            5 => self.size(UPSCALE, input),
            6 => self.pass(input),
            7 | 8 => self.answer(input),
            9 => self.hear(Event::Stalled),
            10 => {
                self.seen.present.insert(u32::from(input.byte() % 8));
                self.seen.offline_blocks.insert(u32::from(input.byte()));
                self.hear(Event::Stirred);
            }
            _ => self.stubborn = input.is(),
        }
    }

    /// Time passes, and memory is read at its end, some times over.
    fn pass(&mut self, input: &mut Input<'_>) {
        let (times, wait) = (1 + input.below(8), Duration::from_millis(input.wait()));
        let memory = Memory {
            total: input.memory(),
            available: input.memory(),
            free: input.memory(),
            overhead: input.is().then(|| input.memory()),
        };
        for _ in 0..times {
            self.now = self.now.after(wait);
            self.hear(Event::Sampled(memory));
        }
        if !memory.total.is_zero() && memory.available <= memory.total {
            self.read = Some((self.now, memory));
        }
    }

    fn describe(&mut self, endpoint: Endpoint, input: &mut Input<'_>) {
        let agent_id = agent(input);
        let serve_addr = match input.below(4) {
            0 => input.text(),
            port => format!("10.0.2.2:{port}"),
        };
        let version = |input: &mut Input<'_>, usual: InformantVersion| match input.byte() {
            0..=127 => usual,
            known @ 128..=191 => {
                InformantVersion::KNOWN[usize::from(known) % InformantVersion::KNOWN.len()]
            }
            other @ 192..=255 => InformantVersion::from_number(u32::from(other - 192)),
        };
        let Versions { min, max } = InformantVersion::SPOKEN;
        let versions = Versions { min: version(input, min), max: version(input, max) };
        self.say(endpoint, &AgentDesc { agent_id, serve_addr, versions }.encode());
    }

    fn size(&mut self, endpoint: Endpoint, input: &mut Input<'_>) {
        let how = input.byte();
        let id = match how & 1 {
            1 => self.informant.current().unwrap_or_default(),
            _ => agent(input),
        };
        let sequence = Sequence::from_number(input.number());
        let message = ResourceMessage { resources: input.size(), id, sequence };
        let numbers = match how {
            // As the agent that counts says it.
            0..=127 => self.version().is_none_or(InformantVersion::numbers_sizes),
            128..=191 => true,
            192..=255 => false,
        };
        let bare = v1_2::Size::from(message);
        self.say(endpoint, &if numbers { message.encode() } else { bare.encode() });
    }

    /// One of the calls under way is answered.
    fn answer(&mut self, input: &mut Input<'_>) {
        if self.calls.is_empty() {
            return;
        }
        let (called, _) = self.calls.remove(input.below(self.calls.len()));
        let event = match input.below(6) {
            0 => Event::Failed(called, Failure::NoAnswer),
            1 => wire::from_agent(called, 200, input.chunk()),
            2 => wire::from_agent(called, input.short(), b"no"),
            kind => {
                let id = if kind == 3 { agent(input) } else { called };
                let sequence = Sequence::from_number(input.number());
                wire::from_agent(called, 200, &Identified { id, sequence }.encode())
            }
        };
        self.hear(event);
    }

    fn say(&mut self, endpoint: Endpoint, body: &[u8]) {
        self.request(endpoint.method, endpoint.path, body);
    }

    /// One request, as the shell treats it, said twice where that is to have the effect of once.
    fn request(&mut self, method: &str, path: &str, body: &[u8]) {
        let before = self.fingerprint();
        let first = self.carried_out(method, path, body);
        match &first {
            Ok((_, answer)) => comes_back(answer),
            Err(unanswered) => words::is_refusal(unanswered.status(), &unanswered.encode()),
        }
        let once = self.fingerprint();
        if first.is_err() {
            assert_eq!(once, before, "a refusal with an effect");
        }
        if let Ok((Request::Downscale(_) | Request::Upscale(_), _)) = first {
            assert_eq!(self.carried_out(method, path, body), first, "a second answer");
            assert_eq!(self.fingerprint(), once, "a second effect");
        }
    }

    /// The version of the session that counts.
    fn version(&self) -> Option<InformantVersion> {
        let registered = self.informant.registration(self.informant.current()?)?;
        registered.ok().map(|desc| desc.version)
    }

    fn carried_out(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<(Request, Answer), Unanswered> {
        let endpoint = wire::endpoint(method, path)?;
        assert!(ENDPOINTS.contains(&endpoint));
        let request = Request::decode(endpoint, body)?;
        assert_eq!(Request::decode(endpoint, &encoded(&request)).as_ref(), Ok(&request));
        let answer = match &request {
            Request::Register(desc) => {
                self.informant.register(desc)?;
                let version = self.versions.latest_shared(desc.versions);
                let version = version.expect("who registers speaks a version of ours");
                self.spoken.insert(desc.agent_id, version);
                // The agents of this guest are called later; what is known at once is pending.
                let at_once = self.informant.registration(desc.agent_id);
                assert_eq!(at_once, None);
                Answer::Registered(InformantDesc::default())
            }
            Request::HealthCheck(id) => {
                self.informant.health_check(self.now, *id)?;
                assert!(self.spoken[id].checks_health(), "a check in {}", self.spoken[id]);
                Answer::Healthy
            }
            Request::Downscale(message) => {
                let current = self.informant.current();
                let result = self.informant.downscale(self.now, message)?;
                self.counts(current, message);
                self.consented(message, &result);
                Answer::Downscaled(result)
            }
            Request::Upscale(message) => {
                let current = self.informant.current();
                self.informant.upscale(self.now, message)?;
                self.counts(current, message);
                Answer::Upscaled
            }
            Request::Unregister(desc) => Answer::Unregistered(self.informant.unregister(desc)?),
        };
        Ok((request, answer))
    }

    /// Who was answered was the one that counts; without a name, one whose version has none.
    fn counts(&self, current: Option<AgentId>, message: &ResourceMessage) {
        let current = current.expect("an answer where nobody counts");
        if message.is_bare() {
            let version = self.spoken[&current];
            assert!(!version.numbers_sizes(), "a size without a number in {version}");
        } else {
            assert_eq!(current, message.id, "an answer to one that does not count");
        }
    }

    /// Law 3: nothing is agreed to that what is in use would not fit into.
    fn consented(&mut self, message: &ResourceMessage, result: &DownscaleResult) {
        words::is_short_and_harmless(&result.status);
        // What was answered before gets that answer again, whatever is in use since; what has no
        // number is examined anew.
        let this = Some((message.id, message.sequence));
        if !message.is_bare() {
            if self.answered == this || result.status == "stale" {
                return;
            }
            self.answered = this;
        }
        if !result.ok {
            return;
        }
        let (_, memory) = self.read.expect("nothing is agreed to before memory was read");
        let used = memory.total.saturating_sub(memory.available);
        let asked = message.resources.mem;
        assert!(asked >= used.min(memory.total), "agreed to {asked}, and {used} are in use");
    }

    /// Carries out what is planned, until nothing is.
    fn follow(&mut self) {
        for _ in 0..STEPS {
            let plan = self.informant.plan(self.now);
            assert_eq!(plan, self.informant.plan(self.now), "two plans at once");
            assert!(plan.wake_at.is_none_or(|at| at > self.now), "a plan that is due");
            assert!(self.informant.agents() <= AGENTS && self.informant.joining() <= JOINING);
            assert!(self.informant.gone().count() <= AGENTS + JOINING);
            let current = self.informant.current();
            let version = current.map(|id| self.spoken[&id]);
            assert_eq!(self.version(), version, "{current:?} speaks another version");
            if plan.actions.is_empty() {
                return;
            }
            for action in plan.actions {
                self.hear(Event::Sent(action.clone()));
                self.act(action);
            }
        }
        panic!("a plan that is never done");
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Look => self.hear(Event::Seen(Some(self.seen.clone()))),
            Action::Do(change) => {
                let done = !self.stubborn && self.change(&change);
                self.hear(Event::Done(done));
            }
            Action::Call { agent, ask, at } => {
                assert!(at.port() != 0 && !at.ip().is_unspecified(), "nobody is at {at}");
                assert!(self.calls.iter().all(|(called, _)| *called != agent), "two calls at once");
                let version = self.spoken[&agent];
                let can = ask != Ask::MoreMemory || version.asks_for_more();
                assert!(can, "{ask:?} in {version}");
                self.calls.push((agent, ask));
            }
        }
    }

    fn change(&mut self, change: &Change) -> bool {
        match change {
            Change::AddedIsMovable | Change::Note(_) | Change::Remember(_) => true,
            Change::OnlineMemory(block) => self.seen.offline_blocks.remove(block),
            Change::OnlineCpu(cpu) => self.seen.online.insert(*cpu),
            Change::OfflineCpu(cpu) => {
                assert!(*cpu != 0 && self.seen.online.len() > 1, "the last vCPU is parked");
                self.seen.online.remove(cpu)
            }
        }
    }

    fn hear(&mut self, event: Event) {
        self.informant.observe(self.now, event);
    }

    fn fingerprint(&self) -> String {
        format!("{:?}", self.informant)
    }
}

/// One of a few agents, or one of any id.
fn agent(input: &mut Input<'_>) -> AgentId {
    match input.below(8) {
        7 => AgentId::from_u128(u128::from(input.number())),
        known => AgentId::from_u128(known as u128),
    }
}

fn encoded(request: &Request) -> Vec<u8> {
    match request {
        Request::Register(desc) | Request::Unregister(desc) => desc.encode(),
        Request::HealthCheck(id) => HealthCheck(*id).encode(),
        Request::Downscale(message) | Request::Upscale(message) if message.is_bare() => {
            v1_2::Size::from(*message).encode()
        }
        Request::Downscale(message) | Request::Upscale(message) => message.encode(),
    }
}

/// The agent reads what was said.
fn comes_back(answer: &Answer) {
    let body = answer.encode();
    match answer {
        Answer::Registered(desc) => same(InformantDesc::decode_reply(&body), *desc),
        Answer::Downscaled(result) => {
            same(DownscaleResult::decode_reply(&body), result.clone());
        }
        Answer::Unregistered(left) => same(Unregistered::decode_reply(&body), *left),
        Answer::Healthy | Answer::Upscaled => assert_eq!(body, b"{}"),
    }
}

#[track_caller]
fn same<T: Debug + PartialEq, E: Debug + PartialEq>(read: Result<T, E>, said: T) {
    assert_eq!(read, Ok(said));
}
