//! Whom the token of a request is of: what the API server says, for as long as that counts.
//!
//! [`Reviews`] decides how long. Here tokens are hashed, and the API server is asked. A token is in no log, no error
//! and no memory beyond the request that brought it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::warn;
use windlass_kit::clock::Clock;
use windlass_kit::seldom::Seldom;
use windlass_kit_kubernetes::connect::within;
use windlass_plugin_core::trust::{Caller, Denied, Look, Reviews, TokenHash, Verdict};
use windlass_protocol::Moment;
use windlass_protocol::words::sanitized;

/// For whom a token has to be made.
pub const AUDIENCE: &str = "windlass-plugin";

/// Under this key a review says which node a token's pod is on.
const NODE: &str = "authentication.kubernetes.io/node-name";

/// An agent waits two seconds for its permit.
pub(crate) const REVIEW_WITHIN: Duration = Duration::from_secs(1);

/// The API server's reasons are shown to callers.
const LONGEST_WHY: usize = 200;

/// Whom tokens are of. Clones share what is known.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    client: Client,
    clock: Clock,
    reviews: Mutex<Reviews>,
    /// Told after each outcome.
    outcome: Notify,
    said: Seldom<()>,
}

/// A question to the API server, whose caller may leave at any time.
struct Asking<'a> {
    tokens: &'a Tokens,
    hash: TokenHash,
    has_outcome: bool,
}

/// The one claim of a token that is read here.
#[derive(Deserialize)]
struct Claims {
    exp: Option<u64>,
}

// === impl Tokens ===

impl Tokens {
    /// As the API server of this client says.
    pub fn new(client: Client, clock: Clock) -> Self {
        let (reviews, outcome, said) = Default::default();
        Self(Arc::new(Inner { client, clock, reviews, outcome, said }))
    }

    /// Who sent a request with these headers.
    ///
    /// # Errors
    /// It has no token, or the API server does not say that the token is valid.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        let token = bearer(headers).ok_or(Denied::NoToken)?;
        let hash = hash(token);
        loop {
            let mut outcome = pin!(self.0.outcome.notified());
            // From here on no outcome is missed.
            outcome.as_mut().enable();
            match self.with_reviews(|reviews, now| reviews.look(now, hash)) {
                Look::Counts(Verdict::Accepted(caller)) => return Ok(caller),
                Look::Counts(Verdict::Refused(why)) => return Err(Denied::NotValid(why)),
                Look::Expired => return Err(Denied::Expired),
                Look::NotKnown => return Err(Denied::NotKnown),
                Look::Busy => return Err(Denied::Busy),
                Look::Ask => self.ask(hash, token).await,
                // Whoever asks may have left.
                Look::Wait => drop(timeout(REVIEW_WITHIN, outcome).await),
            }
        }
    }

    async fn ask(&self, hash: TokenHash, token: &str) {
        let mut asking = Asking { tokens: self, hash, has_outcome: false };
        let review = TokenReview {
            spec: TokenReviewSpec {
                audiences: Some(vec![AUDIENCE.to_owned()]),
                token: Some(token.to_owned()),
            },
            ..TokenReview::default()
        };
        let (reviews, params) = (Api::all(self.0.client.clone()), PostParams::default());
        let why = match within(REVIEW_WITHIN, reviews.create(&params, &review)).await {
            Ok(TokenReview { status: Some(status), .. }) => {
                return asking.heard(verdict(status), expires(token));
            }
            Ok(_) => "a review without a status".to_owned(),
            Err(failed) => failed.to_string(),
        };
        asking.met_silence();
        if self.0.said.is_due(()) {
            warn!(
                why,
                "the API server does not say whom tokens are of; those it knew go on for ten minutes"
            );
        }
    }

    fn with_reviews<T>(&self, ask: impl FnOnce(&mut Reviews, Moment) -> T) -> T {
        let mut reviews = self.0.reviews.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut reviews, self.0.clock.now())
    }
}

// === impl Asking ===

impl Asking<'_> {
    fn heard(&mut self, verdict: Verdict, expires: Option<Moment>) {
        self.has_outcome = true;
        let hash = self.hash;
        self.tokens.with_reviews(|reviews, now| reviews.heard(now, hash, verdict, expires));
    }

    fn met_silence(&mut self) {
        self.has_outcome = true;
        self.tokens.with_reviews(|reviews, now| reviews.met_silence(now, self.hash));
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.has_outcome {
            self.tokens.with_reviews(|reviews, _| reviews.gave_up(self.hash));
        }
        self.tokens.0.outcome.notify_waiters();
    }
}

/// What a review says. It names the audiences that the token is for, of those that were asked for.
fn verdict(status: TokenReviewStatus) -> Verdict {
    let is_for_us = status.audiences.iter().flatten().any(|audience| audience == AUDIENCE);
    if status.authenticated != Some(true) {
        let why = status.error.as_deref().unwrap_or("it is not authentic");
        return Verdict::Refused(sanitized(why, LONGEST_WHY).into());
    }
    if !is_for_us {
        return Verdict::Refused("it is of another audience".into());
    }
    let user = status.user.unwrap_or_default();
    let groups = user.groups.unwrap_or_default().into();
    let extra = user.extra.unwrap_or_default();
    let node = extra.get(NODE).filter(|values| values.len() == 1).and_then(|values| values.first());
    Verdict::Accepted(Caller {
        user: user.username.unwrap_or_default().into(),
        groups,
        uid: user.uid.map(Into::into),
        node: node.map(|node| node.as_str().into()),
        extra: extra.into(),
    })
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

pub(crate) fn hash(token: &str) -> TokenHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    TokenHash(hash)
}

/// When a token ends by itself, as it says. It is not verified here: it makes the time shorter, and nothing longer.
pub(crate) fn expires(token: &str) -> Option<Moment> {
    let payload = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(Moment::from_millis(claims.exp?.saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::collections::BTreeMap;

    #[test]
    fn a_token_says_when_it_ends() {
        let token = |payload: &str| format!("h.{}.s", BASE64_URL_SAFE_NO_PAD.encode(payload));
        let end = Some(Moment::from_millis(1_700_000_000_000));
        assert_eq!(expires(&token(r#"{"aud":["a"],"exp":1700000000,"iat":1}"#)), end);
        for other in ["{}", r#"{"exp":null}"#, r#"{"exp":"1"}"#, r#"{"exp":-1}"#, "[]", ""] {
            assert_eq!(expires(&token(other)), None, "{other}");
        }
        for other in ["", ".", "..", "a", "a.b", "a.%.c", "a.e30=.c"] {
            assert_eq!(expires(other), None, "{other}");
        }
        let last = token(r#"{"exp":18446744073709551615}"#);
        assert_eq!(expires(&last), Some(Moment::from_millis(u64::MAX)));
    }

    #[test]
    fn a_bearer_token_is_read_as_go_reads_it() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
            ("Bearer \u{e4}", None),
        ] {
            let mut headers = HeaderMap::new();
            headers
                .insert(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            assert_eq!(bearer(&headers), token, "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_verdict_needs_the_audience_and_one_node() {
        let status = |audiences: &[&str], nodes: &[&str]| -> TokenReviewStatus {
            serde_json::from_value(serde_json::json!({
                "authenticated": true, "audiences": audiences,
                "user": {"username": "agent", "groups": ["g"], "extra": {NODE: nodes}},
            }))
            .unwrap()
        };
        let caller = |node: Option<&str>, nodes: &[&str]| {
            let node = node.map(Into::into);
            let groups = ["g".to_owned()].into();
            let said = nodes.iter().map(|node| (*node).to_owned()).collect();
            let extra = BTreeMap::from([(NODE.to_owned(), said)]).into();
            Verdict::Accepted(Caller { user: "agent".into(), groups, node, extra, uid: None })
        };
        let refused = |why: &str| Verdict::Refused(why.into());
        assert_eq!(verdict(status(&["a", AUDIENCE], &["n1"])), caller(Some("n1"), &["n1"]));
        assert_eq!(verdict(status(&[AUDIENCE], &[])), caller(None, &[]));
        assert_eq!(verdict(status(&[AUDIENCE], &["n1", "n2"])), caller(None, &["n1", "n2"]));
        for audiences in [&[][..], &["windlass"], &["windlass-plugin2"]] {
            assert_eq!(verdict(status(audiences, &["n1"])), refused("it is of another audience"));
        }
        let not = TokenReviewStatus { authenticated: Some(false), ..status(&[AUDIENCE], &["n1"]) };
        assert_eq!(verdict(not), refused("it is not authentic"));
        let error = Some("gone\n".to_owned());
        let not = TokenReviewStatus { error, ..TokenReviewStatus::default() };
        assert!(matches!(verdict(not), Verdict::Refused(why) if why.starts_with("gone")));
    }
}
