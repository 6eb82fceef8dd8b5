//! Hand-over between agents, as transcripts: when the next is told to run.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/releases.rs"]
mod releases;
#[expect(dead_code, reason = "each test of the informant needs a part of it")]
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use story::{Story, id, secs};
use windlass_informant_core::Ask;

#[test]
fn who_did_not_say_that_it_waits_is_registered_no_more_once_the_next_may_run() {
    let mut story = Story::with_agent(1);
    story.run(secs(3));
    story.health_check(1);
    story.dead(1);
    story.register(2);
    story.run(secs(12));
    story.health_check(1);
    story.check(expect![[r#"
        3.00s < agent 1 asks whether it is registered
        3.00s   yes
        3.00s < agent 2 registers
        3.00s > Suspend to agent 1: NoAnswer
        3.00s > agent 2 is registered, v2.0, metrics at 10301
        3.25s > Suspend to agent 1: NoAnswer
        3.50s > Suspend to agent 1: NoAnswer
        13.00s > Resume to agent 2: #2
        15.00s < agent 1 asks whether it is registered
        15.00s   404: No Agent with ID 00000000-0000-0000-0000-000000000001 registered
    "#]]);
}

#[test]
fn a_check_that_is_answered_lets_an_agent_act_that_does_not_say_that_it_waits() {
    let mut story = Story::with_agent(1);
    story.run(secs(8));
    story.while_called(Ask::Suspend, |story| story.health_check(1));
    story.dead(1);
    story.register(2);
    story.run(secs(12));
    assert_eq!(story.informant.current(), Some(id(2)));
    story.check(expect![[r#"
        8.00s < agent 2 registers
        8.00s < agent 1 asks whether it is registered
        8.00s   yes
        8.00s > Suspend to agent 1: NoAnswer
        8.00s > agent 2 is registered, v2.0, metrics at 10301
        8.25s > Suspend to agent 1: NoAnswer
        8.50s > Suspend to agent 1: NoAnswer
        18.00s > Resume to agent 2: #2
    "#]]);
}

#[test]
fn checks_of_who_waits_hold_up_nobody() {
    let mut story = Story::with_agent(1);
    story.register(2);
    story.run(secs(1));
    story.health_check(1);
    story.register(3);
    story.run(secs(1));
    assert_eq!(story.informant.current(), Some(id(3)));
    story.check(expect![[r#"
        0.00s < agent 2 registers
        0.00s > Suspend to agent 1: #3
        0.00s > agent 2 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 2: #2
        1.00s < agent 1 asks whether it is registered
        1.00s   yes
        1.00s < agent 3 registers
        1.00s > Suspend to agent 2: #3
        1.00s > agent 3 is registered, v2.0, metrics at 10301
        1.10s > Resume to agent 3: #2
    "#]]);
}

#[test]
fn before_v1_2_the_next_waits_fifteen_seconds_after_the_last_call() {
    let mut story = Story::with_older(2);
    story.run(secs(12));
    story.dead(1);
    story.register(2);
    story.run(secs(16));
    assert_eq!(story.informant.current(), Some(id(2)));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(15s)
        0.00s > agent 1 is registered, v1.1, metrics at 10301
        0.10s > Resume to agent 1: #2
        12.00s < agent 2 registers
        12.00s > Suspend to agent 1: NoAnswer
        12.00s > agent 2 is registered, v2.0, metrics at 10301
        12.25s > Suspend to agent 1: NoAnswer
        12.50s > Suspend to agent 1: NoAnswer
        25.11s > Resume to agent 2: #3
    "#]]);
}

#[test]
fn an_informant_that_restarts_knows_for_how_long_somebody_may_act() {
    for (max, limit) in [(4, 10), (2, 15)] {
        let mut story = Story::with_older(max);
        story.run(secs(1));
        story.restart();
        story.register(2);
        story.run(secs(limit - 1));
        assert_eq!(story.informant.current(), None, "the first may still act");
        story.run(secs(2));
        assert_eq!(story.informant.current(), Some(id(2)));
    }
}

#[test]
fn an_agent_that_is_not_there_any_more_holds_up_nobody() {
    let mut story = Story::with_agent(1);
    story.answers_with(1, windlass_informant_core::Failure::Refused(404));
    story.register(2);
    story.run(secs(1));
    assert_eq!(story.informant.current(), Some(id(2)));
}

/// It may be said on the way: by a listener that is full, or too busy. And who says that it waits
/// already may have meant another word.
#[test]
fn a_refusal_to_wait_ends_no_lease() {
    for status in [400, 408, 429, 500, 503] {
        let mut story = Story::with_agent(1);
        story.answers_with(1, windlass_informant_core::Failure::Refused(status));
        story.register(2);
        story.run(secs(9));
        assert_eq!(story.informant.current(), None, "{status}: the first may still act");
        story.run(secs(3));
        assert_eq!(story.informant.current(), Some(id(2)), "{status}");
    }
}

/// The agent may have heard the lost `/suspend`, and refuses a `/resume` that comes so soon after it.
#[test]
fn who_did_not_say_that_it_waits_is_told_to_run_again_a_while_later() {
    let mut story = Story::with_agent(1);
    story.lose_next(1, Ask::Suspend);
    story.while_called(Ask::Suspend, |story| story.unregister(2));
    story.register(2);
    story.run(secs(6));
    assert_eq!(story.informant.current(), None);
    story.run(secs(2));
    assert_eq!(story.informant.current(), Some(id(1)));
}

#[test]
fn vcpus_that_another_agent_allowed_wait_for_the_word_of_one_that_counts_again() {
    let mut story = Story::with_agent(1);
    (1..3).for_each(|cpu| story.stuck_cpu(cpu));
    story.machine(3, &[1, 2], &[]);
    story.register(2);
    story.run(secs(1));
    story.upscale(2, 3, story.size());
    story.run(secs(6));
    story.unregister(2);
    story.run(secs(1));
    assert_eq!(story.informant.current(), Some(id(1)));
    story.no_cpu_is_stuck();
    story.run(secs(5));
    assert_eq!(story.online(), 1, "the first did not allow them");
    story.upscale(1, 2, story.size());
    story.run(secs(1));
    assert_eq!(story.online(), 2);
}
