//! QEMU in a pod: its monitor is a socket in a volume of the pod, reached through the kubelet's folder of pods.
//!
//! Whoever runs in the pod may put there what they like. So the way goes to the socket itself and follows no link, by which a
//! pod would have its agent speak to another one's monitor. The path may be longer than an address of a socket, which has 107
//! bytes: what is connected to is the socket that was opened.
//!
//! The container's limits are the kubelet's, which owns its cgroup: no CPU is limited here.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The socket at this path, which is open for nothing but to be connected to.
pub(crate) fn socket(path: &Path) -> io::Result<OwnedFd> {
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
