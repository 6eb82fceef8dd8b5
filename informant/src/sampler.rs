//! Reads load and memory, many times a second, in as few bytes as will do.
//!
//! The run queue is the fourth field of `/proc/loadavg`: the same figure as `procs_running` of
//! `/proc/stat`, without the kernel adding up every interrupt of every vCPU for it. Tasks that
//! wait for I/O are only in `/proc/stat`, which is read once a second; so is the overhead.

use crate::memory_cotenant::MemoryCotenant;
use crate::proc;
use crate::shared::Shared;
use std::time::Duration;
use windlass_informant_core::{Memory, load};
use windlass_protocol::{Bytes, Moment};

/// How often the larger files are read.
const SELDOM: Duration = Duration::from_secs(1);

/// The sampler's memory between two samples.
#[derive(Debug)]
pub struct Sampler {
    page_size: u64,
    seldom_at: Option<Moment>,
    blocked: u32,
    overhead: Option<Bytes>,
}

impl Default for Sampler {
    fn default() -> Self {
        let page_size = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        Self { page_size, seldom_at: None, blocked: 0, overhead: None }
    }
}

impl Sampler {
    /// Takes one sample: load goes to the averages, memory is returned for the core. What
    /// cannot be read is left out.
    pub fn sample<B: MemoryCotenant>(&mut self, shared: &Shared<B>) -> Option<Memory> {
        let now = shared.clock.now();
        if self.seldom_at.is_none_or(|at| at <= now) {
            self.seldom_at = Some(now.after(SELDOM));
            self.blocked = shared.tree.open("proc/stat").ok().and_then(proc::blocked).unwrap_or(0);
            let zones = shared.tree.open("proc/zoneinfo").ok();
            self.overhead = zones.and_then(|file| proc::overhead(file, self.page_size));
        }
        let loads = shared.tree.read("proc/loadavg").ok();
        if let Some(loads) = loads.and_then(|text| proc::loadavg(&text)) {
            // The reader is one of those that run.
            let runnable = loads.running.saturating_sub(1);
            shared.load().sampled(now, load::tasks(runnable, self.blocked));
        }
        let memory = shared.tree.read("proc/meminfo").ok()?;
        let memory = proc::meminfo(&memory)?;
        Some(Memory { overhead: self.overhead, ..memory })
    }
}
