//! A process: it may stop for a while, be slow, and end between any two effects.

use std::time::Duration;
use windlass_protocol::{Moment, VmName};

/// One of the processes of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The agent of a VM.
    Agent(VmName),
    /// The informant of a VM.
    Informant(VmName),
    /// The host of this number: it keeps the books, and has the agents of its VMs in it.
    Host(usize),
}

/// How a process is doing, over all of its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    /// It does nothing before this moment.
    runs_at: Moment,
    /// Each thing that it does takes it so long.
    pub(crate) slow: Duration,
    /// It ends after so many effects; `None`: not by itself.
    pub(crate) fuse: Option<u32>,
    /// By how many milliseconds its clock is off. The machine's wall clock is read once, when a
    /// process starts (`kit::clock`), so a jump of it reaches the next run.
    skew: i64,
}

// === impl Process ===

impl Process {
    /// A run begins, on a machine whose wall clock is off by so many milliseconds.
    pub(crate) fn starts(&mut self, wall: i64) {
        self.runs_at = Moment::default();
        self.fuse = None;
        self.skew = wall;
    }

    /// It stops until then, and goes on with what reached it meanwhile.
    pub(crate) fn pause(&mut self, until: Moment) {
        self.runs_at = self.runs_at.max(until);
    }

    /// Its machine stood still for so long, and its clock with it.
    pub(crate) fn stood_still(&mut self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.skew = self.skew.saturating_sub(millis);
    }

    /// When it does the next thing, at the earliest.
    pub(crate) const fn runs_at(&self) -> Moment {
        self.runs_at
    }

    /// It has done something.
    pub(crate) fn worked(&mut self, now: Moment) {
        if !self.slow.is_zero() {
            self.runs_at = self.runs_at.max(now.after(self.slow));
        }
    }

    /// Something that it did takes effect. Says whether it ends right after that.
    pub(crate) fn ends_now(&mut self) -> bool {
        let Some(left) = &mut self.fuse else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// What its clock shows.
    pub(crate) const fn clock(&self, now: Moment) -> Moment {
        Moment::from_millis(now.millis().saturating_add_signed(self.skew))
    }

    /// When its clock shows this.
    pub(crate) const fn when(&self, shown: Moment) -> Moment {
        Moment::from_millis(shown.millis().saturating_sub_signed(self.skew))
    }
}
