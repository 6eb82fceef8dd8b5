//! What an operator needs first: how the VM is, why not more, why not less, the last changes.

use super::changes::last_changes;
use super::waiting::{AT_GOAL, state};
use super::why::{uses, why};
use super::words::{instant, short};
use crate::api::{Explained, VmState};
use std::path::Path;
use windlass_protocol::status::{HostStatus, NodeStatus, OrderKind, Ordered, VmStatus};
use windlass_protocol::{Moment, VmName, Waiting};

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
    let changes = last_changes(explained.decisions.iter().chain(&explained.open), at);
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

/// How a VM stands that no agent is attached to, to follow its name: `not there: …`.
pub fn absent(
    vm: &VmName,
    state: VmState,
    monitor: Option<&Path>,
    node: Option<&NodeStatus>,
) -> String {
    let booked = node.map(|node| node.vms.iter().find(|booked| booked.name == *vm));
    let counts = match booked {
        Some(Some(booked)) => format!("{} stay reserved for it", booked.reserved),
        Some(None) => "nothing is reserved for it".to_owned(),
        None => "what is reserved for it is in the plugin's books".to_owned(),
    };
    match state {
        VmState::Managed => {
            let monitor =
                monitor.map_or("its monitor".to_owned(), |path| path.display().to_string());
            format!("not there: no QEMU serves {monitor}")
        }
        VmState::Invalid => format!("not managed, its file is invalid; {counts}"),
        VmState::Releasing => format!("being released; {counts}"),
        VmState::Released => format!("released; {counts}"),
        VmState::Removed => format!("removed; {counts}"),
    }
}

/// An order in a few words: `frozen by uid 1000 (pid 4242) at 2026-11-21T10:00:05Z`.
pub fn ordered(order: &Ordered) -> String {
    let what = match order.what {
        OrderKind::Freeze => "frozen",
        OrderKind::Thaw => "thawed",
        OrderKind::Pause => "paused",
        OrderKind::Resume => "resumed",
        OrderKind::Release => "released",
    };
    format!("{what} {}", given(order))
}

/// That the host is frozen, if it is, and by whom.
pub fn frozen(host: &HostStatus) -> Option<String> {
    let order = host.ordered.as_ref().filter(|order| order.what == OrderKind::Freeze);
    let by = order.map_or(String::new(), |order| format!(" {}", given(order)));
    host.frozen.then(|| format!("FROZEN{by}: no VM changes its size until `windlass thaw`"))
}

/// By which process, and when: `by uid 1000 (pid 4242) at 2026-11-21T10:00:05Z`.
fn given(order: &Ordered) -> String {
    let by = order.by.map_or(String::new(), |by| format!("by {by} "));
    format!("{by}at {}", instant(order.at))
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
        .map(|seen| seen.plugged.saturating_sub(vm.online.unwrap_or(seen.plugged)))
        .filter(|parked| !parked.is_zero())
        .map_or(String::new(), |parked| format!(" (and {parked} more vCPU parked)"));
    match vm.goal {
        Some(goal) if goal != has => format!("has {has}{parked} and its goal is {goal}: {state}"),
        _ if state == AT_GOAL => format!("has {has}{parked}, which is its goal"),
        _ => format!("has {has}{parked}: {state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::status::Caller;

    #[test]
    fn an_order_names_the_process_as_far_as_it_is_known() {
        let at = Moment::from_millis(1_795_255_205_000);
        let text = |by| ordered(&Ordered { what: OrderKind::Freeze, at, by });
        let caller = |pid| Some(Caller { uid: 1000, pid });
        assert_eq!(text(caller(Some(42))), "frozen by uid 1000 (pid 42) at 2026-11-21T10:00:05Z");
        assert_eq!(text(caller(None)), "frozen by uid 1000 at 2026-11-21T10:00:05Z");
        assert_eq!(text(None), "frozen at 2026-11-21T10:00:05Z");
    }
}
