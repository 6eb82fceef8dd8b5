//! A machine that is a folder: processes, cgroups, and a script in place of `systemctl`.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test that called it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use windlass_drivers_cgroup::{Group, Limiter, Machine, NoGroup};
use windlass_testkit::Folder;

pub(crate) const PID: i32 = 100;
/// Its threads.
pub(crate) const THREADS: [i32; 3] = [100, 101, 102];
/// What `group_of` is asked about.
pub(crate) const VCPUS: [i32; 2] = [101, 102];
/// A cgroup of the process alone, below a unit's.
pub(crate) const OWN: &str = "/machine.slice/machine-qemu\\x2d1.scope/libvirt";

const V2: &str = "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
const V1: &str = "30 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  31 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// Whose files it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    V1,
    V2,
}

pub(crate) struct Tree {
    pub(crate) folder: Folder,
    kind: Kind,
}

// === impl Tree ===

impl Tree {
    /// A machine without processes.
    pub(crate) fn new(kind: Kind) -> Self {
        let folder = Folder::create().unwrap();
        folder.put("proc/self/mountinfo", if kind == Kind::V1 { V1 } else { V2 });
        folder.put("proc/sys/kernel/random/boot_id", "a-boot\n");
        Self { folder, kind }
    }

    /// A machine with one process in a cgroup without a quota.
    pub(crate) fn with_vm(kind: Kind, group: &str) -> Self {
        let tree = Self::new(kind);
        tree.add_group(group, "max 100000");
        tree.move_process(group);
        tree
    }

    pub(crate) fn machine(&self) -> Machine {
        let root = self.folder.path().to_owned();
        Machine { systemctl: root.join("systemctl"), root }
    }

    pub(crate) fn find(&self) -> Result<Group, NoGroup> {
        self.machine().group_of(PID, &VCPUS)
    }

    pub(crate) fn limiter(&self) -> Limiter {
        Limiter::open(self.find().unwrap(), &self.limits()).unwrap()
    }

    pub(crate) fn limits(&self) -> PathBuf {
        self.folder.at("state/limits")
    }

    /// The names of what is kept.
    pub(crate) fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.limits()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Where a file of a cgroup is.
    pub(crate) fn file(&self, group: &str, file: &str) -> String {
        let top = if self.kind == Kind::V1 { "/cpu,cpuacct" } else { "" };
        format!("sys/fs/cgroup{top}{group}/{file}")
    }

    /// Makes a cgroup, and those above it, without processes.
    pub(crate) fn add_group(&self, group: &str, quota: &str) {
        for (end, _) in group.match_indices('/').skip(1).chain([(group.len(), "")]) {
            self.folder.put(&self.file(&group[..end], "cgroup.procs"), "");
            self.set(&group[..end], "max 100000");
        }
        self.set(group, quota);
    }

    /// Puts processes into a cgroup.
    pub(crate) fn hold(&self, group: &str, processes: &str) {
        self.folder.put(&self.file(group, "cgroup.procs"), processes);
    }

    /// Moves all threads of the process.
    pub(crate) fn move_process(&self, group: &str) {
        for thread in THREADS {
            self.move_thread(thread, group);
        }
        self.hold(group, "100\n");
    }

    pub(crate) fn move_thread(&self, thread: i32, group: &str) {
        let text = match self.kind {
            Kind::V1 => format!("9:cpuset:/\n8:cpu,cpuacct:{group}\n0::/else\n"),
            Kind::V2 => format!("0::{group}\n"),
        };
        self.folder.put(&format!("proc/{PID}/task/{thread}/cgroup"), &text);
        if thread == PID {
            self.folder.put(&format!("proc/{PID}/cgroup"), &text);
        }
    }

    /// Sets a quota from outside, in the form of v2.
    pub(crate) fn set(&self, group: &str, quota: &str) {
        if self.kind == Kind::V2 {
            self.folder.put(&self.file(group, "cpu.max"), format!("{quota}\n"));
            return;
        }
        let (quota, period) = quota.split_once(' ').unwrap();
        let quota = if quota == "max" { "-1" } else { quota };
        self.folder.put(&self.file(group, "cpu.cfs_quota_us"), format!("{quota}\n"));
        self.folder.put(&self.file(group, "cpu.cfs_period_us"), format!("{period}\n"));
    }

    /// The quota that stands, in the form of v2.
    pub(crate) fn quota(&self, group: &str) -> String {
        let read = |file| self.folder.read(&self.file(group, file)).trim_end().to_owned();
        match self.kind {
            Kind::V2 => read("cpu.max"),
            Kind::V1 => {
                let quota = read("cpu.cfs_quota_us");
                let quota = if quota == "-1" { "max".to_owned() } else { quota };
                format!("{quota} {}", read("cpu.cfs_period_us"))
            }
        }
    }

    /// Makes a cgroup again under its name, as a unit that is started again does.
    pub(crate) fn make_again(&self, group: &str, quota: &str) {
        let path = self.folder.at(self.file(group, "").trim_end_matches('/'));
        // The new one has another inode while the old one is there.
        fs::rename(&path, self.folder.at("removed")).unwrap();
        self.add_group(group, quota);
        self.move_process(group);
        fs::remove_dir_all(self.folder.at("removed")).unwrap();
    }

    /// A systemd, asked through a script; `$1…` are its arguments, `$said` a file for what it is asked.
    pub(crate) fn systemd(&self, script: &str) {
        fs::create_dir_all(self.folder.at("run/systemd/system")).unwrap();
        let said = self.folder.at("said");
        let text = format!("#!/bin/sh\nsaid={}\n{script}\n", said.display());
        // A script that is open for writing in any process cannot be run: the shell reads it.
        let body = self.folder.put("systemctl.sh", text);
        let program = format!("#!/bin/sh\nexec sh {} \"$@\"\n", body.display());
        let program = self.folder.put("systemctl", program);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What systemd was asked to set.
    pub(crate) fn said(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.at("said")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
