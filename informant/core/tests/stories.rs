//! What an informant does, as transcripts.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "stories and vcpus each need a part of it")]
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use std::collections::BTreeSet;
use std::time::Duration;
use story::{Story, id, mib, secs};
use windlass_informant_core::{Action, Ask, Event, Failure, Informant, Refusal, Settings};
use windlass_protocol::informant::AgentDesc;
use windlass_protocol::{InformantVersion, Moment, Sequence};

#[test]
fn an_agent_registers_and_counts() {
    let mut story = Story::new();
    story.machine(4, &[3], &[40]);
    story.register(1);
    story.run(secs(1));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(10s)
        0.00s > OnlineMemory(40)
        0.00s > OnlineCpu(3)
        0.00s > agent 1 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 1: #2
    "#]]);
}

#[test]
fn a_newer_agent_takes_over_and_the_older_one_returns_when_it_goes() {
    let mut story = Story::with_agent(1);
    story.register(2);
    story.run(secs(1));
    story.unregister(2);
    story.run(secs(6));
    story.check(expect![[r#"
        0.00s < agent 2 registers
        0.00s > Suspend to agent 1: #3
        0.00s > agent 2 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 2: #2
        1.00s < agent 2 unregisters
        1.00s   Ok(Unregistered { was_active: true })
        5.00s > Resume to agent 1: #4
    "#]]);
}

#[test]
fn who_takes_leave_ends_no_other_session_at_its_address() {
    let mut story = Story::new();
    for agent in [1, 2] {
        story.register_as(agent, "10.0.2.2:80", 1, 4);
        story.run(secs(1));
    }
    story.unregister_from(2, "10.0.2.2:80");
    story.run(secs(6));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(10s)
        0.00s > agent 1 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 1: #2
        1.00s < agent 2 registers
        1.00s > Suspend to agent 1: #3
        1.00s > agent 2 is registered, v2.0, metrics at 10301
        1.10s > Resume to agent 2: #2
        2.00s < agent 2 unregisters
        2.00s   Ok(Unregistered { was_active: true })
        6.00s > Resume to agent 1: #4
    "#]]);
}

#[test]
fn an_agent_that_a_newer_one_replaces_counts_no_more_while_it_is_told() {
    let mut story = Story::with_agent(1);
    story.while_called(Ask::Suspend, |story| story.downscale(1, 1, mib(256)));
    story.register(2);
    story.check(expect![[r#"
        0.00s < agent 2 registers
        0.00s < #3 of 1: live with 1 vCPU / 256MiB?
        0.00s   400: Agent ID 00000000-0000-0000-0000-000000000001 is not the active Agent
        0.00s > Suspend to agent 1: #4
        0.00s > agent 2 is registered, v2.0, metrics at 10301
    "#]]);
}

#[test]
fn an_agent_runs_once_the_one_before_it_was_told_to_wait() {
    let mut story = Story::with_agent(1);
    story.while_called(Ask::Suspend, |story| story.run(Duration::from_millis(500)));
    story.register(2);
    story.run(secs(1));
    story.check(expect![[r#"
        0.00s < agent 2 registers
        0.00s > agent 2 is registered, v2.0, metrics at 10301
        0.50s > Suspend to agent 1: #3
        0.50s > Resume to agent 2: #2
    "#]]);
}

#[test]
fn an_agent_that_does_not_answer_holds_up_its_successor_for_as_long_as_it_may_act() {
    let mut story = Story::with_agent(1);
    story.run(secs(3));
    story.health_check(1);
    story.dead(1);
    story.register(2);
    story.run(secs(12));
    assert_eq!(story.informant.current(), Some(id(2)));
    story.check(expect![[r#"
        3.00s < agent 1 asks whether it is registered
        3.00s   yes
        3.00s < agent 2 registers
        3.00s > Suspend to agent 1: NoAnswer
        3.00s > agent 2 is registered, v2.0, metrics at 10301
        3.25s > Suspend to agent 1: NoAnswer
        3.50s > Suspend to agent 1: NoAnswer
        13.00s > Resume to agent 2: #2
    "#]]);
}

#[test]
fn an_agent_that_is_somebody_else_is_let_go_of_at_once() {
    let mut story = Story::with_agent(1);
    story.answers_as(1, 7);
    story.run(secs(12));
    assert_eq!(story.informant.current(), None);
    story.check(expect![[r#"
        9.11s > Id to agent 1: as 00000000-0000-0000-0000-000000000007
    "#]]);
}

#[test]
fn an_agent_that_repeats_its_numbers_is_let_go_of() {
    let mut story = Story::with_agent(1);
    story.stutters(1);
    story.run(secs(12));
    assert_eq!(story.informant.current(), None);
    let gone: Vec<String> = story.informant.gone().map(|(_, cause)| cause.to_string()).collect();
    assert_eq!(gone, ["it answered with sequence number 2, which is not new"]);
}

#[test]
fn of_those_that_are_gone_the_last_sixteen_are_remembered() {
    let mut story = Story::new();
    for agent in 1..=20 {
        story.register(agent);
        story.run(secs(agent.try_into().unwrap()));
        story.unregister(agent);
    }
    let gone: Vec<_> = story.informant.gone().map(|(id, _)| id).collect();
    assert_eq!(gone, (5..=20).map(id).collect::<Vec<_>>());
}

#[test]
fn a_lost_answer_to_resume_is_settled_by_the_refusal_of_the_second_one() {
    let mut story = Story::new();
    story.lose_next(1, Ask::Resume);
    story.register(1);
    story.run(secs(3));
    assert_eq!(story.informant.current(), Some(id(1)));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(10s)
        0.00s > agent 1 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 1: NoAnswer
        0.35s > Resume to agent 1: Refused(400)
    "#]]);
}

#[test]
fn a_burst_of_memory_is_asked_for_until_it_is_there() {
    let mut story = Story::with_agent(1);
    story.uses(mib(400));
    story.run(secs(1));
    story.lose_next(1, Ask::MoreMemory);
    story.uses(mib(450));
    story.run(secs(3));
    story.grow(mib(256));
    story.upscale(1, 1, story.size());
    story.run(secs(2));
    story.check(expect![[r#"
        0.00s > MoreMemory to agent 1: #3
        1.00s > MoreMemory to agent 1: #4
        2.00s > MoreMemory to agent 1: NoAnswer
        3.00s > MoreMemory to agent 1: #7
        4.00s > MoreMemory to agent 1: #8
        4.00s < #9 of 1: use 1 vCPU / 768MiB
    "#]]);
}

#[test]
fn what_is_agreed_to_is_not_urgent_a_moment_later() {
    let mut story = Story::with_agent(1);
    story.grow(mib(512));
    story.uses(mib(300));
    story.run(secs(3));
    story.downscale(1, 1, mib(384));
    story.downscale(1, 1, mib(512));
    story.shrink(mib(512));
    story.run(secs(3));
    story.check(expect![[r#"
        3.00s < #3 of 1: live with 1 vCPU / 384MiB?
        3.00s   no: 300MiB in use and 96MiB to spare do not fit in 334MiB, which is 384MiB less 50MiB for the kernel
        3.00s < #4 of 1: live with 1 vCPU / 512MiB?
        3.00s   yes: 300MiB in use and 101.3MiB to spare fit in 462MiB, which is 512MiB less 50MiB for the kernel
    "#]]);
}

#[test]
fn the_same_request_is_answered_the_same_and_an_older_one_is_stale() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.grow(mib(512));
    story.run(secs(3));
    story.downscale_numbered(1, 40, 2, mib(768));
    story.run(secs(1));
    story.uses(mib(700));
    story.run(secs(1));
    story.downscale_numbered(1, 40, 2, mib(768));
    story.downscale_numbered(1, 39, 1, mib(768));
    story.upscale_numbered(1, 40, 4, mib(1024));
    story.upscale_numbered(1, 3, 4, mib(1024));
    story.run(secs(1));
    story.check(expect![[r#"
        3.00s < #40 of 1: live with 2 vCPU / 768MiB?
        3.00s   yes: 100MiB in use and 139.7MiB to spare fit in 718MiB, which is 768MiB less 50MiB for the kernel
        3.00s > Remember({2, 3})
        3.00s > OfflineCpu(3)
        3.00s > OfflineCpu(2)
        5.00s < #40 of 1: live with 2 vCPU / 768MiB?
        5.00s   yes: 100MiB in use and 139.7MiB to spare fit in 718MiB, which is 768MiB less 50MiB for the kernel
        5.00s < #39 of 1: live with 1 vCPU / 768MiB?
        5.00s   no: stale
        5.00s < #40 of 1: use 4 vCPU / 1GiB
        5.00s < #3 of 1: use 4 vCPU / 1GiB
    "#]]);
}

#[test]
fn only_the_agent_that_counts_is_listened_to() {
    let mut story = Story::with_agent(1);
    story.register(2);
    story.run(secs(1));
    story.downscale(1, 1, mib(1024));
    story.upscale(9, 1, mib(1024));
    story.health_check(1);
    story.health_check(9);
    story.check(expect![[r#"
        0.00s < agent 2 registers
        0.00s > Suspend to agent 1: #3
        0.00s > agent 2 is registered, v2.0, metrics at 10301
        0.10s > Resume to agent 2: #2
        1.00s < #4 of 1: live with 1 vCPU / 1GiB?
        1.00s   400: Agent ID 00000000-0000-0000-0000-000000000001 is not the active Agent
        1.00s < #1 of 9: use 1 vCPU / 1GiB
        1.00s   400: Agent ID 00000000-0000-0000-0000-000000000009 is not the active Agent
        1.00s < agent 1 asks whether it is registered
        1.00s   yes
        1.00s < agent 9 asks whether it is registered
        1.00s   404: No Agent with ID 00000000-0000-0000-0000-000000000009 registered
    "#]]);
}

#[test]
fn refused_registrations_say_why() {
    let mut story = Story::with_agent(1);
    story.register(1);
    story.register_as(2, "10.0.2.2:80", 5, 9);
    story.register_as(2, "agent.example:80", 4, 4);
    story.register_as(0, "10.0.2.2:80", 4, 9);
    story.dead(5);
    story.register(5);
    story.run(secs(2));
    story.answers_with(6, Failure::Refused(503));
    story.register(6);
    story.run(secs(2));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s   409: Agent with ID 00000000-0000-0000-0000-000000000001 is already registered
        0.00s < agent 2 registers
        0.00s   400: Protocol version mismatch: Need v1.0 to v2.0 but got <unknown = v2.0 + 1> to <unknown = v2.0 + 5>
        0.00s < agent 2 registers
        0.00s   400: agentServeAddr: "agent.example:80" is not an ip:port that can be called
        0.00s < agent 0 registers
        0.00s   400: agentID: 00000000-0000-0000-0000-000000000000 is not the id of an agent
        0.00s < agent 5 registers
        0.00s > Id to agent 5: NoAnswer
        0.00s   400: Error checking ID for agent 10.0.2.2:20005/00000000-0000-0000-0000-000000000005: no answer
        2.00s < agent 6 registers
        2.00s > Id to agent 6: Refused(503)
        2.00s   400: Error checking ID for agent 10.0.2.2:20006/00000000-0000-0000-0000-000000000006: it answered with status 503
    "#]]);
    assert_eq!(story.informant.agents(), 1);
}

#[test]
fn the_oldest_agent_is_forgotten_when_there_are_too_many() {
    let mut story = Story::new();
    for agent in 1..=9 {
        story.register(agent);
        story.run(secs(1));
    }
    assert_eq!(story.informant.agents(), 8);
    assert_eq!(story.informant.current(), Some(id(9)));
    assert!(matches!(story.informant.registration(id(1)), Some(Err(_))));
    assert!(matches!(story.informant.registration(id(2)), Some(Ok(_))));
}

#[test]
fn a_ninth_agent_registers_once_the_eight_that_were_registering_have_answered() {
    let mut story = Story::new();
    let desc = |agent: u128| AgentDesc {
        agent_id: id(agent),
        serve_addr: format!("10.0.2.2:{}", 20_000 + agent),
        versions: InformantVersion::SPOKEN,
    };
    for agent in 1..=8 {
        story.informant.register(&desc(agent)).unwrap();
    }
    assert_eq!((story.informant.joining(), story.informant.agents()), (8, 0));
    assert_eq!(story.informant.register(&desc(9)), Err(Refusal::Busy(8)));
    story.run(secs(1));
    assert_eq!((story.informant.joining(), story.informant.agents()), (0, 8));
    assert_eq!(story.informant.register(&desc(9)), Ok(()));
    assert_eq!(story.informant.joining(), 1);
}

#[test]
fn what_comes_of_a_call_to_one_that_left_is_not_for_who_comes_back() {
    let now = Moment::from_millis(1_000_000);
    let (first, second) = ("10.0.2.2:20001", "10.0.2.2:20002");
    let desc = |addr: &str| AgentDesc {
        agent_id: id(1),
        serve_addr: addr.to_owned(),
        versions: InformantVersion::SPOKEN,
    };
    let answer = |number| Event::Answered {
        agent: id(1),
        by: id(1),
        sequence: Sequence::from_number(number),
    };
    let mut informant = Informant::new(Settings {
        versions: InformantVersion::SPOKEN,
        metrics_port: 9100,
        parked: BTreeSet::new(),
        leased: Duration::ZERO,
    });
    let call = |informant: &mut Informant, now| {
        // The machine needs nothing: whatever it is asked is done.
        for _ in 0..10 {
            for action in informant.plan(now).actions {
                informant.observe(now, Event::Sent(action.clone()));
                match action {
                    Action::Call { at, ask, .. } => return Some((at.to_string(), ask)),
                    Action::Look => informant.observe(now, Event::Seen(None)),
                    Action::Do(_) => informant.observe(now, Event::Done(true)),
                }
            }
        }
        None
    };
    informant.register(&desc(first)).unwrap();
    assert_eq!(call(&mut informant, now), Some((first.to_owned(), Ask::Id)));
    informant.observe(now, answer(1));
    assert_eq!(call(&mut informant, now), None, "the machine is looked at first");
    let later = now.after(Duration::from_secs(60));
    assert_eq!(call(&mut informant, later), Some((first.to_owned(), Ask::Resume)));
    informant.unregister(&desc(first)).unwrap();
    informant.register(&desc(second)).unwrap();
    assert_eq!(call(&mut informant, later), None, "one call at a time");
    informant.observe(later, answer(2));
    assert_eq!(informant.registration(id(1)), None, "it is not that answer");
    assert_eq!(call(&mut informant, later), Some((second.to_owned(), Ask::Id)));
}

#[test]
fn memory_is_not_given_up_on_too_few_samples() {
    let mut story = Story::with_agent(1);
    story.grow(mib(512));
    story.silence(secs(5));
    story.downscale(1, 1, mib(512));
    story.run(secs(0));
    story.downscale(1, 1, mib(512));
    story.run(secs(1));
    story.downscale(1, 1, mib(512));
    story.check(expect![[r#"
        5.00s < #3 of 1: live with 1 vCPU / 512MiB?
        5.00s   no: memory was not read within the last second
        5.00s < #4 of 1: live with 1 vCPU / 512MiB?
        5.00s   no: memory was read 1 times lately, 5 are needed
        6.00s < #5 of 1: live with 1 vCPU / 512MiB?
        6.00s   yes: 100MiB in use and 101.3MiB to spare fit in 462MiB, which is 512MiB less 50MiB for the kernel
    "#]]);
}

#[test]
fn tasks_that_wait_for_memory_make_it_urgent_and_shrinking_wait() {
    let mut story = Story::with_agent(1);
    story.grow(mib(512));
    story.run(secs(3));
    story.stalls();
    story.run(secs(2));
    story.cache_fills();
    story.run(secs(1));
    story.stalls();
    story.run(secs(2));
    story.downscale(1, 1, mib(768));
    story.run(secs(9));
    story.downscale(1, 1, mib(768));
    story.check(expect![[r#"
        3.00s ! tasks wait for memory
        6.00s ! tasks wait for memory
        6.00s > MoreMemory to agent 1: #3
        7.00s > MoreMemory to agent 1: #4
        8.00s < #5 of 1: live with 1 vCPU / 768MiB?
        8.00s   no: tasks waited for memory 2s ago, and no less than 10s must pass
        17.00s < #6 of 1: live with 1 vCPU / 768MiB?
        17.00s   yes: 100MiB in use and 139.7MiB to spare fit in 718MiB, which is 768MiB less 50MiB for the kernel
    "#]]);
}

#[test]
fn memory_that_was_given_does_not_make_up_for_a_stall() {
    let mut story = Story::with_agent(1);
    story.grow(mib(512));
    story.cache_fills();
    story.run(secs(3));
    story.stalls();
    story.upscale(1, 1, story.size());
    story.run(secs(1));
    story.downscale(1, 1, mib(768));
    story.check(expect![[r#"
        3.00s ! tasks wait for memory
        3.00s < #3 of 1: use 1 vCPU / 1GiB
        4.00s < #4 of 1: live with 1 vCPU / 768MiB?
        4.00s   no: tasks waited for memory 1s ago, and no less than 10s must pass
    "#]]);
}

#[test]
fn without_a_word_from_the_kernel_its_share_is_estimated() {
    let mut story = Story::with_agent(1);
    story.no_zoneinfo();
    story.run(secs(3));
    story.downscale(1, 1, mib(512));
    story.downscale(1, 1, mib(256));
    story.check(expect![[r#"
        3.00s < #3 of 1: live with 1 vCPU / 512MiB?
        3.00s   yes: 100MiB in use and 96MiB to spare fit in 412MiB, which is 512MiB less 100MiB for the kernel
        3.00s < #4 of 1: live with 1 vCPU / 256MiB?
        3.00s   no: 100MiB in use and 96MiB to spare do not fit in 156MiB, which is 256MiB less 100MiB for the kernel
    "#]]);
}
