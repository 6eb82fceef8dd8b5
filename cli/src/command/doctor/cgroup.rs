//! Which limits the control groups of a VM's QEMU put on it.
//!
//! QEMU is found by the monitor in its command line: a connection would take the monitor's only place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass_protocol::{Bytes, MilliCpu};

/// What a process may use at most, as far as its control groups say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) pid: u32,
    pub(super) memory: Option<Bytes>,
    pub(super) cpu: Option<MilliCpu>,
}

/// The processes that were started with monitors, by the monitor.
#[derive(Debug)]
pub(super) struct Servers {
    root: PathBuf,
    pids: BTreeMap<String, u32>,
}

// === impl Servers ===

impl Servers {
    /// Reads the command lines of all processes, once.
    pub(super) fn find(root: &Path) -> Self {
        let proc = root.join("proc");
        let mut pids = BTreeMap::new();
        for entry in std::fs::read_dir(&proc).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            let line = std::fs::read(proc.join(&name).join("cmdline")).unwrap_or_default();
            for part in String::from_utf8_lossy(&line).split(['\0', ',']) {
                let monitor = part.strip_prefix("path=").or(part.strip_prefix("unix:"));
                pids.extend(monitor.map(|monitor| (monitor.to_owned(), pid)));
            }
        }
        Self { root: root.to_path_buf(), pids }
    }

    /// The limits of the process that serves this monitor, if it can be seen.
    pub(super) fn limits(&self, monitor: &Path) -> Option<Limits> {
        let pid = *self.pids.get(monitor.to_str()?)?;
        let of = std::fs::read_to_string(self.root.join(format!("proc/{pid}/cgroup"))).ok()?;
        let place = of.lines().find_map(|line| line.strip_prefix("0::"))?;
        let mut limits = Limits { pid, ..Limits::default() };
        // A group is limited by each group that it is in.
        for group in Path::new(place.trim_start_matches('/')).ancestors() {
            let group = self.root.join("sys/fs/cgroup").join(group);
            let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap_or_default();
            limits.memory = least(limits.memory, memory(&read("memory.max")));
            limits.cpu = least(limits.cpu, cpu(&read("cpu.max")));
        }
        Some(limits)
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

fn memory(text: &str) -> Option<Bytes> {
    text.trim().parse().ok().map(Bytes::from_bytes)
}

/// `QUOTA PERIOD` in microseconds.
fn cpu(text: &str) -> Option<MilliCpu> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.checked_mul(1_000)?.checked_div(period).map(MilliCpu::from_milli)
}
