//! The last changes of a VM's size, a line each; what repeats is one line.
//!
//! A decision that changed no size is not among them: `page` tells of it.

use super::words::{amount, clock, lasting, span};
use windlass_protocol::{Bytes, Decision, MilliCpu, Moment, Outcome, Resources, Signal};

/// Lines at most.
const MOST: usize = 5;
/// Changes in a row that are looked at as one that repeats: `1 -> 2 -> 3 -> 2 -> 1` has four.
const LONGEST: usize = 4;

/// A change of size, or what was to become one.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    decision: &'a Decision,
    to: Resources,
}

/// Some changes in a row.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    /// Those of one turn.
    turn: &'a [Change<'a>],
    times: usize,
    last: Change<'a>,
}

/// The latest last, and none that is older than what is known.
pub(super) fn last_changes<'a>(
    decisions: impl Iterator<Item = &'a Decision>,
    now: Moment,
) -> Vec<String> {
    let changes: Vec<Change<'_>> = decisions.filter_map(Change::of).collect();
    let mut runs = Vec::new();
    let mut rest = changes.as_slice();
    while let Some(run) = Run::first_of(rest) {
        rest = rest.get(run.turn.len() * run.times..).unwrap_or_default();
        runs.push(run);
    }
    let from = runs.len().saturating_sub(MOST);
    runs.iter().skip(from).map(|run| run.line(now)).collect()
}

// === impl Change ===

impl<'a> Change<'a> {
    fn of(decision: &'a Decision) -> Option<Self> {
        let to = match decision.outcome {
            Outcome::Replaced { has, .. } => has,
            Outcome::Open
            | Outcome::Reached { .. }
            | Outcome::Observed
            | Outcome::Interrupted { .. } => decision.goal,
        };
        (to != decision.from).then_some(Self { decision, to })
    }

    /// Whether both are the same change at different times.
    fn is(&self, other: &Self) -> bool {
        let kind = |change: &Self| std::mem::discriminant(&change.decision.outcome);
        (self.decision.from, self.to) == (other.decision.from, other.to)
            && (kind(self) == kind(other) || self.is_done() && other.is_done())
    }

    fn is_done(&self) -> bool {
        match self.decision.outcome {
            Outcome::Reached { .. } | Outcome::Replaced { .. } => true,
            Outcome::Open | Outcome::Observed | Outcome::Interrupted { .. } => false,
        }
    }

    fn line(&self, now: Moment) -> String {
        let Self { decision, to } = *self;
        let path = path(&[decision.from, to]);
        let at = decision.at;
        let what = match decision.outcome {
            Outcome::Reached { at: end } => format!("went {path} in {}", span(end.since(at))),
            Outcome::Replaced { at: end, .. } => format!(
                "went {path} on the way to {}, superseded after {}",
                decision.goal,
                span(end.since(at))
            ),
            Outcome::Open => format!("going {path} for {}", lasting(now.since(at))),
            Outcome::Observed => format!("would go {path} (only observed)"),
            Outcome::Interrupted { at: end } => format!(
                "was going {path}; the guest restarted or the VM went away after {}",
                span(end.since(at))
            ),
        };
        let room = decision.short.map_or("", |_| "; it first waited for room");
        let consent = decision.refusal.as_ref().map_or("", |_| "; the guest declined at first");
        format!("{} {what}: {}{room}{consent}", clock(at), cause(decision))
    }
}

// === impl Run ===

impl<'a> Run<'a> {
    /// As many as possible of the first changes, as one that repeats.
    fn first_of(changes: &'a [Change<'a>]) -> Option<Self> {
        let single = Self { turn: changes.get(..1)?, times: 1, last: *changes.first()? };
        let turns = (1..=LONGEST).filter_map(|length| Self::repeated(changes, length));
        // The shortest turn of those that take in most changes.
        Some(turns.fold(single, |best, run| if run.taken() > best.taken() { run } else { best }))
    }

    /// The first `length` changes and those that repeat them, if some do and if a turn ends where
    /// it began, or is one change.
    fn repeated(changes: &'a [Change<'a>], length: usize) -> Option<Self> {
        let turn = changes.get(..length)?;
        let follows = |pair: &[Change<'_>]| match pair {
            [one, next] => next.decision.from == one.to,
            _ => true,
        };
        let (first, last) = (turn.first()?, turn.last()?);
        let is_round = turn.windows(2).all(follows) && last.to == first.decision.from;
        let same = |other: &&[Change<'_>]| {
            other.len() == length && turn.iter().zip(*other).all(|(one, other)| one.is(other))
        };
        let times = changes.chunks(length).take_while(same).count();
        let last = *changes.get((length * times).checked_sub(1)?)?;
        (times > 1 && (length == 1 || is_round)).then_some(Self { turn, times, last })
    }

    const fn taken(&self) -> usize {
        self.turn.len() * self.times
    }

    fn line(&self, now: Moment) -> String {
        let [first, ..] = self.turn else { return String::new() };
        if self.times == 1 {
            return first.line(now);
        }
        let mut stops = vec![first.decision.from];
        stops.extend(self.turn.iter().map(|change| change.to));
        let went = match first.decision.outcome {
            Outcome::Reached { .. } | Outcome::Replaced { .. } => "went",
            Outcome::Open | Outcome::Interrupted { .. } => "was going",
            Outcome::Observed => "would go",
        };
        format!(
            "{went} {} {} times between {} and {}; last: {}",
            path(&stops),
            self.times,
            clock(first.decision.at),
            clock(self.last.decision.at),
            cause(self.last.decision)
        )
    }
}

/// `1 -> 2 vCPU`, `256MiB -> 512MiB`, or both axes where both change.
fn path(stops: &[Resources]) -> String {
    let same_cpu = stops.windows(2).all(|pair| pair[0].cpu == pair[1].cpu);
    let same_mem = stops.windows(2).all(|pair| pair[0].mem == pair[1].mem);
    let each = |text: &dyn Fn(&Resources) -> String| -> String {
        stops.iter().map(text).collect::<Vec<_>>().join(" -> ")
    };
    match (same_cpu, same_mem) {
        (false, true) => format!("{} vCPU", each(&|stop| stop.cpu.to_string())),
        (true, false) => each(&|stop| stop.mem.to_string()),
        (false, false) | (true, true) => each(&|stop| stop.to_string()),
    }
}

/// What the goal is on the axes on which the VM was to grow.
fn grown(decision: &Decision) -> Resources {
    let Decision { from, goal, .. } = decision;
    Resources {
        cpu: if goal.cpu > from.cpu { goal.cpu } else { MilliCpu::ZERO },
        mem: if goal.mem > from.mem { goal.mem } else { Bytes::ZERO },
    }
}

/// Why, in a few words.
fn cause(decision: &Decision) -> String {
    let signals = decision.signals.describe(decision.window);
    match decision.reason.signal {
        Signal::Load | Signal::Memory => signals,
        Signal::Urgent => format!("the guest asked for more at once ({signals})"),
        Signal::Idle if !decision.from.covers(decision.goal) => {
            format!("its minimum is {} ({signals})", amount(grown(decision)))
        }
        Signal::Idle => format!("nothing calls for more ({signals})"),
        Signal::Missing => format!("what is not known never shrinks a VM ({signals})"),
        Signal::Order => "a person ordered it".to_owned(),
        Signal::Stopped => "QEMU did not run the VM as usual".to_owned(),
    }
}
