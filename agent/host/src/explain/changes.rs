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

/// The latest last, and none that is older than what is known.
pub(super) fn last_changes<'a>(
    decisions: impl Iterator<Item = &'a Decision>,
    now: Moment,
) -> Vec<String> {
    let changes: Vec<Change<'_>> = decisions.filter_map(Change::of).collect();
    let (mut lines, mut rest) = (Vec::new(), changes.as_slice());
    while !rest.is_empty() {
        let (length, times) = first_turn(rest);
        let (run, later) = rest.split_at(length * times);
        lines.push(if times == 1 { run[0].line(now) } else { repeated(run, length) });
        rest = later;
    }
    lines.split_off(lines.len().saturating_sub(MOST))
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
        let is_done = |change: &Self| {
            matches!(change.decision.outcome, Outcome::Reached { .. } | Outcome::Replaced { .. })
        };
        (self.decision.from, self.to) == (other.decision.from, other.to)
            && (kind(self) == kind(other) || is_done(self) && is_done(other))
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

/// How many of the first changes are one turn, and how often it comes: the shortest turn of those that
/// take in most changes.
fn first_turn(changes: &[Change<'_>]) -> (usize, usize) {
    let longest = LONGEST.min(changes.len());
    let turns = (1..=longest).rev().map(|length| (length, times(changes, length)));
    turns.max_by_key(|(length, times)| length * times).unwrap_or((1, 1))
}

/// How often the first `length` changes come one after the other. Several are a turn only if it comes
/// again, and ends where it began.
fn times(changes: &[Change<'_>], length: usize) -> usize {
    let turn = &changes[..length];
    let follows = |pair: &[Change<'_>]| pair[1].decision.from == pair[0].to;
    let is_round = turn.windows(2).all(follows) && turn[length - 1].to == turn[0].decision.from;
    let same = |other: &&[Change<'_>]| turn.iter().zip(*other).all(|(one, other)| one.is(other));
    let times = changes.chunks_exact(length).take_while(same).count();
    if length == 1 || is_round && times > 1 { times } else { 0 }
}

/// Changes of which the first `length` repeat.
fn repeated(run: &[Change<'_>], length: usize) -> String {
    let (first, last) = (run[0].decision, run[run.len() - 1].decision);
    let mut stops = vec![first.from];
    stops.extend(run[..length].iter().map(|change| change.to));
    let went = match first.outcome {
        Outcome::Reached { .. } | Outcome::Replaced { .. } => "went",
        Outcome::Open | Outcome::Interrupted { .. } => "was going",
        Outcome::Observed => "would go",
    };
    format!(
        "{went} {} {} times between {} and {}; last: {}",
        path(&stops),
        run.len() / length,
        clock(first.at),
        clock(last.at),
        cause(last)
    )
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

/// Why, in a few words.
fn cause(decision: &Decision) -> String {
    let signals = decision.signals.describe(decision.window);
    match decision.reason.signal {
        Signal::Load | Signal::Memory => signals,
        Signal::Urgent => format!("the guest asked for more at once ({signals})"),
        Signal::Idle if !decision.from.covers(decision.goal) => {
            // On the axes on which the VM was to grow.
            let Decision { from, goal, .. } = decision;
            let cpu = if goal.cpu > from.cpu { goal.cpu } else { MilliCpu::ZERO };
            let mem = if goal.mem > from.mem { goal.mem } else { Bytes::ZERO };
            format!("its minimum is {} ({signals})", amount(Resources { cpu, mem }))
        }
        Signal::Idle => format!("nothing calls for more ({signals})"),
        Signal::Missing => format!("what is not known never shrinks a VM ({signals})"),
        Signal::Order => "a person ordered it".to_owned(),
        Signal::Stopped => "QEMU did not run the VM as usual".to_owned(),
    }
}
