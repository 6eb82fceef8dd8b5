//! Which limits the control groups of a VM's QEMU put on it.
//!
//! QEMU is found by the monitor in its command line: a connection would take the monitor's only place. The
//! limit that Windlass itself keeps on a VM's CPU follows the VM, and keeps it from nothing: what was found
//! in its place counts. The state directory says what that was, and so does the host.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use windlass_drivers_cgroup::{Machine, Quota, found};
use windlass_protocol::{Bytes, MilliCpu, Seen};

/// The folder in `state_dir` with what Windlass found where it has set a limit.
const LIMITS: &str = "limits";

/// What a process may use at most, as far as its control groups say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) pid: u32,
    pub(super) memory: Option<Bytes>,
    pub(super) cpu: Option<MilliCpu>,
    /// Whether `cpu` may be a limit of Windlass's: this user cannot read what Windlass has found.
    pub(super) is_unsure: bool,
}

/// The processes that were started with monitors, by the monitor.
#[derive(Debug)]
pub(super) struct Servers {
    root: PathBuf,
    pids: BTreeMap<String, u32>,
    /// What Windlass found where it has set a limit, by the paths of cgroups.
    found: io::Result<BTreeMap<String, Quota>>,
}

// === impl Servers ===

impl Servers {
    /// Reads the command lines of all processes, once, and what Windlass keeps in its state directories.
    pub(super) fn find<'a>(root: &Path, state_dirs: impl IntoIterator<Item = &'a Path>) -> Self {
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
        let machine = machine(root);
        let kept = state_dirs.into_iter().map(|state_dir| found(&machine, &state_dir.join(LIMITS)));
        let found = kept.collect::<io::Result<Vec<_>>>();
        let found = found.map(|all| all.into_iter().flatten().collect());
        Self { root: root.to_path_buf(), pids, found }
    }

    /// The limits of the process that serves this monitor, if it can be seen. `seen` is what the host says of
    /// the VM.
    pub(super) fn limits(&self, monitor: &Path, seen: Option<Seen>) -> Option<Limits> {
        let pid = *self.pids.get(monitor.to_str()?)?;
        let of = std::fs::read_to_string(self.root.join(format!("proc/{pid}/cgroup"))).ok()?;
        let mut limits = Limits { pid, ..Limits::default() };
        // A group is limited by each group that it is in.
        for (path, quota) in machine(&self.root).quotas_of(i32::try_from(pid).ok()?) {
            let cpu = match &self.found {
                Ok(found) => found.get(&path).copied().unwrap_or(quota).cpu(),
                Err(_) => seen
                    .filter(|seen| seen.limit == quota.cpu())
                    .map_or_else(|| quota.cpu(), |seen| seen.found_limit),
            };
            limits.cpu = least(limits.cpu, cpu);
        }
        limits.is_unsure = self.found.is_err() && seen.is_none();
        let place = of.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        for group in Path::new(place.trim_start_matches('/')).ancestors() {
            let group = self.root.join("sys/fs/cgroup").join(group);
            let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap_or_default();
            limits.memory = least(limits.memory, memory(&read("memory.max")));
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

fn machine(root: &Path) -> Machine {
    Machine { root: root.to_path_buf(), ..Machine::default() }
}
