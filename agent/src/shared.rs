//! What the runners of all VMs of an agent share.

use crate::config::Config;
use crate::history::History;
use crate::host_memory::HostMemory;
use crate::ledger::Ledger;
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::plugin::{Permits, Plugin};
use crate::ports::Ports;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_agent_core::backoff::Jitter;
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;

/// A start of 1,000 VMs takes this 1,000 times, and as many are asked at once as answer in that time. All
/// at once they would need twice the memory that an agent at work needs.
const BETWEEN_STARTS: Duration = Duration::from_millis(1);

/// What the runners of all VMs share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) plugin: Plugin,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) host_memory: HostMemory,
    pub(crate) history: Mutex<History>,
    seeds: Mutex<Jitter>,
    /// When the next VM may be attached to.
    next_start: Mutex<Moment>,
    pub(crate) ports: Mutex<Ports>,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(
        config: Config,
        permits: Arc<dyn Permits>,
        ledger: Arc<dyn Ledger>,
        clock: Clock,
    ) -> Self {
        let metrics = Metrics::default();
        Self {
            host_memory: HostMemory::new(config.meminfo.clone()),
            ports: Mutex::new(Ports::new(config.callback_ports.clone(), config.kept_ports.clone())),
            seeds: Mutex::new(Jitter::new(config.seed)),
            config,
            plugin: Plugin::new(permits, metrics.reference.clone()),
            ledger,
            clock,
            metrics,
            history: Mutex::default(),
            next_start: Mutex::default(),
        }
    }

    /// How long a VM waits before it is attached to for the first time: of many VMs, one follows another
    /// by [`BETWEEN_STARTS`].
    pub(crate) fn waits_to_start(&self) -> Duration {
        let (now, mut next) = (self.clock.now(), lock(&self.next_start));
        let start = now.max(*next);
        *next = start.after(BETWEEN_STARTS);
        start.since(now)
    }

    /// Another number each time, all of them from the agent's seed.
    pub(crate) fn seed(&self) -> u64 {
        lock(&self.seeds).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NullLedger, Remote};
    use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Resources};

    #[test]
    fn seeds_are_splitmix64_s_of_the_agent_s_own() {
        let shared = shared();
        // As its authors print them.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([shared.seed(), shared.seed()], known);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_vms_one_starts_after_another_and_a_late_one_at_once() {
        let shared = shared();
        let waits = [(); 3].map(|()| shared.waits_to_start());
        assert_eq!(waits, [Duration::ZERO, BETWEEN_STARTS, 2 * BETWEEN_STARTS]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(shared.waits_to_start(), Duration::ZERO);
    }

    fn shared() -> Shared {
        let unit =
            ComputeUnit::try_from(Resources::new(MilliCpu::from_cores(1), Bytes::from_gib(1)));
        let config = Config { seed: 1_234_567, ..Config::new(unit.unwrap()) };
        let plugin = "http://127.0.0.1:1".parse().unwrap();
        let permits = Arc::new(Remote::new(plugin, None, Duration::ZERO).unwrap());
        let clock = Clock::starting_at(Moment::default());
        Shared::new(config, permits, Arc::new(NullLedger), clock)
    }
}
