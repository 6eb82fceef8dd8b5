//! What a host counts besides what the agent and the plugin count.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    frozen: Gauge,
    vm_files: Gauge,
    problems: Gauge,
}

// === impl Metrics ===

impl Metrics {
    /// Adds them to what the process exports.
    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass_host");
        registry.register("frozen", "1 while nothing of any VM moves", self.frozen.clone());
        registry.register("vm_files", "VM files that are in force", self.vm_files.clone());
        let problems = "Files and other subjects that need a look; `windlass top` names them";
        registry.register("problems", problems, self.problems.clone());
    }

    /// Takes in how things stand.
    pub(super) fn observe(&self, frozen: bool, vm_files: usize, problems: usize) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.frozen.set(i64::from(frozen));
        self.vm_files.set(count(vm_files));
        self.problems.set(count(problems));
    }
}
