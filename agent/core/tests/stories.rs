//! What a scaler asks for, of peers that answer as they are told, as transcripts.
//!
//! Looks, measurements and health checks are left out: they go on at all times.
#![expect(clippy::unwrap_used, reason = "tests")]

use expect_test::{Expect, expect};
use std::fmt::Write;
use std::time::Duration;
use windlass_agent_core::{Action, Call, Event, Failure, Order, Scaler, Settings};
use windlass_protocol::{
    AgentId, Bounds, Bytes, Capabilities, ComputeUnit, LoadWindow, MemorySeen, MilliCpu, Mode,
    Moment, Peer, Policy, Resize, Resources, Seen, ShrinkCpu, Target, VmInfo, VmName,
};
use windlass_scaling::{Loads, Sample};

#[test]
fn growth_waits_for_the_permit_and_the_guest_hears_of_what_is_there() {
    let mut story = Story::begin();
    story.load(2.0);
    story.plugin = Answer::Silence;
    story.go(4);
    story.plugin = Answer::Yes;
    story.go(4);
    story.check(expect![[r#"
           0.0s the load is 2
           0.0s   to the plugin: may I have 1 vCPU / 1GiB? …
           0.0s   to the informant: hello yes
           0.9s   to the plugin: may I have 2 vCPU / 2GiB? …
           2.8s   to the plugin: may I have 2 vCPU / 2GiB? …
           6.5s   to the plugin: may I have 2 vCPU / 2GiB? yes
           6.5s   to the hypervisor: make it 2GiB yes
           6.5s   to the hypervisor: plug 2 yes
           6.5s   to the informant: you have 1 vCPU / 2GiB yes
           6.5s   to the informant: you have 2 vCPU / 2GiB yes
           8.0s it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn shrinking_waits_for_consent_one_unit_at_a_time() {
    let mut story = Story::begin();
    story.load(2.7);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.go(8);
    story.check(expect![[r#"
           8.0s the load is 0.1
           8.4s   to the informant: is 2 vCPU / 2GiB enough? yes
           8.4s   to the hypervisor: make it 2GiB yes
           8.4s   to the plugin: may I have 3 vCPU / 2GiB? yes
           8.4s   to the informant: is 2 vCPU / 1GiB enough? yes
           8.4s   to the hypervisor: make it 1GiB yes
           8.7s   to the plugin: may I have 3 vCPU / 1GiB? yes
           9.4s   to the plugin: may I have 2 vCPU / 1GiB? yes
           9.4s   to the informant: is 1 vCPU / 1GiB enough? yes
          10.3s   to the plugin: may I have 1 vCPU / 1GiB? yes
          14.9s   to the plugin: may I have 1 vCPU / 1GiB? yes
          16.0s it has 3 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_refuses_keeps_its_memory_and_is_asked_later_each_time() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.guest = Answer::No;
    story.go(20);
    story.check(expect![[r#"
           8.0s the load is 0.1
           8.4s   to the informant: is 1 vCPU / 1GiB enough? no
           8.4s   to the informant: is 1 vCPU / 2GiB enough? no
          10.5s   to the plugin: may I have 2 vCPU / 2GiB? yes
          15.9s   to the plugin: may I have 2 vCPU / 2GiB? yes
          17.6s   to the informant: is 1 vCPU / 1GiB enough? no
          17.6s   to the informant: is 1 vCPU / 2GiB enough? no
          20.5s   to the plugin: may I have 2 vCPU / 2GiB? yes
          25.9s   to the plugin: may I have 2 vCPU / 2GiB? yes
          28.0s it has 2 vCPU / 2GiB, and waits: [Refused { until: Moment(61148) }]
    "#]]);
}

#[test]
fn a_hypervisor_that_refuses_one_axis_is_asked_later_each_time_and_moves_the_other() {
    let mut story = Story::begin();
    story.load(1.6);
    story.refuses_memory = true;
    story.go(30);
    story.check(expect![[r#"
           0.0s the load is 1.6
           0.0s   to the plugin: may I have 1 vCPU / 1GiB? yes
           0.0s   to the informant: hello yes
           0.3s   to the plugin: may I have 2 vCPU / 2GiB? yes
           0.3s   to the hypervisor: make it 2GiB no
           0.8s   to the hypervisor: plug 2 yes
           0.8s   to the informant: you have 2 vCPU / 1GiB yes
           1.8s   to the hypervisor: make it 2GiB no
           4.4s   to the hypervisor: make it 2GiB no
           5.1s   to the plugin: may I have 2 vCPU / 2GiB? yes
           9.3s   to the hypervisor: make it 2GiB no
           9.9s   to the plugin: may I have 2 vCPU / 2GiB? yes
          14.5s   to the plugin: may I have 2 vCPU / 2GiB? yes
          18.5s   to the hypervisor: make it 2GiB no
          19.4s   to the plugin: may I have 2 vCPU / 2GiB? yes
          24.8s   to the plugin: may I have 2 vCPU / 2GiB? yes
          29.9s   to the plugin: may I have 2 vCPU / 2GiB? yes
          30.0s it has 2 vCPU / 1GiB, and waits: [HypervisorRefused { until: Moment(35487) }]
    "#]]);
}

#[test]
fn memory_that_a_guest_takes_back_is_asked_for_later_each_time() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.takes_back = true;
    story.go(20);
    story.check(expect![[r#"
           8.0s the load is 0.1
           8.4s   to the informant: is 1 vCPU / 1GiB enough? yes
           8.4s   to the hypervisor: make it 1GiB yes
           9.4s   to the plugin: may I have 1 vCPU / 2GiB? yes
           9.5s   to the hypervisor: make it 1GiB yes
          11.4s   to the hypervisor: make it 1GiB yes
          14.0s   to the plugin: may I have 1 vCPU / 2GiB? yes
          15.8s   to the hypervisor: make it 1GiB yes
          18.9s   to the plugin: may I have 1 vCPU / 2GiB? yes
          23.5s   to the plugin: may I have 1 vCPU / 2GiB? yes
          23.6s   to the informant: is 1 vCPU / 1GiB enough? yes
          23.6s   to the hypervisor: make it 1GiB yes
          28.0s it has 2 vCPU / 2GiB, and waits: [HypervisorRefused { until: Moment(39045) }]
    "#]]);
}

#[test]
fn a_guest_that_cannot_use_a_vcpu_still_gives_back_what_it_has() {
    let mut story = Story::begin();
    story.most_online = cu(2).cpu;
    story.load(2.7);
    story.go(10);
    story.forget();
    story.load(0.1);
    story.go(8);
    story.check(expect![[r#"
          10.0s the load is 0.1
          10.4s   to the informant: is 2 vCPU / 2GiB enough? yes
          10.4s   to the hypervisor: make it 2GiB yes
          10.4s   to the plugin: may I have 2 vCPU / 3GiB? yes
          10.4s   to the informant: is 1 vCPU / 2GiB enough? yes
          10.4s   to the informant: is 1 vCPU / 1GiB enough? yes
          10.4s   to the hypervisor: make it 1GiB yes
          10.6s   to the plugin: may I have 2 vCPU / 1GiB? yes
          11.3s   to the plugin: may I have 1 vCPU / 1GiB? yes
          16.7s   to the plugin: may I have 1 vCPU / 1GiB? yes
          18.0s it has 3 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn an_informant_that_refuses_every_size_is_left_alone_for_longer() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.breaks = true;
    story.go(20);
    story.check(expect![[r#"
           8.0s the load is 0.1
           8.4s   to the informant: is 1 vCPU / 1GiB enough? no
           9.5s   to the informant: hello yes
           9.5s   to the informant: is 1 vCPU / 1GiB enough? no
          10.5s   to the plugin: may I have 2 vCPU / 2GiB? yes
          11.6s   to the informant: hello yes
          11.6s   to the informant: is 1 vCPU / 1GiB enough? no
          15.1s   to the plugin: may I have 2 vCPU / 2GiB? yes
          15.3s   to the informant: hello yes
          15.3s   to the informant: is 1 vCPU / 1GiB enough? no
          20.2s   to the plugin: may I have 2 vCPU / 2GiB? yes
          22.7s   to the informant: hello yes
          22.7s   to the informant: is 1 vCPU / 1GiB enough? no
          25.0s   to the plugin: may I have 2 vCPU / 2GiB? yes
          28.0s it has 2 vCPU / 2GiB, and waits: [Informant]
    "#]]);
}

#[test]
fn a_vcpu_that_was_parked_long_ago_is_taken_out() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.load(0.1);
    story.go(8);
    story.forget();
    story.removal();
    story.go(3);
    story.check(expect![[r#"
          16.0s vCPUs may be taken out
          16.0s   to the hypervisor: plug 1 yes
          18.9s   to the plugin: may I have 1 vCPU / 1GiB? yes
          19.0s it has 1 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn who_begins_to_watch_calls_off_what_it_began_to_take() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.gives_slowly = true;
    story.go(2);
    story.watch();
    story.go(4);
    story.check(expect![[r#"
           8.0s the load is 0.1
           8.4s   to the informant: is 1 vCPU / 1GiB enough? yes
           8.4s   to the hypervisor: make it 1GiB yes
           9.4s   to the plugin: may I have 1 vCPU / 2GiB? yes
          10.0s a person says: only watch
          10.0s   to the hypervisor: make it 2GiB yes
          10.0s   to the informant: good-bye yes
          14.0s it has 2 vCPU / 2GiB, and waits: [Observing]
    "#]]);
}

#[test]
fn a_frozen_vm_is_let_go_after_the_thaw() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.pause(10);
    story.order(Order::Release(Some(cu(2))));
    story.go(8);
    story.check(expect![[r#"
           5.0s a person says: pause for 10 s
           5.0s a person orders: let go at 2 vCPU / 2GiB
           9.4s   to the plugin: may I have 1 vCPU / 1GiB? yes
          13.0s it has 1 vCPU / 1GiB, and waits: [Paused { until: Moment(15000) }]
    "#]]);
}

#[test]
fn a_resize_without_an_answer_counts_until_it_is_seen() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(2.7);
    story.hypervisor = Answer::Silence;
    story.go(3);
    story.hypervisor = Answer::Yes;
    story.go(6);
    story.check(expect![[r#"
           8.0s the load is 2.7
           8.4s   to the plugin: may I have 3 vCPU / 3GiB? yes
           8.4s   to the hypervisor: make it 3GiB …
           8.9s   to the hypervisor: plug 3 …
           8.9s   to the informant: you have 2 vCPU / 3GiB yes
           9.4s   to the informant: you have 3 vCPU / 3GiB yes
          13.5s   to the plugin: may I have 3 vCPU / 3GiB? yes
          17.0s it has 3 vCPU / 3GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_calls_for_memory_gets_a_unit_more_than_it_has() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.calls_for_memory();
    story.go(3);
    story.check(expect![[r#"
           5.0s the guest calls for memory
           5.0s   to the plugin: may I have 2 vCPU / 2GiB? yes
           5.0s   to the hypervisor: make it 2GiB yes
           5.0s   to the hypervisor: plug 2 yes
           5.0s   to the informant: you have 1 vCPU / 2GiB yes
           5.0s   to the informant: you have 2 vCPU / 2GiB yes
           8.0s it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn who_only_watches_asks_nobody() {
    let mut story = Story::of(Mode::Observe);
    story.load(2.7);
    story.go(20);
    story.check(expect![[r#"
           0.0s the load is 2.7
          20.0s it has 1 vCPU / 1GiB, and waits: [Observing]
    "#]]);
}

#[test]
fn a_frozen_vm_keeps_what_it_has_and_goes_on_after_the_thaw() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.order(Order::Freeze);
    story.load(1.6);
    story.go(8);
    story.order(Order::Follow);
    story.go(4);
    story.check(expect![[r#"
           5.0s a person orders: freeze
           5.0s the load is 1.6
           9.4s   to the plugin: may I have 1 vCPU / 1GiB? yes
          13.0s a person orders: follow the load
          13.0s   to the plugin: may I have 2 vCPU / 2GiB? yes
          13.0s   to the hypervisor: make it 2GiB yes
          13.0s   to the hypervisor: plug 2 yes
          13.0s   to the informant: you have 1 vCPU / 2GiB yes
          13.0s   to the informant: you have 2 vCPU / 2GiB yes
          17.0s it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vm_that_is_let_go_moves_to_the_size_that_was_named() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.order(Order::Release(Some(cu(2))));
    story.go(8);
    story.check(expect![[r#"
           5.0s a person orders: let go at 2 vCPU / 2GiB
           5.0s   to the plugin: may I have 2 vCPU / 2GiB? yes
           5.0s   to the hypervisor: make it 2GiB yes
           5.0s   to the hypervisor: plug 2 yes
           5.0s   to the informant: you have 1 vCPU / 2GiB yes
           5.0s   to the informant: good-bye yes
           9.6s   to the plugin: may I have 2 vCPU / 2GiB? yes
          13.0s it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Yes,
    No,
    /// It may well happen, but nobody says so.
    Silence,
}

/// A scaler, its peers, and what was said.
struct Story {
    scaler: Scaler,
    now: Moment,
    text: String,
    plugin: Answer,
    hypervisor: Answer,
    refuses_memory: bool,
    guest: Answer,
    /// The guest agrees to give memory back, and keeps it.
    takes_back: bool,
    /// It takes its time to.
    gives_slowly: bool,
    /// The informant answers every size with an error.
    breaks: bool,
    most_online: MilliCpu,
    info: VmInfo,
    seen: Seen,
    online: MilliCpu,
    load: f64,
    session: Option<AgentId>,
}

impl Story {
    fn begin() -> Self {
        Self::of(Mode::Act)
    }

    fn of(mode: Mode) -> Self {
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
        };
        let unit = ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap();
        let settings = Settings { unit, trust_guest_parking: true, seed: 7 };
        let memory = MemorySeen { boot: cu(1).mem, ..MemorySeen::default() };
        let mut story = Self {
            scaler: Scaler::new(info.clone(), settings, Moment::default()),
            now: Moment::default(),
            text: String::new(),
            plugin: Answer::Yes,
            hypervisor: Answer::Yes,
            refuses_memory: false,
            guest: Answer::Yes,
            takes_back: false,
            gives_slowly: false,
            breaks: false,
            most_online: cu(4).cpu,
            info,
            seen: Seen { plugged: cu(1).cpu, memory },
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
            memory_step: Bytes::from_mib(128),
            shrink_cpu,
            shrink_memory: true,
            min: cu(1),
            max: cu(4),
        }));
    }

    fn removal(&mut self) {
        self.tell("vCPUs may be taken out");
        self.attach(ShrinkCpu::Removal);
    }

    fn watch(&mut self) {
        self.tell("a person says: only watch");
        self.info.mode = Mode::Observe;
        self.observe(Event::Told(self.info.clone()));
    }

    fn pause(&mut self, seconds: u64) {
        self.tell(&format!("a person says: pause for {seconds} s"));
        self.info.paused_until = Some(self.now.after(Duration::from_secs(seconds)));
        self.observe(Event::Told(self.info.clone()));
    }

    fn load(&mut self, load: f64) {
        self.load = load;
        self.tell(&format!("the load is {load}"));
    }

    fn order(&mut self, order: Order) {
        let words = match order {
            Order::Follow => "follow the load".to_owned(),
            Order::Freeze => "freeze".to_owned(),
            Order::Release(Some(size)) => format!("let go at {size}"),
            Order::Release(None) => "let go".to_owned(),
        };
        self.tell(&format!("a person orders: {words}"));
        self.observe(Event::Ordered(order));
    }

    fn calls_for_memory(&mut self) {
        self.tell("the guest calls for memory");
        let expected = self.session.unwrap();
        self.scaler.call(self.now, Call::MoreResources { expected, cpu: false, memory: true });
    }

    /// Lets this many seconds pass.
    fn go(&mut self, seconds: u64) {
        let end = self.now.after(Duration::from_secs(seconds));
        while self.now < end {
            let plan = self.scaler.plan(self.now);
            for action in &plan.actions {
                self.observe(Event::Sent(*action));
                self.answer(*action);
            }
            if plan.actions.is_empty() {
                self.now = plan.wake_at.map_or(end, |at| at.min(end));
            }
        }
    }

    fn answer(&mut self, action: Action) {
        match action {
            Action::Look => self.observe(Event::Seen(self.seen)),
            Action::Measure => self.observe(Event::Measured(self.sample())),
            Action::CheckHealth(_) => self.observe(Event::Healthy),
            Action::AskPlugin(wanted) => {
                self.say(action.peer(), &format!("may I have {wanted}?"), self.plugin);
                self.end(action.peer(), self.plugin, Event::Permitted(wanted));
            }
            Action::Resize(resize) => self.resize(resize),
            Action::Register(id) => {
                self.session = Some(id);
                self.say(action.peer(), "hello", Answer::Yes);
                self.observe(Event::Registered { metrics_port: 9100 });
                self.scaler.call(self.now, Call::Resume(id));
            }
            Action::Unregister(_) => {
                self.say(action.peer(), "good-bye", Answer::Yes);
                self.observe(Event::Unregistered);
            }
            Action::Upscale(_, _, size) => {
                self.online = size.cpu.min(self.seen.plugged).min(self.most_online);
                let answer = if self.breaks { Answer::No } else { Answer::Yes };
                self.say(action.peer(), &format!("you have {size}"), answer);
                self.end(action.peer(), answer, Event::Upscaled);
            }
            Action::Downscale(_, _, size) => self.downscale(size),
        }
    }

    fn resize(&mut self, resize: Resize) {
        let refused = self.refuses_memory && matches!(resize, Resize::Memory(_));
        let answer = if refused { Answer::No } else { self.hypervisor };
        let words = match resize {
            Resize::Cpu(count) => format!("plug {count}"),
            Resize::Memory(total) => format!("make it {total}"),
        };
        self.say(Peer::Hypervisor, &words, answer);
        match resize {
            _ if answer == Answer::No => {}
            Resize::Cpu(count) => self.seen.plugged = count,
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
        writeln!(self.text, "{:>4}.{}s {line}", tenths / 10, tenths % 10).unwrap();
    }

    /// What was said so far is not part of the story.
    fn forget(&mut self) {
        self.text.clear();
    }

    fn check(mut self, expected: Expect) {
        let has = self.seen.upper();
        self.tell(&format!("it has {has}, and waits: {:?}", self.scaler.waiting(self.now)));
        expected.assert_eq(&self.text);
    }
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
