//! Which process sent an order, and whether the order is still wanted.
//!
//! A host that is stopped, or that a busy machine keeps waiting, reads an order long after it was
//! sent. The sender may have been told by then that the order failed. So every order passes here
//! before its handler begins: an order whose last moment has passed, or whose sender has ended,
//! is refused and never carried out.

use crate::api::NOT_AFTER;
use crate::commands::Sender;
use crate::http::ApiState;
use crate::refused::Refused;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::time::Duration;
use tracing::info;
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;
use windlass_protocol::status::Caller;

// === impl Sender ===

impl FromRequestParts<ApiState> for Sender {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Refused> {
        let by = parts.extensions.get::<Caller>().copied();
        let order = parts.uri.path();
        let (uid, pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
        let left = left(&parts.headers, Clock::system().now()).map_err(Refused::Senseless)?;
        if left.is_some_and(|left| left.is_zero()) {
            info!(order, uid, pid, "order dropped: its last moment has passed");
            return Err(Refused::Outdated);
        }
        if pid.is_some_and(has_ended) {
            info!(order, uid, pid, "order dropped: its sender has ended");
            return Err(Refused::Abandoned);
        }
        Ok(Self { by, not_after: left.map(|left| state.clock.now().after(left)) })
    }
}

/// How long after `now` the order may still be carried out.
///
/// The moment is compared with the wall clock as it is now, since the clock of the host does not
/// follow a wall clock that is set.
fn left(headers: &HeaderMap, now: Moment) -> Result<Option<Duration>, String> {
    let Some(value) = headers.get(NOT_AFTER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let moment = digits.then(|| text.parse().ok()).flatten().map(Moment::from_millis);
    let moment = moment.ok_or_else(|| {
        let shown: String = text.chars().take(50).collect();
        format!("{NOT_AFTER} = {shown}: must be milliseconds since 1970")
    })?;
    Ok(Some(moment.since(now)))
}

/// Whether a process is certainly not there any more. A zombie sends nothing; it waits for its
/// parent.
fn has_ended(pid: u32) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Unlike /proc, this sees a process that is hidden from this user.
    if test_kill_process(process) == Err(Errno::SRCH) {
        return true;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_last_moment_of_an_order_is_a_number_of_milliseconds() {
        let now = Moment::from_millis(1_800_000_000_000);
        for (text, left_millis) in [
            ("1800000000001", Some(1)),
            ("1800000015000", Some(15_000)),
            ("1800000000000", Some(0)),
            ("17", Some(0)),
            ("", None),
            ("soon", None),
            ("+1800000000001", None),
            ("1800000000.5", None),
            ("99999999999999999999", None),
        ] {
            let headers = HeaderMap::from_iter([(NOT_AFTER, text.parse().unwrap())]);
            match (left(&headers, now), left_millis) {
                (Ok(left), Some(millis)) => {
                    assert_eq!(left, Some(Duration::from_millis(millis)), "{text}");
                }
                (Err(why), None) => assert!(why.contains("windlass-not-after"), "{why}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        assert_eq!(left(&HeaderMap::new(), now), Ok(None));
    }

    #[test]
    fn a_process_has_ended_also_before_its_parent_knows() {
        let mut sender = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(!has_ended(sender.id()) && !has_ended(0));
        sender.kill().unwrap();
        let start = std::time::Instant::now();
        while !has_ended(sender.id()) {
            assert!(start.elapsed() < Duration::from_secs(60), "a zombie counts as there");
        }
        sender.wait().unwrap();
        assert!(has_ended(sender.id()));
    }
}
