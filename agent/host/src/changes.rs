//! The last change of each VM's size, from the decisions of the last hour.

use crate::api::Changed;
use windlass_agent::Agent;
use windlass_protocol::{Decision, Moment, Outcome, Resources};

/// The last change of each VM that changed in the last hour, by name.
pub(crate) fn changes(agent: &Agent) -> Vec<Changed> {
    let last = agent.last_decisions(|decision| change(decision).is_some());
    let changed = |decision: Decision| {
        let (at, to) = change(&decision)?;
        Some(Changed { vm: decision.vm, at, from: decision.from, to })
    };
    last.into_iter().filter_map(changed).collect()
}

/// When a decision came to what size, if that is another than before.
fn change(decision: &Decision) -> Option<(Moment, Resources)> {
    let (at, to) = match decision.outcome {
        Outcome::Reached { at } => (at, decision.goal),
        Outcome::Replaced { at, has } => (at, has),
        Outcome::Open | Outcome::Observed | Outcome::Interrupted { .. } => return None,
    };
    (to != decision.from).then_some((at, to))
}
