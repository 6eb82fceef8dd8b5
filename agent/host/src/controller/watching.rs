//! When the VM files are looked at: at the first tick after the kernel's notice that something may have
//! changed, and at the next.
//!
//! While there are no notices, because the folder is not there or the kernel refuses, each tick looks.
//! A slow look goes on all the same: of some changes there is no notice, as where a file is a link to
//! one elsewhere.

use super::{HostController, io};
use crate::problem::Problem;
use std::io::ErrorKind;
use windlass_vm_files::watch::{Notice, Watch};

/// Ticks between two slow looks, before each of which the folder is watched anew: 30 s.
const SLOW: u64 = 60;

/// A changed file counts once it was the same at two looks.
const LOOKS: u8 = 2;

/// What a refusal to watch is reported as.
const SUBJECT: &str = "vms_dir";

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
    /// Takes in what the kernel has noticed since the last tick.
    fn take_notice(&mut self) {
        let Some(notice) = self.watch.as_ref().and_then(Watch::notice) else { return };
        if notice == Notice::Lost {
            self.watch = None;
        }
        self.look_twice();
    }

    /// What may be there is found, and is in force, after two looks.
    pub(super) fn look_twice(&mut self) {
        self.due = LOOKS;
    }
}

impl HostController {
    /// Has the VM files looked at, if a look is due; watches them anew now and then.
    pub(super) fn look_if_due(&mut self) {
        self.watching.take_notice();
        let is_slow = self.looks.is_multiple_of(SLOW);
        let is_watched = self.watching.watch.is_some();
        if is_slow || !is_watched && !self.watching.is_refused {
            let disk = self.disk.clone();
            self.blocking.watch.start(|| disk.watch());
        }
        if is_slow || !is_watched || self.watching.due > 0 {
            self.look();
        }
    }

    /// Has the VM files looked at, unless a look is under way.
    pub(super) fn look(&mut self) {
        if self.blocking.look.is_free() {
            self.watching.due = self.watching.due.saturating_sub(1);
            let disk = self.disk.clone();
            self.blocking.look.start(|| disk.look());
        }
    }

    /// Takes up a watch, or looks more often where there is none.
    pub(super) fn watched(&mut self, watch: io::Result<Watch>) {
        let refusal = watch.as_ref().err().filter(|error| {
            // Of a folder that is not there the looks say so.
            !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        });
        self.watching.is_refused = refusal.is_some();
        let problem = refusal.map(|error| {
            let limit = format!("cannot be watched: {error}; a higher fs.inotify limit helps");
            (vec![Problem::without_value("", limit)], "it is looked at twice a second")
        });
        self.settle(SUBJECT, problem);
        self.watching.watch = watch.ok();
        // What changed before the watch began.
        self.watching.look_twice();
    }
}
