//! How long the API server's word of a token counts, and what an agent's token allows.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_plugin_core::trust::reviews::{
    ACCEPTED_FOR, BETWEEN_TRIES, LOST_AFTER, MOST, MOST_ASKED, REFUSED_FOR, SILENT_FOR,
};
use windlass_plugin_core::trust::{Caller, Denied, Look, Reviews, TokenHash, Verdict};
use windlass_protocol::Moment;

const START: Moment = Moment::from_millis(1_000_000);
const AGENT: &str = "system:serviceaccount:windlass:windlass-agent";
const TOKEN: TokenHash = TokenHash([7; 32]);
const MILLI: Duration = Duration::from_millis(1);

#[test]
fn an_accepted_token_counts_for_a_minute() {
    let mut reviews = Reviews::default();
    assert_eq!(reviews.look(START, TOKEN), Look::Ask);
    reviews.heard(START, TOKEN, accepted(), None);
    let end = START.after(ACCEPTED_FOR);
    assert_eq!(reviews.look(end.before(MILLI), TOKEN), Look::Counts(accepted()));
    assert_eq!(reviews.look(end, TOKEN), Look::Ask);
    reviews.heard(end, TOKEN, refused(), None);
    assert_eq!(reviews.look(end, TOKEN), Look::Counts(refused()), "the newer word counts");
}

#[test]
fn a_refusal_counts_for_ten_seconds() {
    let mut reviews = Reviews::default();
    assert_eq!(reviews.look(START, TOKEN), Look::Ask);
    reviews.heard(START, TOKEN, refused(), None);
    let end = START.after(REFUSED_FOR);
    assert_eq!(reviews.look(end.before(MILLI), TOKEN), Look::Counts(refused()));
    assert_eq!(reviews.look(end, TOKEN), Look::Ask);
    // Silence makes no old refusal count, and accepts nobody.
    reviews.met_silence(end, TOKEN);
    assert_eq!(reviews.look(end, TOKEN), Look::NotKnown);
}

#[test]
fn an_accepted_token_outlives_a_silence_of_ten_minutes() {
    let mut reviews = Reviews::default();
    reviews.heard(START, TOKEN, accepted(), None);
    let mut now = START.after(ACCEPTED_FOR);
    while now.since(START) < SILENT_FOR {
        assert_eq!(reviews.look(now, TOKEN), Look::Ask);
        assert_eq!(reviews.look(now, TOKEN), Look::Wait, "one review of a token at a time");
        reviews.met_silence(now, TOKEN);
        assert_eq!(reviews.look(now, TOKEN), Look::Counts(accepted()));
        now = now.after(BETWEEN_TRIES);
    }
    assert_eq!(reviews.look(now, TOKEN), Look::Ask);
    reviews.met_silence(now, TOKEN);
    assert_eq!(reviews.look(now, TOKEN), Look::NotKnown);
}

#[test]
fn no_token_counts_past_its_end() {
    for (ends_in, asked) in [(MILLI, false), (ACCEPTED_FOR - MILLI, false), (SILENT_FOR / 2, true)]
    {
        let mut reviews = Reviews::default();
        let end = START.after(ends_in);
        reviews.heard(START, TOKEN, accepted(), Some(end));
        let last = end.before(MILLI);
        if asked {
            assert_eq!(reviews.look(last, TOKEN), Look::Ask);
            reviews.met_silence(last, TOKEN);
        }
        assert_eq!(reviews.look(last, TOKEN), Look::Counts(accepted()));
        assert_eq!(reviews.look(end, TOKEN), Look::Expired);
        assert_eq!(reviews.look(end.after(SILENT_FOR), TOKEN), Look::Expired);
    }
}

#[test]
fn a_question_whose_caller_left_or_was_lost_is_asked_again() {
    let mut reviews = Reviews::default();
    assert_eq!(reviews.look(START, TOKEN), Look::Ask);
    assert_eq!(reviews.look(START, TOKEN), Look::Wait);
    reviews.gave_up(TOKEN);
    assert_eq!(reviews.look(START, TOKEN), Look::Ask);
    let lost = START.after(LOST_AFTER);
    assert_eq!(reviews.look(lost.before(MILLI), TOKEN), Look::Wait);
    assert_eq!(reviews.look(lost, TOKEN), Look::Ask);
}

#[test]
fn a_verdict_is_as_old_as_its_question() {
    let mut reviews = Reviews::default();
    assert_eq!(reviews.look(START, TOKEN), Look::Ask);
    reviews.heard(START.after(Duration::from_secs(5)), TOKEN, accepted(), None);
    assert_eq!(reviews.look(START.after(ACCEPTED_FOR), TOKEN), Look::Ask);
}

#[test]
fn reviews_have_a_bound_within_which_known_tokens_go_on() {
    let mut reviews = Reviews::default();
    reviews.heard(START, TOKEN, accepted(), None);
    let now = START.after(ACCEPTED_FOR);
    for nth in 0..MOST_ASKED {
        assert_eq!(reviews.look(now, made_up(nth)), Look::Ask);
    }
    assert_eq!(reviews.look(now, made_up(MOST_ASKED)), Look::Busy);
    assert_eq!(reviews.look(now, TOKEN), Look::Counts(accepted()));
    reviews.heard(now, made_up(0), refused(), None);
    assert_eq!(reviews.look(now, TOKEN), Look::Ask);
    assert_eq!(reviews.look(now.after(LOST_AFTER), made_up(MOST_ASKED)), Look::Ask);
}

#[test]
fn tokens_that_are_made_up_push_no_agent_out() {
    let mut reviews = Reviews::default();
    reviews.heard(START, TOKEN, accepted(), None);
    for nth in 0..MOST + 10 {
        reviews.heard(START, made_up(nth), refused(), None);
    }
    assert_eq!(reviews.len(), MOST);
    assert_eq!(reviews.look(START, TOKEN), Look::Counts(accepted()));
    assert_eq!(reviews.look(START, made_up(0)), Look::Ask, "the oldest is forgotten");
    assert_eq!(reviews.look(START, made_up(MOST + 9)), Look::Counts(refused()));
}

#[test]
fn an_agent_may_ask_for_the_vms_of_its_own_node() {
    let agent: Arc<str> = AGENT.into();
    let on = |user: &str, node: Option<&str>| Caller {
        user: user.into(),
        node: node.map(Into::into),
        ..Caller::default()
    };
    let node = on(AGENT, Some("n1")).node_as(&agent).unwrap();
    assert_eq!(Denied::unless_same(&node, Some("n1")), Ok(()));
    assert_eq!(Denied::unless_same(&node, None), Ok(()), "the books refuse what they do not know");
    for other in ["n2", "n", "n11", "N1", ""] {
        let denied = Denied::unless_same(&node, Some(other)).unwrap_err();
        assert_eq!((denied.status(), denied.as_str()), (403, "other-node"), "{other}");
        assert_eq!(denied.to_string(), "the VM is not on n1, the node of the token");
    }
    for (caller, why) in [
        (on("system:serviceaccount:tenant:windlass-agent", Some("n1")), "other-account"),
        (on("", Some("n1")), "other-account"),
        (on(AGENT, None), "no-node"),
    ] {
        let denied = caller.node_as(&agent).unwrap_err();
        assert_eq!((denied.status(), denied.as_str()), (403, why));
    }
}

#[test]
fn the_extender_answers_the_scheduler_alone() {
    let scheduler: Arc<str> = "system:kube-scheduler".into();
    assert_eq!(Denied::unless_scheduler(&scheduler, Some(&scheduler)), Ok(()));
    let denied = Denied::unless_scheduler(&scheduler, None).unwrap_err();
    assert_eq!((denied.status(), denied.as_str()), (401, "no-certificate"));
    for other in ["system:kube-schedule", "system:kube-scheduler ", "System:kube-scheduler", ""] {
        let denied = Denied::unless_scheduler(&scheduler, Some(&other.into())).unwrap_err();
        assert_eq!((denied.status(), denied.as_str()), (403, "other-certificate"), "{other}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Look(u8),
    Heard(u8, bool, Option<u64>),
    Silence(u8),
    GaveUp(u8),
}

/// What a test remembers of a token: the last word with the moment of its question, its end, and whether a question met
/// silence, or is open.
#[derive(Clone, Copy, Default)]
struct Known {
    said: Option<(bool, Moment, Option<Moment>)>,
    asked: Option<Moment>,
    was_silent_since: bool,
}

proptest! {
    #[test]
    fn a_word_counts_no_longer_than_it_may(steps in vec(step(), 0..80)) {
        let (mut reviews, mut now) = (Reviews::default(), START);
        let mut tokens: BTreeMap<u8, Known> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Wait(millis) => now = now.after(Duration::from_millis(millis)),
                Step::Look(nth) => {
                    let known = tokens.entry(nth).or_default();
                    match reviews.look(now, made_up(nth.into())) {
                        Look::Counts(verdict) => {
                            let (is_accepted, at, end) = known.said.unwrap();
                            prop_assert_eq!(matches!(verdict, Verdict::Accepted(_)), is_accepted);
                            let age = now.since(at);
                            if is_accepted {
                                prop_assert!(end.is_none_or(|end| now < end));
                                let is_silent = known.was_silent_since && age < SILENT_FOR;
                                prop_assert!(age < ACCEPTED_FOR || is_silent, "{:?}", age);
                            } else {
                                prop_assert!(age < REFUSED_FOR);
                            }
                        }
                        Look::Expired => {
                            let (is_accepted, _, end) = known.said.unwrap();
                            prop_assert!(is_accepted && end.is_some_and(|end| now >= end));
                        }
                        Look::Ask => {
                            let open = known.asked.filter(|at| now.since(*at) < LOST_AFTER);
                            prop_assert!(open.is_none(), "two questions at a time");
                            known.asked = Some(now);
                        }
                        Look::Wait => prop_assert!(known.asked.is_some()),
                        Look::NotKnown => prop_assert!(known.was_silent_since),
                        Look::Busy => prop_assert!(false, "there are few tokens"),
                    }
                }
                Step::Heard(nth, is_accepted, ends_in) => {
                    let known = tokens.entry(nth).or_default();
                    let end = ends_in.map(|millis| now.after(Duration::from_millis(millis)));
                    let verdict = if is_accepted { accepted() } else { refused() };
                    reviews.heard(now, made_up(nth.into()), verdict, end);
                    let at = known.asked.take().unwrap_or(now);
                    (known.said, known.was_silent_since) = (Some((is_accepted, at, end)), false);
                }
                Step::Silence(nth) => {
                    reviews.met_silence(now, made_up(nth.into()));
                    let known = tokens.entry(nth).or_default();
                    (known.asked, known.was_silent_since) = (None, true);
                }
                Step::GaveUp(nth) => {
                    reviews.gave_up(made_up(nth.into()));
                    tokens.entry(nth).or_default().asked = None;
                }
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let nth = 0_u8..3;
    prop_oneof![
        3 => prop_oneof![0_u64..3_000, 0_u64..700_000].prop_map(Step::Wait),
        6 => nth.clone().prop_map(Step::Look),
        3 => (nth.clone(), any::<bool>(), proptest::option::of(0_u64..700_000))
            .prop_map(|(nth, is_accepted, end)| Step::Heard(nth, is_accepted, end)),
        2 => nth.clone().prop_map(Step::Silence),
        1 => nth.prop_map(Step::GaveUp),
    ]
}

fn accepted() -> Verdict {
    Verdict::Accepted(Caller { user: AGENT.into(), node: Some("n1".into()), ..Caller::default() })
}

fn refused() -> Verdict {
    Verdict::Refused("it is of another audience".into())
}

fn made_up(nth: usize) -> TokenHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&nth.to_be_bytes());
    TokenHash(hash)
}
