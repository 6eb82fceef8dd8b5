//! What a decision gathers, and when it ends.

use super::*;
use windlass_protocol::{
    AgentId, Bounds, Bytes, LoadWindow, Policy, Reason, ScaleDown, Sequence, Signal, Signals,
    Target,
};

#[test]
fn a_decision_is_open_until_the_vm_has_its_goal() {
    let mut diary = Diary::new();
    diary.keep(2, 2);
    assert_eq!(diary.journal.open(), None, "it has what it should have");
    diary.keep(3, 2);
    let open = Decision {
        at: diary.now,
        vm: VmName::on_host("a"),
        from: cu(2),
        signals: signals(3),
        window: LoadWindow::FiveSeconds,
        target: target(),
        goal: cu(3),
        reason: reason(),
        permit: None,
        short: None,
        consent: None,
        refusal: None,
        changes: Vec::new(),
        outcome: Outcome::Open,
    };
    diary.passes(5_000);
    diary.keep(3, 2);
    assert_eq!(diary.journal.open(), Some(&open));
    assert_eq!(diary.journal.drain(), []);
    diary.passes(5_000);
    diary.keep(3, 3);
    assert_eq!(diary.journal.open(), None);
    let reached = Decision { outcome: Outcome::Reached { at: diary.now }, ..open };
    assert_eq!(diary.journal.drain(), [reached]);
    assert_eq!(diary.journal.drain(), [], "each is told once");
}

/// One that nothing came of and that lasted no two seconds says nothing that the next does not.
#[test]
fn a_decision_that_another_replaces_is_told_if_it_lasted_or_something_came_of_it() {
    type Happens = fn(&mut Diary);
    let cases: [(&str, Happens, bool); 5] = [
        ("nothing, and at once", |diary| diary.passes(1_999), false),
        ("it lasted", |diary| diary.passes(2_000), true),
        ("it was permitted", |diary| diary.journal.permitted(cu(3), cu(2)), true),
        ("the guest answered", |diary| diary.consents(3, false), true),
        ("something was done", |diary| diary.sends(memory(3)), true),
    ];
    for (what, happens, told) in cases {
        let mut diary = Diary::new();
        diary.keep(3, 1);
        happens(&mut diary);
        diary.keep(4, 2);
        let outcome = Outcome::Replaced { at: diary.now, has: cu(2) };
        assert_eq!(diary.outcomes(), if told { vec![(3, outcome)] } else { vec![] }, "{what}");
        let open = diary.journal.open().map(|open| (open.at, open.from, open.goal));
        assert_eq!(open, Some((diary.now, cu(2), cu(4))), "{what}");
    }
}

#[test]
fn a_decision_ends_where_the_guest_restarts_however_young_it_is() {
    let mut diary = Diary::new();
    diary.journal.interrupted(diary.now);
    diary.keep(3, 1);
    diary.passes(10);
    diary.journal.interrupted(diary.now);
    assert_eq!(diary.outcomes(), [(3, Outcome::Interrupted { at: diary.now })]);
    assert_eq!(diary.journal.open(), None);
}

#[test]
fn a_goal_that_is_only_watched_is_told_once() {
    let mut diary = Diary::new();
    diary.keep(3, 1);
    diary.passes(2_000);
    diary.info.mode = Mode::Observe;
    let replaced = Outcome::Replaced { at: diary.now, has: cu(1) };
    diary.keep(3, 1);
    assert_eq!(diary.outcomes(), [(3, replaced), (3, Outcome::Observed)]);
    for (goal, has, told) in [(3, 1, false), (2, 2, false), (2, 1, false), (3, 1, true)] {
        diary.keep(goal, has);
        let expected = if told { vec![(goal, Outcome::Observed)] } else { vec![] };
        assert_eq!(diary.outcomes(), expected, "{goal}, where it has {has}");
        assert_eq!(diary.journal.open(), None);
    }
    diary.info.mode = Mode::Act;
    diary.keep(3, 3);
    diary.info.mode = Mode::Observe;
    diary.keep(3, 1);
    assert_eq!(diary.outcomes(), [(3, Outcome::Observed)], "it acted meanwhile");
}

#[test]
fn what_is_sent_is_told_as_what_it_does() {
    let upscale = |units| Action::Upscale(AgentId::default(), Sequence::ZERO, cu(units));
    let downscale = Action::Downscale(AgentId::default(), Sequence::ZERO, cu(1));
    let (cpu, online) = (Action::Resize(Resize::Cpu(cu(3).cpu)), |units| Some(cu(units).cpu));
    let limit = |to| Action::Resize(Resize::Limit(to));
    let cases: [(Action, Option<MilliCpu>, bool, Option<Change>); 11] = [
        (memory(3), None, false, Some(Change::Memory(cu(3).mem))),
        (memory(3), None, true, Some(Change::CallOff(cu(3).mem))),
        (cpu, None, false, Some(Change::Plug(cu(3).cpu))),
        (limit(Some(cu(3).cpu)), online(2), false, Some(Change::Limit(Some(cu(3).cpu)))),
        (limit(None), online(2), false, Some(Change::Limit(None))),
        (upscale(3), online(2), false, Some(Change::Unpark(cu(3).cpu))),
        (upscale(3), online(3), false, None),
        (upscale(3), online(4), false, None),
        (upscale(3), None, false, None),
        (downscale, online(2), false, None),
        (Action::Look, None, false, None),
    ];
    for (action, online, calls_off, change) in cases {
        let mut diary = Diary::new();
        diary.journal.sent(action, online, calls_off);
        diary.keep(3, 1);
        assert_eq!(diary.changes(), [], "what was before it is no part of it");
        for _ in 0..2 {
            diary.journal.sent(action, online, calls_off);
            assert_eq!(diary.changes(), Vec::from_iter(change), "{action:?} {online:?}");
        }
    }
}

/// A new vCPU is brought online by the guest itself.
#[test]
fn to_be_told_of_a_vcpu_that_was_just_plugged_is_no_un_parking() {
    let mut diary = Diary::new();
    diary.keep(3, 1);
    diary.sends(Action::Resize(Resize::Cpu(cu(3).cpu)));
    let upscale = |units| Action::Upscale(AgentId::default(), Sequence::ZERO, cu(units));
    diary.sends(upscale(3));
    assert_eq!(diary.changes(), [Change::Plug(cu(3).cpu)]);
    diary.sends(upscale(2));
    assert_eq!(diary.changes(), [Change::Plug(cu(3).cpu), Change::Unpark(cu(2).cpu)]);
}

#[test]
fn the_first_sixteen_changes_are_kept() {
    let mut diary = Diary::new();
    diary.keep(30, 1);
    for units in 1..=18 {
        diary.sends(memory(units));
    }
    let kept: Vec<_> = (1..=16).map(|units| Change::Memory(cu(units).mem)).collect();
    assert_eq!(diary.changes(), kept);
}

/// A request for less than the goal is about what the VM has, and not about the decision.
#[test]
fn the_answer_that_fell_short_is_kept_beside_the_one_that_did_not() {
    let mut diary = Diary::new();
    diary.journal.permitted(cu(3), cu(3));
    diary.keep(3, 1);
    let steps = [
        ((1, 1), None, None),
        ((3, 1), Some((3, 1)), None),
        ((3, 2), Some((3, 2)), None),
        ((3, 3), Some((3, 3)), Some((3, 2))),
        ((3, 3), Some((3, 3)), Some((3, 2))),
        ((2, 2), Some((3, 3)), Some((3, 2))),
        ((4, 4), Some((4, 4)), Some((3, 2))),
    ];
    let answer = |(asked, permit): (u64, u64)| Answered { asked: cu(asked), permit: cu(permit) };
    for ((asked, permit), latest, short) in steps {
        diary.journal.permitted(cu(asked), cu(permit));
        let open = diary.journal.open().expect("a decision");
        assert_eq!((open.permit, open.short), (latest.map(answer), short.map(answer)), "{asked}");
    }
}

#[test]
fn the_latest_refusal_is_kept_once_the_guest_agrees_and_what_it_parks_is_told() {
    let mut diary = Diary::new();
    diary.consents(1, true);
    diary.keep(1, 3);
    let said =
        |asked, agreed| Some(Consented { asked: cu(asked), agreed, status: "ok".to_owned() });
    let steps = [
        ((1, false), None),
        ((2, false), None),
        ((2, true), said(2, false)),
        ((1, true), said(2, false)),
        ((1, false), said(2, false)),
        ((1, true), said(1, false)),
    ];
    for ((asked, agreed), refusal) in steps {
        diary.consents(asked, agreed);
        let open = diary.journal.open().expect("a decision");
        assert_eq!((&open.consent, &open.refusal), (&said(asked, agreed), &refusal));
    }
    // Of three online; one that has no more is asked for memory alone.
    assert_eq!(diary.changes(), [Change::Park(cu(2).cpu), Change::Park(cu(1).cpu)]);
    for online in [Some(cu(2).cpu), Some(cu(1).cpu), None] {
        let mut diary = Diary::new();
        diary.keep(1, 3);
        diary.journal.consented(cu(2), true, "", online);
        assert_eq!(diary.changes(), []);
    }
}

#[test]
fn a_guest_s_words_are_cut_short() {
    let mut diary = Diary::new();
    diary.keep(1, 3);
    diary.journal.consented(cu(2), false, &"no ".repeat(100), None);
    let said = diary.journal.open().and_then(|open| open.consent.clone());
    assert_eq!(said.map(|said| said.status), Some(format!("{}n…", "no ".repeat(53))));
}

#[test]
fn of_decisions_that_are_not_drained_the_latest_sixty_four_are_kept() {
    let mut diary = Diary::new();
    for goal in 2..=67 {
        diary.keep(goal, 1);
        diary.keep(goal, goal);
    }
    let goals: Vec<_> = diary.outcomes().into_iter().map(|(goal, _)| goal).collect();
    assert_eq!(goals, Vec::from_iter(4..=67));
}

/// A journal, and what is told to it.
struct Diary {
    journal: Journal,
    info: VmInfo,
    now: Moment,
}

impl Diary {
    fn new() -> Self {
        let info = VmInfo {
            name: VmName::on_host("a"),
            bounds: Bounds { min: cu(1), max: cu(4) },
            target: target(),
            policy: Policy::LoadAverage,
            load_window: LoadWindow::FiveSeconds,
            priority: 0,
            mode: Mode::Act,
            memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
            paused_until: None,
            scale_down: ScaleDown::AT_ONCE,
            cpu_limit: None,
        };
        let journal = Journal::new(info.name.clone());
        Self { journal, info, now: Moment::from_millis(1_000_000) }
    }

    fn keep(&mut self, goal: u64, has: u64) {
        let goal = Goal { size: cu(goal), reason: reason(), signals: signals(goal) };
        self.journal.keep(self.now, &self.info, goal, cu(has));
    }

    fn passes(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn sends(&mut self, action: Action) {
        self.journal.sent(action, Some(cu(1).cpu), false);
    }

    /// The guest, which uses three vCPUs, is asked to be content with so many units.
    fn consents(&mut self, asked: u64, agreed: bool) {
        self.journal.consented(cu(asked), agreed, "ok", Some(cu(3).cpu));
    }

    fn changes(&self) -> Vec<Change> {
        self.journal.open().map(|open| open.changes.clone()).unwrap_or_default()
    }

    /// The goals of the decisions that were closed, in units, and what became of each.
    fn outcomes(&mut self) -> Vec<(u64, Outcome)> {
        let told = |decision: Decision| (decision.goal.cpu.cores_up(), decision.outcome);
        self.journal.drain().into_iter().map(told).collect()
    }
}

fn memory(units: u64) -> Action {
    Action::Resize(Resize::Memory(cu(units).mem))
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}

fn target() -> Target {
    Target { memory: 0.5, ..Target::default() }
}

fn reason() -> Reason {
    Reason { signal: Signal::Memory, cpu: None, mem: None }
}

fn signals(units: u64) -> Signals {
    Signals { used: Some(cu(units).mem), ..Signals::default() }
}
