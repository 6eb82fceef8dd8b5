//! Stabilizer: a goal that signals lowered waits, and load that a resize makes is not followed.
//!
//! The stage after [`goal`](mod@crate::goal), which keeps the reference's arithmetic. It only raises a goal, per axis,
//! and never above the VM's size. So growth, a lower maximum and an order of a person take effect at once.
//!
//! - **Hold.** On each axis the largest goal of the last `scale_down` time counts (the stabilization window of
//!   the Kubernetes HPA). A start, a new session and a reboot count as a goal of the VM's whole size. Several
//!   delayed steps down follow one another without further waits.
//! - **Margin.** Load calls for fewer compute units only if load plus a quarter of a unit would too: load at
//!   the rounding point changes nothing.
//! - **Settling.** The return of memory causes load: under TCG, 1 GiB takes 5 s and adds 0.5 to the load over
//!   15 s, like two tasks. So during the return and for [`SETTLES_FOR`] after it, load beyond the VM's size
//!   counts only beyond those two tasks. Load over 5 s counts in full once its whole window lies after the
//!   return.
//! - **Damper.** Growth within [`REVERSES_WITHIN`] of a shrink is a reversal. From the seventh reversal in an
//!   hour on, each one doubles the hold, up to [`LONGEST_DAMPED`]: the VM is *flapping*.
//!
//! A hold of zero turns the stage off for its axis.

use crate::Sample;
use crate::goal::{self, Goal, Inputs, goal};
use std::collections::VecDeque;
use std::time::Duration;
use windlass_protocol::{Bytes, Clip, MilliCpu, Moment, Resources, ScaleDown, VmInfo};

/// The margin of load before it calls for fewer units, in units.
const MARGIN: f64 = 0.25;
/// How long the load over 15 s shows the return of memory; a longer window shows it for its length.
pub const SETTLES_FOR: Duration = Duration::from_secs(15);
/// How long the load over 5 s shows it.
const CLEAN_AFTER: Duration = Duration::from_secs(5);
/// The tasks of the guest's kernel that return memory: they move pages and take blocks offline.
const RETURNING_TASKS: f64 = 2.0;

/// Growth this soon after a shrink is a reversal.
pub const REVERSES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long reversals count.
const REVERSALS_OF: Duration = Duration::from_secs(60 * 60);
/// The reversals in that time without effect; each further one doubles the hold.
const REVERSALS_BORNE: usize = 6;
/// The longest hold that reversals cause.
pub const LONGEST_DAMPED: Duration = Duration::from_secs(10 * 60);
/// The most reversals remembered; more would not lengthen the hold.
const MOST_REVERSALS: usize = 32;
/// The most goals remembered, each below the one before.
const MOST_GOALS: usize = 64;

/// The state of the stage for one VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stabilizer {
    cpu: Axis<MilliCpu>,
    mem: Axis<Bytes>,
    leaving: Leaving,
}

/// A stabilized goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabilizedGoal {
    /// The stabilized goal.
    pub goal: Goal,
    /// The lower size that the signals call for, if an axis waits.
    pub held: Option<Held>,
    /// Load beyond the VM's size that does not count yet.
    pub settling: Option<Settling>,
    /// All measured load may come from the return of memory: the VM must not return more before it is clear.
    pub unclear: bool,
}

/// A delayed goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The size that the signals call for.
    pub size: Resources,
    /// When the first axis may shrink if the signals stay the same; `None` while load is within its margin
    /// and must fall further.
    pub until: Option<Moment>,
}

/// Load that may come from the return of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// When load counts in full again; `None` while the guest still returns memory.
    pub until: Option<Moment>,
}

/// A change of an axis, for the damper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The VM grew.
    Grew,
    /// The VM began to shrink.
    Shrank,
}

/// A VM that grows and shrinks repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flapping {
    /// Reversals in the last hour.
    pub reversals: usize,
    /// The lengthened hold.
    pub hold: Duration,
}

/// The state of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
struct Axis<T> {
    /// The last goal.
    last: Option<T>,
    /// Earlier goals with their ends: each lower and later than the one before, and all above `last`.
    before: VecDeque<(T, Moment)>,
    /// When the axis last shrank, unless it grew since.
    shrank_at: Option<Moment>,
    /// The reversals, oldest first.
    reversals: VecDeque<Moment>,
}

/// Whether the guest is returning memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Leaving {
    /// Not recently.
    #[default]
    No,
    /// At this moment.
    Now,
    /// Until this moment.
    Until(Moment),
}

// === impl Stabilizer ===

impl Stabilizer {
    /// Counts the VM's whole size as a goal at this moment: the VM, its session or its guest starts.
    pub fn keep(&mut self, now: Moment) {
        self.cpu.keep(now, MilliCpu::from_milli(u64::MAX));
        self.mem.keep(now, Bytes::from_bytes(u64::MAX));
    }

    /// Notes the goal of the signals at this moment.
    pub fn note(&mut self, now: Moment, inputs: &Inputs<'_>) {
        let calmed = self.calmed(now, inputs);
        let raised = calmed.map(|sample| raised(&sample, inputs));
        let Goal { size, .. } = goal(&Inputs { sample: raised.as_ref(), ..*inputs });
        self.cpu.note(now, size.cpu);
        self.mem.note(now, size.mem);
    }

    /// Whether the guest returns memory at this moment. A stuck return does not count: it causes no load, and
    /// must not keep the VM from growing.
    pub fn memory_leaves(&mut self, now: Moment, leaves: bool) {
        self.leaving = match (self.leaving, leaves) {
            (_, true) => Leaving::Now,
            (Leaving::Now, false) => Leaving::Until(now),
            (before @ (Leaving::No | Leaving::Until(_)), false) => before,
        };
    }

    /// The VM's vCPUs changed.
    pub fn cpu_moved(&mut self, now: Moment, moved: Move) {
        self.cpu.moved(now, moved);
    }

    /// The VM's memory changed.
    pub fn memory_moved(&mut self, now: Moment, moved: Move) {
        self.mem.moved(now, moved);
    }

    /// The stabilized goal. The hold never keeps more than `permit`, the size that the books allow.
    pub fn stabilized(
        &self,
        now: Moment,
        inputs: &Inputs<'_>,
        permit: Option<Resources>,
    ) -> StabilizedGoal {
        let calmed = self.calmed(now, inputs);
        let mut counts = goal(&Inputs { sample: calmed.as_ref(), ..*inputs });
        // Usually the same, so it is not computed twice.
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

    /// The axis that grows and shrinks repeatedly; of two, the one with the longer hold.
    pub fn flapping(&self, now: Moment, waits: ScaleDown) -> Option<Flapping> {
        let axes = [self.cpu.flapping(now, waits.cpu), self.mem.flapping(now, waits.memory)];
        axes.into_iter().flatten().max_by_key(|flapping| flapping.hold)
    }

    /// The moments at which the goal may change by time alone.
    pub fn deadlines(&self, now: Moment, info: &VmInfo) -> impl Iterator<Item = Moment> {
        let waits = info.scale_down;
        let cpu = self.cpu.deadlines(now, waits.cpu);
        cpu.chain(self.mem.deadlines(now, waits.memory)).chain(self.settled_at(info))
    }

    /// When the returned memory no longer shows in the load.
    fn settled_at(&self, info: &VmInfo) -> Option<Moment> {
        match self.leaving {
            Leaving::No | Leaving::Now => None,
            Leaving::Until(at) => Some(at.after(settles_for(info))),
        }
    }

    /// The load over 5 s, if the return of memory has no part in it.
    fn clean_load(&self, now: Moment, inputs: &Inputs<'_>) -> Option<f64> {
        let sample = inputs.sample?;
        let clean_at = match self.leaving {
            Leaving::No => now,
            Leaving::Now => return None,
            Leaving::Until(at) => at.after(CLEAN_AFTER),
        };
        sample.loads.five_seconds.filter(|_| sample.at >= clean_at)
    }

    /// The sample without the load that the return of memory causes.
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
        // The most load that calls for no more than the VM's size, however its units are rounded.
        let enough = load_of(inputs, inputs.has.cpu.round_down(inputs.unit.cpu()));
        let most = self.clean_load(now, inputs).map_or(enough, |clean| clean.max(enough));
        let calm = |_, load: f64| Some(load.min(most.max(load - RETURNING_TASKS)));
        Some(Sample { loads: sample.loads.each(calm), ..sample })
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
                // Keep the larger goal for as long as the later one.
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

    /// The larger goal that replaces `wanted`, with its end; the end is `None` while the last noted goal is
    /// not smaller.
    fn held(&self, now: Moment, wanted: T, has: T, wait: Duration) -> Option<(T, Option<Moment>)> {
        let wait = self.damped(now, wait);
        if wait.is_zero() || wanted >= has {
            return None;
        }
        let counts = |(_, at): &&(T, Moment)| now < at.after(wait);
        // The oldest goal that counts is the largest.
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

    /// The hold, lengthened by reversals.
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
        // The hold becomes shorter when a reversal no longer counts.
        ends.chain(self.reversals.iter().map(|at| at.after(REVERSALS_OF)))
    }
}

/// How long the load over the VM's window shows the return of memory.
fn settles_for(info: &VmInfo) -> Duration {
    SETTLES_FOR.max(info.load_window.length())
}

/// The load at which this many vCPUs have the target load.
fn load_of(inputs: &Inputs<'_>, cpu: MilliCpu) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milli-CPUs are far below 2^52")]
    let cores = cpu.milli() as f64 / 1000.0;
    cores * inputs.info.target.load_average
}

/// The sample with the margin added to its load.
fn raised(sample: &Sample, inputs: &Inputs<'_>) -> Sample {
    let more = load_of(inputs, inputs.unit.cpu()) * MARGIN;
    Sample { loads: sample.loads.each(|_, load| Some(load + more)), ..*sample }
}
