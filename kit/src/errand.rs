//! Work that may block a thread, as a disk's: done apart, while the task that wants it goes on.
//!
//! A thread that waits for a disk cannot be called back. So an errand is never given up: at most
//! one of a kind is under way, the next starts after it, and one that takes longer than
//! [`LATE`] is said to be late. What the task does meanwhile is for the task to decide.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// A disk that needs longer than this is a matter for a person.
pub const LATE: Duration = Duration::from_secs(5);

/// Work under way, of which the result is awaited.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work of one kind: nothing, or one piece of it that is under way.
pub struct Errand<T>(Option<UnderWay<T>>);

struct UnderWay<T> {
    since: Instant,
    work: Work<T>,
}

/// Does something that may block, on a thread that may be blocked.
///
/// # Errors
/// It panicked, or the process is ending.
pub async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

// === impl Errand ===

impl<T> Errand<T> {
    /// Whether nothing is under way.
    pub fn is_free(&self) -> bool {
        self.0.is_none()
    }

    /// Starts this, unless something is under way: then it is not done.
    pub fn start(&mut self, work: impl FnOnce() -> Work<T>) {
        if self.0.is_none() {
            self.0 = Some(UnderWay { since: Instant::now(), work: work() });
        }
    }

    /// The result of what is under way; waits for ever if nothing is. Can be dropped and called
    /// again at any time.
    pub async fn done(&mut self) -> T {
        let Some(under_way) = &mut self.0 else { return pending().await };
        let result = under_way.work.as_mut().await;
        self.0 = None;
        result
    }

    /// Whether what is under way takes longer than [`LATE`].
    pub fn is_late(&self) -> bool {
        self.0.as_ref().is_some_and(|under_way| under_way.since.elapsed() > LATE)
    }
}

impl<T> Default for Errand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Errand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand").field("free", &self.is_free()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn one_errand_of_a_kind_is_under_way() {
        let mut errand = Errand::default();
        errand.start(|| Box::pin(async { 1 }));
        errand.start(|| Box::pin(async { 2 }));
        assert_eq!((errand.is_free(), errand.done().await, errand.is_free()), (false, 1, true));
        let nothing = timeout(Duration::from_secs(3600), errand.done()).await;
        assert!(nothing.is_err(), "nothing is under way");
    }

    #[tokio::test(start_paused = true)]
    async fn an_errand_is_late_while_it_takes_long_and_is_not_given_up() {
        let mut errand = Errand::default();
        errand.start(|| Box::pin(sleep(Duration::from_secs(60))));
        assert!(timeout(LATE, errand.done()).await.is_err() && !errand.is_late());
        assert!(timeout(LATE, errand.done()).await.is_err() && errand.is_late());
        errand.done().await;
        assert!(errand.is_free() && !errand.is_late());
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert_eq!(apart(|| 7).await.unwrap(), 7);
        let broken = apart(|| assert!(std::env::args().count() == 0, "broken")).await;
        assert!(broken.unwrap_err().to_string().contains("panicked"));
    }
}
