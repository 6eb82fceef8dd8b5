//! What a scaler is told once: what holds for all VMs of a program, and how often it asks; and how long
//! a shell has it wait.
//!
//! How long a lease lasts is not among it. Two agents, perhaps of different programs, count on
//! the same one ([`crate::session`]), so no [`Periods`] can make two of them act.

use crate::event::Action;
use std::time::Duration;
use windlass_protocol::timing::{self, LONGEST_ACT};
use windlass_protocol::{CpuLimit, PluginVersion, UnitChoice, Versions};

/// What a scaler is told at its start, and does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What is configured of the step that sizes move in.
    pub unit: UnitChoice,
    /// How the CPU of a VM is limited that says nothing about it.
    pub cpu_limit: Option<CpuLimit>,
    /// Spreads the periods of many VMs, and makes the ids of their sessions differ.
    pub seed: u64,
    /// The versions that the plugin is spoken to in.
    pub plugin_versions: Versions<PluginVersion>,
    /// How often what is asked, and how soon again.
    pub periods: Periods,
}

/// How often what is asked, and how soon again; each wait is spread by a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// From one check of a session to the next. A longer one than [`Periods::LONGEST_HEALTH`]
    /// counts as that.
    pub health: Duration,
    /// From one reading of a guest's metrics to the next.
    pub metrics: Duration,
    /// The longest wait before an informant that was not reached is asked again; the first is
    /// one second, and each is twice the one before.
    pub register_retry: Duration,
    /// The first wait after an informant refused a session that it had opened; each further one
    /// is twice the one before, up to five seconds.
    pub session_retry: Duration,
    /// The least time from the start of a session to the attempt to open the next one.
    pub session_gap: Duration,
}

/// How long requests may take. What is asked of a hypervisor has the time that its driver promises.
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

// === impl Periods ===

impl Periods {
    /// The longest time between checks that leaves no gap in the lease of eight seconds: with its
    /// tenth of spread, an answer at each end may still take a second.
    pub const LONGEST_HEALTH: Duration = timing::LONGEST_HEALTH;
    /// The longest time between readings of which one may be late before the figures are old,
    /// which they are after fifteen seconds.
    pub const LONGEST_METRICS: Duration = Duration::from_secs(10);
    /// Those of the reference (v0.12.2).
    pub const REFERENCE: Self = Self {
        health: Duration::from_secs(5),
        metrics: Duration::from_secs(5),
        register_retry: Duration::from_secs(5),
        session_retry: Duration::from_secs(5),
        session_gap: Duration::from_secs(5),
    };
    /// The reference's, but for metrics: they are read every second, its shortest gap, so that growth
    /// does not wait for the next reading.
    pub const USUAL: Self = Self { metrics: Duration::from_secs(1), ..Self::REFERENCE };
}

// === impl Times ===

impl Times {
    /// The reference's, but for the plugin's: its ten seconds were meant to be two, and a permit that
    /// comes later than that is for a load of the past.
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
