//! Keeps a cgroup's quota at a limit, and puts back what it found.
//!
//! Three rules hold. What was found is on disk before the first write. No limit is above what somebody else
//! has set. What somebody else has set since the last look is not written over.
//!
//! A quota is *ours* if a limiter has set it in this cgroup, in this process or in an earlier one. What
//! stands and is not ours is *found*. No quota in place of ours is a reset (systemd resets the file of a
//! unit when it reads its files again): what was found before it stays, and the caller sets the limit again.

use crate::group::{Group, WriteError};
use crate::kept::{self, Fit, Kept};
use crate::quota::Quota;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{fs, mem};
use thiserror::Error;
use windlass_protocol::MilliCpu;

/// The least limit: the kernel takes no quota below 1 ms.
pub const LEAST: MilliCpu = MilliCpu::from_milli(10);

/// The kernel's number for "no such device": the cgroup was removed while its file was open.
const NO_SUCH_DEVICE: i32 = 19;

/// Sets the quota of a cgroup.
#[derive(Debug)]
pub struct Limiter {
    group: Group,
    file: PathBuf,
    kept: Kept,
    /// What stood at the last look.
    seen: Quota,
    resets: u64,
}

/// What a look at a cgroup shows, rounded up to thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The limit that stands, whoever has set it; `None`: there is none.
    pub limit: Option<MilliCpu>,
    /// What somebody else has set, and what is put back in the end; `None`: no limit.
    pub found: Option<MilliCpu>,
}

/// Why a limit was not set.
#[derive(Debug, Error)]
pub enum SetError {
    /// The limit is less than [`LEAST`].
    #[error("the kernel takes no CPU limit below {} milli-CPU", LEAST.milli())]
    TooSmall,
    /// The VM's process has been moved to another cgroup.
    #[error("QEMU is no longer in cgroup {path}")]
    Moved {
        /// The cgroup in which it was found.
        path: String,
    },
    /// Somebody else has set the quota since the last look; it counts as found from here on.
    #[error("somebody else has set the CPU quota of cgroup {path} ({stands})")]
    Changed {
        /// The cgroup.
        path: String,
        /// What they have set.
        stands: Quota,
    },
    /// What stands cannot be read, or whether QEMU is still in the cgroup.
    #[error("cannot look at cgroup {path}")]
    Unread {
        /// The cgroup.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What was found cannot be kept, so nothing is written.
    #[error("cannot keep what was found in {}", file.display())]
    Unkept {
        /// The file for it.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was not written. What stands is as before.
    #[error("cannot limit the CPU of cgroup {path}")]
    Unwritten {
        /// The cgroup.
        path: String,
        /// Why.
        source: WriteError,
    },
    /// What was found is put back, but a file of systemd's is not.
    #[error("cannot put back {}", file.display())]
    DropIn {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was written, and something else stands.
    #[error("cgroup {path} has a CPU quota of {stands}, not of {asked}")]
    Differs {
        /// The cgroup.
        path: String,
        /// What was to be set.
        asked: Quota,
        /// What stands.
        stands: Quota,
    },
}

// === impl Limiter ===

impl Limiter {
    /// A limiter of a cgroup; nothing is written. `folder` has what earlier ones have found; it need not be
    /// there yet. What an earlier one has set and not put back is taken over.
    ///
    /// # Errors
    /// The quota cannot be read, or the file of an earlier limiter is damaged ([`ErrorKind::InvalidData`]).
    pub fn open(group: Group, folder: &Path) -> io::Result<Self> {
        let file = kept::file(folder, group.path());
        let stands = group.read()?;
        let new = Kept::new(&group, stands)?;
        let mut limiter = Self { group, file, kept: new, seen: stands, resets: 0 };
        let Some(earlier) = Kept::read(&limiter.file)? else { return Ok(limiter) };
        if earlier.group != limiter.kept.group {
            let said = format!("{} is of cgroup {}", limiter.file.display(), earlier.group);
            return Err(io::Error::new(ErrorKind::InvalidData, said));
        }
        let is_ours = earlier.ours.contains(&stands);
        if earlier.fit(&limiter.kept) == Fit::MadeAgain {
            // Those that are there may be ours.
            limiter.kept.drop_ins.clone_from(&earlier.drop_ins);
        }
        match earlier.fit(&limiter.kept) {
            Fit::Same => {
                limiter.kept = earlier;
                if !is_ours && !stands.is_none() {
                    limiter.kept.found = stands;
                }
            }
            // A runtime property of a unit can outlive the unit's cgroup.
            Fit::MadeAgain if is_ours => {
                limiter.kept.found = earlier.found;
                limiter.kept.ours = earlier.ours;
            }
            Fit::MadeAgain | Fit::Bygone => {}
        }
        Ok(limiter)
    }

    /// The cgroup.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// How often no quota stood in place of ours since the limiter was opened.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Whether a quota of ours stands, or may stand, which [`Limiter::set`] with `None` would put back.
    pub fn has_set(&self) -> bool {
        !self.kept.ours.is_empty()
    }

    /// Looks at what stands. Nothing is written.
    ///
    /// # Errors
    /// The quota cannot be read.
    pub fn look(&mut self) -> io::Result<Look> {
        let stands = self.group.read()?;
        self.note(stands);
        Ok(Look { limit: stands.cpu(), found: self.kept.found.cpu() })
    }

    /// Sets a limit, at most what was found, and says which limit stands: it was read back. `None` puts back
    /// what was found, and forgets it.
    ///
    /// # Errors
    /// The limit is not set. What stands is known after the next look. What was found stays in the file
    /// until it is put back.
    pub fn set(&mut self, limit: Option<MilliCpu>) -> Result<Option<MilliCpu>, SetError> {
        match limit {
            Some(limit) => self.limit_to(limit),
            None => self.put_back(),
        }
    }

    fn limit_to(&mut self, limit: MilliCpu) -> Result<Option<MilliCpu>, SetError> {
        if limit < LEAST {
            return Err(SetError::TooSmall);
        }
        match self.group.still_holds() {
            Ok(true) => {}
            Ok(false) => return Err(SetError::Moved { path: self.path() }),
            Err(source) => return Err(SetError::Unread { path: self.path(), source }),
        }
        let stands = self.group.read().map_err(|source| self.unread(source))?;
        self.unchanged(stands)?;
        let asked = Quota::of(limit);
        // No limit is exactly what was found if it would be above it.
        let asked = if asked.exceeds(self.kept.found) { self.kept.found } else { asked };
        if stands != asked {
            self.change(stands, asked)?;
        }
        Ok(asked.cpu())
    }

    fn put_back(&mut self) -> Result<Option<MilliCpu>, SetError> {
        if !self.has_set() {
            self.forget()?;
            return Ok(self.kept.found.cpu());
        }
        match self.read_if_there() {
            Ok(Some(stands)) => {
                self.unchanged(stands)?;
                // Of a unit what is found may stand and not be what systemd will write next.
                if stands != self.kept.found || self.group.unit().is_some() {
                    self.change(stands, self.kept.found)?;
                }
                self.put_back_drop_ins()?;
                self.forget()?;
                self.kept.ours.clear();
            }
            // With a cgroup its quota is gone, but a unit's may come back with the unit.
            Ok(None) if self.kept.unit.is_none() => self.forget()?,
            Ok(None) => {}
            Err(source) => return Err(self.unread(source)),
        }
        Ok(self.kept.found.cpu())
    }

    /// Puts back what systemd kept for the unit, for when it reads its files again.
    fn put_back_drop_ins(&self) -> Result<(), SetError> {
        self.kept.drop_ins.iter().try_for_each(|drop_in| {
            let file = drop_in.path().to_owned();
            drop_in.put_back().map_err(|source| SetError::DropIn { file, source })
        })
    }

    /// What stands in this very cgroup; nothing if that is gone.
    fn read_if_there(&self) -> io::Result<Option<Quota>> {
        if !self.kept.is_there(&self.group)? {
            return Ok(None);
        }
        match self.group.read() {
            Err(error) if is_gone(&error) => Ok(None),
            stands => stands.map(Some),
        }
    }

    /// Takes in what stands.
    fn note(&mut self, stands: Quota) {
        let before = mem::replace(&mut self.seen, stands);
        if stands == before || self.kept.ours.contains(&stands) {
            return;
        }
        if stands.is_none() && self.kept.ours.contains(&before) {
            self.resets = self.resets.saturating_add(1);
        } else {
            self.kept.found = stands;
        }
    }

    /// Takes in what stands, and refuses what somebody else has set since the last look.
    fn unchanged(&mut self, stands: Quota) -> Result<(), SetError> {
        let expected = stands == self.seen || stands.is_none() || self.kept.ours.contains(&stands);
        self.note(stands);
        if expected { Ok(()) } else { Err(SetError::Changed { path: self.path(), stands }) }
    }

    /// Keeps, writes, and reads back.
    fn change(&mut self, from: Quota, to: Quota) -> Result<(), SetError> {
        let before = self.kept.ours.clone();
        self.kept.add(to);
        if let Err(source) = self.kept.write(&self.file) {
            self.kept.ours = before;
            return Err(SetError::Unkept { file: self.file.clone(), source });
        }
        let written = self.group.write(from, to);
        let read = match &written {
            Ok(()) => self.group.settled(to),
            Err(_) => self.group.read(),
        };
        let stands = read.map_err(|source| self.unread(source))?;
        // What stood already says nothing of a failure.
        if stands == to && (written.is_ok() || from != to) {
            self.seen = to;
            self.kept.ours = vec![to];
            return Ok(());
        }
        if let Err(source @ WriteError::Refused { .. }) = written {
            // It will not come later either.
            self.kept.ours = before;
            if !self.has_set() {
                self.forget()?;
            }
            return Err(SetError::Unwritten { path: self.path(), source });
        }
        written.map_err(|source| SetError::Unwritten { path: self.path(), source })?;
        Err(SetError::Differs { path: self.path(), asked: to, stands })
    }

    /// Removes the file.
    fn forget(&self) -> Result<(), SetError> {
        match fs::remove_file(&self.file) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(SetError::Unkept { file: self.file.clone(), source })
            }
            _ => Ok(()),
        }
    }

    fn unread(&self, source: io::Error) -> SetError {
        SetError::Unread { path: self.path(), source }
    }

    fn path(&self) -> String {
        self.group.path().to_owned()
    }
}

/// Whether there is no such cgroup any more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_DEVICE)
}
