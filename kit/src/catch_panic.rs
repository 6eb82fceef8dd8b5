//! Keeps a panic in its own task or request: it becomes an error, and the state of the future is dropped.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// Waits for `future`; a panic in it is an error, with its message.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // After a panic the future is never polled again, so broken state stays invisible.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(message(payload.as_ref()))),
        }
    })
    .await
}

/// Calls `make`; a panic in it is an error, with its message.
pub(crate) fn catch_panic_in<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(make)).map_err(|payload| message(payload.as_ref()))
}

/// Locks a value that a panic cannot leave half changed.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(payload: &(dyn Any + Send)) -> String {
    let fixed = payload.downcast_ref::<&str>().copied();
    let text = fixed.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_keeps_its_words() {
        assert_eq!(catch_panic(async { 7 }).await.unwrap(), 7);
        let fixed = catch_panic(async { panic!("no room") }).await;
        assert_eq!(fixed.unwrap_err(), "no room");
        assert_eq!(catch_panic_in(|| 7).unwrap(), 7);
        assert_eq!(catch_panic_in(|| panic!("no place")).unwrap_err(), "no place");
        let number = 3;
        let formatted = catch_panic(async { panic!("{number} are missing") }).await;
        assert_eq!(formatted.unwrap_err(), "3 are missing");
    }
}
