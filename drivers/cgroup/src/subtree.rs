//! Which processes a cgroup and those below it hold.
//!
//! The kernel limits them together, so a VM's cgroup must hold no process but QEMU's. Threads of the kernel are
//! none: those that work for a VM (vhost before Linux 6.4, KVM's huge pages) are in its cgroup of v1.

use crate::no_group::NoGroup;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many cgroups are looked at.
const MOST: usize = 4096;

/// The kernel's number for "not supported": a threaded cgroup of v2 lists no processes.
const NOT_SUPPORTED: i32 = 95;

/// The kernel's `PF_KTHREAD`, among the flags of a process.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Refuses a cgroup that holds a process other than `pid`, itself or below it.
///
/// `task` is the folder of the process's threads.
pub(crate) fn holds_only(path: &str, folder: &Path, pid: i32, task: &Path) -> Result<(), NoGroup> {
    look_through(path, folder, pid, task, MOST)
}

fn look_through(
    path: &str,
    folder: &Path,
    pid: i32,
    task: &Path,
    most: usize,
) -> Result<(), NoGroup> {
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        seen += 1;
        if seen + folders.len() > most {
            return Err(NoGroup::TooLarge { path: path.to_owned(), most });
        }
        let others = match others(&folder, pid, task) {
            // Removed since its parent was read.
            Err(_) if seen > 1 && !folder.exists() => continue,
            others => others?,
        };
        if let Some(other) = others {
            return Err(NoGroup::Shared { path: path.to_owned(), other });
        }
        folders.extend(children(&folder)?);
    }
    Ok(())
}

/// A process other than `pid`, or a thread of one, if the cgroup itself holds it.
fn others(folder: &Path, pid: i32, task: &Path) -> Result<Option<i32>, NoGroup> {
    let procs = folder.join("cgroup.procs");
    match fs::read_to_string(&procs) {
        Ok(text) => {
            Ok(numbers(&text).find(|other| *other != pid && !is_of_the_kernel(task, *other)))
        }
        Err(error) if error.raw_os_error() == Some(NOT_SUPPORTED) => {
            let threads = folder.join("cgroup.threads");
            let text = fs::read_to_string(&threads).map_err(unreadable(threads))?;
            Ok(numbers(&text).find(|thread| !task.join(thread.to_string()).exists()))
        }
        Err(error) => Err(unreadable(procs)(error)),
    }
}

/// Whether a process is a thread of the kernel. `task` is the folder of another process's threads.
fn is_of_the_kernel(task: &Path, pid: i32) -> bool {
    let Some(proc) = task.parent().and_then(Path::parent) else { return false };
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).unwrap_or_default();
    // Its name, in brackets, may hold anything; the flags are the seventh word behind it.
    let flags = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(6));
    flags.and_then(|flags| flags.parse().ok()).is_some_and(|flags: u64| flags & KERNEL_THREAD != 0)
}

/// What is no number counts as a process of another PID namespace.
fn numbers(text: &str) -> impl Iterator<Item = i32> {
    text.lines().map(|line| line.trim().parse().unwrap_or(0))
}

/// The folders below a cgroup's.
fn children(folder: &Path) -> Result<Vec<PathBuf>, NoGroup> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable(folder.to_owned()))?,
    };
    let mut children = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable(folder.to_owned()))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            children.push(entry.path());
        }
    }
    Ok(children)
}

/// The error of a file that cannot be read.
pub(crate) fn unreadable(path: PathBuf) -> impl FnOnce(io::Error) -> NoGroup {
    move |source| NoGroup::Unreadable { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_testkit::Folder;

    #[test]
    fn a_subtree_without_end_is_refused() {
        let tree = Folder::create().unwrap();
        for group in ["vm", "vm/a", "vm/a/b", "vm/c"] {
            tree.put(&format!("{group}/cgroup.procs"), "1\n");
        }
        let look = |most| look_through("/vm", &tree.at("vm"), 1, &tree.at("task"), most);
        look(4).unwrap();
        for most in 0..4 {
            let said = look(most).unwrap_err().to_string();
            assert_eq!(said, format!("cgroup /vm has more than {most} cgroups, with itself"));
        }
    }

    #[test]
    fn a_thread_of_the_kernel_is_no_other_process() {
        let tree = Folder::create().unwrap();
        tree.put("vm/cgroup.procs", "1\n7\n");
        let found = || holds_only("/vm", &tree.at("vm"), 1, &tree.at("proc/1/task"));
        // Linux 5.10, a vhost worker and a shell.
        for (stat, is_other) in [
            ("7 (vhost-1) S 2 0 0 0 -1 2129984 0 0", false),
            ("7 (a) b) S 1 7 7 0 -1 4194304 0 0", true),
            ("7", true),
        ] {
            tree.put("proc/7/stat", stat);
            assert_eq!(found().is_err(), is_other, "{stat}");
        }
    }

    #[test]
    fn what_is_no_number_is_another_process() {
        let tree = Folder::create().unwrap();
        tree.put("cgroup.procs", "1\nx\n");
        let found = holds_only("/vm", tree.path(), 1, &tree.at("task"));
        assert!(matches!(found, Err(NoGroup::Shared { other: 0, .. })), "{found:?}");
    }
}
