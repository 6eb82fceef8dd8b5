//! Until when a connection's head, and then its request, has time.
//!
//! A timer for each head and for each request would cost more than most answers. So each states
//! its end here, and the one sleep of the connection looks at it: that either ends what took too
//! long, or sleeps on until the end that was stated since.

use hyper::rt::{Sleep, Timer};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{self, Duration};
use tokio::time::Instant;

/// The end of what a connection waits for. Clones are one.
#[derive(Clone)]
pub(super) struct Deadline(Arc<Inner>);

struct Inner {
    begun: Instant,
    /// In milliseconds after that.
    end: AtomicU64,
    passed: AtomicBool,
}

/// For hyper, which reads heads: it is over once the connection has found that it is.
struct HeadTime(Deadline);

// === impl Deadline ===

impl Deadline {
    pub(super) fn new() -> Self {
        let (begun, end, passed) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Inner { begun, end, passed }))
    }

    /// What begins now has until then.
    pub(super) fn set(&self, end: Instant) {
        let after = end.saturating_duration_since(self.0.begun).as_millis();
        self.0.passed.store(false, Ordering::Relaxed);
        self.0.end.store(u64::try_from(after).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether it has passed, from here on also for [`Deadline::within`]; if not, when to look again.
    pub(super) fn look(&self, now: Instant) -> Option<Instant> {
        let end = Duration::from_millis(self.0.end.load(Ordering::Relaxed).saturating_add(1));
        let end = self.0.begun.checked_add(end).filter(|end| *end > now);
        self.0.passed.store(end.is_none(), Ordering::Relaxed);
        end
    }

    /// Waits for a future; `None` once the connection has found that it takes too long.
    pub(super) async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.has_passed() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn has_passed(&self) -> bool {
        self.0.passed.load(Ordering::Relaxed)
    }
}

impl Timer for Deadline {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + time)
    }

    fn sleep_until(&self, end: time::Instant) -> Pin<Box<dyn Sleep>> {
        self.set(end.into());
        Box::pin(HeadTime(self.clone()))
    }

    fn now(&self) -> time::Instant {
        Instant::now().into()
    }
}

// === impl HeadTime ===

impl Sleep for HeadTime {}

impl Future for HeadTime {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.has_passed() { Poll::Ready(()) } else { Poll::Pending }
    }
}
