//! One VM around the agent's scaler: a hypervisor that does as it is asked, and a record of what
//! every peer said, by which the laws are judged.
//!
//! A target answers one peer with the bytes of its input; the others are kind, or lose what is
//! said. What is asserted holds whatever anybody says: laws 1 and 3 by what was heard, that
//! plans are pure, that one peer is asked one thing at a time, that the numbers of a session rise,
//! that nobody is told in a version what that version cannot say, and that a VM that is about to be
//! moved stays as it is.

use crate::input::Input;
use crate::words;
use std::time::Duration;
use windlass_agent_core::{
    Action, Asking, Call, CallAnswer, Event, Failure, NotNow, Order, Periods, Scaler, Settings,
    wire,
};
use windlass_protocol::{
    AgentId, Bounds, Bytes, Capabilities, ComputeUnit, CpuLimit, InformantVersion, LoadWindow,
    MemorySeen, MilliCpu, Mode, Moment, Peer, PluginVersion, Policy, Promises, Resize, Resources,
    RunState, ScaleDown, Seen, Sequence, ShrinkCpu, Target, Versions, VmInfo, VmName,
};
use windlass_scaling::{Loads, Sample};

/// A plan is made and carried out no more often than this before it is done.
const STEPS: usize = 200;

/// For this long a VM keeps its size after the plugin said that it is about to be moved.
const STAYS_FOR: Duration = Duration::from_secs(30);

/// One VM.
pub(crate) struct Vm {
    pub(crate) scaler: Scaler,
    pub(crate) info: VmInfo,
    pub(crate) now: Moment,
    /// The versions that the plugin is spoken to in.
    pub(crate) plugin_versions: Versions<PluginVersion>,
    /// The versions that informants are offered.
    pub(crate) offered: Versions<InformantVersion>,
    /// What is under way, and not carried out by the hypervisor.
    pub(crate) under_way: Vec<Action>,
    truth: Seen,
    /// What the scaler last saw.
    seen: Option<Seen>,
    /// What the plugin last permitted.
    permit: Option<Resources>,
    /// What the informant last agreed to, in the session and the boot that last.
    agreed: Option<Resources>,
    /// The session that was last opened, and the highest number that was said in it.
    session: Option<(AgentId, Sequence)>,
    /// The version of that session, once it is registered.
    version: Option<InformantVersion>,
    /// Until when the VM keeps its size.
    stays_until: Option<Moment>,
    load: f64,
}

// === impl Vm ===

impl Vm {
    /// A VM as the first bytes of an input describe it, attached and not looked at.
    pub(crate) fn new(input: &mut Input<'_>) -> Self {
        let (least, most) = (1 + u64::from(input.byte() % 3), 3 + u64::from(input.byte() % 4));
        let (trust, removal) = (input.is(), input.is());
        let slot = input.one_of(&[Bytes::from_mib(128), Bytes::from_mib(1), Bytes::from_gib(1)]);
        let info = VmInfo {
            name: VmName::on_host("db1"),
            bounds: Bounds { min: units(least), max: units(most) },
            target: Target::default(),
            policy: Policy::LoadAverage,
            load_window: LoadWindow::FifteenSeconds,
            priority: 0,
            mode: Mode::Act,
            memory_slot: slot,
            paused_until: None,
            scale_down: ScaleDown::AT_ONCE,
            cpu_limit: None,
        };
        let seed = u64::from(input.byte());
        let known: Vec<_> = PluginVersion::known().collect();
        let plugin_versions = input.versions(&known);
        let offered = input.versions(&InformantVersion::KNOWN);
        let elsewhere = input.byte().is_multiple_of(2);
        let settings = Settings {
            unit: unit().into(),
            cpu_limit: Some(if trust { CpuLimit::Trust } else { CpuLimit::None }),
            plugin_versions,
            seed,
            periods: Periods::USUAL,
        };
        let now = Moment::from_millis(1_000_000);
        let memory = MemorySeen { boot: units(1).mem, ..MemorySeen::default() };
        let mut vm = Self {
            scaler: Scaler::new(info.clone(), settings, now),
            info,
            now,
            plugin_versions,
            offered,
            under_way: Vec::new(),
            truth: Seen {
                plugged: units(1).cpu,
                limit: None,
                found_limit: None,
                memory,
                state: RunState::Running,
            },
            seen: None,
            permit: None,
            agreed: None,
            session: None,
            version: None,
            stays_until: None,
            load: 0.1,
        };
        vm.hear(Event::FiguresMoved { elsewhere });
        vm.hear(Event::Attached(Capabilities {
            cpu_step: units(1).cpu,
            limit_step: None,
            memory_step: Bytes::from_mib(2),
            shrink_cpu: if removal { ShrinkCpu::Removal } else { ShrinkCpu::Parking },
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: units(1),
            max: units(6),
        }));
        vm
    }

    /// What happens besides the peer that the target is about.
    pub(crate) fn world(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0..=2 => self.now = self.now.after(Duration::from_millis(input.wait())),
            3 | 4 => self.load = f64::from(input.byte()) / 32.0,
            5 => {
                self.agreed = None;
                self.hear(Event::Reset);
            }
            6 => {
                let order = match input.below(4) {
                    0 => Order::Freeze,
                    1 => Order::Release(input.is().then(|| units(1 + u64::from(input.byte() % 6)))),
                    _ => Order::Follow,
                };
                self.hear(Event::Ordered(order));
            }
            _ => {
                let most = 1 + u64::from(input.byte() % 6);
                let min = Resources::min(self.info.bounds.min, units(most));
                self.info.bounds = Bounds { min, max: units(most) };
                self.hear(Event::Told(self.info.clone().into()));
            }
        }
    }

    /// Carries out what is planned until nothing is, as far as the hypervisor and the guest's
    /// metrics go; what others are asked is left under way.
    pub(crate) fn follow(&mut self) {
        for _ in 0..STEPS {
            let plan = self.scaler.plan(self.now);
            assert_eq!(plan, self.scaler.plan(self.now), "two plans at once");
            assert!(plan.wake_at.is_none_or(|at| at > self.now), "a plan that is due");
            if plan.actions.is_empty() {
                return;
            }
            for action in plan.actions {
                let busy = self.under_way.iter().any(|other| other.peer() == action.peer());
                assert!(!busy, "{:?} is asked twice at once", action.peer());
                self.sent(action);
            }
        }
        panic!("a plan that is never done");
    }

    /// What is under way to this peer, which answers it now.
    pub(crate) fn take(&mut self, peer: Peer) -> Option<Action> {
        let at = self.under_way.iter().position(|action| action.peer() == peer)?;
        Some(self.under_way.remove(at))
    }

    /// This peer does what it is asked, or says nothing.
    pub(crate) fn kind(&mut self, peer: Peer, answers: bool) {
        let Some(action) = self.take(peer) else { return };
        let event = match action {
            _ if !answers => Event::Failed(peer, Failure::NoAnswer),
            Action::AskPlugin(asked) => Event::Permitted(asked.resources),
            Action::Register(_) => {
                Event::Registered { version: self.offered.max, metrics_port: 9100 }
            }
            Action::CheckHealth(_) => Event::Healthy,
            Action::Downscale(..) => Event::Agreed { status: String::new() },
            Action::Upscale(..) => Event::Upscaled,
            Action::Unregister(_) => Event::Unregistered,
            Action::Look | Action::Resize(_) | Action::Measure => {
                unreachable!("{action:?} is answered at once")
            }
        };
        self.heard(action, event);
        if let (Action::Register(id), true) = (action, answers) {
            self.call(Call::Resume(id));
        }
    }

    /// The answer to an action came, or its loss is known.
    pub(crate) fn heard(&mut self, action: Action, event: Event) {
        match (&event, action) {
            (Event::Permitted(permit), _) => self.permit = Some(*permit),
            (Event::MustStay(permit), _) => {
                self.permit = Some(*permit);
                self.stays();
            }
            (Event::Failed(Peer::Plugin, Failure::Moving), _) => self.stays(),
            (Event::Registered { version, .. }, _) => self.version = Some(*version),
            (Event::Agreed { .. }, Action::Downscale(id, _, size)) => {
                let lasts = self.session.is_some_and(|(open, _)| open == id);
                self.agreed = Some(size).filter(|_| lasts);
            }
            _ => {}
        }
        self.hear(event);
    }

    /// The informant calls.
    pub(crate) fn call(&mut self, call: Call) -> CallAnswer {
        let before = (self.scaler.plan(self.now), self.scaler.session());
        let answer = self.scaler.call(self.now, call);
        match answer {
            CallAnswer::Ours(id, sequence) => {
                let (session, said) = self.session.expect("who answers has a session");
                assert_eq!(id, session, "an answer for another session");
                assert!(sequence > said, "number {sequence} after {said}");
                self.session = Some((id, sequence));
                self.followed(call);
            }
            CallAnswer::Unknown | CallAnswer::Other(_) | CallAnswer::NotNow(_) => {
                let after = (self.scaler.plan(self.now), self.scaler.session());
                assert_eq!(after, before, "a call that is refused has an effect");
            }
        }
        if let CallAnswer::NotNow(NotNow::MoreUnknown(version)) = answer {
            assert_eq!(self.version, Some(version), "a refusal in another version");
            assert!(!version.asks_for_more(), "{version} can ask for more");
        }
        let (status, body) = wire::call_answer(answer);
        if status != 200 {
            words::is_refusal(status, &body);
        }
        answer
    }

    /// What the VM has of memory.
    pub(crate) fn memory(&self) -> Bytes {
        self.truth.memory.present()
    }

    /// The session that was last opened.
    pub(crate) fn session(&self) -> AgentId {
        self.session.map(|(id, _)| id).unwrap_or_default()
    }

    /// A call that was answered.
    fn followed(&mut self, call: Call) {
        match call {
            Call::MoreResources { .. } => {
                let version = self.version.expect("who is called for more is registered");
                assert!(version.asks_for_more(), "{version} cannot ask for more");
            }
            Call::Id | Call::Resume(_) | Call::Suspend(_) => {}
        }
    }

    /// The plugin said that the VM is about to be moved.
    fn stays(&mut self) {
        self.stays_until = Some(self.now.after(STAYS_FOR));
    }

    fn must_stay(&self) -> bool {
        self.stays_until.is_some_and(|until| self.now < until)
    }

    fn sent(&mut self, action: Action) {
        match action {
            Action::Register(id) => {
                let known = self.session.is_some_and(|(known, _)| known == id);
                assert!(!known, "a second session of one id");
                self.session = Some((id, Sequence::ZERO));
                self.version = None;
                self.agreed = None;
            }
            Action::Downscale(id, number, _) | Action::Upscale(id, number, _) => {
                let (session, said) = self.session.expect("who speaks of sizes has a session");
                assert_eq!(id, session, "a request for another session");
                let version = self.version.expect("who speaks of sizes is registered");
                if version.numbers_sizes() {
                    assert!(number > said, "number {number} after {said}");
                    self.session = Some((id, number));
                } else {
                    assert_eq!(number, Sequence::ZERO, "{version} has no numbers");
                }
                assert!(!self.must_stay(), "{action:?} before a move");
                if matches!(action, Action::Upscale(..)) {
                    self.agreed = None;
                }
            }
            Action::Resize(resize) => self.lawful(resize),
            Action::AskPlugin(asking) => self.asked(asking),
            Action::CheckHealth(id) => {
                assert_eq!(id, self.session(), "a check of another session");
                let version = self.version.expect("who is checked is registered");
                assert!(version.checks_health(), "{version} has no checks");
            }
            Action::Look | Action::Measure | Action::Unregister(_) => {}
        }
        self.hear(Event::Sent(action));
        match action {
            Action::Look => {
                self.seen = Some(self.truth);
                self.hear(Event::Seen(self.truth));
            }
            Action::Resize(Resize::Cpu(cpu)) => {
                self.truth.plugged = cpu;
                self.hear(Event::Resized);
            }
            Action::Resize(Resize::Memory(memory)) => {
                let extra = memory.saturating_sub(self.truth.memory.boot);
                self.truth.memory =
                    MemorySeen { requested: extra, size: extra, ..self.truth.memory };
                self.hear(Event::Resized);
            }
            Action::Resize(Resize::Limit(limit)) => {
                self.truth.limit = limit;
                self.hear(Event::Resized);
            }
            Action::Measure => self.hear(Event::Measured(self.sample())),
            Action::AskPlugin(_)
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Upscale(..)
            | Action::Unregister(_) => self.under_way.push(action),
        }
    }

    /// What is asked of the plugin is asked in a version of ours, and relies on no more than was
    /// permitted.
    fn asked(&mut self, asking: Asking) {
        let Asking { version, last_permit, .. } = asking;
        assert!(self.plugin_versions.contains(version), "{version} is none of ours");
        if let Some(last) = last_permit {
            let permit = self.permit.expect("nothing was permitted");
            assert!(permit.covers(last), "{last} was not permitted, but {permit}");
        }
    }

    /// Law 1, permit before growth, and law 3, consent before shrinkage, by what was said.
    fn lawful(&self, resize: Resize) {
        let seen = self.seen.expect("nothing is resized before it was seen");
        let permit = self.permit.unwrap_or_default();
        match resize {
            Resize::Cpu(cpu) => {
                let grows = cpu > seen.plugged;
                assert!(!grows || cpu <= permit.cpu, "{cpu} vCPU with a permit of {}", permit.cpu);
            }
            Resize::Memory(memory) => {
                let grows = memory > seen.memory.upper();
                assert!(!grows || memory <= permit.mem, "{memory} with a permit of {}", permit.mem);
                let shrinks = memory < seen.memory.lower();
                let agreed = self.agreed.is_some_and(|agreed| memory >= agreed.mem);
                assert!(!shrinks || agreed, "{memory} where {:?} was agreed to", self.agreed);
                assert!(!shrinks || !self.must_stay(), "{memory} before a move");
            }
            Resize::Limit(limit) => {
                let has = seen.upper().cpu;
                let cpu = Seen { limit, ..seen }.upper().cpu;
                assert!(cpu <= has.max(permit.cpu), "{cpu} CPU with a permit of {}", permit.cpu);
            }
        }
    }

    fn sample(&self) -> Sample {
        let total = self.truth.memory.present();
        Sample {
            at: self.now,
            loads: Loads {
                five_seconds: Some(self.load),
                fifteen_seconds: Some(self.load),
                one_minute: Some(self.load),
                five_minutes: Some(self.load),
            },
            total: Some(total),
            available: Some(total.saturating_sub(Bytes::from_mib(100))),
            online: Some(self.truth.plugged),
            reach: Some(self.truth.plugged),
            by_minutes: false,
        }
    }

    fn hear(&mut self, event: Event) {
        self.scaler.observe(self.now, event);
    }
}

/// The compute unit of every VM here.
pub(crate) fn unit() -> ComputeUnit {
    ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).expect("neither is zero")
}

/// So many compute units.
pub(crate) fn units(count: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(count), Bytes::from_gib(count))
}
