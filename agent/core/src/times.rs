//! How long requests may take.
//!
//! The usual times are the reference's, but for the plugin's: its ten seconds were meant to be two, and
//! a permit that comes later than that is for a load of the past. What is asked of a hypervisor has
//! the time that its driver promises.

use crate::event::Action;
use std::time::Duration;
use windlass_protocol::timing::LONGEST_ACT;

/// How long requests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// To register with an informant; it calls back meanwhile.
    pub register: Duration,
    /// To take leave of an informant.
    pub unregister: Duration,
    /// To hear from an informant whether a session stands.
    pub health: Duration,
    /// To hear an informant's word on a size, either way; it may park or un-park vCPUs first.
    /// At most [`LONGEST_ACT`].
    pub size: Duration,
    /// To read a guest's metrics.
    pub metrics: Duration,
    /// To hear from the plugin. At most [`LONGEST_ACT`].
    pub permit: Duration,
}

// === impl Times ===

impl Times {
    /// The reference's, but for the plugin's.
    pub const USUAL: Self = Self {
        register: Duration::from_secs(2),
        unregister: Duration::from_secs(2),
        health: Duration::from_secs(1),
        size: LONGEST_ACT,
        metrics: Duration::from_secs(2),
        permit: LONGEST_ACT,
    };

    /// How long a request may take; `None` for one to a hypervisor.
    pub const fn limit(&self, action: Action) -> Option<Duration> {
        match action {
            Action::Register(_) => Some(self.register),
            Action::Unregister(_) => Some(self.unregister),
            Action::CheckHealth(_) => Some(self.health),
            Action::Downscale(..) | Action::Upscale(..) => Some(self.size),
            Action::Measure => Some(self.metrics),
            Action::AskPlugin(_) => Some(self.permit),
            Action::Look | Action::Resize(_) => None,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::USUAL
    }
}
