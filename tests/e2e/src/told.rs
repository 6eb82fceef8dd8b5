//! What a host tells of its decisions about a VM, and which of them change its size.

use crate::Host;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt;
use windlass_protocol::{Decision, Moment};

/// The decisions about a VM in the last hour, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Told(Vec<Decision>);

// === impl Told ===

impl Told {
    /// What `windlass explain` says as JSON.
    ///
    /// # Errors
    /// The host does not answer, or not in decisions.
    pub fn of(host: &Host, vm: &str) -> Result<Self> {
        let said = host.command(&["explain", vm, "--output", "json"])?;
        let said: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
        let over = said["decisions"].as_array().context("no decisions")?;
        let open = Some(&said["open"]).filter(|open| !open.is_null());
        let all = over.iter().chain(open).cloned().map(serde_json::from_value);
        Ok(Self(all.collect::<Result<_, _>>()?))
    }

    /// Those that are no older than this.
    #[must_use]
    pub fn since(&self, moment: Moment) -> Self {
        self.only(|decision| decision.at >= moment)
    }

    /// Those that would have the VM larger than it was, on one axis at least.
    #[must_use]
    pub fn growing(&self) -> Self {
        self.only(|decision| !decision.from.covers(decision.goal))
    }

    /// Those that changed what the VM has.
    #[must_use]
    pub fn acting(&self) -> Self {
        self.only(|decision| !decision.changes.is_empty())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn only(&self, wanted: impl Fn(&Decision) -> bool) -> Self {
        Self(self.0.iter().filter(|decision| wanted(decision)).cloned().collect())
    }
}

impl fmt::Display for Told {
    /// One line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for decision in &self.0 {
            let Decision { at, from, goal, reason, signals, changes, .. } = decision;
            let at = at.millis();
            writeln!(f, "{at} ms: {from} -> {goal}: {reason:?}, {signals:?}, {changes:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{
        Bytes, Change, LoadWindow, MilliCpu, Outcome, Reason, Resources, Signal, Signals, Target,
        VmName,
    };

    #[test]
    fn a_decision_grows_on_one_axis_and_acts_once_something_was_done() {
        let up = decision(1, size(1, 512), size(2, 256), &[]);
        let same = decision(2, size(2, 256), size(2, 256), &[]);
        let down = decision(3, size(2, 256), size(1, 256), &[Change::Park(size(1, 0).cpu)]);
        let told = Told(vec![up.clone(), same.clone(), down.clone()]);
        assert_eq!(told.growing(), Told(vec![up]));
        assert_eq!(told.acting(), Told(vec![down.clone()]));
        assert_eq!(told.since(Moment::from_millis(2)), Told(vec![same, down]));
    }

    fn size(cpus: u64, mib: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(cpus), mem: Bytes::from_mib(mib) }
    }

    fn decision(at: u64, from: Resources, goal: Resources, changes: &[Change]) -> Decision {
        Decision {
            at: Moment::from_millis(at),
            vm: VmName::on_host("a"),
            from,
            signals: Signals::default(),
            window: LoadWindow::FifteenSeconds,
            target: Target::default(),
            goal,
            reason: Reason { signal: Signal::Idle, cpu: None, mem: None },
            permit: None,
            short: None,
            consent: None,
            refusal: None,
            changes: changes.to_vec(),
            outcome: Outcome::Open,
        }
    }
}
