//! Measured figures, each of which may be missing.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass_protocol::{Bytes, LoadWindow, MilliCpu, Moment};

/// One reading of a guest's metrics. An absent, NaN, negative or absurd figure is `None`, and by law 5 `None`
/// never shrinks a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the agent requested it; the figures are from then or later.
    pub at: Moment,
    /// Load averages.
    pub loads: Loads,
    /// Memory that the guest's kernel manages.
    pub total: Option<Bytes>,
    /// Memory that is available without swapping.
    pub available: Option<Bytes>,
    /// vCPUs online.
    pub online: Option<MilliCpu>,
    /// The highest online vCPU, counted from one: the hypervisor can only unplug vCPUs above it.
    pub reach: Option<MilliCpu>,
    /// The guest never has load over less than a minute: nothing there samples its run queue.
    #[serde(default)]
    pub by_minutes: bool,
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
    /// A sample without figures.
    pub fn empty(at: Moment) -> Self {
        Self { at, ..Self::default() }
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

    /// The figures of the windows that are filled after this time of measurement.
    #[must_use]
    pub fn within(self, measured: Duration) -> Self {
        self.each(|seconds, load| (measured >= Duration::from_secs(seconds)).then_some(load))
    }

    /// What becomes of each figure, by the seconds of its window.
    pub(crate) fn each(self, change: impl Fn(u64, f64) -> Option<f64>) -> Self {
        let changed = |seconds, load: Option<f64>| load.and_then(|load| change(seconds, load));
        Self {
            five_seconds: changed(5, self.five_seconds),
            fifteen_seconds: changed(15, self.fifteen_seconds),
            one_minute: changed(60, self.one_minute),
            five_minutes: changed(300, self.five_minutes),
        }
    }

    /// The load over the longest window with a figure that is shorter than this.
    pub fn shorter(&self, window: LoadWindow) -> Option<(LoadWindow, f64)> {
        LoadWindow::LONGEST_FIRST
            .into_iter()
            .filter(|shorter| shorter.length() < window.length())
            .find_map(|shorter| Some((shorter, self.over(shorter)?)))
    }
}
