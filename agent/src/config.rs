//! What an agent is told once, and how much of an answer it reads.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use windlass_agent_core::{Periods, Times};
use windlass_kit::watchdog::Watchdog;
use windlass_protocol::{CpuLimit, UnitChoice, VmName};

/// The ports at which informants call back, the first and the last: one for each VM file that a folder
/// may hold.
pub const CALLBACK_PORTS: (u16, u16) = (10310, 11309);

/// What `/suspend` waits for requests under way; its caller in the reference waits five seconds.
pub const SUSPEND_TIME: Duration = Duration::from_secs(4);
/// What a VM that is let go, or an agent that stops, waits for its last requests.
pub const LEAVE_TIME: Duration = Duration::from_secs(3);

/// Bytes of a guest's metrics that are read.
pub const METRICS_SIZE: usize = 1024 * 1024;
/// Bytes of an informant's answer that are read.
pub const ANSWER_SIZE: usize = 64 * 1024;

/// When an informant counts as silent: in a metric and the log, and in nothing that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// So long after it last answered or called.
    pub after: Duration,
    /// But no sooner than this after the VM was taken up.
    pub grace: Duration,
}

/// What an agent is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// What is configured of the step that sizes move in.
    pub unit: UnitChoice,
    /// How the CPU of a VM is limited that says nothing about it.
    pub cpu_limit: Option<CpuLimit>,
    /// Where the call-back servers listen.
    pub callback_listen: IpAddr,
    /// On which ports, one per VM. A range that holds 0 means: any that is free.
    pub callback_ports: RangeInclusive<u16>,
    /// Which VM had which port before a restart ([`crate::Agent::ports`]).
    pub kept_ports: BTreeMap<VmName, u16>,
    /// How long requests may take.
    pub times: Times,
    /// How often what is asked.
    pub periods: Periods,
    /// When an informant counts as silent.
    pub silence: Silence,
    /// Spreads what many VMs ask, and makes the ids of sessions differ; no two agents have the same.
    pub seed: u64,
    /// Where the host says how much memory it has.
    pub meminfo: PathBuf,
    /// Notices a runner that hangs.
    pub watchdog: Watchdog,
}

// === impl Config ===

impl Config {
    /// The usual: call-backs on loopback ports 10310 to 11309.
    pub fn new(unit: impl Into<UnitChoice>) -> Self {
        Self {
            unit: unit.into(),
            cpu_limit: None,
            callback_listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            callback_ports: CALLBACK_PORTS.0..=CALLBACK_PORTS.1,
            kept_ports: BTreeMap::new(),
            times: Times::USUAL,
            periods: Periods::USUAL,
            silence: Silence::USUAL,
            seed: uuid::Uuid::new_v4().as_u64_pair().0,
            meminfo: PathBuf::from("/proc/meminfo"),
            watchdog: Watchdog::default(),
        }
    }
}

// === impl Silence ===

impl Silence {
    /// The reference's.
    pub const USUAL: Self = Self { after: Duration::from_secs(20), grace: Duration::from_secs(20) };
}
