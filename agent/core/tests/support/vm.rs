//! One scaler, whose peers say what a test has them say.

use std::time::Duration;
use windlass_agent_core::{Action, Call, CallAnswer, Event, Periods, Scaler, Settings};
use windlass_protocol::{
    AgentId, Bounds, Bytes, Capabilities, ComputeUnit, InformantVersion, LoadWindow, MemorySeen,
    MilliCpu, Mode, Moment, PluginVersion, Policy, Promises, Resize, Resources, RunState,
    ScaleDown, Seen, Sequence, ShrinkCpu, Target, VmInfo, VmName,
};
use windlass_scaling::{Loads, Sample};

/// When each test begins.
pub(crate) const BEGAN: Moment = Moment::from_millis(1_000_000);

/// One scaler, whose peers say what a test has them say.
pub(crate) struct Vm {
    pub(crate) scaler: Scaler,
    pub(crate) now: Moment,
    /// Of the last session.
    pub(crate) id: AgentId,
}

impl Vm {
    /// It is seen to have this many units, all in use.
    pub(crate) fn seen_with(units: u64) -> Self {
        Self::told(settings(), units)
    }

    /// The same, of an agent that was told otherwise.
    pub(crate) fn told(settings: Settings, units: u64) -> Self {
        Self::that_can(capabilities(ShrinkCpu::Parking), settings, info(), seen(units))
    }

    /// One that is and can what a test says.
    pub(crate) fn that_can(can: Capabilities, settings: Settings, info: VmInfo, has: Seen) -> Self {
        let scaler = Scaler::new(info, settings, BEGAN);
        let mut vm = Self { scaler, now: BEGAN, id: AgentId::default() };
        vm.tell(Event::Attached(can));
        vm.answered(Action::Look, Event::Seen(has));
        vm
    }

    /// The same, and its informant has told it to run.
    pub(crate) fn with_session(units: u64) -> Self {
        let mut vm = Self::seen_with(units);
        vm.registers();
        vm
    }

    /// Three vCPUs that can be taken out, and a guest that agreed to be content with one.
    pub(crate) fn with_idle_vcpus() -> Self {
        let mut vm = Self::with_session(3);
        vm.tell(Event::Attached(capabilities(ShrinkCpu::Removal)));
        vm.answered(Action::Look, Event::Seen(seen(3)));
        vm.answered(Action::Measure, Event::Measured(vm.report(3)));
        vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(3) }), agreed());
        vm.wait(3_000);
        vm.answered(Action::Look, Event::Seen(seen(3)));
        vm
    }

    /// Down to how many vCPUs it takes out now, if it does.
    pub(crate) fn takes_out(&self) -> Option<MilliCpu> {
        let actions = self.scaler.plan(self.now).actions;
        actions.into_iter().find_map(|action| {
            let Action::Resize(Resize::Cpu(count)) = action else { return None };
            Some(count)
        })
    }

    /// What it tells the guest to use now, if it does.
    pub(crate) fn tells(&self) -> Option<Resources> {
        let actions = self.scaler.plan(self.now).actions;
        actions.into_iter().find_map(|action| {
            let Action::Upscale(_, _, size) = action else { return None };
            Some(size)
        })
    }

    pub(crate) fn registers(&mut self) -> AgentId {
        let id = self.registered();
        self.scaler.call(self.now, Call::Resume(id));
        self.checked();
        id
    }

    /// Its informant answers that the session stands, if it asks.
    pub(crate) fn checked(&mut self) {
        let mut actions = self.scaler.plan(self.now).actions.into_iter();
        let check = actions.find(|action| matches!(action, Action::CheckHealth(_)));
        check.into_iter().for_each(|check| self.answered(check, Event::Healthy));
    }

    pub(crate) fn registered(&mut self) -> AgentId {
        self.registered_in(InformantVersion::V2_0)
    }

    pub(crate) fn registered_in(&mut self, version: InformantVersion) -> AgentId {
        self.says_hello();
        self.tell(Event::Registered { version, metrics_port: 9100 });
        self.id
    }

    /// It asks to be registered.
    pub(crate) fn says_hello(&mut self) {
        let actions = self.scaler.plan(self.now).actions;
        let is_hello = |action: &&Action| matches!(action, Action::Register(_));
        let Some(Action::Register(id)) = actions.iter().find(is_hello).copied() else {
            panic!("it does not register: {actions:?}");
        };
        self.tell(Event::Sent(Action::Register(id)));
        self.id = id;
    }

    pub(crate) fn calls_for_memory(&mut self) {
        let CallAnswer::Ours(expected, _) = self.scaler.call(self.now, Call::Id) else {
            panic!("there is no session");
        };
        self.scaler.call(self.now, Call::MoreResources { expected, cpu: false, memory: true });
    }

    pub(crate) fn downscale(&self, size: Resources) -> Action {
        Action::Downscale(AgentId::default(), Sequence::ZERO, size)
    }

    pub(crate) fn upscale(&self, size: Resources) -> Action {
        Action::Upscale(AgentId::default(), Sequence::ZERO, size)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.scaler.observe(self.now, event);
    }

    pub(crate) fn answered(&mut self, action: Action, answer: Event) {
        self.tell(Event::Sent(action));
        self.tell(answer);
    }

    /// Time passes, its session stands meanwhile, and what it has stays as it was.
    pub(crate) fn wait(&mut self, millis: u64) {
        let until = self.now.after(Duration::from_millis(millis));
        while self.now < until {
            self.now = self.now.after(Duration::from_secs(1)).min(until);
            self.checked();
            if self.scaler.plan(self.now).actions.contains(&Action::Look) {
                self.looks();
            }
        }
    }

    /// The hypervisor is looked at again, and nothing has changed.
    pub(crate) fn looks(&mut self) {
        let seen = self.scaler.status(self.now).seen;
        seen.into_iter().for_each(|seen| self.answered(Action::Look, Event::Seen(seen)));
    }

    /// Time passes, and nobody answers anything.
    pub(crate) fn passes(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    /// An idle guest with this many vCPUs in use, the lowest.
    pub(crate) fn report(&self, online: u64) -> Sample {
        let online = Some(cu(online).cpu);
        let loads = Loads { fifteen_seconds: Some(0.0), ..Loads::default() };
        let memory = Some(cu(1).mem);
        let idle = Sample { loads, total: memory, available: memory, ..Sample::empty(self.now) };
        Sample { online, reach: online, ..idle }
    }

    pub(crate) fn upper(&self) -> Resources {
        self.scaler.upper().unwrap()
    }

    pub(crate) fn consent(&self) -> Option<Resources> {
        self.scaler.status(self.now).consent
    }
}

pub(crate) fn capabilities(shrink_cpu: ShrinkCpu) -> Capabilities {
    Capabilities {
        cpu_step: cu(1).cpu,
        limit_step: None,
        memory_step: Bytes::from_mib(128),
        shrink_cpu,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: cu(1),
        max: cu(4),
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        unit: ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap().into(),
        cpu_limit: Some(windlass_protocol::CpuLimit::Trust),
        plugin_versions: PluginVersion::SPOKEN,
        seed: 7,
        periods: Periods::USUAL,
    }
}

pub(crate) fn agreed() -> Event {
    Event::Agreed { status: String::new() }
}

pub(crate) fn seen(units: u64) -> Seen {
    let above = cu(units).mem.saturating_sub(cu(1).mem);
    let memory = MemorySeen { boot: cu(1).mem, requested: above, size: above };
    Seen {
        plugged: cu(units).cpu,
        limit: None,
        found_limit: None,
        memory,
        state: RunState::Running,
    }
}

/// So many GiB with as many vCPUs.
pub(crate) fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}

pub(crate) fn info() -> VmInfo {
    VmInfo {
        name: VmName::on_host("a"),
        bounds: Bounds { min: cu(1), max: cu(4) },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FifteenSeconds,
        priority: 0,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}
