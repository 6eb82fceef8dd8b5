//! Waiting until a condition holds, with a generous deadline.
//!
//! A look that costs little is repeated after 5 ms. After one that took longer, for example because
//! it starts a process, the test rests twice as long as the look took: it uses a third of a core.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(100);

/// Waits until this holds.
///
/// # Panics
/// If it does not hold in time.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    look(what, || holds().then_some(()).ok_or(false));
}

/// Waits until there is something, and gives it.
///
/// # Panics
/// If there is nothing in time.
#[track_caller]
pub fn until_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    look(what, || find().ok_or("nothing"))
}

/// Looks until what is seen is as wanted, and gives it.
///
/// # Panics
/// With what was seen last, if it is not as wanted in time.
#[track_caller]
pub fn until_seen<T: Debug>(
    what: &str,
    mut see: impl FnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    look(what, || {
        let seen = see();
        if wanted(&seen) { Ok(seen) } else { Err(seen) }
    })
}

/// Waits as [`until`] does, by the clock of the runtime: it may be paused.
///
/// # Panics
/// If it does not hold in time.
#[cfg(feature = "tokio")]
pub async fn until_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = tokio::time::Instant::now();
    loop {
        let begun = tokio::time::Instant::now();
        if holds().await {
            return;
        }
        check(what, start.elapsed(), &false);
        tokio::time::sleep(rest(begun.elapsed())).await;
    }
}

#[track_caller]
fn look<T, S: Debug>(what: &str, mut once: impl FnMut() -> Result<T, S>) -> T {
    let start = Instant::now();
    loop {
        let begun = Instant::now();
        match once() {
            Ok(found) => return found,
            Err(seen) => check(what, start.elapsed(), &seen),
        }
        std::thread::sleep(rest(begun.elapsed()));
    }
}

#[track_caller]
fn check(what: &str, waited: Duration, seen: &impl Debug) {
    assert!(waited < PATIENCE, "not so within {PATIENCE:?}: {what}; last seen: {seen:?}");
}

fn rest(look_took: Duration) -> Duration {
    (2 * look_took).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_at_last_is_given_back() {
        let mut looks = 0;
        let mut next = || {
            looks += 1;
            looks
        };
        assert_eq!(until_seen("three", &mut next, |look| *look == 3), 3);
        assert_eq!(until_some("six", || Some(next()).filter(|look| *look > 5)), 6);
        until("seven", || next() == 7);
    }

    #[test]
    #[should_panic(expected = "not so within 90s: the sun; last seen: \"rain\"")]
    fn a_deadline_says_what_was_waited_for_and_what_was_seen() {
        check("the sun", PATIENCE, &"rain");
    }

    #[test]
    fn a_look_that_takes_long_is_repeated_seldom() {
        let rests = [0, 20, 900].map(|ms| rest(Duration::from_millis(ms)).as_millis());
        assert_eq!(rests, [5, 40, 100]);
    }
}
