//! What a host counts besides what its agent counts. Each program exports them by its own names.

use prometheus_client::metrics::gauge::Gauge;

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// 1 while nothing of any VM moves.
    pub frozen: Gauge,
    /// VM files that are in force.
    pub vm_files: Gauge,
    /// Files and other subjects that need a look.
    pub problems: Gauge,
    /// VMs that are managed, or counted until their hypervisor is gone.
    pub tracked: Gauge,
}
