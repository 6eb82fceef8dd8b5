//! Which limits the control groups of a VM's QEMU put on it.
//!
//! QEMU is found by the monitor in its command line: a connection would take the monitor's only place.

use std::path::Path;
use windlass_protocol::{Bytes, MilliCpu};

/// What a process may use at most, as far as its control groups say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) pid: u32,
    pub(super) memory: Option<Bytes>,
    pub(super) cpu: Option<MilliCpu>,
}

/// The limits of the process that serves this monitor, if it can be seen.
pub(super) fn limits(root: &Path, monitor: &Path) -> Option<Limits> {
    let pid = server(&root.join("proc"), monitor)?;
    let of = std::fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).ok()?;
    let place = of.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut limits = Limits { pid, ..Limits::default() };
    // A group is limited by each group that it is in.
    for group in Path::new(place.trim_start_matches('/')).ancestors() {
        let group = root.join("sys/fs/cgroup").join(group);
        let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap_or_default();
        limits.memory = least(limits.memory, memory(&read("memory.max")));
        limits.cpu = least(limits.cpu, cpu(&read("cpu.max")));
    }
    Some(limits)
}

/// The process that was started with this monitor.
fn server(proc: &Path, monitor: &Path) -> Option<u32> {
    let monitor = monitor.to_str()?;
    let serves = |word: &str| {
        word.split(',')
            .any(|part| part.strip_prefix("path=").or(part.strip_prefix("unix:")) == Some(monitor))
    };
    let pids = std::fs::read_dir(proc).ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let line = std::fs::read(proc.join(format!("{pid}/cmdline"))).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(serves)
    })
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
