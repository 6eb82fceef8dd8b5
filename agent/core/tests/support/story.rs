//! One scaler, peers that answer as they are told, and a transcript of what is said.

use expect_test::Expect;
use std::fmt::Write;
use std::time::Duration;
use windlass_agent_core::{
    Action, Asking, Call, CallAnswer, Event, Failure, Order, Periods, Scaler, Settings,
};
use windlass_protocol::{
    AgentId, Bounds, Bytes, Capabilities, ComputeUnit, InformantVersion, LoadWindow, MemorySeen,
    MilliCpu, Mode, Moment, Peer, PluginVersion, Policy, Promises, Resize, Resources, RunState,
    ScaleDown, Seen, Sequence, ShrinkCpu, Target, VmInfo, VmName,
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
}

impl Story {
    pub(crate) fn begin() -> Self {
        Self::of(Mode::Act)
    }

    pub(crate) fn of(mode: Mode) -> Self {
        let info = VmInfo {
            name: VmName::on_host("a"),
            bounds: Bounds { min: cu(1), max: cu(4) },
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
            scaler: Scaler::new(info.clone(), settings(), Moment::default()),
            now: Moment::default(),
            text: String::new(),
            plugin: Answer::Yes,
            hypervisor: Answer::Yes,
            refuses_memory: false,
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
        };
        story.attach(ShrinkCpu::Parking);
        story
    }

    fn attach(&mut self, shrink_cpu: ShrinkCpu) {
        self.observe(Event::Attached(Capabilities {
            cpu_step: cu(1).cpu,
            limit_step: None,
            memory_step: Bytes::from_mib(128),
            shrink_cpu,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: cu(1),
            max: cu(4),
        }));
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
                self.say(action.peer(), &format!("may I have {wanted}?"), self.plugin);
                self.end(action.peer(), self.plugin, Event::Permitted(wanted));
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
        let refused = self.refuses_memory && matches!(resize, Resize::Memory(_));
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
            Resize::Limit(limit) => self.seen.limit = limit.or(self.seen.found_limit),
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

fn settings() -> Settings {
    let unit = ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap().into();
    Settings {
        unit,
        cpu_limit: Some(windlass_protocol::CpuLimit::Trust),
        plugin_versions: PluginVersion::SPOKEN,
        seed: 7,
        periods: Periods::USUAL,
    }
}
