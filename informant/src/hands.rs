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

/// Paths are short and nothing recurses.
const STACK: usize = 128 * 1024;

/// A way to the thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Hands {
    jobs: SyncSender<Job>,
    reports: Receiver<Event>,
}

#[derive(Debug)]
enum Job {
    Look,
    Do(Change),
}

impl Hands {
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
                        tell(&change, &result, &mut failed);
                        Event::Done(result.is_ok())
                    }
                };
                if done.blocking_send(report).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("hands".to_owned()).stack_size(STACK).spawn(work)?;
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

/// Says what was changed; a failure that repeats is said once.
fn tell(change: &Change, result: &io::Result<()>, failed: &mut Option<Change>) {
    match (change, result) {
        (Change::AddedIsMovable, Ok(())) => log::info(format_args!("added memory is movable")),
        (Change::OnlineMemory(n), Ok(())) => log::info(format_args!("memory block {n} online")),
        (Change::OnlineCpu(n), Ok(())) => log::info(format_args!("vcpu {n} online")),
        (Change::OfflineCpu(n), Ok(())) => log::info(format_args!("vcpu {n} parked")),
        (Change::Remember(_) | Change::Note(_), Ok(())) => {}
        (change, Err(error)) if failed.as_ref() != Some(change) => {
            log::warn(format_args!("cannot {}: {error}", aim(change)));
            *failed = Some(change.clone());
        }
        (_, Err(_)) => {}
    }
}
