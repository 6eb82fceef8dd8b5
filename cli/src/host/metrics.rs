//! What `windlass host` exports besides what its agent and its plugin count.

use prometheus_client::registry::Registry;
use windlass_agent_host::figures::Figures;

/// Adds the host's own figures to what the process exports.
pub(super) fn register(figures: &Figures, registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix("windlass_host");
    registry.register("frozen", "1 while nothing of any VM moves", figures.frozen.clone());
    registry.register("vm_files", "VM files that are in force", figures.vm_files.clone());
    let problems = "Files and other subjects that need a look; `windlass top` names them";
    registry.register("problems", problems, figures.problems.clone());
}
