//! QEMU in a pod: its monitor is a socket in a volume of the pod, reached through the kubelet's folder of pods.
//!
//! Whoever runs in the pod may put there what they like. So the way goes to the socket itself and follows no link, by which a
//! pod would have its agent speak to another one's monitor. The path may be longer than an address of a socket, which has 107
//! bytes: what is connected to is the socket that was opened.
//!
//! The container's limits are the kubelet's, which owns its cgroup: no CPU is limited here.

use crate::link::{Limits, Link, connect_error};
use crate::{Qemu, QemuDriver};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_protocol::CpuLimit;

/// A VM of QEMU in a pod, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuInPod {
    /// The socket of a monitor that has no other client, in the folder of the pod's volume.
    pub qmp: PathBuf,
}

// === impl QemuInPod ===

impl Attach for QemuInPod {
    type Driver = QemuDriver;

    fn place(&self) -> String {
        self.qmp.display().to_string()
    }

    async fn attach(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        let opened = socket(&self.qmp).map_err(|error| connect_error(&self.qmp, &error))?;
        let socket = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let (link, notices) = Link::open_by(&socket, &self.qmp, Limits::default()).await?;
        let qemu = Qemu {
            qmp: self.qmp.clone(),
            vcpu_removal: false,
            cpu_limit: Some(CpuLimit::None),
            limits: None,
        };
        let driver = QemuDriver::over(link, &qemu).await;
        Ok((driver.map_err(|error| error.of("attach"))?, notices))
    }
}

/// The socket at this path, which is open for nothing but to be connected to.
fn socket(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
        FileType::Socket => Ok(opened),
        FileType::Symlink => Err(io::Error::other("a link is not followed: it must be the socket")),
        FileType::RegularFile
        | FileType::Directory
        | FileType::Fifo
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(Errno::NOTSOCK.into()),
    }
}
