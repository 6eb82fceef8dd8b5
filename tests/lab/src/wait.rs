//! Waiting for a condition, with a generous deadline, and saying what was seen instead.

use crate::LabError;
use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// Looks until `wanted` accepts what is seen, and gives that back. What cannot be seen for
/// now is looked at again.
///
/// # Errors
/// [`LabError::Late`] with what was seen last.
pub async fn until<T, E, F>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> F,
    mut wanted: impl FnMut(&T) -> bool,
) -> Result<T, LabError>
where
    T: Debug,
    E: std::error::Error,
    F: Future<Output = Result<T, E>>,
{
    let start = Instant::now();
    loop {
        let seen = match look().await {
            Ok(seen) if wanted(&seen) => return Ok(seen),
            Ok(seen) => format!("{seen:?}"),
            Err(error) => error.to_string(),
        };
        if start.elapsed() >= limit {
            return Err(LabError::Late { what: what.to_owned(), limit, seen });
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[tokio::test(start_paused = true)]
    async fn what_is_seen_at_last_is_given_back() {
        let mut looks = 0;
        let seen = until(
            "three",
            Duration::from_secs(9),
            || {
                looks += 1;
                let look = looks;
                async move { if look == 2 { Err(io::Error::other("hidden")) } else { Ok(look) } }
            },
            |look| *look == 3,
        );
        assert_eq!(seen.await.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_tells_what_was_seen_instead() {
        let late = until("x", Duration::from_secs(1), async || io::Result::Ok(7), |_| false).await;
        assert!(late.unwrap_err().to_string().ends_with("last seen: 7"));
    }
}
