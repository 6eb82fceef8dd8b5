//! In which order the VMs stand, and how urgent the state of each is, for that and for its colour.

use super::sight::Sight;
use clap::ValueEnum;
use std::cmp::Reverse;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Resources, Waiting};

/// What the VMs are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// By name.
    #[default]
    Vm,
    /// Most vCPUs first.
    Cpu,
    /// Most memory first.
    Memory,
    /// Most memory in use first.
    Used,
    /// Highest load first.
    Load,
    /// Largest goal first: vCPUs, then memory.
    Goal,
    /// Most granted first: vCPUs, then memory.
    Granted,
    /// Last change first.
    Changed,
    /// Most urgent first.
    State,
}

/// How the VMs are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sorting {
    pub(super) by: Column,
    pub(super) reversed: bool,
}

// === impl Column ===

impl Column {
    pub(super) fn title(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_uppercase())
    }
}

// === impl Sorting ===

impl Sorting {
    /// By the column that stands so many places further to the right, in its own direction.
    pub(super) fn moved(self, by: isize) -> Self {
        let all = Column::value_variants();
        let at = all.iter().position(|column| *column == self.by).unwrap_or_default();
        let by = *all.get(at.saturating_add_signed(by)).unwrap_or(&self.by);
        Self { reversed: self.reversed && by == self.by, by }
    }

    /// The VMs of a look in this order; those that are alike, by name.
    pub(super) fn sorted(self, sight: &Sight) -> Vec<&VmStatus> {
        let mut vms: Vec<&VmStatus> = sight.state.vms.iter().collect();
        vms.sort_by_cached_key(|vm| (Reverse(self.key(vm, sight)), vm.name.clone()));
        if self.reversed {
            vms.reverse();
        }
        vms
    }

    /// What a VM has in a column; VMs that have nothing there stand last.
    fn key(self, vm: &VmStatus, sight: &Sight) -> Option<(u64, u64)> {
        let size = |size: Resources| (size.cpu.milli(), size.mem.bytes());
        match self.by {
            Column::Vm => None,
            Column::Cpu => vm.cpu().map(|cpu| (cpu.milli(), 0)),
            Column::Memory => vm.upper.map(|upper| (upper.mem.bytes(), 0)),
            Column::Used => vm.signals.used.map(|used| (used.bytes(), 0)),
            // The bits of numbers that are not negative stand in the order of the numbers.
            Column::Load => vm.signals.load.map(|load| (load.max(0.0).to_bits(), 0)),
            Column::Goal => vm.goal.map(size),
            Column::Granted => vm.permit.map(size),
            Column::Changed => sight.changes.get(&vm.name).map(|changed| (changed.at.millis(), 0)),
            Column::State => Some((tone(vm) as u64, 0)),
        }
    }
}

/// `▲` where the column rises from top to bottom, `▼` where it falls.
pub(super) const fn sign(sorting: Sorting) -> char {
    let rises = matches!(sorting.by, Column::Vm) != sorting.reversed;
    if rises { '▲' } else { '▼' }
}

/// How urgent the state of a VM is, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// At its goal, or on the way there.
    Calm,
    /// A person, the VM file or QEMU keeps the VM at its size.
    Held,
    /// Something keeps the VM from its goal.
    Waits,
    /// A part does not answer: a person has to look.
    Fails,
}

/// Of all that the VM waits for, the most urgent.
pub(super) fn tone(vm: &VmStatus) -> Tone {
    let session = match vm.session {
        SessionState::Suspended => Tone::Waits,
        SessionState::Absent | SessionState::Registered | SessionState::Active => Tone::Calm,
    };
    vm.waiting.iter().map(of).fold(session, Tone::max)
}

fn of(waiting: &Waiting) -> Tone {
    match waiting {
        Waiting::AtGoal
        | Waiting::FirstSignals
        | Waiting::Refused { .. }
        | Waiting::Holding { .. }
        | Waiting::Settling { .. }
        | Waiting::Consent
        | Waiting::Hypervisor
        | Waiting::Unplug { .. }
        | Waiting::Guest
        | Waiting::Move
        | Waiting::Window { .. } => Tone::Calm,
        Waiting::Frozen | Waiting::Paused { .. } | Waiting::Observing | Waiting::Stopped { .. } => {
            Tone::Held
        }
        Waiting::Plugin
        | Waiting::Room { .. }
        | Waiting::HostMemory { .. }
        | Waiting::Flapping { .. }
        | Waiting::NoEffect { .. }
        | Waiting::StuckUnplug { .. }
        | Waiting::Reboot => Tone::Waits,
        Waiting::Signals { .. }
        | Waiting::Session
        | Waiting::Informant
        | Waiting::HypervisorLost => Tone::Fails,
    }
}
