//! Tokens that a real API server made, and reviews of them that are lost.
//!
//! Time is tokio's, and is moved on by hand: to the plugin a minute has passed, to the API server a moment.

use crate::between::Between;
use crate::plane;
use futures_util::future::join_all;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use kube::ResourceExt;
use kube::api::DeleteParams;
use std::sync::Arc;
use std::time::Duration;
use windlass_control_plane::{Identity, Space};
use windlass_kit::clock::Clock;
use windlass_plugin_cluster::Tokens;
use windlass_plugin_cluster::tokens::AUDIENCE;
use windlass_plugin_core::trust::reviews::{ACCEPTED_FOR, REFUSED_FOR};
use windlass_plugin_core::trust::{Caller, Denied};
use windlass_testkit::wait::until_async;

/// The shortest time that an API server makes a token for.
const TEN_MINUTES: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_token_names_its_account_and_the_node_of_its_pod() {
    let test = Test::new().await;
    let token = test.token("agent", "n1").await;
    let user = Arc::from(format!("system:serviceaccount:{}:agent", test.space.name()));
    let groups: Arc<[String]> = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", test.space.name()),
        "system:authenticated".to_owned(),
    ]
    .into();
    let known = |caller: Caller| (caller.user, caller.groups, caller.node);
    let caller = test.caller(&token).await.unwrap();
    // A ServiceAccount's uid, and the pod that its token is bound to: what an authorizer may look at.
    assert!(
        caller.uid.is_some() && caller.extra.contains_key("authentication.kubernetes.io/pod-name")
    );
    assert_eq!(known(caller), (Arc::clone(&user), Arc::clone(&groups), Some("n1".into())));
    let free = test.space.token("agent", AUDIENCE, None).await;
    assert_eq!(known(test.caller(&free).await.unwrap()), (user, groups, None));
}

#[tokio::test]
async fn a_token_is_reviewed_once_a_minute_whoever_asks() {
    let test = Test::new().await;
    let token = test.token("agent", "n1").await;
    let all = join_all((0..20).map(|_| test.caller(&token))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(test.between.reviews(), 1);
    pass(ACCEPTED_FOR - Duration::from_secs(2)).await;
    test.caller(&token).await.unwrap();
    assert_eq!(test.between.reviews(), 1);
    pass(Duration::from_secs(2)).await;
    test.caller(&token).await.unwrap();
    assert_eq!(test.between.reviews(), 2);
}

#[tokio::test]
async fn a_token_of_a_deleted_pod_is_refused_at_its_next_review() {
    let test = Test::new().await;
    let token = test.token("agent", "n1").await;
    test.caller(&token).await.unwrap();
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    test.space.pods().delete("agent-n1", &now).await.unwrap();
    // For ten seconds the API server goes on with what it said last of a token.
    let is_noticed = async || {
        let anew = Tokens::new(test.between.client(), Clock::system());
        matches!(anew.caller(&headers(&token)).await, Err(Denied::NotValid(_)))
    };
    until_async("the API server refuses the token", is_noticed).await;
    test.caller(&token).await.unwrap();
    pass(ACCEPTED_FOR).await;
    let denied = test.caller(&token).await.unwrap_err();
    assert!(matches!(denied, Denied::NotValid(_)), "{denied}");
}

#[tokio::test]
async fn tokens_of_another_audience_and_forged_ones_are_refused() {
    let test = Test::new().await;
    let pod = test.space.pod_of("agent", "pod", "n1").await;
    let default = test.space.token("agent", "https://kubernetes.default.svc", Some(&pod)).await;
    let near = test.space.token("agent", "windlass", Some(&pod)).await;
    let good = test.space.token("agent", AUDIENCE, Some(&pod)).await;
    let (head, _) = good.rsplit_once('.').unwrap();
    for bad in [&default, &near, &format!("{head}.AAAA"), head, "nonsense"] {
        let denied = test.caller(bad).await.unwrap_err();
        assert!(matches!(denied, Denied::NotValid(_)), "{denied}");
        assert!(!denied.to_string().contains(bad), "{denied}");
    }
    let asked = test.between.reviews();
    test.caller(&near).await.unwrap_err();
    assert_eq!(test.between.reviews(), asked, "a refusal counts for ten seconds");
    pass(REFUSED_FOR).await;
    test.caller(&near).await.unwrap_err();
    assert_eq!(test.between.reviews(), asked + 1);
}

#[tokio::test]
async fn known_tokens_go_on_while_the_api_server_is_silent_until_they_end() {
    let test = Test::new().await;
    let known = test.token_for(TEN_MINUTES, "agent", "n1").await;
    let new = test.token_for(TEN_MINUTES, "agent", "n2").await;
    test.caller(&known).await.unwrap();
    test.between.lose_reviews(true);
    assert_eq!(test.caller(&new).await, Err(Denied::NotKnown));
    for _ in 0..9 {
        pass(ACCEPTED_FOR).await;
        test.caller(&known).await.unwrap();
    }
    test.between.lose_reviews(false);
    // While time is moved on the clock stands still: the token ends half a minute before it is asked for last.
    pass(Duration::from_secs(30)).await;
    test.caller(&known).await.unwrap();
    test.caller(&new).await.unwrap();
    test.between.lose_reviews(true);
    pass(Duration::from_secs(60)).await;
    assert_eq!(test.caller(&known).await, Err(Denied::Expired), "accepted a minute before");
    assert_eq!(test.caller(&new).await, Err(Denied::Expired));
}

/// A namespace with an account, and what is known of tokens.
struct Test {
    space: Space<'static>,
    between: Between,
    tokens: Tokens,
}

// === impl Test ===

impl Test {
    async fn new() -> Self {
        let plane = plane().await;
        let admin = plane.client(Identity::Admin).await;
        let between = Between::new(plane.client(Identity::Plugin).await, admin);
        let space = Space::new(plane).await;
        space.account("agent").await;
        let tokens = Tokens::new(between.client(), Clock::system());
        Self { space, between, tokens }
    }

    /// A token for a pod of this account on this node, which is made.
    async fn token(&self, account: &str, node: &str) -> String {
        self.token_for(6 * TEN_MINUTES, account, node).await
    }

    /// Such a token, which ends by itself after this time.
    async fn token_for(&self, lasts: Duration, account: &str, node: &str) -> String {
        let pod = self.space.pod_of(account, &format!("{account}-{node}"), node).await;
        assert_eq!(pod.name_any(), format!("{account}-{node}"));
        self.space.token_for(lasts, account, AUDIENCE, Some(&pod)).await
    }

    async fn caller(&self, token: &str) -> Result<Caller, Denied> {
        self.tokens.caller(&headers(token)).await
    }
}

/// Those of a request with this token.
fn headers(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

/// Moves time on.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
