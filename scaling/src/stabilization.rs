//! Stabilizer: a goal that signals lowered waits, and load that a resize makes is not followed.
//!
//! The stage after [`goal`](mod@crate::goal), which keeps the reference's arithmetic. It only ever raises a goal, on
//! each axis, and never above what the VM has: growth, a lower maximum and a person's order pass as
//! they come.
//!
//! - **Hold.** On each axis the largest goal of the last `scale_down` time counts (the
//!   stabilization window of the Kubernetes HPA). A start, a new session and a reboot count as a
//!   goal of all that the VM has. Where several steps down have waited, they follow one another
//!   without a new wait.
//! - **Margin.** Load calls for fewer compute units only if load plus a quarter of a unit still
//!   would: a load at the rounding point moves nothing.
//! - **Settling.** A guest that returns memory works for it: measured under TCG, 1 GiB takes 5 s and
//!   adds 0.5 to the load over 15 s, as two tasks would. So while memory leaves, and for
//!   [`SETTLES_FOR`] after, load above what the VM has counts only as far as those two tasks do not
//!   explain it, or as far as the load over 5 s shows it, once all of that was measured after
//!   memory stopped.
//! - **Damper.** Growth within [`REVERSES_WITHIN`] of a shrink is a reversal. From the seventh in an
//!   hour on, each doubles the hold, up to [`LONGEST_DAMPED`]: the VM is *flapping*.
//!
//! A hold of zero turns the stage off for its axis.

use crate::goal::{self, Goal, Inputs, goal};
use crate::{Loads, Sample};
use std::collections::VecDeque;
use std::time::Duration;
use windlass_protocol::{Bytes, Clip, ComputeUnit, MilliCpu, Moment, Resources, ScaleDown, VmInfo};

/// How much more load must still call for fewer units before fewer are called for, in units.
const MARGIN: f64 = 0.25;
/// After memory has left, the load over 15 s still shows the work for this long; a longer window for
/// as long as it is.
pub const SETTLES_FOR: Duration = Duration::from_secs(15);
/// After this, the load over 5 s does not show it any more.
const CLEAN_AFTER: Duration = Duration::from_secs(5);
/// Tasks that return memory: the guest's kernel moves pages and takes blocks offline.
const RETURNING_TASKS: f64 = 2.0;

/// Growth this soon after a shrink takes it back.
pub const REVERSES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// Reversals are remembered for this long.
const REVERSALS_OF: Duration = Duration::from_secs(60 * 60);
/// Reversals in that time that are borne; each one more doubles the hold.
const REVERSALS_BORNE: usize = 6;
/// The longest hold that reversals lead to.
pub const LONGEST_DAMPED: Duration = Duration::from_secs(10 * 60);
/// Reversals that are remembered: more would not make the hold longer.
const MOST_REVERSALS: usize = 32;
/// Goals that are remembered, each below the one before.
const MOST_GOALS: usize = 64;

/// What the stage remembers of one VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stabilizer {
    cpu: Axis<MilliCpu>,
    mem: Axis<Bytes>,
    leaving: Leaving,
}

/// A stabilized goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabilizedGoal {
    /// The goal that counts.
    pub goal: Goal,
    /// What the signals call for, and when it counts, where that is less on some axis.
    pub held: Option<Held>,
    /// Load calls for more than the VM has, and does not count yet.
    pub settling: Option<Settling>,
    /// No load was measured yet that returning memory has no part in: no more of it is to begin
    /// to leave before that.
    pub unclear: bool,
}

/// A goal that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What the signals call for.
    pub size: Resources,
    /// When the first axis may shrink, if the signals stay as they are; `None` while load is within
    /// its margin, and has to fall further.
    pub until: Option<Moment>,
}

/// Load that may be the work of returning memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// When it counts in full again; `None` while memory still leaves.
    pub until: Option<Moment>,
}

/// How an axis of a VM was changed, for the damper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It was given more.
    Grew,
    /// It was asked back.
    Shrank,
}

/// A VM that grows and shrinks again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flapping {
    /// Growth that took a shrink back, in the last hour.
    pub reversals: usize,
    /// What is called for no longer is kept for this long.
    pub hold: Duration,
}

/// What is remembered of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
struct Axis<T> {
    /// What was last called for.
    last: Option<T>,
    /// What was called for before, and until when: each less, and later, than the one before, and
    /// all above `last`.
    before: VecDeque<(T, Moment)>,
    /// When the axis last shrank, unless it grew since.
    shrank_at: Option<Moment>,
    /// When growth took a shrink back, the oldest first.
    reversals: VecDeque<Moment>,
}

/// Whether the guest returns memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Leaving {
    /// It did not lately.
    #[default]
    No,
    /// It does.
    Now,
    /// It did until then.
    Until(Moment),
}

// === impl Stabilizer ===

impl Stabilizer {
    /// Whatever the VM has counts as called for at this moment: it starts, its session does, or
    /// its guest.
    pub fn keep(&mut self, now: Moment) {
        self.cpu.keep(now, MilliCpu::from_milli(u64::MAX));
        self.mem.keep(now, Bytes::from_bytes(u64::MAX));
    }

    /// Takes note of what the signals call for at this moment.
    pub fn note(&mut self, now: Moment, inputs: &Inputs<'_>) {
        let calmed = self.calmed(now, inputs);
        let raised = calmed.map(|sample| raised(&sample, inputs));
        let Goal { size, .. } = goal(&Inputs { sample: raised.as_ref(), ..*inputs });
        self.cpu.note(now, size.cpu);
        self.mem.note(now, size.mem);
    }

    /// Whether memory of the VM leaves at this moment. Memory that is stuck does not: it makes no
    /// load, and must not keep the VM from growing.
    pub fn memory_leaves(&mut self, now: Moment, leaves: bool) {
        self.leaving = match (self.leaving, leaves) {
            (_, true) => Leaving::Now,
            (Leaving::Now, false) => Leaving::Until(now),
            (before @ (Leaving::No | Leaving::Until(_)), false) => before,
        };
    }

    /// vCPUs of the VM were changed.
    pub fn cpu_moved(&mut self, now: Moment, moved: Move) {
        self.cpu.moved(now, moved);
    }

    /// Memory of the VM was changed.
    pub fn memory_moved(&mut self, now: Moment, moved: Move) {
        self.mem.moved(now, moved);
    }

    /// What counts of what the signals call for. `permit` is what the books allow: what they no
    /// longer do is not kept.
    pub fn stabilized(
        &self,
        now: Moment,
        inputs: &Inputs<'_>,
        permit: Option<Resources>,
    ) -> StabilizedGoal {
        let calmed = self.calmed(now, inputs);
        let mut counts = goal(&Inputs { sample: calmed.as_ref(), ..*inputs });
        // Nearly always the same: nothing is computed twice for that.
        let all = if calmed.as_ref() == inputs.sample { counts } else { goal(inputs) };
        let settling =
            (counts.size != all.size).then(|| Settling { until: self.settled_at(inputs.info) });
        let unclear = settling.is_some() && self.clean_load(now, inputs).is_none();
        counts.signals = all.signals;

        let has = inputs.has.min(permit.unwrap_or(inputs.has)).min(goal::most(inputs));
        let (size, waits) = (counts.size, inputs.info.scale_down);
        let cpu = self.cpu.held(now, size.cpu, has.cpu, waits.cpu);
        let mem = self.mem.held(now, size.mem, has.mem, waits.memory);
        if let Some((kept, _)) = cpu {
            (counts.size.cpu, counts.reason.cpu) = (kept, Some(Clip::Held));
        }
        if let Some((kept, _)) = mem {
            (counts.size.mem, counts.reason.mem) = (kept, Some(Clip::Held));
        }
        let until = [cpu.map(|(_, until)| until), mem.map(|(_, until)| until)];
        let held = until.iter().any(Option::is_some).then(|| {
            let until = until.into_iter().flatten().flatten().min();
            Held { size, until }
        });
        StabilizedGoal { goal: counts, held, settling, unclear }
    }

    /// The axis that grows and shrinks again and again, if there is one; the one that is held longer
    /// of two.
    pub fn flapping(&self, now: Moment, waits: ScaleDown) -> Option<Flapping> {
        let axes = [self.cpu.flapping(now, waits.cpu), self.mem.flapping(now, waits.memory)];
        axes.into_iter().flatten().max_by_key(|flapping| flapping.hold)
    }

    /// When what counts may change by time alone.
    pub fn deadlines(&self, now: Moment, info: &VmInfo) -> impl Iterator<Item = Moment> {
        let waits = info.scale_down;
        let cpu = self.cpu.deadlines(now, waits.cpu);
        cpu.chain(self.mem.deadlines(now, waits.memory)).chain(self.settled_at(info))
    }

    /// When memory that has left makes no more load.
    fn settled_at(&self, info: &VmInfo) -> Option<Moment> {
        match self.leaving {
            Leaving::No | Leaving::Now => None,
            Leaving::Until(at) => Some(at.after(settles_for(info))),
        }
    }

    /// The load over 5 s, where returning memory has no part in it.
    fn clean_load(&self, now: Moment, inputs: &Inputs<'_>) -> Option<f64> {
        let sample = inputs.sample?;
        let clean_at = match self.leaving {
            Leaving::No => now,
            Leaving::Now => return None,
            Leaving::Until(at) => at.after(CLEAN_AFTER),
        };
        sample.loads.five_seconds.filter(|_| sample.at >= clean_at)
    }

    /// The sample without the load that returning memory makes.
    fn calmed(&self, now: Moment, inputs: &Inputs<'_>) -> Option<Sample> {
        let sample = *inputs.sample?;
        let settles = match self.leaving {
            Leaving::No => false,
            Leaving::Now => true,
            Leaving::Until(at) => now.since(at) < settles_for(inputs.info),
        };
        if !settles || inputs.info.scale_down.cpu.is_zero() {
            return Some(sample);
        }
        // A load that calls for no more than the VM has, however its units are rounded.
        let enough = load_of(inputs, inputs.has.cpu.round_down(inputs.unit.cpu()));
        let most = self.clean_load(now, inputs).map_or(enough, |clean| clean.max(enough));
        let calm = |load: f64| load.min(most.max(load - RETURNING_TASKS));
        Some(Sample { loads: each(sample.loads, calm), ..sample })
    }
}

// === impl Axis ===

impl<T: Copy + Ord> Axis<T> {
    fn keep(&mut self, now: Moment, all: T) {
        self.before.clear();
        self.before.push_back((all, now));
    }

    fn note(&mut self, now: Moment, value: T) {
        if let Some(last) = self.last.replace(value).filter(|last| *last > value) {
            if self.before.len() == MOST_GOALS
                && let Some((newest, _)) = self.before.pop_back()
            {
                // The larger of the two for as long as the later one.
                self.before.push_back((newest, now));
            } else {
                self.before.push_back((last, now));
            }
        }
        self.before.retain(|(before, at)| *before > value && now.since(*at) < ScaleDown::LONGEST);
    }

    fn moved(&mut self, now: Moment, moved: Move) {
        match moved {
            Move::Shrank => self.shrank_at = Some(now),
            Move::Grew => {
                let shrank = self.shrank_at.take();
                if shrank.is_some_and(|at| now.since(at) < REVERSES_WITHIN) {
                    self.reversals.push_back(now);
                }
                if self.reversals.len() > MOST_REVERSALS {
                    self.reversals.pop_front();
                }
            }
        }
    }

    /// What counts in place of `wanted`, if that is more, and until when it does; `None` while what
    /// was last noted is no less.
    fn held(&self, now: Moment, wanted: T, has: T, wait: Duration) -> Option<(T, Option<Moment>)> {
        let wait = self.damped(now, wait);
        if wait.is_zero() || wanted >= has {
            return None;
        }
        let counts = |(_, at): &&(T, Moment)| now < at.after(wait);
        // The oldest that counts is the largest.
        let before = self.before.iter().find(counts).map(|(value, _)| *value);
        let kept = before.max(self.last)?.min(has);
        if kept <= wanted {
            return None;
        }
        if self.last.is_some_and(|last| last >= kept) {
            return Some((kept, None));
        }
        let last = self.before.iter().rev().find(|(value, _)| *value >= kept);
        Some((kept, last.map(|(_, at)| at.after(wait))))
    }

    /// The hold, and longer where it did not help.
    fn damped(&self, now: Moment, wait: Duration) -> Duration {
        let beyond = self.reversals(now).saturating_sub(REVERSALS_BORNE);
        let doublings = u32::try_from(beyond.min(16)).unwrap_or(16);
        wait.saturating_mul(1 << doublings).min(LONGEST_DAMPED.max(wait))
    }

    fn reversals(&self, now: Moment) -> usize {
        self.reversals.iter().filter(|at| now.since(**at) < REVERSALS_OF).count()
    }

    fn flapping(&self, now: Moment, wait: Duration) -> Option<Flapping> {
        let reversals = self.reversals(now);
        let hold = self.damped(now, wait);
        (reversals > REVERSALS_BORNE && !hold.is_zero()).then_some(Flapping { reversals, hold })
    }

    fn deadlines(&self, now: Moment, wait: Duration) -> impl Iterator<Item = Moment> {
        let wait = self.damped(now, wait);
        let ends = self.before.iter().map(move |(_, at)| at.after(wait));
        // With a reversal that is forgotten the hold becomes shorter.
        ends.chain(self.reversals.iter().map(|at| at.after(REVERSALS_OF)))
    }
}

/// How long the load over the VM's window shows the work of returning memory.
fn settles_for(info: &VmInfo) -> Duration {
    SETTLES_FOR.max(info.load_window.length())
}

/// The load at which this many vCPUs are as busy as is aimed at.
fn load_of(inputs: &Inputs<'_>, cpu: MilliCpu) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milli-CPUs are far below 2^52")]
    let cores = cpu.milli() as f64 / 1000.0;
    cores * inputs.info.target.load_average
}

/// The sample with the load of a part of a unit more.
fn raised(sample: &Sample, inputs: &Inputs<'_>) -> Sample {
    let unit: ComputeUnit = inputs.unit;
    let more = load_of(inputs, unit.cpu()) * MARGIN;
    Sample { loads: each(sample.loads, |load| load + more), ..*sample }
}

fn each(loads: Loads, change: impl Fn(f64) -> f64) -> Loads {
    Loads {
        five_seconds: loads.five_seconds.map(&change),
        fifteen_seconds: loads.fifteen_seconds.map(&change),
        one_minute: loads.one_minute.map(&change),
        five_minutes: loads.five_minutes.map(&change),
    }
}
