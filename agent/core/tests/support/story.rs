//! One scaler, peers that answer as they are told, and a transcript of what is said.

use expect_test::Expect;
use std::fmt::Write;
use std::time::Duration;
use windlass_agent_core::{
    Action, Asking, Call, CallAnswer, Event, Failure, Order, Periods, Scaler, Settings,
};
use windlass_protocol::{
    AgentId, Bounds, Bytes, Capabilities, ComputeUnit, CpuLimit, InformantVersion, LoadWindow,
    MemorySeen, MilliCpu, Mode, Moment, Peer, PluginVersion, Policy, Promises, Resize, Resources,
    RunState, ScaleDown, Seen, Sequence, ShrinkCpu, Target, VmInfo, VmName,
};
use windlass_scaling::{Loads, Sample};

/// How a peer answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// It may well happen, but nobody says so.
    Silence,
}

/// A scaler, its peers, and what was said.
pub(crate) struct Story {
    scaler: Scaler,
    now: Moment,
    text: String,
    pub(crate) plugin: Answer,
    pub(crate) hypervisor: Answer,
    pub(crate) refuses_memory: bool,
    pub(crate) refuses_limits: bool,
    /// The VM is about to be moved: it is to keep what it was permitted last.
    pub(crate) stays: Option<Resources>,
    pub(crate) guest: Answer,
    /// The guest agrees to give memory back, and keeps it.
    pub(crate) takes_back: bool,
    /// It takes its time to.
    pub(crate) gives_slowly: bool,
    /// The hypervisor accepts every resize, and does nothing.
    pub(crate) idle: bool,
    /// The informant answers every size with an error.
    pub(crate) breaks: bool,
    pub(crate) most_online: MilliCpu,
    /// What the informant chooses.
    pub(crate) version: InformantVersion,
    /// The informant does not ask whether the agent is there, as it else does where it is not
    /// asked itself.
    pub(crate) forgets_us: bool,
    calls_at: Moment,
    info: VmInfo,
    seen: Seen,
    online: MilliCpu,
    load: f64,
    session: Option<AgentId>,
    /// How it can be limited, and what its agents are told.
    limited_by: Option<(Settings, Capabilities)>,
}

impl Story {
    pub(crate) fn begin() -> Self {
        Self::of(Mode::Act)
    }

    pub(crate) fn of(mode: Mode) -> Self {
        Self::new(mode, Bounds { min: cu(1), max: cu(4) }, settings())
    }

    /// A VM of a quarter to two vCPUs, with so many plugged, whose host can limit it.
    pub(crate) fn limited(plugged: u64) -> Self {
        Self::limited_where(plugged, false)
    }

    /// The same, where a vCPU that the guest has parked counts as given back, or not.
    pub(crate) fn limited_where(plugged: u64, trusts: bool) -> Self {
        let bounds = Bounds { min: quarters(1), max: cu(2) };
        let unit = ComputeUnit::new(quarters(1).cpu, quarters(1).mem).unwrap().into();
        let cpu_limit = trusts.then_some(CpuLimit::Trust);
        let settings = Settings { unit, cpu_limit, ..settings() };
        let mut story = Self::new(Mode::Act, bounds, settings);
        (story.seen.plugged, story.online) = (cu(plugged).cpu, cu(plugged).cpu);
        story.seen.memory.boot = quarters(1).mem;
        story.most_online = cu(2).cpu;
        let can = Capabilities {
            limit_step: Some(MilliCpu::from_milli(50)),
            min: Resources { cpu: MilliCpu::from_milli(50), mem: quarters(1).mem },
            max: cu(2),
            ..CAPABILITIES
        };
        story.limited_by = Some((settings, can));
        story.attach_with(can);
        story
    }

    fn new(mode: Mode, bounds: Bounds, settings: Settings) -> Self {
        let info = VmInfo {
            name: VmName::on_host("a"),
            bounds,
            target: Target::default(),
            policy: Policy::LoadAverage,
            load_window: LoadWindow::FifteenSeconds,
            priority: 0,
            mode,
            memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
            paused_until: None,
            scale_down: ScaleDown::AT_ONCE,
            cpu_limit: None,
        };
        let memory = MemorySeen { boot: cu(1).mem, ..MemorySeen::default() };
        let mut story = Self {
            scaler: Scaler::new(info.clone(), settings, Moment::default()),
            now: Moment::default(),
            text: String::new(),
            plugin: Answer::Yes,
            hypervisor: Answer::Yes,
            refuses_memory: false,
            refuses_limits: false,
            stays: None,
            guest: Answer::Yes,
            takes_back: false,
            gives_slowly: false,
            idle: false,
            breaks: false,
            most_online: cu(4).cpu,
            version: InformantVersion::V2_0,
            forgets_us: false,
            calls_at: Moment::default(),
            info,
            seen: Seen {
                plugged: cu(1).cpu,
                limit: None,
                found_limit: None,
                memory,
                state: RunState::Running,
            },
            online: cu(1).cpu,
            load: 0.1,
            session: None,
            limited_by: None,
        };
        story.attach(ShrinkCpu::Parking);
        story
    }

    fn attach(&mut self, shrink_cpu: ShrinkCpu) {
        self.attach_with(Capabilities { shrink_cpu, ..CAPABILITIES });
    }

    fn attach_with(&mut self, can: Capabilities) {
        self.observe(Event::Attached(can));
    }

    pub(crate) fn restart(&mut self) {
        self.scaler = Scaler::new(self.info.clone(), settings(), self.now);
        self.tell("another agent begins");
        self.attach(ShrinkCpu::Parking);
    }

    pub(crate) fn restart_with_removal(&mut self) {
        self.restart();
        self.removal();
    }

    pub(crate) fn removal(&mut self) {
        self.tell("vCPUs may be taken out");
        self.attach(ShrinkCpu::Removal);
    }

    pub(crate) fn watch(&mut self) {
        self.tell("a person says: only watch");
        self.info.mode = Mode::Observe;
        self.observe(Event::Told(self.info.clone().into()));
    }

    pub(crate) fn pause(&mut self, seconds: u64) {
        self.tell(&format!("a person says: pause for {seconds} s"));
        self.info.paused_until = Some(self.now.after(Duration::from_secs(seconds)));
        self.observe(Event::Told(self.info.clone().into()));
    }

    /// Somebody sets the host's limit: none, or one that is not the agent's.
    pub(crate) fn somebody_limits(&mut self, limit: Option<MilliCpu>) {
        let words = limit.map_or("none".to_owned(), |limit| limit.to_string());
        self.tell(&format!("somebody sets the limit: {words}"));
        (self.seen.limit, self.seen.found_limit) = (limit, limit);
    }

    /// Another agent begins, while a limit of an earlier one is this.
    pub(crate) fn another_limited_to(&mut self, limit: MilliCpu) {
        let (settings, can) = self.limited_by.unwrap();
        self.scaler = Scaler::new(self.info.clone(), settings, self.now);
        self.tell(&format!("another agent begins, the limit is {limit}"));
        self.seen.limit = Some(limit);
        self.attach_with(can);
    }

    /// The host's limit is none, whoever had set it.
    pub(crate) fn limit_is_reset(&mut self) {
        self.tell("the limit is reset");
        self.seen.limit = None;
    }

    pub(crate) fn guest_unparks(&mut self, count: MilliCpu) {
        self.tell(&format!("the guest takes up {count} vCPU by itself"));
        self.online = count;
    }

    pub(crate) fn load(&mut self, load: f64) {
        self.load = load;
        self.tell(&format!("the load is {load}"));
    }

    pub(crate) fn order(&mut self, order: Order) {
        let words = match order {
            Order::Follow => "follow the load".to_owned(),
            Order::Freeze => "freeze".to_owned(),
            Order::Release(Some(size)) => format!("let go at {size}"),
            Order::Release(None) => "let go".to_owned(),
            Order::Leave => "leave".to_owned(),
        };
        self.tell(&format!("a person orders: {words}"));
        self.observe(Event::Ordered(order));
    }

    /// Its session, and what becomes of a call in it.
    pub(crate) fn calls(&mut self, call: impl FnOnce(AgentId) -> Call) -> CallAnswer {
        let session = self.session.unwrap();
        self.scaler.call(self.now, call(session))
    }

    /// What the books must cover, as the scaler has it.
    pub(crate) fn upper(&self) -> Resources {
        self.scaler.upper().unwrap()
    }

    pub(crate) fn calls_for_memory(&mut self) {
        self.tell("the guest calls for memory");
        self.calls(|expected| Call::MoreResources { expected, cpu: false, memory: true });
    }

    /// Lets this many seconds pass.
    pub(crate) fn go(&mut self, seconds: u64) {
        let end = self.now.after(Duration::from_secs(seconds));
        while self.now < end {
            let calls = !self.version.checks_health() && !self.forgets_us;
            if calls && self.calls_at <= self.now {
                self.calls_at = self.now.after(Duration::from_secs(10));
                self.scaler.call(self.now, Call::Id);
            }
            let plan = self.scaler.plan(self.now);
            for action in &plan.actions {
                self.observe(Event::Sent(*action));
                self.answer(*action);
            }
            if plan.actions.is_empty() {
                let next = if calls { end.min(self.calls_at) } else { end };
                self.now = plan.wake_at.map_or(next, |at| at.min(next));
            }
        }
    }

    fn answer(&mut self, action: Action) {
        match action {
            Action::Look => self.observe(Event::Seen(self.seen)),
            Action::Measure => self.observe(Event::Measured(self.sample())),
            Action::CheckHealth(_) => {
                assert!(self.version.checks_health(), "it cannot be asked in {}", self.version);
                self.observe(Event::Healthy);
            }
            Action::AskPlugin(Asking { resources: wanted, .. }) => {
                let refused = self.stays.is_some_and(|stays| stays != wanted);
                let answer = if refused { Answer::No } else { self.plugin };
                self.say(action.peer(), &format!("may I have {wanted}?"), answer);
                match self.stays {
                    Some(_) if refused => {
                        self.observe(Event::Failed(Peer::Plugin, Failure::Moving));
                    }
                    Some(_) => self.end(action.peer(), answer, Event::MustStay(wanted)),
                    None => self.end(action.peer(), answer, Event::Permitted(wanted)),
                }
            }
            Action::Resize(resize) => self.resize(resize),
            Action::Register(id) => {
                self.session = Some(id);
                self.say(action.peer(), "hello", Answer::Yes);
                self.observe(Event::Registered { version: self.version, metrics_port: 9100 });
                self.scaler.call(self.now, Call::Resume(id));
            }
            Action::Unregister(_) => {
                self.say(action.peer(), "good-bye", Answer::Yes);
                self.observe(Event::Unregistered);
            }
            Action::Upscale(_, number, size) => {
                assert_eq!(number == Sequence::ZERO, !self.version.numbers_sizes());
                self.online = size.cpu.min(self.seen.plugged).min(self.most_online);
                let answer = if self.breaks { Answer::No } else { Answer::Yes };
                self.say(action.peer(), &format!("you have {size}"), answer);
                self.end(action.peer(), answer, Event::Upscaled);
            }
            Action::Downscale(_, number, size) => {
                assert_eq!(number == Sequence::ZERO, !self.version.numbers_sizes());
                self.downscale(size);
            }
        }
    }

    fn resize(&mut self, resize: Resize) {
        let refused = match resize {
            Resize::Memory(_) => self.refuses_memory,
            Resize::Limit(_) => self.refuses_limits,
            Resize::Cpu(_) => false,
        };
        let answer = if refused { Answer::No } else { self.hypervisor };
        let words = match resize {
            Resize::Cpu(count) => format!("plug {count}"),
            Resize::Memory(total) => format!("make it {total}"),
            Resize::Limit(Some(limit)) => format!("limit it to {limit}"),
            Resize::Limit(None) => "lift the limit".to_owned(),
        };
        self.say(Peer::Hypervisor, &words, answer);
        match resize {
            _ if answer == Answer::No || self.idle => {}
            Resize::Cpu(count) => self.seen.plugged = count,
            Resize::Limit(limit) => {
                let found = self.seen.found_limit;
                let within = |limit: MilliCpu| found.map_or(limit, |found| found.min(limit));
                self.seen.limit = limit.map(within).or(found);
            }
            Resize::Memory(total) => {
                let above = total.saturating_sub(self.seen.memory.boot);
                let keeps = above < self.seen.memory.size && self.takes_back;
                let slow = above < self.seen.memory.size && self.gives_slowly;
                self.seen.memory.requested = if keeps { self.seen.memory.size } else { above };
                self.seen.memory.size = if keeps || slow { self.seen.memory.size } else { above };
            }
        }
        self.end(Peer::Hypervisor, answer, Event::Resized);
    }

    fn downscale(&mut self, size: Resources) {
        let answer = if self.breaks { Answer::No } else { self.guest };
        self.say(Peer::Informant, &format!("is {size} enough?"), answer);
        let status = String::new();
        if self.breaks {
            return self.observe(Event::Failed(Peer::Informant, Failure::Refused(500)));
        }
        if self.guest == Answer::No {
            return self.observe(Event::Declined { status });
        }
        self.online = self.online.min(size.cpu);
        self.end(Peer::Informant, self.guest, Event::Agreed { status });
    }

    fn end(&mut self, peer: Peer, answer: Answer, good: Event) {
        self.observe(match answer {
            Answer::Yes => good,
            Answer::No => Event::Failed(peer, Failure::Refused(400)),
            Answer::Silence => Event::Failed(peer, Failure::NoAnswer),
        });
    }

    fn sample(&self) -> Sample {
        let mut sample = Sample::empty(self.now);
        sample.loads = Loads { fifteen_seconds: Some(self.load), ..Loads::default() };
        sample.total = Some(self.seen.memory.present());
        sample.available = Some(self.seen.memory.present().saturating_sub(Bytes::from_mib(300)));
        sample.online = Some(self.online);
        sample.reach = Some(self.online);
        sample
    }

    fn observe(&mut self, event: Event) {
        self.scaler.observe(self.now, event);
    }

    fn say(&mut self, peer: Peer, words: &str, answer: Answer) {
        let answer = match answer {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Silence => "…",
        };
        self.tell(&format!("  to the {peer}: {words} {answer}"));
    }

    fn tell(&mut self, line: &str) {
        let tenths = self.now.millis() / 100;
        let at = format!("{}.{}s", tenths / 10, tenths % 10);
        writeln!(self.text, "{at:<6} {line}").unwrap();
    }

    pub(crate) fn tell_size(&mut self) {
        self.tell(&format!("it has {}", self.seen.upper()));
    }

    /// What was said so far is not part of the story.
    pub(crate) fn forget(&mut self) {
        self.text.clear();
    }

    pub(crate) fn check(mut self, expected: Expect) {
        let has = self.seen.upper();
        self.tell(&format!("it has {has}, and waits: {:?}", self.scaler.waiting(self.now)));
        expected.assert_eq(&self.text);
    }
}

/// So many GiB with as many vCPUs.
pub(crate) fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}

/// So many quarters of a vCPU and of a GiB.
pub(crate) fn quarters(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(250 * count), mem: Bytes::from_mib(256 * count) }
}

const CAPABILITIES: Capabilities = Capabilities {
    cpu_step: MilliCpu::from_cores(1),
    limit_step: None,
    memory_step: Bytes::from_mib(128),
    shrink_cpu: ShrinkCpu::Parking,
    shrink_memory: true,
    promises: Promises::IN_ORDER,
    min: Resources { cpu: MilliCpu::from_cores(1), mem: Bytes::from_gib(1) },
    max: Resources { cpu: MilliCpu::from_cores(4), mem: Bytes::from_gib(4) },
};

fn settings() -> Settings {
    let unit = ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap().into();
    Settings {
        unit,
        cpu_limit: Some(CpuLimit::Trust),
        plugin_versions: PluginVersion::SPOKEN,
        seed: 7,
        periods: Periods::USUAL,
    }
}
