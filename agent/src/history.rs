//! The decisions of the last hour, per VM, bounded.
//!
//! It outlives the VMs, so that a person can still ask why one was small before it went; a
//! host writes it down and gives it back after a restart.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use windlass_protocol::{Decision, Moment, VmName, Waiting};

/// How long a decision is kept.
const KEPT: Duration = Duration::from_secs(3600);
/// The most decisions of one VM.
const MOST: usize = 1000;
/// The most VMs that have a history, more than one host has files of; the one that was quiet
/// longest makes room.
const MOST_VMS: usize = 1500;

/// What was decided for one VM, and what it waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// The closed decisions of the last hour, oldest first.
    pub closed: Vec<Decision>,
    /// The one that is under way.
    pub open: Option<Decision>,
    /// What the VM waits for at this moment.
    pub waiting: Vec<Waiting>,
}

/// The closed decisions of all VMs.
#[derive(Debug, Default)]
pub(crate) struct History {
    vms: BTreeMap<VmName, VecDeque<Decision>>,
}

// === impl History ===

impl History {
    pub(crate) fn add(&mut self, now: Moment, decision: Decision) {
        let decisions = self.vms.entry(decision.vm.clone()).or_default();
        decisions.push_back(decision);
        while decisions.len() > MOST || decisions.front().is_some_and(|d| is_old(now, d)) {
            decisions.pop_front();
        }
        if self.vms.len() > MOST_VMS {
            let latest = |(_, decisions): &(&VmName, &VecDeque<Decision>)| {
                decisions.back().map(|decision| decision.at)
            };
            let quietest = self.vms.iter().min_by_key(latest).map(|(vm, _)| vm.clone());
            quietest.and_then(|vm| self.vms.remove(&vm));
        }
    }

    /// The last decision of each VM in the last hour for which this holds, by name.
    pub(crate) fn last(&self, now: Moment, holds: impl Fn(&Decision) -> bool) -> Vec<Decision> {
        let last = |decisions: &VecDeque<Decision>| {
            let mut recent = decisions.iter().rev().take_while(|decision| !is_old(now, decision));
            recent.find(|decision| holds(decision)).cloned()
        };
        self.vms.values().filter_map(last).collect()
    }

    /// Of the last hour, those that were made after this moment, oldest first: all of them without one.
    pub(crate) fn after(&self, now: Moment, vm: &VmName, moment: Option<Moment>) -> Vec<Decision> {
        let is_new = |decision: &&Decision| {
            !is_old(now, decision) && moment.is_none_or(|moment| decision.at > moment)
        };
        let mut new: Vec<Decision> = self.vms.get(vm).map_or(Vec::new(), |decisions| {
            // The newest stand last, so what was seen before is not looked at.
            decisions.iter().rev().take_while(is_new).cloned().collect()
        });
        new.reverse();
        new
    }

    /// Of the last hour, oldest first; `None` for a VM that never had one.
    pub(crate) fn of(&self, now: Moment, vm: &VmName) -> Option<Vec<Decision>> {
        let decisions = self.vms.get(vm)?;
        Some(decisions.iter().filter(|decision| !is_old(now, decision)).cloned().collect())
    }
}

fn is_old(now: Moment, decision: &Decision) -> bool {
    now.since(decision.at) > KEPT
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{LoadWindow, Outcome, Reason, Resources, Signal, Signals, Target};

    #[test]
    fn an_hour_is_kept_and_no_more_than_so_many() {
        let (vm, mut history) = (VmName::on_host("a"), History::default());
        let start = Moment::from_millis(0);
        for second in 0..10_000 {
            let now = start.after(Duration::from_secs(second));
            history.add(now, decision("a", now));
        }
        let now = start.after(Duration::from_secs(10_000));
        assert_eq!(history.of(now, &vm).unwrap().len(), MOST);
        let later = now.after(KEPT - Duration::from_secs(10));
        assert_eq!(history.of(later, &vm).unwrap().len(), 10);
        assert_eq!(history.of(now, &VmName::on_host("b")), None);
    }

    #[test]
    fn the_last_decision_of_each_vm_is_found_within_the_hour() {
        let mut history = History::default();
        let at = |second: u64| Moment::from_millis(second * 1_000);
        for (vm, second) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
            history.add(at(second), decision(vm, at(second)));
        }
        let before = |now, end| {
            let last = history.last(at(now), |decision| decision.at < at(end));
            last.into_iter().map(|last| (last.vm.name, last.at)).collect::<Vec<_>>()
        };
        assert_eq!(before(4, 4), [("a".to_owned(), at(3)), ("b".to_owned(), at(2))]);
        assert_eq!(before(3_603, 9), [("a".to_owned(), at(4))]);
    }

    #[test]
    fn what_is_new_since_a_moment_is_found_within_the_hour() {
        let (mut history, vm) = (History::default(), VmName::on_host("a"));
        let at = |second: u64| Moment::from_millis(second * 1_000);
        for second in [1, 2, 4] {
            history.add(at(second), decision("a", at(second)));
        }
        let new = |now, after: Option<u64>| {
            let new = history.after(at(now), &vm, after.map(at));
            new.iter().map(|decision| decision.at).collect::<Vec<_>>()
        };
        assert_eq!(new(4, None), [at(1), at(2), at(4)]);
        assert_eq!(new(4, Some(1)), [at(2), at(4)]);
        assert_eq!((new(4, Some(3)), new(4, Some(4))), (vec![at(4)], Vec::new()));
        assert_eq!(new(3_603, None), [at(4)]);
        assert_eq!(history.after(at(4), &VmName::on_host("b"), None), []);
    }

    #[test]
    fn many_vms_do_not_fill_the_memory() {
        let mut history = History::default();
        for number in 0..2_000 {
            let now = Moment::from_millis(number);
            history.add(now, decision(&format!("vm{number}"), now));
        }
        assert_eq!(history.vms.len(), MOST_VMS);
        assert!(history.of(Moment::from_millis(2_000), &VmName::on_host("vm1999")).is_some());
    }

    fn decision(vm: &str, at: Moment) -> Decision {
        Decision {
            at,
            vm: VmName::on_host(vm),
            from: Resources::ZERO,
            signals: Signals::default(),
            window: LoadWindow::FifteenSeconds,
            target: Target::default(),
            goal: Resources::ZERO,
            reason: Reason { signal: Signal::Idle, cpu: None, mem: None },
            permit: None,
            consent: None,
            short: None,
            refusal: None,
            changes: Vec::new(),
            outcome: Outcome::Observed,
        }
    }
}
