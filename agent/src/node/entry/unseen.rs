//! What is shown of a VM that is there and was never seen.

use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Signals, VmInfo, Waiting};

/// All that its declaration says, and that its hypervisor does not answer.
pub(super) fn status(info: &VmInfo) -> VmStatus {
    VmStatus {
        name: info.name.clone(),
        mode: info.mode,
        priority: info.priority,
        bounds: info.bounds,
        seen: None,
        online: None,
        upper: None,
        signals: Signals::default(),
        goal: None,
        reason: None,
        permit: None,
        consent: None,
        session: SessionState::Absent,
        waiting: vec![Waiting::HypervisorLost],
        silent_since: None,
        unit: None,
        window: Some(info.load_window),
        target: Some(info.target),
    }
}
