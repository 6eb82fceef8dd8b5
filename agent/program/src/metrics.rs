//! What the agent exports besides what every agent of a host does: its files, by its own names, and
//! the figures of the reference.

use prometheus_client::registry::Registry;
use windlass_agent::Metrics;
use windlass_agent_host::figures::Figures;

/// Adds them to what the process exports.
pub fn register(agent: &Metrics, figures: &Figures, registry: &mut Registry) {
    agent.register_reference(registry);
    let tracked = "VMs that are managed, or counted until their hypervisor is gone";
    registry.register("autoscaling_agent_tracked_vms_current", tracked, figures.tracked.clone());
    let ours = registry.sub_registry_with_prefix("windlass_agent");
    ours.register("frozen", "1 while nothing of any VM moves", figures.frozen.clone());
    ours.register("vm_files", "VM files that are in force", figures.vm_files.clone());
    let problems =
        "Files and other subjects that need a look; the log and `windlass top` name them";
    ours.register("file_problems", problems, figures.problems.clone());
}
