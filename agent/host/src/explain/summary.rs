//! What an operator needs first: how the VM is, why not more, why not less, the last changes.

use super::absent;
use super::changes::last_changes;
use super::explained::Explained;
use super::ordered::ordered;
use super::waiting::{AT_GOAL, state};
use super::why::{uses, why};
use super::words::{instant, short};
use windlass_protocol::status::{OrderKind, Ordered, VmStatus};
use windlass_protocol::{Moment, Waiting};

/// The state of a VM as text, a paragraph a line.
pub fn summary(explained: &Explained) -> String {
    let at = explained.at;
    let mut text = format!("{} {}\n", instant(at), now(explained, |vm| present(vm, at)));
    for (head, body) in why(explained).into_iter().filter(|(_, body)| !body.is_empty()) {
        text.push_str(&format!("\n{head}: {body}\n"));
    }
    for problem in &explained.problems {
        text.push_str(&format!("\nProblem: {problem}\n"));
    }
    for order in &explained.ordered {
        text.push_str(&format!("\n{}: {}\n", last_order(order), ordered(order)));
    }
    let decisions = explained.decisions.iter().chain(&explained.open);
    let changes = last_changes(decisions, at);
    text.push_str(if changes.is_empty() { "\nLast changes: none.\n" } else { "\nLast changes:\n" });
    for line in changes {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&format!(
        "\n`windlass explain {} --verbose` tells each decision in full.\n",
        short(&explained.vm)
    ));
    text
}

/// Freeze and thaw are for all VMs, and stand beside the last order about the VM.
pub(super) const fn last_order(order: &Ordered) -> &'static str {
    match order.what {
        OrderKind::Freeze | OrderKind::Thaw => "Last order to the host",
        OrderKind::Pause | OrderKind::Resume | OrderKind::Release => "Last order",
    }
}

/// How the VM is, in one sentence: in these words, if it is there.
pub(super) fn now(explained: &Explained, present: impl Fn(&VmStatus) -> String) -> String {
    let name = short(&explained.vm);
    match (&explained.status, explained.state) {
        (Some(vm), _) => format!("{name} {}.", present(vm)),
        (None, Some(state)) => {
            let monitor = explained.monitor.as_deref();
            format!("{name} is {}.", absent(&explained.vm, state, monitor, explained.node.as_ref()))
        }
        (None, None) => format!("{name} is not managed."),
    }
}

fn present(vm: &VmStatus, now: Moment) -> String {
    let state = state(vm, now);
    let Some(has) = uses(vm) else {
        return format!("was not seen yet: {state}");
    };
    if vm.waiting.contains(&Waiting::HypervisorLost) {
        return format!("had {has} when it was last seen: {state}");
    }
    let parked = vm
        .seen
        .map(|seen| seen.plugged.saturating_sub(has.cpu))
        .filter(|parked| !parked.is_zero())
        .map_or(String::new(), |parked| format!(" (and {parked} more vCPU parked)"));
    match vm.goal {
        Some(goal) if goal != has => format!("has {has}{parked} and its goal is {goal}: {state}"),
        _ if state == AT_GOAL => format!("has {has}{parked}, which is its goal"),
        _ => format!("has {has}{parked}: {state}"),
    }
}
