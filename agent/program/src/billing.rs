//! Billing, where the configuration has a receiver of events.

use crate::config::AgentConfig;
use std::sync::Arc;
use std::time::Duration;
use windlass_agent::Agent;
use windlass_agent_billing::{Allocation, Billing, Metrics, Sizes};
use windlass_drivers_qemu::Qemu;
use windlass_kit::clock::Clock;
use windlass_kit::program::Failure;

/// After a start, for how long VMs that were not seen yet hold up the first look: what they had
/// before is billed by the last look of the process before.
const FINDING: Duration = Duration::from_secs(10);

/// Takes the usage log, if anything is to be billed; what is counted goes into `figures`.
///
/// # Errors
/// The log cannot be had.
pub(crate) fn open(
    config: &AgentConfig,
    clock: Clock,
    figures: Metrics,
) -> Result<Option<Billing>, Failure> {
    let Some((billing, source)) = config.billing.clone().zip(config.source.clone()) else {
        return Ok(None);
    };
    let folder = config.state_dir.join("billing");
    Billing::open(billing, &folder, source, clock.now(), figures)
        .map(Some)
        .map_err(|error| Failure::CannotCreate(format!("billing: {error}")))
}

/// What VMs have, as their agent says it.
pub(crate) fn sizes(agent: Agent<Qemu>, clock: Clock) -> Arc<dyn Sizes> {
    let begun = clock.now();
    Arc::new(move || {
        let vms = agent.status();
        let found = vms.iter().all(|vm| vm.upper.is_some()) || clock.now().since(begun) >= FINDING;
        found.then(|| vms.iter().filter_map(Allocation::on_host).collect())
    })
}
