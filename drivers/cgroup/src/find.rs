//! Which cgroup a VM's process has to itself.
//!
//! It is the deepest one with all threads of the process: under libvirt `….scope/libvirt`, above `emulator`
//! and `vcpuN`. The threads that QEMU names tell its process from a proxy's at its monitor.

use crate::group::Group;
use crate::machine::Machine;
use crate::mounts::{cpu_group, place};
use crate::no_group::NoGroup;
use crate::subtree::{holds_only, unreadable};
use crate::systemd;
use crate::version::Version;
use std::fs;
use std::io::ErrorKind;

/// The kernel's number for "no such process": a thread has ended while its file was read.
const NO_SUCH_PROCESS: i32 = 3;

// === impl Machine ===

impl Machine {
    /// The cgroup that the process `pid` has to itself, and whose quota can be changed. `threads` are those
    /// of its vCPUs, as QEMU names them.
    ///
    /// # Errors
    /// The process is not QEMU's, has no cgroup of its own, or the quota cannot be changed.
    pub fn group_of(&self, pid: i32, threads: &[i32]) -> Result<Group, NoGroup> {
        self.is_of(pid, threads)?;
        let (version, path) = self.common(pid)?;
        if path == "/" {
            return Err(NoGroup::Root);
        }
        if is_kubelets(&path) {
            return Err(NoGroup::Kubelet { path });
        }
        let mounts = self.root.join("proc/self/mountinfo");
        let text = fs::read_to_string(&mounts).map_err(unreadable(mounts))?;
        let place = place(&text, version, &path);
        let place = place.ok_or_else(|| NoGroup::NotMounted { path: path.clone() })?;
        if place.is_top {
            return Err(NoGroup::Root);
        }
        let folder = self.root.join(place.folder.trim_start_matches('/'));
        holds_only(&path, &folder, pid, &self.process(pid).join("task"))?;
        let unit = self.unit_of(&path)?;
        let group = Group { machine: self.clone(), pid, version, path, folder, unit };
        group.can_be_written()?;
        Ok(group)
    }

    /// Refuses a process that lacks one of these threads.
    fn is_of(&self, pid: i32, threads: &[i32]) -> Result<(), NoGroup> {
        if threads.is_empty() {
            return Err(NoGroup::NoThreads);
        }
        let process = self.process(pid);
        fs::metadata(&process).map_err(unreadable(process.clone()))?;
        let task = process.join("task");
        match threads.iter().find(|thread| !task.join(thread.to_string()).exists()) {
            Some(thread) => Err(NoGroup::OtherThread { pid, thread: *thread }),
            None => Ok(()),
        }
    }

    /// The deepest cgroup that has all threads of a process.
    fn common(&self, pid: i32) -> Result<(Version, String), NoGroup> {
        let task = self.process(pid).join("task");
        let mut common: Option<(Version, Vec<String>)> = None;
        for entry in fs::read_dir(&task).map_err(unreadable(task.clone()))? {
            let file = entry.map_err(unreadable(task.clone()))?.path().join("cgroup");
            let text = match fs::read_to_string(&file) {
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        || error.raw_os_error() == Some(NO_SUCH_PROCESS) =>
                {
                    continue;
                }
                text => text.map_err(unreadable(file))?,
            };
            let (version, path) = cpu_group(&text).ok_or(NoGroup::NoHierarchy { pid })?;
            let parts = path.split('/').filter(|part| !part.is_empty());
            common = Some(match common {
                None => (version, parts.map(str::to_owned).collect()),
                Some((known, mut above)) => {
                    let same = above.iter().zip(parts).take_while(|(a, b)| a == b).count();
                    above.truncate(same);
                    (known, above)
                }
            });
        }
        let (version, parts) = common.ok_or(NoGroup::NoHierarchy { pid })?;
        Ok((version, format!("/{}", parts.join("/"))))
    }

    /// The unit of systemd whose own cgroup this is.
    fn unit_of(&self, path: &str) -> Result<Option<String>, NoGroup> {
        let component = path.rsplit('/').next().unwrap_or_default();
        let Some(unit) = systemd::unit_name(component) else { return Ok(None) };
        if !self.root.join("run/systemd/system").exists() {
            return Ok(None);
        }
        let group = systemd::group_of_unit(&self.systemctl, unit).map_err(|source| {
            NoGroup::Systemd { path: path.to_owned(), unit: unit.to_owned(), source }
        })?;
        // A container or a user's own systemd may have a unit of that name, too.
        Ok((group == path).then(|| unit.to_owned()))
    }
}

/// Whether a kubelet makes the cgroup, or one above it.
fn is_kubelets(path: &str) -> bool {
    path.split('/').any(|part| part.contains("kubepods") || part.starts_with("kubelet"))
}
