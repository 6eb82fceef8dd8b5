//! The decisions of one VM, for people to read.
//!
//! A decision is open while the VM is on its way to a goal; it gathers what was permitted,
//! agreed and done, and is closed when the goal is reached or another takes its place. One that
//! was replaced before anything came of it is dropped: it says nothing that the next does not.

use crate::event::Action;
use std::time::Duration;
use windlass_protocol::decision::{Answered, Consented};
use windlass_protocol::words::sanitized;
use windlass_protocol::{
    Change, Decision, MilliCpu, Mode, Moment, Outcome, Resize, Resources, VmInfo, VmName,
};
use windlass_scaling::Goal;

/// Closed decisions kept until they are drained; the oldest go first.
const MOST_CLOSED: usize = 64;
/// Changes kept in one decision; later ones are not.
const MOST_CHANGES: usize = 16;
/// Characters kept of the informant's words.
const MOST_WORDS: usize = 160;
/// A decision that changes its mind faster than this, with nothing done, is dropped.
const SETTLING: Duration = Duration::from_secs(2);

/// The decisions of one VM.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    vm: VmName,
    open: Option<Decision>,
    closed: Vec<Decision>,
    /// The last goal that was only watched.
    observed: Option<Resources>,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn new(vm: VmName) -> Self {
        Self { vm, open: None, closed: Vec::new(), observed: None }
    }

    pub(crate) fn open(&self) -> Option<&Decision> {
        self.open.as_ref()
    }

    pub(crate) fn drain(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.closed)
    }

    /// Compares the goal with what the VM has, and opens and closes decisions accordingly.
    pub(crate) fn keep(&mut self, now: Moment, info: &VmInfo, goal: Goal, has: Resources) {
        match info.mode {
            Mode::Observe => return self.keep_observed(now, info, goal, has),
            Mode::Act => self.observed = None,
        }
        if let Some(open) = &self.open {
            if has == open.goal {
                self.close(Outcome::Reached { at: now });
            } else if open.goal != goal.size {
                self.close(Outcome::Replaced { at: now, has });
            }
        }
        if self.open.is_none() && goal.size != has {
            self.open = Some(self.decision(now, info, goal, has));
        }
    }

    pub(crate) fn sent(&mut self, action: Action, online: Option<MilliCpu>, calls_off: bool) {
        let change = match action {
            Action::Resize(Resize::Memory(total)) if calls_off => Change::CallOff(total),
            Action::Resize(Resize::Memory(total)) => Change::Memory(total),
            Action::Resize(Resize::Cpu(count)) => Change::Plug(count),
            Action::Resize(Resize::Limit(limit)) => Change::Limit(limit),
            Action::Upscale(_, _, size) if online.is_some_and(|online| online < size.cpu) => {
                Change::Unpark(size.cpu)
            }
            Action::Upscale(..)
            | Action::Look
            | Action::Measure
            | Action::AskPlugin(_)
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Unregister(_) => return,
        };
        self.changed(change);
    }

    pub(crate) fn permitted(&mut self, asked: Resources, permit: Resources) {
        if let Some(open) = &mut self.open
            && asked.covers(open.goal)
        {
            let answer = Answered { asked, permit };
            let earlier = open.permit.replace(answer);
            if answer.is_full() {
                open.short = earlier.filter(|earlier| !earlier.is_full()).or(open.short);
            }
        }
    }

    pub(crate) fn consented(
        &mut self,
        asked: Resources,
        agreed: bool,
        status: &str,
        online: Option<MilliCpu>,
    ) {
        let Some(open) = &mut self.open else { return };
        let status = sanitized(status, MOST_WORDS);
        let earlier = open.consent.replace(Consented { asked, agreed, status });
        if agreed {
            open.refusal = earlier.filter(|earlier| !earlier.agreed).or(open.refusal.take());
        }
        if agreed && online.is_some_and(|online| asked.cpu < online) {
            self.changed(Change::Park(asked.cpu));
        }
    }

    /// The guest restarted, or the VM is gone.
    pub(crate) fn interrupted(&mut self, now: Moment) {
        self.close(Outcome::Interrupted { at: now });
    }

    fn changed(&mut self, change: Change) {
        let Some(open) = &mut self.open else { return };
        // A new vCPU is brought online by the guest itself; that is no un-parking.
        let plugged = |count| open.changes.contains(&Change::Plug(count));
        let told_of_new = matches!(change, Change::Unpark(count) if plugged(count));
        if !told_of_new && !open.changes.contains(&change) && open.changes.len() < MOST_CHANGES {
            open.changes.push(change);
        }
    }

    fn keep_observed(&mut self, now: Moment, info: &VmInfo, goal: Goal, has: Resources) {
        self.close(Outcome::Replaced { at: now, has });
        if self.observed != Some(goal.size) && goal.size != has {
            self.open = Some(self.decision(now, info, goal, has));
            self.close(Outcome::Observed);
        }
        self.observed = Some(goal.size);
    }

    fn decision(&self, now: Moment, info: &VmInfo, goal: Goal, has: Resources) -> Decision {
        Decision {
            at: now,
            vm: self.vm.clone(),
            from: has,
            signals: goal.signals,
            window: info.load_window,
            target: info.target,
            goal: goal.size,
            reason: goal.reason,
            permit: None,
            consent: None,
            short: None,
            refusal: None,
            changes: Vec::new(),
            outcome: Outcome::Open,
        }
    }

    fn close(&mut self, outcome: Outcome) {
        let Some(mut decision) = self.open.take() else { return };
        let nothing_done =
            decision.permit.is_none() && decision.consent.is_none() && decision.changes.is_empty();
        if let Outcome::Replaced { at, .. } = outcome
            && nothing_done
            && at.since(decision.at) < SETTLING
        {
            return;
        }
        decision.outcome = outcome;
        if self.closed.len() == MOST_CLOSED {
            self.closed.remove(0);
        }
        self.closed.push(decision);
    }
}

#[cfg(test)]
mod tests;
