//! What was measured, and when. Missing is a value.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass_protocol::{Bytes, LoadWindow, MilliCpu, Moment};

/// One reading of a guest's metrics. A figure that was absent, NaN, negative or absurd is
/// `None`; law 5 is that `None` never shrinks a VM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was asked for: the guest said so then or later.
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

    /// The figures that count of a guest that was measured for so long: a window that is not
    /// filled has none.
    #[must_use]
    pub fn within(self, measured: Duration) -> Self {
        let filled =
            |seconds, load: Option<f64>| load.filter(|_| measured >= Duration::from_secs(seconds));
        Self {
            five_seconds: filled(5, self.five_seconds),
            fifteen_seconds: filled(15, self.fifteen_seconds),
            one_minute: filled(60, self.one_minute),
            five_minutes: filled(300, self.five_minutes),
        }
    }

    /// The load over the longest window that has one and is shorter than this.
    pub fn shorter(&self, window: LoadWindow) -> Option<(LoadWindow, f64)> {
        LoadWindow::LONGEST_FIRST
            .into_iter()
            .filter(|shorter| shorter.length() < window.length())
            .find_map(|shorter| Some((shorter, self.over(shorter)?)))
    }
}
