//! A future whose panic is a value.
//!
//! One broken task or one broken request is that task's or that request's problem only. The
//! panic's message goes to whoever waits; the state that the future owned is dropped with it.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What a panicking future said.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// Waits for `future`; a panic inside it is an error.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // After a panic the future is never polled again, so no broken state is seen.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked(message(payload.as_ref())))),
        }
    })
    .await
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_keeps_its_words() {
        assert_eq!(caught(async { 7 }).await.unwrap(), 7);
        let fixed = caught(async { panic!("no room") }).await;
        assert_eq!(fixed.unwrap_err().0, "no room");
        let number = 3;
        let formatted = caught(async { panic!("{number} are missing") }).await;
        assert_eq!(formatted.unwrap_err().0, "3 are missing");
    }
}
