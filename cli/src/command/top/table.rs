//! What `top` shows, as text in rows: the same on a terminal and in a pipe.

use super::order::{Column, Sorting, Tone, sign, tone};
use super::sight::Sight;
use crate::api::{Changed, VmEntry, VmState};
use crate::explain::{absent, ago, frozen, short, state};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use std::collections::BTreeSet;
use windlass_protocol::status::{NodeStatus, VmStatus};
use windlass_protocol::{Mode, Moment, Resources, VmName};

/// How many columns there are.
pub(super) const COLUMNS: usize = 10;

/// A value of each column.
pub(super) type Cells = [String; COLUMNS];

/// One VM.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its name.
    pub(super) vm: String,
    pub(super) cells: Cells,
    pub(super) tone: Tone,
}

/// Titles of the columns; that by which the VMs are sorted is marked where `sorting` says one.
pub(super) fn titles(sorting: Option<Sorting>) -> Cells {
    let title = |column: Column| match sorting {
        Some(sorting) if sorting.by == column => format!("{}{}", column.title(), sign(sorting)),
        Some(_) | None => column.title(),
    };
    [
        title(Column::Vm),
        title(Column::Cpu),
        title(Column::Memory),
        title(Column::Used),
        title(Column::Load),
        title(Column::Goal),
        title(Column::Granted),
        "BOUNDS".to_owned(),
        title(Column::Changed),
        title(Column::State),
    ]
}

/// The table for a pipe.
pub(super) fn plain(sight: &Sight, sorting: Sorting) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(titles(None));
    for line in lines(sight, sorting) {
        table.add_row(line.cells);
    }
    let mut text = head(sight).into_iter().chain(rowless(sight)).collect::<Vec<_>>().join("\n");
    text.push_str("\n\n");
    if sight.state.vms.is_empty() {
        text.push_str(&format!("{}\n", empty(sight)));
    } else {
        text.push_str(&table.trim_fmt());
        text.push('\n');
    }
    for report in &sight.reports {
        text.push_str(&format!("! {report}\n"));
    }
    text
}

/// The node and the host.
pub(super) fn head(sight: &Sight) -> Vec<String> {
    let state = &sight.state;
    let node = match &state.node {
        Some(node) if node.room.covers(node.reserved) => {
            format!("node {}; reserved {}", node.room, node.reserved)
        }
        Some(node) => format!("node {}; reserved {}, {}", node.room, node.reserved, over(node)),
        None => "the plugin keeps the books of the node".to_owned(),
    };
    let host =
        state.host_available.map_or(String::new(), |mem| format!("; host memory available {mem}"));
    let mut lines = vec![format!("{node}{host}")];
    lines.extend(frozen(state));
    lines
}

/// What it means that more is reserved than there is: the books hold back each axis by itself.
fn over(node: &NodeStatus) -> &'static str {
    let (cpu, mem) = (node.reserved.cpu > node.room.cpu, node.reserved.mem > node.room.mem);
    match (cpu, mem) {
        (true, false) => "more CPU than there is: no VM grows beyond its reserved CPU",
        (false, true) => "more memory than there is: no VM grows beyond its reserved memory",
        (true, true) | (false, false) => {
            "more of both than there is: no VM grows beyond what it has reserved"
        }
    }
}

/// What stands for a table without rows.
pub(super) fn empty(sight: &Sight) -> &'static str {
    if sight.entries.iter().any(|entry| entry.state == VmState::Managed) {
        "No managed VM is there."
    } else {
        "No VM is managed; `windlass vm add` adds one."
    }
}

/// VMs that have no row, a line each.
pub(super) fn rowless(sight: &Sight) -> Vec<String> {
    let state = &sight.state;
    let rows: BTreeSet<&VmName> = state.vms.iter().map(|vm| &vm.name).collect();
    let rowless = sight.entries.iter().filter(|entry| !rows.contains(&entry.name));
    let line = |entry: &VmEntry| {
        let (monitor, node) = (entry.monitor.as_deref(), state.node.as_ref());
        let stands = absent(&entry.name, entry.state, monitor, node);
        format!("{}: {stands}", short(&entry.name))
    };
    rowless.map(line).collect()
}

/// The VMs in this order.
pub(super) fn lines(sight: &Sight, sorting: Sorting) -> Vec<Line> {
    let line = |vm: &VmStatus| Line {
        vm: vm.name.name.clone(),
        cells: cells(vm, sight.changes.get(&vm.name), sight.state.at),
        tone: tone(vm),
    };
    sorting.sorted(sight).into_iter().map(line).collect()
}

fn cells(vm: &VmStatus, change: Option<&Changed>, now: Moment) -> Cells {
    [
        name(vm),
        cpu(vm),
        vm.upper.map_or(unknown(), |upper| upper.mem.to_string()),
        vm.signals.used.map_or(unknown(), |used| used.to_string()),
        vm.signals.load.map_or(unknown(), |load| format!("{load:.2}")),
        size(vm.goal),
        size(vm.permit),
        format!("{} – {}", tight(vm.bounds.min), tight(vm.bounds.max)),
        change.map_or(unknown(), |change| changed(change, now)),
        state(vm, now),
    ]
}

/// `↑ 2m ago`: which way the VM went by the last resize that ended, and when that ended.
fn changed(change: &Changed, now: Moment) -> String {
    let way = match (change.to.covers(change.from), change.from.covers(change.to)) {
        (true, _) => "↑",
        (false, true) => "↓",
        (false, false) => "↕",
    };
    format!("{way} {}", ago(now.since(change.at)))
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
    match (vm.seen, vm.cpu()) {
        (Some(seen), Some(cpu)) if cpu != seen.plugged => format!("{cpu} of {}", seen.plugged),
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
