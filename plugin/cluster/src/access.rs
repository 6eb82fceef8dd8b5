//! Whether a caller may see the VMs of a namespace: whether the API server lets it get pods there.
//!
//! What the API server said counts for as long as what it said of a token ([`Reviews`]): a right that is taken away is gone within a minute.
//! The answer belongs to the token, so that nobody else has it.

use crate::tokens::{REVIEW_WITHIN, expires};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use ring::digest::{Context, SHA256};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kit::clock::Clock;
use windlass_kit_kubernetes::connect::within;
use windlass_plugin_core::trust::{Caller, Denied, Look, Reviews, TokenHash, Verdict};
use windlass_protocol::Moment;

/// Who may see what. Clones share what is known.
#[derive(Clone)]
pub(crate) struct Access {
    client: Client,
    clock: Clock,
    reviews: Arc<Mutex<Reviews>>,
}

/// A question to the API server, whose caller may leave at any time.
struct Asking<'a>(&'a Access, TokenHash);

// === impl Access ===

impl Access {
    /// As the API server of this client says.
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, reviews: Arc::default() }
    }

    /// Whether the caller with this token may get pods in a namespace; `None`: in all.
    ///
    /// # Errors
    /// It may not, or the API server does not say so.
    pub(crate) async fn may_see(
        &self,
        caller: &Caller,
        token: &str,
        namespace: Option<&str>,
    ) -> Result<(), Denied> {
        let hash = hash(token, namespace);
        let no_right = || Denied::NoRight {
            user: Arc::clone(&caller.user),
            place: namespace.map_or("all namespaces".into(), |name| name.into()),
        };
        match self.with_reviews(|reviews, now| reviews.look(now, hash)) {
            Look::Counts(Verdict::Accepted(_)) => return Ok(()),
            Look::Counts(Verdict::Refused(_)) => return Err(no_right()),
            Look::Expired => return Err(Denied::Expired),
            Look::NotKnown => return Err(Denied::NotKnown),
            // A person asks again.
            Look::Busy | Look::Wait => return Err(Denied::Busy),
            Look::Ask => {}
        }
        let asking = Asking(self, hash);
        let review = review(caller, namespace);
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let answer = within(REVIEW_WITHIN, reviews.create(&params, &review)).await;
        let status = answer.ok().and_then(|review| review.status);
        let verdict = status.map(|status| match status.allowed && status.denied != Some(true) {
            true => Verdict::Accepted(caller.clone()),
            false => Verdict::Refused("no right".into()),
        });
        let is_allowed = matches!(verdict, Some(Verdict::Accepted(_)));
        asking.0.with_reviews(|reviews, now| match verdict.clone() {
            Some(verdict) => reviews.heard(now, hash, verdict, expires(token)),
            None => reviews.met_silence(now, hash),
        });
        match (verdict, is_allowed) {
            (None, _) => Err(Denied::NotKnown),
            (Some(_), true) => Ok(()),
            (Some(_), false) => Err(no_right()),
        }
    }

    fn with_reviews<T>(&self, ask: impl FnOnce(&mut Reviews, Moment) -> T) -> T {
        let mut reviews = self.reviews.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut reviews, self.clock.now())
    }
}

// === impl Asking ===

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // After an outcome this changes nothing.
        self.0.with_reviews(|reviews, _| reviews.gave_up(self.1));
    }
}

fn review(caller: &Caller, namespace: Option<&str>) -> SubjectAccessReview {
    let attributes = ResourceAttributes {
        group: Some(String::new()),
        resource: Some("pods".to_owned()),
        verb: Some("get".to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(caller.user.to_string()),
            groups: Some(caller.groups.to_vec()),
            uid: caller.uid.as_deref().map(str::to_owned),
            extra: Some((*caller.extra).clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// Of a token and a namespace. No token holds a line feed.
fn hash(token: &str, namespace: Option<&str>) -> TokenHash {
    let mut context = Context::new(&SHA256);
    for part in [token, "\n", namespace.unwrap_or("*")] {
        context.update(part.as_bytes());
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    TokenHash(hash)
}
