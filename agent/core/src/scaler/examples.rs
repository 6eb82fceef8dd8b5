//! A VM as the tests of its parts have it.

use windlass_protocol::{
    Bounds, Bytes, Capabilities, LoadWindow, MemorySeen, MilliCpu, Mode, Moment, Policy, Promises,
    Resources, RunState, ScaleDown, Seen, ShrinkCpu, Target, VmInfo, VmName,
};

/// When each test begins.
pub(super) const START: Moment = Moment::from_millis(1_000_000);

/// This many vCPUs, and as many GiB.
pub(super) fn size(units: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(units), mem: Bytes::from_gib(units) }
}

/// A VM of one to four units.
pub(super) fn info(mode: Mode) -> VmInfo {
    VmInfo {
        name: VmName::on_host("a"),
        bounds: Bounds { min: size(1), max: size(4) },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FifteenSeconds,
        priority: 0,
        mode,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}

/// What its hypervisor can do.
pub(super) fn capabilities() -> Capabilities {
    Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        limit_step: None,
        memory_step: Bytes::from_mib(128),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: size(1),
        max: size(4),
    }
}

/// What is seen of it when it has this many units.
pub(super) fn seen(units: u64) -> Seen {
    let above = Bytes::from_gib(units.saturating_sub(1));
    let memory = MemorySeen { boot: Bytes::from_gib(1), requested: above, size: above };
    Seen {
        plugged: MilliCpu::from_cores(units),
        limit: None,
        found_limit: None,
        memory,
        state: RunState::Running,
    }
}
