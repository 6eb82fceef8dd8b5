//! A guest whose resizes make load of their own, as real ones do: it comes to rest, and stays there.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use std::time::Duration;
use vm::{Vm, agreed, capabilities, cu, info, settings};
use windlass_agent_core::{Action, Call, Event, Failure, Order, Scaler, Settings};
use windlass_protocol::{
    AgentId, Bytes, InformantVersion, MemorySeen, MilliCpu, Moment, Peer, Resize, Resources,
    ScaleDown, Seen, ShrinkCpu, VmInfo, Waiting,
};
use windlass_scaling::{Loads, Sample};

/// How often the guest's run queue is sampled.
const TICK: Duration = Duration::from_millis(100);
/// Tasks that a guest under TCG needs to return memory, and what they return in a tick: on a busy
/// machine, 1 GiB in ten seconds.
const RETURNING_TASKS: f64 = 2.0;
const RETURNED: Bytes = Bytes::from_mib(1024 / 100);

#[test]
fn a_guest_comes_to_rest_after_load_and_grows_as_fast_the_second_time() {
    let mut guest = Guest::with(ScaleDown::default());
    guest.passes(100);
    let first = guest.loaded_until_it_has(4);
    guest.passes(25);
    guest.demand = 0.1;
    guest.forget();
    guest.passes(210);
    assert_eq!(guest.grown, 0, "after the load nothing grows");
    assert_eq!(guest.has(), cu(1), "it is at its minimum within 210 s");
    guest.forget();
    guest.passes(300);
    assert_eq!((guest.grown, guest.shrunk), (0, 0), "five minutes without a change");
    assert_eq!(guest.scaler.waiting(guest.now), [Waiting::AtGoal]);
    let second = guest.loaded_until_it_has(4);
    assert!(second <= first + 1, "{second} s, and {first} s the first time");
}

#[test]
fn without_a_rest_such_a_guest_goes_up_and_down() {
    let mut guest = Guest::with(ScaleDown::AT_ONCE);
    guest.passes(10);
    guest.loaded_until_it_has(3);
    guest.passes(25);
    guest.demand = 0.1;
    guest.forget();
    guest.passes(210);
    assert!(guest.grown > 3, "the model shows what a rest is for: {}", guest.grown);
}

#[test]
fn bursts_that_come_again_and_again_are_flapping_and_hold_for_longer() {
    let mut guest = Guest::with(ScaleDown::default());
    for burst in 0..9 {
        guest.demand = 3.0;
        guest.passes(40);
        let flaps = guest.scaler.is_flapping(guest.now);
        assert_eq!(flaps, burst > 6, "after {burst} times up again");
        guest.demand = 0.1;
        // A hold and the way down; beyond that only where it is held for longer.
        guest.passes(150);
    }
    assert!(guest.has().cpu > cu(1).cpu, "it keeps what it needs again soon");
    let waits = guest.scaler.waiting(guest.now);
    assert!(waits.iter().any(|wait| matches!(wait, Waiting::Flapping { .. })), "{waits:?}");
}

/// Whether its vCPUs are parked or taken out.
#[test]
fn a_maximum_that_a_person_moves_again_and_again_is_no_flapping() {
    for shrink in [ShrinkCpu::Parking, ShrinkCpu::Removal] {
        let mut guest = Guest::with(ScaleDown::default());
        guest.scaler.observe(guest.now, Event::Attached(capabilities(shrink)));
        guest.loaded_until_it_has(4);
        for _ in 0..9 {
            for max in [3, 4] {
                let mut info = guest.info();
                info.bounds.max = cu(max);
                guest.scaler.observe(guest.now, Event::Told(info.into()));
                guest.passes(30);
                assert_eq!(guest.has(), cu(max), "{shrink:?}");
            }
        }
        assert!(!guest.scaler.is_flapping(guest.now), "{shrink:?}");
    }
}

/// Each seven times, of a VM with four units.
#[test]
fn only_what_was_taken_and_is_given_again_and_again_is_flapping() {
    let cpu = |count| Resources { cpu: cu(count).cpu, ..cu(4) };
    let upscale = |vm: &mut Vm, size| vm.answered(vm.upscale(size), Event::Upscaled);
    let parks = move |vm: &mut Vm, count| {
        vm.answered(vm.downscale(cpu(count)), agreed());
        vm.answered(Action::Measure, Event::Measured(vm.report(count)));
    };
    let memory = |vm: &mut Vm, asked: u64, given: u64| {
        vm.answered(Action::Resize(Resize::Memory(cu(asked).mem)), Event::Resized);
        let requested = vm::seen(asked).memory.requested;
        let memory = MemorySeen { requested, ..vm::seen(given).memory };
        vm.answered(Action::Look, Event::Seen(Seen { memory, ..vm::seen(4) }));
    };
    let parks_and_hears_of_memory = move |vm: &mut Vm| {
        for count in [3, 2, 1] {
            parks(vm, count);
            upscale(vm, cpu(count));
        }
    };
    type Happens<'a> = &'a dyn Fn(&mut Vm);
    let cases: [(&str, Happens<'_>, bool); 4] = [
        ("vCPUs are parked and allowed", &|vm| (parks(vm, 3), upscale(vm, cu(4))).1, true),
        ("memory goes and comes", &|vm| (memory(vm, 3, 3), memory(vm, 4, 4)).1, true),
        ("memory is asked back and kept", &|vm| (memory(vm, 3, 4), memory(vm, 4, 4)).1, false),
        ("vCPUs are parked, and it hears of memory", &parks_and_hears_of_memory, false),
    ];
    for (what, happens, flaps) in cases {
        let mut vm = Vm::with_session(4);
        vm.tell(Event::Told(VmInfo { scale_down: ScaleDown::default(), ..info() }.into()));
        vm.answered(Action::Measure, Event::Measured(vm.report(4)));
        (0..7).for_each(|_| happens(&mut vm));
        assert_eq!(vm.scaler.is_flapping(vm.now), flaps, "{what}");
    }
}

#[test]
fn a_session_that_begins_keeps_what_another_agent_gave_the_vm() {
    let mut guest = Guest::with(ScaleDown::default());
    guest.passes(100);
    let known = guest.session;
    guest.forgets_us = true;
    guest.given_meanwhile = Some(3);
    while guest.session == known {
        guest.passes(1);
    }
    guest.passes(55);
    assert_eq!(guest.has(), cu(3));
    guest.passes(75);
    assert_eq!(guest.has(), cu(1));
}

#[test]
fn memory_that_is_stuck_keeps_no_vm_from_growing() {
    let mut guest = Guest::with(ScaleDown::default());
    guest.passes(100);
    guest.loaded_until_it_has(2);
    guest.demand = 0.1;
    guest.is_stuck = true;
    while guest.seen.memory.unplugging().is_zero() {
        guest.passes(1);
    }
    // Its size has stood for minutes, and nothing is stuck by that.
    let waits = guest.scaler.waiting(guest.now);
    let leaves = |wait: &Waiting| matches!(wait, Waiting::Unplug { .. });
    assert!(waits.iter().any(leaves), "{waits:?}");
    guest.passes(60);
    let waits = guest.scaler.waiting(guest.now);
    let is_stuck = |wait: &Waiting| matches!(wait, Waiting::StuckUnplug { .. });
    assert!(waits.iter().any(is_stuck), "{waits:?}");
    assert!(!guest.seen.memory.unplugging().is_zero(), "it does not give it back");
    let took = guest.loaded_until_it_has_cpus(3);
    assert!(took <= 20, "{took} s");
}

#[test]
fn a_release_and_a_lower_maximum_do_not_wait() {
    let mut guest = Guest::with(ScaleDown::default());
    guest.loaded_until_it_has(4);
    guest.demand = 0.1;
    guest.passes(10);
    assert_eq!(guest.has(), cu(4));
    let mut info = guest.info();
    info.bounds.max = cu(3);
    guest.scaler.observe(guest.now, Event::Told(info.into()));
    guest.passes(15);
    assert_eq!(guest.has(), cu(3));
    guest.scaler.observe(guest.now, Event::Ordered(Order::Release(Some(cu(1)))));
    guest.passes(30);
    assert_eq!(guest.has(), cu(1));
}

#[test]
fn what_it_waits_for_says_what_comes_back_and_when() {
    let mut guest = Guest::with(ScaleDown::default());
    guest.passes(100);
    guest.loaded_until_it_has(3);
    guest.demand = 0.1;
    guest.passes(40);
    let waits = guest.scaler.waiting(guest.now);
    let [Waiting::Holding { goal, until: Some(until) }] = waits[..] else {
        panic!("{waits:?}");
    };
    assert_eq!(goal, cu(1));
    assert!(until > guest.now && until <= guest.now.after(Duration::from_secs(60)));
}

/// A guest with default settings, and all its peers.
struct Guest {
    scaler: Scaler,
    now: Moment,
    wait: ScaleDown,
    seen: Seen,
    online: MilliCpu,
    session: Option<AgentId>,
    /// Its informant knows of no session, until the next one.
    forgets_us: bool,
    /// Units that it was given by another agent before that.
    given_meanwhile: Option<u64>,
    /// It agrees to give memory back, and does not.
    is_stuck: bool,
    /// Tasks that want to run.
    demand: f64,
    loads: [f64; 2],
    /// How often it was changed.
    grown: usize,
    shrunk: usize,
}

impl Guest {
    fn with(wait: ScaleDown) -> Self {
        let now = vm::BEGAN;
        let settings = Settings { cpu_limit: None, ..settings() };
        let mut guest = Self {
            scaler: Scaler::new(VmInfo { scale_down: wait, ..info() }, settings, now),
            now,
            wait,
            seen: vm::seen(1),
            online: cu(1).cpu,
            session: None,
            forgets_us: false,
            given_meanwhile: None,
            is_stuck: false,
            demand: 0.1,
            loads: [0.1; 2],
            grown: 0,
            shrunk: 0,
        };
        guest.scaler.observe(now, Event::Attached(capabilities(ShrinkCpu::Parking)));
        guest
    }

    fn info(&self) -> VmInfo {
        VmInfo { scale_down: self.wait, ..info() }
    }

    fn has(&self) -> windlass_protocol::Resources {
        windlass_protocol::Resources { cpu: self.online, mem: self.seen.memory.present() }
    }

    fn forget(&mut self) {
        (self.grown, self.shrunk) = (0, 0);
    }

    /// Loads it, and says after how many seconds it has so many units.
    fn loaded_until_it_has(&mut self, units: u64) -> u64 {
        self.demand = 4.0;
        for second in 1..120 {
            self.passes(1);
            if self.has().covers(cu(units)) {
                return second;
            }
        }
        panic!("it has {} only", self.has());
    }

    /// The same of vCPUs alone.
    fn loaded_until_it_has_cpus(&mut self, count: u64) -> u64 {
        self.demand = 4.0;
        let until = self.now.after(Duration::from_secs(120));
        let start = self.now;
        while self.has().cpu < cu(count).cpu && self.now < until {
            self.passes(1);
        }
        self.now.since(start).as_secs()
    }

    fn passes(&mut self, seconds: u64) {
        let until = self.now.after(Duration::from_secs(seconds));
        while self.now < until {
            self.runs();
            self.now = self.now.after(TICK);
            let mut plan = self.scaler.plan(self.now);
            while !plan.actions.is_empty() {
                for action in plan.actions {
                    self.scaler.observe(self.now, Event::Sent(action));
                    let answer = self.answer(action);
                    self.scaler.observe(self.now, answer);
                }
                plan = self.scaler.plan(self.now);
            }
        }
    }

    /// A tick of the guest.
    fn runs(&mut self) {
        let MemorySeen { requested, size, .. } = self.seen.memory;
        let returns = size > requested && !self.is_stuck;
        let tasks = self.demand + if returns { RETURNING_TASKS } else { 0.0 };
        for (average, window) in self.loads.iter_mut().zip([5.0, 15.0]) {
            let kept = (-TICK.as_secs_f64() / window).exp();
            *average = *average * kept + tasks * (1.0 - kept);
        }
        if returns {
            self.seen.memory.size = size.saturating_sub(RETURNED).max(requested);
        }
    }

    fn answer(&mut self, action: Action) -> Event {
        match action {
            Action::Look => Event::Seen(self.seen),
            Action::Measure => Event::Measured(self.sample()),
            Action::CheckHealth(_) if self.forgets_us => {
                Event::Failed(Peer::Informant, Failure::Refused(404))
            }
            Action::CheckHealth(_) => Event::Healthy,
            Action::AskPlugin(asking) => Event::Permitted(asking.resources),
            Action::Register(id) => self.registers(id),
            Action::Unregister(_) => Event::Unregistered,
            Action::Resize(Resize::Cpu(count)) => {
                self.grown += usize::from(count > self.seen.plugged);
                self.seen.plugged = count;
                self.online = count;
                Event::Resized
            }
            Action::Resize(Resize::Limit(limit)) => {
                self.seen.limit = limit;
                Event::Resized
            }
            Action::Resize(Resize::Memory(total)) => {
                let MemorySeen { boot, size, .. } = self.seen.memory;
                let above = total.saturating_sub(boot);
                self.grown += usize::from(above > size);
                self.shrunk += usize::from(above < size);
                self.seen.memory.requested = above;
                self.seen.memory.size = size.max(above);
                Event::Resized
            }
            Action::Upscale(_, _, size) => {
                let online = size.cpu.min(self.seen.plugged);
                self.grown += usize::from(online > self.online);
                self.online = online;
                Event::Upscaled
            }
            Action::Downscale(_, _, size) => {
                self.shrunk += usize::from(size.cpu < self.online);
                self.online = self.online.min(size.cpu);
                agreed()
            }
        }
    }

    fn registers(&mut self, id: AgentId) -> Event {
        (self.session, self.forgets_us) = (Some(id), false);
        if let Some(units) = self.given_meanwhile.take() {
            (self.seen, self.online) = (vm::seen(units), cu(units).cpu);
        }
        self.scaler.call(self.now, Call::Resume(id));
        Event::Registered { version: InformantVersion::V2_0, metrics_port: 9100 }
    }

    fn sample(&self) -> Sample {
        let [five, fifteen] = self.loads;
        let loads =
            Loads { five_seconds: Some(five), fifteen_seconds: Some(fifteen), ..Loads::default() };
        let total = self.seen.memory.present();
        let (total, available) = (Some(total), Some(total.saturating_sub(Bytes::from_mib(200))));
        let online = Some(self.online);
        Sample { loads, total, available, online, reach: online, ..Sample::empty(self.now) }
    }
}
