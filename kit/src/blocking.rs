//! Blocking work, such as disk I/O, on threads of its own, while the task that wants it continues.
//!
//! A thread that waits for a disk cannot be cancelled. So blocking work is never given up: at most one piece
//! of a kind is in progress, and the next starts after it. Work that takes longer than [`LATE`] is late. The
//! task decides what to do meanwhile.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

/// Beyond this, a person must look at the disk.
pub const LATE: Duration = Duration::from_secs(5);

/// Work in progress, to be awaited.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work of one kind: none, or one piece in progress since then.
pub struct BlockingTask<T>(Option<(Instant, Work<T>)>);

/// Runs blocking work on a thread for such work.
///
/// # Errors
/// The work panicked, or the process is ending.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// Runs work on a thread of its own, and waits for that. The thread ends with the work, and with it what the allocator keeps
/// ready for the thread: memory that the work took, and that is free by then, is the system's again.
///
/// # Errors
/// The work panicked, or there is no thread.
pub fn run_apart<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the work panicked"))
    })
}

// === impl BlockingTask ===

impl<T> BlockingTask<T> {
    /// Whether no work is in progress.
    pub fn is_free(&self) -> bool {
        self.0.is_none()
    }

    /// Starts this work, unless other work is in progress.
    pub fn start(&mut self, work: impl FnOnce() -> Work<T>) {
        if self.0.is_none() {
            self.0 = Some((Instant::now(), work()));
        }
    }

    /// Waits for the result; for ever if no work is in progress. The caller may drop the future and call
    /// again at any time.
    pub async fn done(&mut self) -> T {
        let Some((_, work)) = &mut self.0 else { return pending().await };
        let result = work.as_mut().await;
        self.0 = None;
        result
    }

    /// Whether the work in progress takes longer than [`LATE`].
    pub fn is_late(&self) -> bool {
        self.0.as_ref().is_some_and(|(since, _)| since.elapsed() > LATE)
    }
}

impl<T> Default for BlockingTask<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for BlockingTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingTask").field("free", &self.is_free()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn one_piece_of_work_of_a_kind_is_in_progress() {
        let mut work = BlockingTask::default();
        work.start(|| Box::pin(async { 1 }));
        work.start(|| Box::pin(async { 2 }));
        assert_eq!((work.is_free(), work.done().await, work.is_free()), (false, 1, true));
        let nothing = timeout(Duration::from_secs(3600), work.done()).await;
        assert!(nothing.is_err(), "no work is in progress");
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_late_while_it_takes_long_and_is_not_given_up() {
        let mut work = BlockingTask::default();
        work.start(|| Box::pin(sleep(Duration::from_secs(60))));
        assert!(timeout(LATE, work.done()).await.is_err() && !work.is_late());
        assert!(timeout(LATE, work.done()).await.is_err() && work.is_late());
        work.done().await;
        assert!(work.is_free() && !work.is_late());
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert_eq!(run_blocking(|| 7).await.unwrap(), 7);
        let broken = run_blocking(|| assert!(std::env::args().count() == 0, "broken")).await;
        assert!(broken.unwrap_err().to_string().contains("panicked"));
        let here = thread::current().id();
        assert_ne!(run_apart(|| thread::current().id()).unwrap(), here);
        let broken = run_apart(|| assert!(std::env::args().count() == 0, "broken"));
        assert!(broken.unwrap_err().to_string().contains("panicked"));
    }
}
