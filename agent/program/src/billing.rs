//! Billing, where the configuration has a receiver of events.

use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_agent::{Agent, BilledVm};
use windlass_agent_billing::{Allocation, Billing, Endpoint, Found, Metrics, Sizes};
use windlass_agent_config::config::AgentConfig;
use windlass_agent_host::Parts;
use windlass_kit::clock::Clock;
use windlass_kit::program::Failure;
use windlass_kit::tasks::Tasks;
use windlass_protocol::Mode;

/// After a start, for how long VMs of which it is not known yet what they have, or who acts on them,
/// hold up the first look: what they had meanwhile, and since the last look of the process before,
/// is billed by it. Twice the 15 s for which an informant may let an agent wait.
const FINDING: Duration = Duration::from_secs(30);

/// Takes the usage log and bills what VMs have, if anything is to be billed.
///
/// # Errors
/// The log cannot be had.
pub(crate) fn start(
    config: &AgentConfig,
    parts: &Parts,
    clock: Clock,
    registry: &mut Registry,
    tasks: &Tasks,
) -> Result<(), Failure> {
    let Some((settings, source)) = config.billing.clone().zip(config.source.clone()) else {
        return Ok(());
    };
    let (folder, figures) = (config.basics.state_dir.join("billing"), Metrics::default());
    let billing = Billing::open(settings, &folder, source, clock.now(), figures.clone())
        .map_err(|error| Failure::CannotCreate(format!("billing: {error}")))?;
    figures.register(registry);
    let sizes = sizes(parts.agent.clone(), parts.listed.clone(), clock, figures);
    billing.start(sizes, clock, tasks);
    Ok(())
}

/// What VMs have, as their agent says it. Before it is `listed` which VMs there should be, nothing is
/// known of any.
fn sizes(agent: Agent, listed: Arc<AtomicBool>, clock: Clock, figures: Metrics) -> Arc<dyn Sizes> {
    let begun = clock.now();
    Arc::new(move || {
        let vms = agent.charges();
        let finding = clock.now().since(begun) < FINDING;
        if !listed.load(Ordering::Relaxed) || (finding && !are_found(&vms)) {
            return None;
        }
        figures.found(&vms.iter().filter_map(found).collect::<Vec<_>>());
        Some(
            vms.into_iter().filter_map(|vm| Allocation::on_host(vm.vm, vm.charge.cpu()?)).collect(),
        )
    })
}

fn are_found(vms: &[BilledVm]) -> bool {
    vms.iter().all(|vm| vm.charge.is_settled())
}

fn found(vm: &BilledVm) -> Option<Found> {
    let is_endpoint = Endpoint::try_from(vm.vm.name.clone()).is_ok();
    Some(Found {
        is_endpoint,
        is_sized: vm.mode? == Mode::Act,
        is_billed: is_endpoint && vm.charge.cpu().is_some(),
        is_silent: vm.silent,
    })
}
