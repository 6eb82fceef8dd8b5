//! When the VM files are looked at: at the first tick after the kernel's notice that something may have
//! changed, and at the next.
//!
//! While there are no notices, because the folder is not there or the kernel refuses, each tick looks.
//! A slow look goes on all the same: of some changes there is no notice, as where a file is a link to
//! one elsewhere.

use crate::problem::Problem;
use std::io::{self, ErrorKind};
use windlass_vm_files::watch::{Notice, Watch};

/// Ticks between two slow looks, before each of which the folder is watched anew: 30 s.
const SLOW: u64 = 60;

/// A changed file counts once it was the same at two looks.
const LOOKS: u8 = 2;

/// What a tick is to begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// To watch the folder anew.
    pub(super) watch: bool,
    /// To look at it.
    pub(super) look: bool,
}

/// The watch over the VM files, and the looks that are due.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    watch: Option<Watch>,
    due: u8,
    /// The kernel watches no more for this user. It may again at the next slow look.
    is_refused: bool,
}

// === impl Watching ===

impl Watching {
    /// Takes in what the kernel has noticed since the last tick. What this tick, of this number, is to
    /// begin.
    pub(super) fn tick(&mut self, number: u64) -> Due {
        if let Some(notice) = self.watch.as_ref().and_then(Watch::notice) {
            if notice == Notice::Lost {
                self.watch = None;
            }
            self.look_twice();
        }
        let (is_slow, is_watched) = (number.is_multiple_of(SLOW), self.watch.is_some());
        Due {
            watch: is_slow || !is_watched && !self.is_refused,
            look: is_slow || !is_watched || self.due > 0,
        }
    }

    /// A look begins.
    pub(super) fn looks(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    /// What may be there is found, and is in force, after two looks.
    pub(super) fn look_twice(&mut self) {
        self.due = LOOKS;
    }

    /// Takes up a watch, if there is one. Why the kernel refuses it, if it does: of a folder that is not
    /// there the looks say so.
    pub(super) fn take_up(&mut self, watch: io::Result<Watch>) -> Option<Problem> {
        let refusal = watch.as_ref().err().filter(|error| {
            !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        });
        let problem = refusal.map(|error| {
            let limit = format!("cannot be watched: {error}; a higher fs.inotify limit helps");
            Problem::without_value("", limit)
        });
        self.is_refused = problem.is_some();
        self.watch = watch.ok();
        // What changed before the watch began.
        self.look_twice();
        problem
    }
}
