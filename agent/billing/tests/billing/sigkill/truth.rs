//! What VMs have over time, and what that comes to, reckoned without windows, queues or keys.

use std::collections::BTreeMap;
use std::fmt::Write;

/// VMs; every fifth shares its endpoint with the one before.
const VMS: u64 = 50;

/// The longest time between two looks that is billed.
const LONGEST: u64 = 300_000;

/// Numbers that look drawn, the same in each run.
pub(crate) struct Draw(pub(crate) u64);

/// The lines that are told, and the truth of them.
pub(crate) struct Truth {
    draw: Draw,
    now: u64,
    /// vCPUs of each VM, in thousandths, if it is there.
    vms: Vec<Option<u64>>,
    /// CPU in thousandths times milliseconds, and milliseconds, by endpoint.
    used: BTreeMap<String, (u64, u64)>,
    line: String,
}

// === impl Draw ===

impl Draw {
    /// A number below this one. SplitMix64.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

// === impl Truth ===

impl Truth {
    pub(crate) fn new(draw: Draw) -> Self {
        let vms = vec![None; usize::try_from(VMS).unwrap()];
        Self { draw, now: 1_700_000_000_000, vms, used: BTreeMap::new(), line: String::new() }
    }

    /// What VMs have some seconds later: `look AT VM:ENDPOINT:CPU …`.
    pub(crate) fn next(&mut self) -> &str {
        let later = match self.draw.below(40) {
            0 => LONGEST + 1 + self.draw.below(1_000_000),
            _ => 4_000 + self.draw.below(5_000),
        };
        self.now += later;
        self.line = format!("look {}", self.now);
        for vm in 0..VMS {
            let slot = usize::try_from(vm).unwrap();
            let before = self.vms[slot];
            let now = match self.draw.below(20) {
                0 => None,
                1..4 => Some(250 * self.draw.below(17)),
                _ => Some(before.unwrap_or(1_000)),
            };
            self.vms[slot] = now;
            let endpoint = format!("ep-{}", if vm % 5 == 4 { vm - 1 } else { vm });
            if let (Some(before), Some(now)) = (before, now)
                && later <= LONGEST
            {
                let used = self.used.entry(endpoint.clone()).or_default();
                *used = (used.0 + before.min(now) * later, used.1 + later);
            }
            if let Some(cpu) = now {
                write!(self.line, " vm-{vm}:{endpoint}:{cpu}").unwrap();
            }
        }
        &self.line
    }

    /// Whole seconds by endpoint and metric.
    pub(crate) fn sums(&self) -> BTreeMap<(String, String), u64> {
        let mut sums = BTreeMap::new();
        for (endpoint, (cpu, active)) in &self.used {
            let of = |metric: &str| (endpoint.clone(), metric.to_owned());
            sums.insert(of("effective_compute_seconds"), cpu / 1_000_000);
            sums.insert(of("active_time_seconds"), active / 1_000);
        }
        sums.retain(|_, sum| *sum > 0);
        sums
    }
}
