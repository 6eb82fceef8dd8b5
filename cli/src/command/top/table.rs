//! What `top` shows, as text in rows: the same on a terminal and in a pipe.

use super::sight::Sight;
use crate::api::VmEntry;
use crate::explain::{absent, frozen, short, state};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use windlass_protocol::status::{NodeStatus, VmStatus};
use windlass_protocol::{Mode, Moment, Resources, Waiting};

/// Titles of the columns.
pub(super) const TITLES: [&str; 9] =
    ["VM", "CPU", "MEMORY", "USED", "LOAD", "GOAL", "GRANTED", "BOUNDS", "STATE"];

/// The table for a pipe.
pub(super) fn plain(sight: &Sight) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(TITLES);
    for vm in &sight.state.vms {
        table.add_row(row(vm, sight.state.at));
    }
    let mut text = head(sight).join("\n");
    text.push_str("\n\n");
    if sight.state.vms.is_empty() {
        text.push_str("No VM is managed; `windlass vm add` adds one.\n");
    } else {
        text.push_str(&table.trim_fmt());
        text.push('\n');
    }
    for report in &sight.reports {
        text.push_str(&format!("! {report}\n"));
    }
    text
}

/// The node, the host, and VMs that have no row, a line each.
pub(super) fn head(sight: &Sight) -> Vec<String> {
    let state = &sight.state;
    let node = &state.node;
    let over = if node.room.covers(node.reserved) {
        ""
    } else {
        ", which is more than there is: no VM grows"
    };
    let host =
        state.host_available.map_or(String::new(), |mem| format!("; host memory available {mem}"));
    let mut lines = vec![format!("node {}; reserved {}{over}{host}", node.room, node.reserved)];
    lines.extend(frozen(state));
    let rowless = sight.entries.iter().filter(|e| !state.vms.iter().any(|vm| vm.name == e.name));
    lines.extend(rowless.map(|entry| rowless_line(entry, node)));
    lines
}

fn rowless_line(entry: &VmEntry, node: &NodeStatus) -> String {
    let stands = absent(&entry.name, entry.state, entry.monitor.as_deref(), node);
    format!("{}: {stands}", short(&entry.name))
}

/// One VM.
pub(super) fn row(vm: &VmStatus, now: Moment) -> [String; 9] {
    [
        name(vm),
        cpu(vm),
        vm.upper.map_or(unknown(), |upper| upper.mem.to_string()),
        vm.signals.used.map_or(unknown(), |used| used.to_string()),
        vm.signals.load.map_or(unknown(), |load| format!("{load:.2}")),
        size(vm.goal),
        size(vm.permit),
        format!("{} – {}", tight(vm.bounds.min), tight(vm.bounds.max)),
        state(vm, now),
    ]
}

/// Whether anything keeps this VM from its goal.
pub(super) fn held(vm: &VmStatus) -> bool {
    vm.waiting.iter().any(|waiting| *waiting != Waiting::AtGoal)
}

fn name(vm: &VmStatus) -> String {
    let mut name = short(&vm.name);
    if vm.priority != 0 {
        name.push_str(&format!(" (p{})", vm.priority));
    }
    match vm.mode {
        Mode::Act => name,
        Mode::Observe => name + " (observed)",
    }
}

fn cpu(vm: &VmStatus) -> String {
    match (vm.seen, vm.online) {
        (Some(seen), Some(online)) if online != seen.plugged => {
            format!("{online} of {}", seen.plugged)
        }
        (Some(seen), _) => seen.plugged.to_string(),
        (None, _) => unknown(),
    }
}

fn size(size: Option<Resources>) -> String {
    size.map_or(unknown(), tight)
}

fn tight(size: Resources) -> String {
    format!("{}/{}", size.cpu, size.mem)
}

fn unknown() -> String {
    "–".to_owned()
}
