//! What an informant does with vCPUs, as transcripts: which are parked, and which come online.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "stories and vcpus each need a part of it")]
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use story::{Story, id, mib, secs};
use windlass_informant_core::Change;

#[test]
fn parking_takes_the_highest_vcpus_and_an_upscale_brings_them_back() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    story.upscale(1, 3, story.size());
    story.run(secs(1));
    story.downscale(1, 1, mib(1));
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 2 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({2, 3})
        0.00s > OfflineCpu(3)
        0.00s > OfflineCpu(2)
        1.00s < #4 of 1: use 3 vCPU / 512MiB
        1.00s > OnlineCpu(2)
        1.00s > Remember({3})
        2.00s < #5 of 1: live with 1 vCPU / 1MiB?
        2.00s   no: 100MiB in use and 96MiB to spare do not fit in 0B, which is 1MiB less 50MiB for the kernel
    "#]]);
}

#[test]
fn a_vcpu_that_will_not_go_is_left_and_a_lower_one_is_parked() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.stuck_cpu(3);
    story.downscale(1, 3, story.size());
    story.run(secs(1));
    assert_eq!(story.online(), 3);
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 3 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({3})
        0.00s > OfflineCpu(3), which fails
        0.00s > OfflineCpu(2)
        0.00s > Remember({2})
    "#]]);
}

#[test]
fn what_was_agreed_to_holds_for_vcpus_that_come_online_late() {
    let mut story = Story::with_agent(1);
    (1..4).for_each(|cpu| story.stuck_cpu(cpu));
    story.machine(4, &[1, 2, 3], &[]);
    story.upscale(1, 4, story.size());
    story.run(secs(1));
    story.downscale(1, 2, story.size());
    story.no_cpu_is_stuck();
    story.run(secs(3));
    assert_eq!(story.online(), 2);
    story.check(expect![[r#"
        0.00s < #3 of 1: use 4 vCPU / 512MiB
        0.00s > OnlineCpu(1), which fails
        0.00s > OnlineCpu(2), which fails
        0.00s > OnlineCpu(3), which fails
        1.00s > OnlineCpu(1), which fails
        1.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(3), which fails
        1.00s < #4 of 1: live with 2 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        1.00s > Remember({2, 3})
        2.00s > OnlineCpu(1)
    "#]]);
}

#[test]
fn what_an_earlier_agent_allowed_ends_with_the_next_registration() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    (2..4).for_each(|cpu| story.stuck_cpu(cpu));
    story.upscale(1, 4, story.size());
    story.run(secs(1));
    story.register(2);
    story.run(secs(1));
    // Agent 2 has counted two vCPUs; whatever can come online now waits for its word.
    story.no_cpu_is_stuck();
    story.run(secs(5));
    assert_eq!(story.online(), 2);
    story.upscale(2, 3, story.size());
    story.run(secs(1));
    assert_eq!(story.online(), 3);
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 2 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({2, 3})
        0.00s > OfflineCpu(3)
        0.00s > OfflineCpu(2)
        1.00s < #4 of 1: use 4 vCPU / 512MiB
        1.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(3), which fails
        2.00s > OnlineCpu(2), which fails
        2.00s > OnlineCpu(3), which fails
        2.00s < agent 2 registers
        2.00s > Suspend to agent 1: #5
        2.00s > agent 2 is registered, v2.0, metrics at 10301
        2.10s > Resume to agent 2: #2
        8.00s < #3 of 2: use 3 vCPU / 512MiB
        8.00s > OnlineCpu(2)
        8.00s > Remember({3})
    "#]]);
}

#[test]
fn a_registration_that_comes_to_nothing_holds_nothing_back() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    (2..4).for_each(|cpu| story.stuck_cpu(cpu));
    story.upscale(1, 4, story.size());
    story.dead(2);
    story.register(2);
    story.run(secs(3));
    story.no_cpu_is_stuck();
    story.run(secs(2));
    assert_eq!(story.online(), 4);
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 2 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({2, 3})
        0.00s > OfflineCpu(3)
        0.00s > OfflineCpu(2)
        1.00s < #4 of 1: use 4 vCPU / 512MiB
        1.00s < agent 2 registers
        1.00s > Id to agent 2: NoAnswer
        1.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(3), which fails
        1.00s   400: Error checking ID for agent 10.0.2.2:20002/00000000-0000-0000-0000-000000000002: no answer
        2.00s > OnlineCpu(2), which fails
        2.00s > OnlineCpu(3), which fails
        3.00s > OnlineCpu(2), which fails
        3.00s > OnlineCpu(3), which fails
        4.00s > OnlineCpu(2), which fails
        4.00s > OnlineCpu(3), which fails
        5.00s > OnlineCpu(2)
        5.00s > OnlineCpu(3)
        5.00s > Remember({})
    "#]]);
}

#[test]
fn what_cannot_be_remembered_is_parked_all_the_same_and_remembered_later() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.stores_nothing(true);
    story.downscale(1, 2, story.size());
    story.run(secs(2));
    assert_eq!(story.online(), 2);
    story.stores_nothing(false);
    story.run(secs(2));
    story.restart();
    story.register(2);
    story.run(secs(11));
    assert_eq!(story.online(), 2);
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 2 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({2, 3}), which fails
        0.00s > OfflineCpu(3)
        0.00s > OfflineCpu(2)
        1.00s > Remember({2, 3}), which fails
        2.00s > Remember({2, 3}), which fails
        3.00s > Remember({2, 3})
        4.00s ! the informant restarts, remembering {2, 3}
        4.00s < agent 2 registers
        4.00s > AddedIsMovable
        4.00s > Note(10s)
        4.00s > agent 2 is registered, v2.0, metrics at 10301
        14.00s > Resume to agent 2: #2
    "#]]);
}

#[test]
fn what_is_agreed_to_during_a_look_is_measured_by_the_next() {
    let mut story = Story::with_agent(1);
    story.machine(1, &[], &[]);
    story.upscale(1, 3, story.size());
    story.run(secs(1));
    let size = story.size();
    // Two vCPUs come right after the machine was read, and before that is told.
    story.while_it_looks(|story| {
        story.machine(3, &[1, 2], &[]);
        story.downscale(1, 2, size);
    });
    story.run(secs(6));
    assert_eq!(story.online(), 2);
    story.check(expect![[r#"
        0.00s < #3 of 1: use 3 vCPU / 512MiB
        1.00s < #4 of 1: live with 2 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        1.00s > Remember({2})
        1.00s > OnlineCpu(1)
    "#]]);
}

#[test]
fn a_look_that_is_older_than_an_agreement_does_not_fulfil_it() {
    let mut story = Story::with_agent(1);
    story.machine(2, &[1], &[]);
    story.run(secs(1));
    let size = story.size();
    // Somebody brings a vCPU online right after the machine was read, and before that is told.
    story.while_it_looks(|story| {
        story.machine(2, &[], &[]);
        story.downscale(1, 1, size);
    });
    story.run(secs(1));
    assert_eq!(story.online(), 1);
}

#[test]
fn memory_that_will_not_come_online_keeps_nobody_from_parking() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.stuck_block(9);
    story.run(secs(1));
    story.downscale(1, 2, story.size());
    story.run(secs(2));
    assert_eq!(story.online(), 2);
}

#[test]
fn what_is_agreed_to_holds_though_a_change_was_under_way() {
    let mut story = Story::with_agent(1);
    (1..4).for_each(|cpu| story.stuck_cpu(cpu));
    story.machine(4, &[1, 2, 3], &[]);
    story.upscale(1, 4, story.size());
    story.run(secs(1));
    let size = story.size();
    story.meanwhile(Change::OnlineCpu(1), |story| {
        story.downscale(1, 3, size);
        assert_eq!(story.coming_online(), Some(1), "it is reported with those that are online");
    });
    assert_eq!(story.coming_online(), None);
    story.no_cpu_is_stuck();
    story.run(secs(3));
    assert_eq!(story.online(), 3);
    story.check(expect![[r#"
        0.00s < #3 of 1: use 4 vCPU / 512MiB
        0.00s > OnlineCpu(1), which fails
        0.00s > OnlineCpu(2), which fails
        0.00s > OnlineCpu(3), which fails
        1.00s > OnlineCpu(1), which fails
        1.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(3), which fails
        1.00s < #4 of 1: live with 3 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        1.00s > Remember({3})
        2.00s > OnlineCpu(1)
        2.00s > OnlineCpu(2)
    "#]]);
}

#[test]
fn what_is_held_back_is_remembered_while_others_will_not_come_online() {
    let mut story = Story::with_agent(1);
    (1..4).for_each(|cpu| story.stuck_cpu(cpu));
    story.machine(4, &[1, 2, 3], &[]);
    story.upscale(1, 4, story.size());
    story.run(secs(1));
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    story.restart();
    story.no_cpu_is_stuck();
    story.register(2);
    story.run(secs(12));
    assert_eq!(story.online(), 2);
    story.check(expect![[r#"
        0.00s < #3 of 1: use 4 vCPU / 512MiB
        0.00s > OnlineCpu(1), which fails
        0.00s > OnlineCpu(2), which fails
        0.00s > OnlineCpu(3), which fails
        1.00s > OnlineCpu(1), which fails
        1.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(3), which fails
        1.00s < #4 of 1: live with 2 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        1.00s > Remember({2, 3})
        2.00s > OnlineCpu(1), which fails
        2.00s ! the informant restarts, remembering {2, 3}
        2.00s < agent 2 registers
        2.00s > AddedIsMovable
        2.00s > Note(10s)
        2.00s > OnlineCpu(1)
        2.00s > agent 2 is registered, v2.0, metrics at 10301
        12.00s > Resume to agent 2: #2
    "#]]);
}

#[test]
fn vcpus_that_would_not_come_online_wait_for_the_next_agents_word() {
    let mut story = Story::with_agent(1);
    (1..3).for_each(|cpu| story.stuck_cpu(cpu));
    story.machine(3, &[1, 2], &[]);
    story.upscale(1, 3, story.size());
    story.run(secs(1));
    story.register(2);
    story.run(secs(1));
    story.no_cpu_is_stuck();
    story.run(secs(3));
    assert_eq!(story.online(), 1);
    story.upscale(2, 2, story.size());
    story.run(secs(1));
    assert_eq!(story.online(), 2);
    story.check(expect![[r#"
        0.00s < #3 of 1: use 3 vCPU / 512MiB
        0.00s > OnlineCpu(1), which fails
        0.00s > OnlineCpu(2), which fails
        1.00s > OnlineCpu(1), which fails
        1.00s > OnlineCpu(2), which fails
        1.00s < agent 2 registers
        1.00s > Suspend to agent 1: #4
        1.00s > Remember({1, 2})
        1.00s > agent 2 is registered, v2.0, metrics at 10301
        1.10s > Resume to agent 2: #2
        5.00s < #3 of 2: use 2 vCPU / 512MiB
        5.00s > OnlineCpu(1)
        5.00s > Remember({2})
    "#]]);
}

#[test]
fn vcpus_that_turn_up_once_an_agent_has_counted_wait_for_its_word() {
    let mut story = Story::with_agent(1);
    // Plugged for an earlier agent, and noticed by the kernel only now.
    story.machine(3, &[1, 2], &[]);
    story.run(secs(6));
    assert_eq!(story.online(), 1);
    story.upscale(1, 2, story.size());
    story.run(secs(1));
    assert_eq!(story.online(), 2);
    story.downscale(1, 1, story.size());
    story.run(secs(1));
    // Agreed to, done, and then one more turns up.
    story.machine_gets(3);
    story.run(secs(6));
    assert_eq!(story.online(), 1);
    story.check(expect![[r#"
        0.00s > Remember({1, 2})
        6.00s < #3 of 1: use 2 vCPU / 512MiB
        6.00s > OnlineCpu(1)
        6.00s > Remember({2})
        7.00s < #4 of 1: live with 1 vCPU / 512MiB?
        7.00s   yes: 512MiB is no less than the VM has
        7.00s > Remember({1, 2})
        7.00s > OfflineCpu(1)
        12.00s > Remember({1, 2, 3})
    "#]]);
}

#[test]
fn an_agreement_allows_no_more_than_before() {
    let mut story = Story::with_agent(1);
    story.machine(1, &[], &[]);
    story.run(secs(1));
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    story.machine_gets(1);
    story.run(secs(6));
    assert_eq!(story.online(), 1);
    // Nobody is left who counts: what is added now is used.
    story.unregister(1);
    story.machine_gets(2);
    story.run(secs(6));
    story.check(expect![[r#"
        1.00s < #3 of 1: live with 2 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        6.00s > Remember({1})
        8.00s < agent 1 unregisters
        8.00s   Ok(Unregistered { was_active: true })
        11.00s > OnlineCpu(2)
    "#]]);
}

#[test]
fn what_was_allowed_may_turn_up_later() {
    let mut story = Story::with_agent(1);
    story.machine(1, &[], &[]);
    story.upscale(1, 2, story.size());
    story.run(secs(1));
    story.machine_gets(1);
    story.machine_gets(2);
    story.run(secs(6));
    story.check(expect![[r#"
        0.00s < #3 of 1: use 2 vCPU / 512MiB
        5.00s > Remember({2})
        5.00s > OnlineCpu(1)
    "#]]);
}

#[test]
fn parked_vcpus_stay_parked_over_a_restart_and_added_ones_do_not() {
    let mut story = Story::with_agent(1);
    story.machine(4, &[], &[]);
    story.downscale(1, 2, story.size());
    story.run(secs(1));
    story.restart();
    story.machine_gets(4);
    story.run(secs(1));
    story.register(2);
    story.run(secs(11));
    story.check(expect![[r#"
        0.00s < #3 of 1: live with 2 vCPU / 512MiB?
        0.00s   yes: 512MiB is no less than the VM has
        0.00s > Remember({2, 3})
        0.00s > OfflineCpu(3)
        0.00s > OfflineCpu(2)
        1.00s ! the informant restarts, remembering {2, 3}
        2.00s < agent 2 registers
        2.00s > AddedIsMovable
        2.00s > Note(10s)
        2.00s > OnlineCpu(4)
        2.00s > agent 2 is registered, v2.0, metrics at 10301
        11.00s > Resume to agent 2: #2
    "#]]);
    assert_eq!(story.informant.parked().iter().copied().collect::<Vec<_>>(), vec![2, 3]);
    assert_eq!(story.informant.current().unwrap(), id(2));
}
