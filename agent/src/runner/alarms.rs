//! What lasts too long at one VM: it is counted while it lasts, and the log says its begin and its end.

use crate::config::Silence;
use crate::metrics::Presence;
use crate::shared::Shared;
use tracing::{info, warn};
use windlass_agent_core::{Scaler, Vm};
use windlass_protocol::{Mode, Moment};

/// What lasts too long at one VM.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    /// Its informant is silent.
    silent: Option<Presence>,
    /// It grows and shrinks again and again.
    flapping: Option<Presence>,
}

// === impl Alarms ===

impl Alarms {
    /// Whether the informant is silent for longer than it may.
    pub(super) fn silent(&self) -> bool {
        self.silent.is_some()
    }

    /// Looks at a VM that is managed since `since`.
    pub(super) fn check(
        &mut self,
        now: Moment,
        since: Moment,
        vm: &Vm,
        scaler: &Scaler,
        shared: &Shared,
    ) {
        let Silence { after, grace } = shared.config.silence;
        // The agent speaks to no informant of a VM that it only watches, and a guest that stands still
        // says nothing: that is no fault of its informant.
        let silent = vm.info.mode == Mode::Act
            && scaler.run_state().executes()
            && now.since(since) >= grace
            && now.since(scaler.silent_since()) >= after;
        if silent != self.silent.is_some() {
            self.silent = silent.then(|| shared.metrics.reference.silent());
            if silent {
                warn!(informant = %vm.guest.informant, "informant is silent; no memory is taken back");
            } else {
                info!("informant is heard again");
            }
        }
        let flapping = scaler.is_flapping(now);
        if flapping != self.flapping.is_some() {
            self.flapping = flapping.then(|| shared.metrics.flapping());
            if flapping {
                warn!(
                    "flapping: it grew soon after it shrank, again and again; it is kept for longer"
                );
            } else {
                info!("no longer flapping");
            }
        }
    }
}
