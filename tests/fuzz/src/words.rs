//! What is asked of every text that goes to a peer, into a log, or before a person.

use std::fmt::Display;

/// The longest that a message of ours may be, in bytes: a line, a field, a value, a limit.
pub(crate) const LONGEST: usize = 2048;

/// The message is no longer than messages are, and moves no terminal's cursor.
#[track_caller]
pub(crate) fn is_short_and_harmless(message: &impl Display) {
    let message = message.to_string();
    assert!(!message.is_empty(), "a message without words");
    assert!(message.len() <= LONGEST, "{} bytes: {message:.200}…", message.len());
    let harmful = message.trim_end_matches('\n').chars().find(|c| c.is_control());
    assert_eq!(harmful, None, "{message:?}");
}

/// The answer to a request that is refused: who reads it finds a line of text.
#[track_caller]
pub(crate) fn is_refusal(status: u16, body: &[u8]) {
    assert!((400..=599).contains(&status), "{status} is no refusal");
    assert_ne!(status, 500, "{}", String::from_utf8_lossy(body));
    is_short_and_harmless(&String::from_utf8_lossy(body));
}
