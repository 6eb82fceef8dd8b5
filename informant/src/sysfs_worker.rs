//! The thread that reads and changes `/sys`, one action at a time.
//!
//! A busy guest may need a second to take a vCPU offline. Meanwhile the program samples and answers agents.

use crate::hotplug::{self, Outcome};
use crate::log;
use crate::tree::Tree;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::mpsc::{Receiver, channel};
use windlass_informant_core::{Action, Change, Event};

/// 128 KiB: paths are short and nothing recurses.
const STACK: usize = 131_072;

/// The channels to the thread; it ends when this is dropped.
#[derive(Debug)]
pub struct SysfsWorker {
    actions: SyncSender<Action>,
    reports: Receiver<Event>,
}

impl SysfsWorker {
    /// Starts the thread.
    pub fn start(tree: Tree) -> io::Result<Self> {
        let (actions, todo) = sync_channel(1);
        let (done, reports) = channel(1);
        let work = move || {
            let mut failed: Option<Change> = None;
            for action in todo {
                let report = match action {
                    Action::Look => Event::Seen(hotplug::look(&tree)),
                    Action::Do(change) => {
                        let result = hotplug::change(&tree, &change);
                        match log_line(&change, &result, &mut failed) {
                            Some(Ok(line)) => log::info(format_args!("{line}")),
                            Some(Err(line)) => log::warn(format_args!("{line}")),
                            None => {}
                        }
                        Event::Done(result.is_ok())
                    }
                    Action::Call { .. } => continue,
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
        Ok(Self { actions, reports })
    }

    /// Starts a look or a change. The core has at most one in progress, so there is room.
    pub fn begin(&self, action: Action) {
        // If the thread is gone, the program ends too: a panic aborts.
        let _ = self.actions.try_send(action);
    }

    /// Waits for the result.
    pub async fn report(&mut self) -> Option<Event> {
        self.reports.recv().await
    }
}

/// A change in the infinitive.
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

/// The log line of a change: `Err` is a warning. A repeated failure is logged once.
fn log_line(
    change: &Change,
    result: &io::Result<Outcome>,
    failed: &mut Option<Change>,
) -> Option<Result<String, String>> {
    match (change, result) {
        // The informant changed nothing.
        (_, Ok(Outcome::Gone)) => None,
        (Change::AddedIsMovable, Ok(Outcome::Done)) => {
            Some(Ok("added memory is movable".to_owned()))
        }
        (Change::OnlineMemory(n), Ok(Outcome::Done)) => {
            Some(Ok(format!("memory block {n} online")))
        }
        (Change::OnlineCpu(n), Ok(Outcome::Done)) => Some(Ok(format!("vcpu {n} online"))),
        (Change::OfflineCpu(n), Ok(Outcome::Done)) => Some(Ok(format!("vcpu {n} parked"))),
        (Change::Remember(_) | Change::Note(_), Ok(Outcome::Done)) => None,
        (change, Err(_)) if failed.as_ref() == Some(change) => None,
        (change, Err(error)) => {
            *failed = Some(change.clone());
            Some(Err(format!("cannot {}: {error}", aim(change))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn a_change_is_logged_and_a_repeated_failure_once() {
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
            let told = (!done.is_empty()).then(|| Ok(done.to_owned()));
            assert_eq!(log_line(&change, &Ok(Outcome::Done), &mut None), told);
            let full = || Err(io::Error::other("it is full"));
            let told = Some(Err(format!("cannot {failed}: it is full")));
            let mut before = Some(Change::OfflineCpu(9));
            assert_eq!(log_line(&change, &full(), &mut before), told);
            assert_eq!(log_line(&change, &full(), &mut before), None);
            assert!(log_line(&Change::OfflineCpu(9), &full(), &mut before).is_some());
            assert_eq!(log_line(&change, &full(), &mut before), told);
        }
    }

    #[test]
    fn a_block_that_the_hypervisor_took_is_not_logged_as_online() {
        let change = Change::OnlineMemory(39);
        assert_eq!(log_line(&change, &Ok(Outcome::Gone), &mut None), None);
    }
}
