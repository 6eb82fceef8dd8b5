//! An honest recording of the script, made up: for tests of laws, report and summary.
//!
//! Every VM gets where the script says: a VM that has to give something back does so two
//! seconds into a step, with the consent of its guest; a VM that may grow does so later.

use super::recording::{Act, Books, End, Explained, Inside, Ours, Reading, Recording, Track};
use super::script::{Because, Load, Player, SCRIPT, Script, Step};
use windlass_protocol::decision::{Answered, Consented};
use windlass_protocol::{
    Bytes, Decision, MemorySeen, MilliCpu, Moment, Outcome, Reason, Resources, RunState, Seen,
    Signal, Signals, VmName, Waiting,
};

/// Length of a step, in milliseconds.
const STEP: u64 = 8_000;
/// Between two looks at everything.
const TICK: u64 = 250;
/// Into a step: memory is asked back, it is back, the books know; a permit, and its use.
const ASK: u64 = 2_000;
const BACK: u64 = 2_500;
const KNOWN: u64 = 3_000;
const PERMIT: u64 = 4_000;
const USE: u64 = 4_500;

/// A VM while the script is played.
struct Actor {
    player: &'static Player,
    track: Track,
    spins: u64,
    held: Bytes,
    requested: Resources,
    has: Resources,
    permit: Resources,
    goal: Resources,
    waiting: Vec<Waiting>,
}

/// The recording.
pub(crate) fn recording() -> Recording {
    play(&SCRIPT)
}

fn play(script: &Script) -> Recording {
    let began = Moment::from_millis(1_790_000_000_000);
    let mut actors: Vec<Actor> = script.players.iter().map(Actor::new).collect();
    let mut recording = Recording {
        began,
        room: script.room,
        unit: script.unit,
        vms: Vec::new(),
        acts: Vec::new(),
        books: Vec::new(),
        explained: Some(Explained {
            vm: VmName::on_host(script.explained),
            text: "12:00:00 web: load 2.0 <of two processes> & more\n".to_owned(),
        }),
    };
    let start = began.millis();
    for actor in &mut actors {
        actor.look(start - TICK);
    }
    for (index, step) in (0..).zip(script.steps) {
        let from = start + index * STEP;
        for into in (0..STEP).step_by(usize::try_from(TICK).unwrap()) {
            for actor in &mut actors {
                actor.move_on(step, from, into);
                actor.look(from + into);
            }
            let reserved =
                actors.iter().fold(Resources::ZERO, |sum, a| sum.saturating_add(a.permit));
            recording.books.push(reading(from + into, Books { room: script.room, reserved }));
        }
        recording.acts.push(act(step, from, &actors));
    }
    for actor in &mut actors {
        let after = actor.track.outside.len() as u64 * TICK + start;
        actor.look(after);
    }
    recording.vms = actors.into_iter().map(|actor| actor.track).collect();
    recording
}

fn act(step: &Step, from: u64, actors: &[Actor]) -> Act {
    let end = |(end, actor): (&super::script::End, &Actor)| End {
        vm: actor.track.name.clone(),
        should: end.has,
        wanted: wanted(end),
        had: Some(actor.has),
    };
    Act {
        name: step.name.to_owned(),
        says: step.says.to_owned(),
        began: Moment::from_millis(from),
        reached: Some(Moment::from_millis(from + STEP - TICK)),
        within: step.within,
        ends: step.ends.iter().zip(actors).map(end).collect(),
    }
}

fn wanted(end: &super::script::End) -> Option<Resources> {
    if let Because::Room(wants) = end.because { Some(wants) } else { None }
}

fn reading<T>(at: u64, value: T) -> Reading<T> {
    Reading { from: Moment::from_millis(at + 10), to: Moment::from_millis(at + 30), value }
}

// === impl Actor ===

impl Actor {
    fn new(player: &'static Player) -> Self {
        let least = player.bounds.min;
        let track = Track::of(player);
        Self {
            player,
            track,
            spins: 0,
            held: Bytes::ZERO,
            requested: least,
            has: least,
            permit: least,
            goal: least,
            waiting: vec![Waiting::AtGoal],
        }
    }

    fn move_on(&mut self, step: &Step, from: u64, into: u64) {
        let end = step.ends.iter().find(|end| end.vm == self.player.name).unwrap();
        let now = Moment::from_millis(from + into);
        match into {
            0 => self.begin(step),
            ASK => {
                self.goal = wanted(end).unwrap_or(end.has);
                self.decide(now, end);
                self.requested = self.requested.min(end.has);
            }
            BACK => self.has = self.has.min(end.has),
            KNOWN => self.permit = self.permit.min(end.has),
            PERMIT => self.permit = end.has,
            USE => (self.requested, self.has) = (end.has, end.has),
            _ => {}
        }
    }

    fn begin(&mut self, step: &Step) {
        for (_, load) in step.loads.iter().filter(|(vm, _)| *vm == self.player.name) {
            match load {
                Load::Spin(processes) => self.spins = *processes,
                Load::Take { total, .. } => self.held = *total,
                Load::Free => self.held = Bytes::ZERO,
            }
        }
    }

    /// One decision a step, and none where nothing is to change.
    fn decide(&mut self, at: Moment, end: &super::script::End) {
        let refused = end.because == Because::Refusal;
        self.waiting = match end.because {
            Because::Goal => vec![Waiting::AtGoal],
            Because::Room(wanted) => vec![Waiting::Room { wanted, permit: end.has }],
            Because::Refusal => vec![Waiting::Refused { until: Moment::from_millis(1) }],
        };
        if self.goal == self.has && !refused {
            return;
        }
        let shrinks = end.has.mem < self.has.mem || refused;
        self.track.decisions.push(Decision {
            at,
            vm: self.track.name.clone(),
            from: self.has,
            signals: Signals::default(),
            window: SCRIPT.window,
            target: self.player.target,
            goal: self.goal,
            reason: Reason { signal: Signal::Load, cpu: None, mem: None },
            permit: Some(Answered { asked: self.goal, permit: end.has }),
            short: None,
            refusal: None,
            consent: shrinks.then(|| Consented {
                asked: end.has,
                agreed: !refused,
                status: String::new(),
            }),
            changes: Vec::new(),
            outcome: Outcome::Reached { at },
        });
    }

    fn look(&mut self, at: u64) {
        let boot = self.player.bounds.min.mem;
        let memory = MemorySeen {
            boot,
            requested: self.requested.mem.saturating_sub(boot),
            size: self.has.mem.saturating_sub(boot),
        };
        let total = self.has.mem.saturating_sub(Bytes::from_mib(38));
        let used = Bytes::from_mib(48).saturating_add(self.held);
        self.track.outside.push(reading(
            at,
            Seen {
                plugged: MilliCpu::from_cores(3),
                limit: None,
                found_limit: None,
                memory,
                state: RunState::Running,
            },
        ));
        self.track.inside.push(reading(
            at,
            Inside {
                online: self.has.cpu,
                total,
                available: total.saturating_sub(used),
                held: self.held,
                workers: self.spins,
                oom_kills: 0,
            },
        ));
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let load = self.spins as f64;
        self.track.ours.push(reading(
            at,
            Ours {
                load: Some(load),
                goal: Some(self.goal),
                permit: Some(self.permit),
                reserved: Some(self.permit),
                consent: None,
                waiting: self.waiting.clone(),
            },
        ));
    }
}
