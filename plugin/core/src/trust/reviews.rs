//! What the API server said of tokens, for as long as it counts.
//!
//! - An accepted token counts for a minute, and is then asked about anew. While the API server is silent it goes on to
//!   count, for ten minutes from the last answer at most, and never past its own end.
//! - A refusal counts for ten seconds.
//! - One review of a token is under way at a time, and a bounded number of reviews in all.
//! - The tokens that are remembered have a bound. The one with the oldest answer is forgotten first, and those that were
//!   not accepted before those that were: whoever makes tokens up pushes no agent out.
//!
//! A verdict is as old as the question that led to it.

use super::caller::Caller;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::Moment;

/// How long an accepted token counts without another question.
pub const ACCEPTED_FOR: Duration = Duration::from_secs(60);
/// How long an accepted token counts while the API server is silent.
pub const SILENT_FOR: Duration = Duration::from_secs(600);
/// How long a refusal counts.
pub const REFUSED_FOR: Duration = Duration::from_secs(10);
/// After a question that met silence, before the next about the same token.
pub const BETWEEN_TRIES: Duration = Duration::from_secs(2);
/// A question without an outcome is lost after this.
pub const LOST_AFTER: Duration = Duration::from_secs(10);
/// Reviews at a time.
pub const MOST_ASKED: usize = 32;
/// Tokens that are remembered.
pub const MOST: usize = 16_384;

/// The SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenHash(pub [u8; 32]);

/// What the API server says of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is authentic, and of this caller.
    Accepted(Caller),
    /// It is not, for this reason.
    Refused(Arc<str>),
}

/// What is to be done about a request with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// This counts.
    Counts(Verdict),
    /// The token was accepted, and its time is over.
    Expired,
    /// Ask the API server, and tell what it said.
    Ask,
    /// The API server is being asked about this token.
    Wait,
    /// The API server is silent, and nothing that it said of the token counts any more.
    NotKnown,
    /// As many tokens are asked about as may be.
    Busy,
}

/// What is known of tokens.
#[derive(Clone, Debug, Default)]
pub struct Reviews {
    tokens: BTreeMap<TokenHash, Token>,
    /// Every one of them by its [`Place`]: the first is forgotten first.
    order: BTreeSet<(Place, TokenHash)>,
    /// Drawn for the next place.
    next: u64,
    /// Tokens that the API server is being asked about, and since when.
    asked: BTreeMap<TokenHash, Moment>,
}

/// Whether a token was accepted, and the number of its last answer.
type Place = (bool, u64);

#[derive(Clone, Debug)]
struct Token {
    said: Option<Said>,
    /// Not before this is it asked about again.
    again_at: Moment,
    place: Place,
}

#[derive(Clone, Debug)]
struct Said {
    verdict: Verdict,
    at: Moment,
    expires: Option<Moment>,
}

// === impl Reviews ===

impl Reviews {
    /// What is to be done about a request with this token. After [`Look::Ask`] the caller tells the outcome.
    pub fn look(&mut self, now: Moment, hash: TokenHash) -> Look {
        let token = self.tokens.get(&hash);
        if let Some(look) = token.and_then(|token| token.counts(now)) {
            return look;
        }
        if self.asked.get(&hash).is_some_and(|since| now.since(*since) < LOST_AFTER) {
            return Look::Wait;
        }
        let without = |or: Look| token.and_then(|token| token.in_silence(now)).unwrap_or(or);
        if token.is_some_and(|token| now < token.again_at) {
            return without(Look::NotKnown);
        }
        if self.asked.len() >= MOST_ASKED {
            self.asked.retain(|_, since| now.since(*since) < LOST_AFTER);
        }
        if self.asked.len() >= MOST_ASKED {
            return without(Look::Busy);
        }
        self.asked.insert(hash, now);
        Look::Ask
    }

    /// The API server said this of a token, which ends by itself at `expires`.
    pub fn heard(
        &mut self,
        now: Moment,
        hash: TokenHash,
        verdict: Verdict,
        expires: Option<Moment>,
    ) {
        let at = self.asked.remove(&hash).unwrap_or(now);
        self.put(hash, Some(Said { verdict, at, expires }), now);
    }

    /// The API server did not answer.
    pub fn met_silence(&mut self, now: Moment, hash: TokenHash) {
        self.asked.remove(&hash);
        let again_at = now.after(BETWEEN_TRIES);
        match self.tokens.get_mut(&hash) {
            Some(token) => token.again_at = again_at,
            None => self.put(hash, None, again_at),
        }
    }

    /// Whoever asked has left before there was an outcome.
    pub fn gave_up(&mut self, hash: TokenHash) {
        self.asked.remove(&hash);
    }

    /// How many tokens are remembered.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether no token is.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    fn put(&mut self, hash: TokenHash, said: Option<Said>, again_at: Moment) {
        self.next += 1;
        let place = (said.as_ref().is_some_and(Said::is_accepted), self.next);
        if let Some(before) = self.tokens.insert(hash, Token { said, again_at, place }) {
            self.order.remove(&(before.place, hash));
        }
        self.order.insert((place, hash));
        if self.tokens.len() > MOST
            && let Some((_, first)) = self.order.pop_first()
        {
            self.tokens.remove(&first);
        }
    }
}

// === impl Token ===

impl Token {
    /// What counts without a question; `None`: nothing does.
    fn counts(&self, now: Moment) -> Option<Look> {
        let said = self.said.as_ref()?;
        if said.is_accepted() && said.expires.is_some_and(|end| now >= end) {
            return Some(Look::Expired);
        }
        let lasts = if said.is_accepted() { ACCEPTED_FOR } else { REFUSED_FOR };
        (now.since(said.at) < lasts).then(|| Look::Counts(said.verdict.clone()))
    }

    /// What counts while the API server is silent.
    fn in_silence(&self, now: Moment) -> Option<Look> {
        let said = self.said.as_ref()?;
        let counts = said.is_accepted() && now.since(said.at) < SILENT_FOR;
        counts.then(|| Look::Counts(said.verdict.clone()))
    }
}

// === impl Said ===

impl Said {
    fn is_accepted(&self) -> bool {
        matches!(self.verdict, Verdict::Accepted(_))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}
