//! How the controller begins: what was there before the restart counts before anything is granted.

use super::{HostController, Interval, Known, Lifecycle, Look, Pulse};
use crate::problem::Problem;
use std::sync::atomic::Ordering;

impl HostController {
    /// Counts what was there before the restart, and manages what files say. A disk that does not
    /// answer is as one that cannot be read: it removes no VM.
    pub(super) async fn begin(&mut self, looks: &mut Interval, pulse: &Pulse) {
        self.agent.freeze(self.state.kept().frozen.is_some());
        self.tell_order();
        let before = self.state.kept().vms.clone();
        for (name, known) in &before {
            self.presume(name, known, known.max.max(known.size.unwrap_or_default()));
        }
        let look = self.first_look(looks, pulse).await;
        let is_read = look.is_ok();
        let steps = self.folder.observe(look, true);
        for (name, known) in before {
            let filed = self.folder.get(&name).is_some();
            let declared = (filed || is_read).then_some(filed);
            let standing = known.standing.after_restart(declared);
            // A VM that has a file, also one that came back while no host ran, is taken up below.
            if standing != Lifecycle::Managed {
                self.count(&name, &Known { standing, ..known });
            }
        }
        for step in steps {
            self.follow(step);
        }
        // Not before each VM is taken up: what is billed counts on it.
        self.listed.store(is_read, Ordering::Relaxed);
        self.warn_of_files(&[]);
        self.reconcile();
    }

    /// The first look at the VM files; one that is late goes on, and counts when it is done.
    async fn first_look(&mut self, looks: &mut Interval, pulse: &Pulse) -> Look {
        self.look();
        loop {
            pulse.turn("the first look at the VM files");
            tokio::select! {
                biased;
                look = self.blocking.look.done() => return look,
                _ = looks.tick() => {
                    if self.blocking.look.is_late() {
                        return Err(unread());
                    }
                }
            }
        }
    }
}

/// That files cannot be read as long as the disk does not answer.
pub(super) fn unread() -> Problem {
    Problem::without_value("", "cannot be read: the disk does not answer")
}
