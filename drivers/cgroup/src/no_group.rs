//! Why a VM's process has no cgroup whose quota can be its limit.
//!
//! Each text says what was found, and where it helps, what makes a difference.

use crate::systemd::SystemdError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is none.
#[derive(Debug, Error)]
pub enum NoGroup {
    /// QEMU has named no thread.
    #[error("QEMU named no thread of a vCPU, so its process cannot be told from a proxy's")]
    NoThreads,
    /// What QEMU named is not in the process at the monitor.
    #[error(
        "process {pid} holds the monitor and has no thread {thread}, which QEMU named: \
         a proxy, or a QEMU in another PID namespace"
    )]
    OtherThread {
        /// The process at the monitor.
        pid: i32,
        /// A thread of QEMU's.
        thread: i32,
    },
    /// A file of the kernel cannot be read; the process may have ended.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel names no cgroup of the process in which CPU is limited.
    #[error("process {pid} is in no cgroup of the controller cpu, nor of cgroup v2")]
    NoHierarchy {
        /// The process.
        pid: i32,
    },
    /// The hierarchy of the cgroup is mounted nowhere, or only a part of it that does not hold the cgroup.
    #[error(
        "no mounted file system shows cgroup {path}; in a container, mount the host's /sys/fs/cgroup"
    )]
    NotMounted {
        /// The cgroup.
        path: String,
    },
    /// All of the machine is in it.
    #[error(
        "QEMU runs in the root cgroup, which has no quota; \
         `systemd-run --scope` starts it in a cgroup of its own"
    )]
    Root,
    /// A kubelet keeps its quota.
    #[error("cgroup {path} is a kubelet's, which sets its quota; limit the pod's CPU there")]
    Kubelet {
        /// The cgroup.
        path: String,
    },
    /// A quota would limit another process, too.
    #[error(
        "cgroup {path} also holds process {other} (0: of another PID namespace); \
         `systemd-run --scope` starts QEMU in a cgroup of its own"
    )]
    Shared {
        /// The cgroup.
        path: String,
        /// One of the other processes; 0 if it is in another PID namespace.
        other: i32,
    },
    /// It has too many cgroups below it for them all to be looked at.
    #[error("cgroup {path} has more than {most} cgroups, with itself")]
    TooLarge {
        /// The cgroup.
        path: String,
        /// How many are looked at.
        most: usize,
    },
    /// It has no file for a quota.
    #[error(
        "cgroup {path} has no {file}: the controller cpu is not enabled for it; \
         in a systemd unit, CPUWeight=100 enables it"
    )]
    NoController {
        /// The cgroup.
        path: String,
        /// The file that it lacks.
        file: &'static str,
    },
    /// Its quota cannot be changed.
    #[error("cannot write {}; it takes root, and a file system that is not read-only", file.display())]
    NotWritable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It looks like a unit of systemd, and systemd cannot be asked whether it is one.
    #[error("cannot ask systemd whether cgroup {path} is that of unit {unit}")]
    Systemd {
        /// The cgroup.
        path: String,
        /// The unit that its name says.
        unit: String,
        /// Why.
        source: SystemdError,
    },
}
