//! Background tasks: their start, their failures and their shutdown.
//!
//! Only this module calls `tokio::spawn`. The end of a vital task ends the process; the failure of a minor
//! task is a log line. A panic is a failure of its task; the others continue.

use crate::backoff::Backoff;
use crate::catch_panic::{catch_panic, lock};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

/// The background tasks of a process. Clones are cheap and share the tasks.
#[derive(Clone, Default)]
pub struct Tasks {
    stop: CancellationToken,
    tracker: TaskTracker,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    next: u64,
    running: BTreeMap<u64, &'static str>,
    failure: Option<Failed>,
}

/// The first vital task that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{task}: {why}")]
pub struct Failed {
    /// The task's name.
    pub task: &'static str,
    /// The error.
    pub why: String,
}

/// Some tasks did not end in time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("tasks that did not stop in time: {}", tasks.join(", "))]
pub struct Stuck {
    /// Their names.
    pub tasks: Vec<&'static str>,
}

/// Notes the end of a task, even after a panic.
struct Running {
    id: u64,
    shared: Arc<Mutex<Shared>>,
}

// === impl Tasks ===

impl Tasks {
    /// Starts a task whose end, for any reason, stops all others.
    pub fn vital<E: Display + Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        // Dropped at the end of the task, even after a panic.
        let stop = self.stop.clone().drop_guard();
        let shared = self.shared.clone();
        self.spawn(name, async move {
            let _stop = stop;
            let ended = catch_panic(Box::pin(task)).await;
            let Err(why) = ended.and_then(|done| done.map_err(|why| why.to_string())) else {
                return;
            };
            error!(task = name, why, "vital task failed");
            lock(&shared).failure.get_or_insert(Failed { task: name, why });
        });
    }

    /// Starts a task whose failure is a log line.
    pub fn minor<E: Display + Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.spawn(name, async move {
            match catch_panic(Box::pin(task)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => warn!(task = name, %why, "task failed"),
                Err(why) => error!(task = name, why, "task panicked"),
            }
        });
    }

    /// Starts a task that starts again, after a growing wait, whenever it fails or panics. It ends when it
    /// succeeds, or when it should stop during a wait.
    pub fn kept<E, F>(&self, name: &'static str, mut make: impl FnMut() -> F + Send + 'static)
    where
        E: Display + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let stop = self.stop.clone();
        self.spawn(name, async move {
            let mut in_a_row = 0;
            loop {
                let started = Instant::now();
                match catch_panic(Box::pin(make())).await {
                    Ok(Ok(())) => return,
                    Ok(Err(why)) => warn!(task = name, %why, "task failed, starting it again"),
                    Err(why) => error!(task = name, why, "task panicked, starting it again"),
                }
                let wait = restart_after(&mut in_a_row, started.elapsed());
                if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    return;
                }
            }
        });
    }

    /// A group of tasks that stops with this one and can be stopped alone. [`Tasks::drain`] of this group
    /// waits for it too.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            stop: self.stop.child_token(),
            tracker: self.tracker.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Asks every task to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Cancelled once the tasks should stop.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The first vital task that failed.
    pub fn failure(&self) -> Option<Failed> {
        lock(&self.shared).failure.clone()
    }

    /// Asks every task to stop, and waits for at most `grace`.
    ///
    /// # Errors
    /// [`Stuck`] names the tasks that were still running.
    pub async fn drain(&self, grace: Duration) -> Result<(), Stuck> {
        self.stop();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_ok() {
            return Ok(());
        }
        Err(Stuck { tasks: lock(&self.shared).running.values().copied().collect() })
    }

    /// Its callers box what they run: a future that is moved into another takes its space twice there.
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let mut shared = lock(&self.shared);
        shared.next += 1;
        let id = shared.next;
        shared.running.insert(id, name);
        drop(shared);
        let running = Running { id, shared: self.shared.clone() };
        let task = self.tracker.track_future(async move {
            let _running = running;
            task.await;
        });
        #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
        drop(tokio::spawn(task));
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.shared).running.remove(&self.id);
    }
}

/// The next wait of a task that fails. One that ran for longer than the longest wait gets the shortest
/// again.
fn restart_after(in_a_row: &mut u32, ran: Duration) -> Duration {
    *in_a_row = if ran > Backoff::USUAL.longest { 1 } else { in_a_row.saturating_add(1) };
    Backoff::USUAL.wait(*in_a_row, fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const GRACE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_vital_task_stops_the_others() {
        let tasks = Tasks::default();
        let stop = tasks.stopping();
        tasks.minor("listener", async move { stopped(stop).await });
        tasks.vital("heart", async { Err("no pulse") });
        tasks.stopping().cancelled().await;
        assert_eq!(tasks.drain(GRACE).await, Ok(()));
        assert_eq!(tasks.failure().unwrap().to_string(), "heart: no pulse");
    }

    #[tokio::test(start_paused = true)]
    async fn a_vital_task_that_panics_has_failed() {
        let tasks = Tasks::default();
        tasks.vital("heart", async { broken("stopped") });
        tasks.stopping().cancelled().await;
        assert_eq!(tasks.drain(GRACE).await, Ok(()));
        assert_eq!(tasks.failure().unwrap().why, "stopped");
    }

    #[tokio::test(start_paused = true)]
    async fn a_minor_task_that_panics_stops_no_other() {
        let tasks = Tasks::default();
        tasks.minor("odd", async { broken("odd") });
        tokio::time::sleep(GRACE).await;
        assert!(!tasks.stopping().is_cancelled());
        assert_eq!(tasks.drain(GRACE).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn drain_gives_up_on_a_task_that_does_not_listen() {
        let tasks = Tasks::default();
        tasks.minor("deaf", pending::<Result<(), String>>());
        tasks.minor("short", async { Ok::<(), String>(()) });
        tasks.minor("mute", pending::<Result<(), String>>());
        let stuck = tasks.drain(GRACE).await.unwrap_err();
        assert_eq!(stuck.to_string(), "tasks that did not stop in time: deaf, mute");
    }

    #[test]
    fn a_task_that_ran_for_long_waits_as_after_its_first_failure() {
        let (mut in_a_row, longest) = (0, Backoff::USUAL.longest);
        let mut after = |ran| restart_after(&mut in_a_row, ran);
        for ran in [Duration::ZERO, GRACE, longest, longest, longest, longest] {
            after(ran);
        }
        assert!(after(longest) > longest / 2, "the seventh in a row");
        let wait = after(longest + Duration::from_millis(1));
        assert!(wait > Duration::ZERO && wait <= Backoff::USUAL.first, "{wait:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_is_stopped_alone() {
        let tasks = Tasks::default();
        let child = tasks.child();
        let stop = child.stopping();
        child.minor("one vm", async move { stopped(stop).await });
        child.stop();
        assert!(!tasks.stopping().is_cancelled());
        assert_eq!(tasks.drain(GRACE).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_task_is_made_again_until_it_succeeds() {
        let (tasks, made) = (Tasks::default(), Arc::new(Mutex::new(0)));
        let counter = made.clone();
        tasks.kept("stubborn", move || {
            let mut made = counter.lock().unwrap();
            *made += 1;
            let attempt = *made;
            async move {
                match attempt {
                    1 => broken("first"),
                    2 => Err("second".to_owned()),
                    _ => Ok(()),
                }
            }
        });
        tokio::time::sleep(GRACE * 10).await;
        assert_eq!(*made.lock().unwrap(), 3);
        assert_eq!(tasks.drain(GRACE).await, Ok(()));
    }

    async fn stopped(stop: CancellationToken) -> Result<(), String> {
        stop.cancelled().await;
        Ok(())
    }
    fn broken(why: &str) -> Result<(), String> {
        panic!("{why}")
    }
}
