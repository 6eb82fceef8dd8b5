//! What a VM waits for, in a few words for a narrow column.

use windlass_cli::explain::amount;
use windlass_protocol::{Resources, Waiting};

/// In at most thirty columns or so.
pub(crate) fn waits(waiting: &Waiting) -> String {
    match waiting {
        Waiting::AtGoal => "–".to_owned(),
        Waiting::FirstSignals => "its first figures".to_owned(),
        Waiting::Signals { .. } => "metrics from the guest".to_owned(),
        Waiting::Plugin => "the books".to_owned(),
        Waiting::Room { wanted, permit } => {
            format!("room: {}", missing(wanted.saturating_sub(*permit)))
        }
        Waiting::HostMemory { available } => format!("host memory, {available} left"),
        Waiting::Session | Waiting::Informant => "its informant".to_owned(),
        Waiting::Refused { .. } => "its guest, which declined".to_owned(),
        Waiting::Holding { .. } => "load to stay low".to_owned(),
        Waiting::Settling { .. } => "its load to settle".to_owned(),
        Waiting::Flapping { .. } => "less flapping".to_owned(),
        Waiting::Consent => "consent".to_owned(),
        Waiting::Hypervisor => "QEMU".to_owned(),
        Waiting::NoEffect { .. } => "another try: no effect".to_owned(),
        Waiting::HypervisorLost => "QEMU, not answering".to_owned(),
        Waiting::Unplug { left } => format!("returned memory, {left} to go"),
        Waiting::StuckUnplug { left } => format!("stuck memory, {left} to go"),
        Waiting::Guest => "its guest".to_owned(),
        Waiting::Frozen => "a thaw".to_owned(),
        Waiting::Move => "a move".to_owned(),
        Waiting::Paused { .. } => "the end of a pause".to_owned(),
        Waiting::Observing => "nothing: only watched".to_owned(),
        Waiting::Reboot => "its informant, after a reboot".to_owned(),
        Waiting::Stopped { .. } => "QEMU to run it".to_owned(),
        Waiting::Window { .. } => "a filled load window".to_owned(),
    }
}

fn missing(short: Resources) -> String {
    format!("{} short", amount(short))
}
