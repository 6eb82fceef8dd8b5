//! How urgent the state of a VM is, for its colour and for sorting.

use windlass_protocol::Waiting;
use windlass_protocol::status::{SessionState, VmStatus};

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
