//! What was measured, and when. Missing is a value.

use serde::{Deserialize, Serialize};
use windlass_protocol::{Bytes, LoadWindow, MilliCpu, Moment};

/// One reading of a guest's metrics. A figure that was absent, NaN, negative or absurd is
/// `None`; law 5 is that `None` never shrinks a VM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the answer was complete.
    pub at: Moment,
    /// Load averages.
    pub loads: Loads,
    /// Memory that the guest's kernel manages.
    pub total: Option<Bytes>,
    /// Memory that could be had without swapping.
    pub available: Option<Bytes>,
    /// vCPUs online.
    pub online: Option<MilliCpu>,
    /// The highest vCPU online, counted from one: none up to it can be taken out.
    pub reach: Option<MilliCpu>,
}

/// Load averages by window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loads {
    /// Over five seconds.
    pub five_seconds: Option<f64>,
    /// Over fifteen seconds.
    pub fifteen_seconds: Option<f64>,
    /// Over one minute.
    pub one_minute: Option<f64>,
    /// Over five minutes.
    pub five_minutes: Option<f64>,
}

// === impl Sample ===

impl Sample {
    /// A sample with nothing in it.
    pub fn empty(at: Moment) -> Self {
        Self {
            at,
            loads: Loads::default(),
            total: None,
            available: None,
            online: None,
            reach: None,
        }
    }
}

// === impl Loads ===

impl Loads {
    /// The load over this window.
    pub fn over(&self, window: LoadWindow) -> Option<f64> {
        match window {
            LoadWindow::FiveSeconds => self.five_seconds,
            LoadWindow::FifteenSeconds => self.fifteen_seconds,
            LoadWindow::OneMinute => self.one_minute,
        }
    }
}
