//! The thread that reads and changes `/sys`, one thing at a time.
//!
//! Taking a vCPU offline can take a second in a busy guest; meanwhile samples go on and
//! agents are answered.

use crate::hotplug;
use crate::log;
use crate::tree::Tree;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::mpsc::{Receiver, channel};
use windlass_informant_core::{Action, Change, Event};

/// 128 KiB: paths are short and nothing recurses.
const STACK: usize = 131_072;

/// A way to the thread; it ends when this is dropped.
#[derive(Debug)]
pub struct SysfsWorker {
    jobs: SyncSender<Job>,
    reports: Receiver<Event>,
}

#[derive(Debug)]
enum Job {
    Look,
    Do(Change),
}

/// What the log says of a change.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Done(String),
    Failed(String),
}

impl SysfsWorker {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(tree: Tree) -> io::Result<Self> {
        let (jobs, todo) = sync_channel(1);
        let (done, reports) = channel(1);
        let work = move || {
            let mut failed: Option<Change> = None;
            for job in todo {
                let report = match job {
                    Job::Look => Event::Seen(hotplug::look(&tree)),
                    Job::Do(change) => {
                        let result = hotplug::change(&tree, &change);
                        match news(&change, &result, &mut failed) {
                            Some(News::Done(what)) => log::info(format_args!("{what}")),
                            Some(News::Failed(what)) => log::warn(format_args!("{what}")),
                            None => {}
                        }
                        Event::Done(result.is_ok())
                    }
                };
                if done.blocking_send(report).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("sysfs-worker".to_owned())
            .stack_size(STACK)
            .spawn(work)?;
        Ok(Self { jobs, reports })
    }

    /// Gives it something to do. The core asks for one thing at a time, so there is room.
    pub fn begin(&self, action: Action) {
        let job = match action {
            Action::Look => Job::Look,
            Action::Do(change) => Job::Do(change),
            Action::Call { .. } => return,
        };
        // A thread that is gone took the program with it: panic aborts.
        let _ = self.jobs.try_send(job);
    }

    /// What became of it.
    pub async fn report(&mut self) -> Option<Event> {
        self.reports.recv().await
    }
}

/// What a change is for.
fn aim(change: &Change) -> String {
    match change {
        Change::AddedIsMovable => "make added memory movable".to_owned(),
        Change::OnlineMemory(number) => format!("bring memory block {number} online"),
        Change::OnlineCpu(number) => format!("bring vcpu {number} online"),
        Change::OfflineCpu(number) => format!("park vcpu {number}"),
        Change::Note(_) => "keep for how long an agent may act".to_owned(),
        Change::Remember(_) => "keep which vcpus are parked".to_owned(),
    }
}

/// What to say of a change; a failure that repeats is said once.
fn news(change: &Change, result: &io::Result<()>, failed: &mut Option<Change>) -> Option<News> {
    match (change, result) {
        (Change::AddedIsMovable, Ok(())) => Some(News::Done("added memory is movable".to_owned())),
        (Change::OnlineMemory(n), Ok(())) => Some(News::Done(format!("memory block {n} online"))),
        (Change::OnlineCpu(n), Ok(())) => Some(News::Done(format!("vcpu {n} online"))),
        (Change::OfflineCpu(n), Ok(())) => Some(News::Done(format!("vcpu {n} parked"))),
        (Change::Remember(_) | Change::Note(_), Ok(())) => None,
        (change, Err(_)) if failed.as_ref() == Some(change) => None,
        (change, Err(error)) => {
            *failed = Some(change.clone());
            Some(News::Failed(format!("cannot {}: {error}", aim(change))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn what_was_changed_is_said_and_what_fails_once_in_a_row() {
        let remember = Change::Remember(BTreeSet::from([3]));
        let note = Change::Note(Duration::from_secs(10));
        for (change, done, failed) in [
            (Change::AddedIsMovable, "added memory is movable", "make added memory movable"),
            (Change::OnlineMemory(7), "memory block 7 online", "bring memory block 7 online"),
            (Change::OnlineCpu(2), "vcpu 2 online", "bring vcpu 2 online"),
            (Change::OfflineCpu(2), "vcpu 2 parked", "park vcpu 2"),
            (remember, "", "keep which vcpus are parked"),
            (note, "", "keep for how long an agent may act"),
        ] {
            let told = (!done.is_empty()).then(|| News::Done(done.to_owned()));
            assert_eq!(news(&change, &Ok(()), &mut None), told);
            let full = || Err(io::Error::other("it is full"));
            let told = Some(News::Failed(format!("cannot {failed}: it is full")));
            let mut before = Some(Change::OfflineCpu(9));
            assert_eq!(news(&change, &full(), &mut before), told);
            assert_eq!(news(&change, &full(), &mut before), None);
            assert!(news(&Change::OfflineCpu(9), &full(), &mut before).is_some());
            assert_eq!(news(&change, &full(), &mut before), told);
        }
    }
}
