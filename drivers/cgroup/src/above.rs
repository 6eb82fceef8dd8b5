//! The CPU quotas that hold a process: of its own cgroup, and of each one above that.
//!
//! They tell a person what keeps a VM from its maximum. A [`Limiter`](crate::Limiter) sets one of them, and
//! [`found`](crate::found) says what stood there before.

use crate::group::Group;
use crate::machine::Machine;
use crate::mounts::{cpu_group, place};
use crate::quota::Quota;
use std::fs;
use std::path::Path;

// === impl Machine ===

impl Machine {
    /// The cgroups with a quota that hold the process, by the paths that the kernel has for them, the deepest
    /// first. What cannot be read is left out.
    pub fn quotas_of(&self, pid: i32) -> Vec<(String, Quota)> {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let (of, mounts) =
            (read(self.process(pid).join("cgroup")), read(self.root.join("proc/self/mountinfo")));
        let Some((version, deepest)) = cpu_group(&of) else { return Vec::new() };
        let quota = |path: &str| {
            let folder = place(&mounts, version, path)?.folder;
            let folder = self.root.join(folder.trim_start_matches('/'));
            let (machine, path) = (self.clone(), path.to_owned());
            let group = Group { machine, pid, version, path: path.clone(), folder, unit: None };
            let quota = group.read().ok().filter(|quota| !quota.is_none())?;
            Some((path, quota))
        };
        Path::new(deepest).ancestors().filter_map(|path| quota(path.to_str()?)).collect()
    }
}
