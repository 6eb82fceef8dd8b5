//! What the agent exports: the library's figures, and those of its files.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use windlass_agent::Metrics;
use windlass_kit::watchdog::Watchdog;

/// The figures of files. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Files {
    vm_files: Gauge,
    problems: Gauge,
    tracked: Gauge,
}

/// Everything that is exported.
pub fn registry(agent: &Metrics, files: &Files, watchdog: &Watchdog) -> Registry {
    let mut registry = Registry::default();
    agent.register(&mut registry);
    agent.register_reference(&mut registry);
    watchdog.register(&mut registry);
    let tracked = "VMs that are managed, or counted until their hypervisor is gone";
    registry.register("autoscaling_agent_tracked_vms_current", tracked, files.tracked.clone());
    let ours = registry.sub_registry_with_prefix("windlass_agent");
    ours.register("vm_files", "VM files that are in force", files.vm_files.clone());
    let problems = "Files that need a look; the log names them";
    ours.register("file_problems", problems, files.problems.clone());
    registry
}

// === impl Files ===

impl Files {
    /// Takes in how things stand.
    pub(crate) fn observe(&self, vm_files: usize, problems: usize, tracked: usize) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.vm_files.set(count(vm_files));
        self.problems.set(count(problems));
        self.tracked.set(count(tracked));
    }
}
