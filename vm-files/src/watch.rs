//! The kernel's notices of a folder: something in it may have changed.
//!
//! A notice says that a look is due, and nothing of what it will find. Where there are none, looks have
//! to be frequent: while the folder is not there, and where the kernel refuses to give more. A file that
//! is a link to one elsewhere changes without a notice, so a slow look is needed all the same.

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What may mean that a look finds something else than before.
const NOTICED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// After these the path may be another folder, or none.
const LOST: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

/// About a hundred notices are taken at a time, and this often at once: more than the kernel keeps.
const BUFFER: usize = 4096;
const TIMES: usize = 256;

/// A folder of which the kernel gives notices.
#[derive(Debug)]
pub struct Watch(OwnedFd);

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something in the folder may have changed; also where there were more notices than the kernel
    /// keeps.
    Changed,
    /// The folder was moved, removed or unmounted: there will be no more notices of what is at its
    /// path.
    Lost,
}

// === impl Watch ===

impl Watch {
    /// Has the kernel give notices of what changes in this folder from here on. May block.
    ///
    /// # Errors
    /// The folder is not there, or the kernel watches no more for this user.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let kernel = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&kernel, folder, NOTICED)?;
        Ok(Self(kernel))
    }

    /// What the notices since the last call come to, if there were any. Never blocks: the kernel keeps
    /// notices in memory.
    pub fn notice(&self) -> Option<Notice> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut said = None;
        for _ in 0..TIMES {
            match self.take(&mut buffer) {
                Ok(seen) if seen.intersects(LOST) => said = Some(Notice::Lost),
                Ok(_) => said = said.or(Some(Notice::Changed)),
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => return Some(Notice::Lost),
            }
        }
        said
    }

    /// What one reading has.
    fn take(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<ReadFlags, Errno> {
        let mut reader = Reader::new(&self.0, buffer);
        let mut seen = reader.next()?.events();
        while !reader.is_buffer_empty() {
            seen |= reader.next()?.events();
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests;
