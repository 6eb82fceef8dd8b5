//! What a scaler asks for, of peers that answer as they are told, as transcripts.
//!
//! Looks, measurements and health checks are left out: they go on at all times.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "stories/limit_faults.rs"]
mod limit_faults;
#[path = "stories/limits.rs"]
mod limits;
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use story::{Answer, Story, cu};
use windlass_agent_core::Order;
use windlass_protocol::Mode;

#[test]
fn growth_waits_for_the_permit_and_the_guest_hears_of_what_is_there() {
    let mut story = Story::begin();
    story.load(2.0);
    story.plugin = Answer::Silence;
    story.go(4);
    story.plugin = Answer::Yes;
    story.go(4);
    story.check(expect![[r#"
        0.0s   the load is 2
        0.0s     to the informant: hello yes
        0.0s     to the plugin: may I have 1 vCPU / 1GiB? …
        1.0s     to the plugin: may I have 1 vCPU / 1GiB? …
        2.9s     to the plugin: may I have 1 vCPU / 1GiB? …
        6.6s     to the plugin: may I have 1 vCPU / 1GiB? yes
        6.8s     to the plugin: may I have 2 vCPU / 2GiB? yes
        6.8s     to the hypervisor: make it 2GiB yes
        6.8s     to the hypervisor: plug 2 yes
        6.8s     to the informant: you have 1 vCPU / 2GiB yes
        6.8s     to the informant: you have 2 vCPU / 2GiB yes
        8.0s   it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn shrinking_waits_for_consent_one_unit_at_a_time() {
    let mut story = Story::begin();
    story.load(2.7);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.go(8);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 2 vCPU / 2GiB enough? yes
        8.4s     to the hypervisor: make it 2GiB yes
        8.4s     to the plugin: may I have 2 vCPU / 3GiB? yes
        8.4s     to the informant: is 1 vCPU / 1GiB enough? yes
        8.4s     to the hypervisor: make it 1GiB yes
        8.7s     to the plugin: may I have 1 vCPU / 1GiB? yes
        13.9s    to the plugin: may I have 1 vCPU / 1GiB? yes
        16.0s  it has 3 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn what_was_offered_back_is_not_used_until_it_is_granted_again() {
    let mut story = Story::begin();
    story.load(2.7);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.plugin = Answer::Silence;
    story.go(1);
    // The plugin may have heard that the VM has less.
    story.load(2.7);
    story.go(4);
    story.plugin = Answer::Yes;
    story.go(8);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 2 vCPU / 2GiB enough? yes
        8.4s     to the hypervisor: make it 2GiB yes
        8.4s     to the plugin: may I have 2 vCPU / 3GiB? …
        8.4s     to the informant: is 1 vCPU / 1GiB enough? yes
        8.4s     to the hypervisor: make it 1GiB yes
        9.0s   the load is 2.7
        9.4s     to the plugin: may I have 1 vCPU / 1GiB? …
        11.5s    to the plugin: may I have 3 vCPU / 3GiB? …
        15.8s    to the plugin: may I have 3 vCPU / 3GiB? yes
        15.8s    to the hypervisor: make it 3GiB yes
        15.8s    to the informant: you have 3 vCPU / 1GiB yes
        15.8s    to the informant: you have 3 vCPU / 3GiB yes
        21.0s  it has 3 vCPU / 3GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_refuses_keeps_its_memory_and_is_asked_later_each_time() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.guest = Answer::No;
    story.go(20);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 1 vCPU / 1GiB enough? no
        8.4s     to the informant: is 1 vCPU / 2GiB enough? no
        9.7s     to the plugin: may I have 2 vCPU / 2GiB? yes
        13.3s    to the informant: is 1 vCPU / 2GiB enough? no
        13.8s    to the informant: is 2 vCPU / 1GiB enough? no
        14.9s    to the plugin: may I have 2 vCPU / 2GiB? yes
        20.3s    to the plugin: may I have 2 vCPU / 2GiB? yes
        23.0s    to the informant: is 2 vCPU / 1GiB enough? no
        24.1s    to the informant: is 1 vCPU / 2GiB enough? no
        24.9s    to the plugin: may I have 2 vCPU / 2GiB? yes
        28.0s  it has 2 vCPU / 2GiB, and waits: [Refused { until: Moment(43641) }]
    "#]]);
}

#[test]
fn a_hypervisor_that_refuses_one_axis_is_asked_later_each_time_and_moves_the_other() {
    let mut story = Story::begin();
    story.load(1.6);
    story.refuses_memory = true;
    story.go(30);
    story.check(expect![[r#"
        0.0s   the load is 1.6
        0.0s     to the informant: hello yes
        0.0s     to the plugin: may I have 1 vCPU / 1GiB? yes
        0.3s     to the plugin: may I have 2 vCPU / 2GiB? yes
        0.3s     to the hypervisor: make it 2GiB no
        0.8s     to the hypervisor: plug 2 yes
        0.8s     to the informant: you have 2 vCPU / 1GiB yes
        1.8s     to the hypervisor: make it 2GiB no
        4.5s     to the hypervisor: make it 2GiB no
        5.1s     to the plugin: may I have 2 vCPU / 2GiB? yes
        9.0s     to the hypervisor: make it 2GiB no
        10.5s    to the plugin: may I have 2 vCPU / 2GiB? yes
        14.9s    to the hypervisor: make it 2GiB no
        15.0s    to the plugin: may I have 2 vCPU / 2GiB? yes
        19.8s    to the plugin: may I have 2 vCPU / 2GiB? yes
        20.5s    to the hypervisor: make it 2GiB no
        25.2s    to the plugin: may I have 2 vCPU / 2GiB? yes
        25.8s    to the hypervisor: make it 2GiB no
        30.0s  it has 2 vCPU / 1GiB, and waits: [NoEffect { until: Moment(31399) }]
    "#]]);
}

#[test]
fn memory_that_a_guest_takes_back_is_asked_for_later_each_time() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.takes_back = true;
    story.go(20);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 1 vCPU / 1GiB enough? yes
        8.4s     to the hypervisor: make it 1GiB yes
        8.4s     to the plugin: may I have 1 vCPU / 2GiB? yes
        9.4s     to the hypervisor: make it 1GiB yes
        11.5s    to the hypervisor: make it 1GiB yes
        13.6s    to the plugin: may I have 1 vCPU / 2GiB? yes
        15.8s    to the hypervisor: make it 1GiB yes
        18.5s    to the plugin: may I have 1 vCPU / 2GiB? yes
        23.1s    to the informant: is 1 vCPU / 1GiB enough? yes
        23.1s    to the hypervisor: make it 1GiB yes
        23.6s    to the plugin: may I have 1 vCPU / 2GiB? yes
        28.0s  it has 2 vCPU / 2GiB, and waits: [NoEffect { until: Moment(40500) }]
    "#]]);
}

#[test]
fn a_guest_that_cannot_use_a_vcpu_still_gives_back_what_it_has() {
    let mut story = Story::begin();
    story.most_online = cu(2).cpu;
    story.load(2.7);
    story.go(10);
    story.forget();
    story.load(0.1);
    story.go(8);
    story.check(expect![[r#"
        10.0s  the load is 0.1
        10.5s    to the informant: is 2 vCPU / 2GiB enough? yes
        10.5s    to the hypervisor: make it 2GiB yes
        10.5s    to the plugin: may I have 2 vCPU / 3GiB? yes
        10.5s    to the informant: is 1 vCPU / 1GiB enough? yes
        10.5s    to the hypervisor: make it 1GiB yes
        10.8s    to the plugin: may I have 1 vCPU / 1GiB? yes
        15.6s    to the plugin: may I have 1 vCPU / 1GiB? yes
        18.0s  it has 3 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn an_informant_that_refuses_every_size_is_left_alone_for_seconds() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.breaks = true;
    story.go(20);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 1 vCPU / 1GiB enough? no
        13.3s    to the informant: hello yes
        13.3s    to the plugin: may I have 2 vCPU / 2GiB? yes
        13.3s    to the informant: is 2 vCPU / 1GiB enough? no
        18.3s    to the informant: hello yes
        18.3s    to the plugin: may I have 2 vCPU / 2GiB? yes
        18.3s    to the informant: is 2 vCPU / 1GiB enough? no
        23.3s    to the informant: hello yes
        23.3s    to the plugin: may I have 2 vCPU / 2GiB? yes
        23.3s    to the informant: is 2 vCPU / 1GiB enough? no
        28.0s  it has 2 vCPU / 2GiB, and waits: [Informant]
    "#]]);
}

#[test]
fn a_vcpu_that_was_parked_long_ago_is_taken_out() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.load(0.1);
    story.go(8);
    story.forget();
    story.removal();
    story.go(3);
    story.check(expect![[r#"
        16.0s  vCPUs may be taken out
        16.0s    to the hypervisor: plug 1 yes
        19.0s  it has 1 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vcpu_that_was_parked_for_another_agent_is_taken_out_once_the_guest_agrees() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.load(0.1);
    story.go(8);
    story.forget();
    story.restart_with_removal();
    story.go(8);
    story.check(expect![[r#"
        16.0s  another agent begins
        16.0s  vCPUs may be taken out
        16.0s    to the informant: hello yes
        16.0s    to the plugin: may I have 2 vCPU / 1GiB? yes
        16.3s    to the plugin: may I have 1 vCPU / 1GiB? yes
        16.3s    to the informant: is 1 vCPU / 1GiB enough? yes
        19.3s    to the hypervisor: plug 1 yes
        21.1s    to the plugin: may I have 1 vCPU / 1GiB? yes
        24.0s  it has 1 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn who_begins_to_watch_calls_off_what_it_began_to_take() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(0.1);
    story.gives_slowly = true;
    story.go(2);
    story.watch();
    story.go(4);
    story.check(expect![[r#"
        8.0s   the load is 0.1
        8.4s     to the informant: is 1 vCPU / 1GiB enough? yes
        8.4s     to the hypervisor: make it 1GiB yes
        8.4s     to the plugin: may I have 1 vCPU / 2GiB? yes
        10.0s  a person says: only watch
        10.0s    to the hypervisor: make it 2GiB yes
        10.0s    to the informant: good-bye yes
        14.0s  it has 2 vCPU / 2GiB, and waits: [Observing]
    "#]]);
}

#[test]
fn a_frozen_vm_is_let_go_after_the_thaw() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.pause(10);
    story.order(Order::Release(Some(cu(2))));
    story.go(8);
    story.check(expect![[r#"
        5.0s   a person says: pause for 10 s
        5.0s   a person orders: let go at 2 vCPU / 2GiB
        5.0s     to the plugin: may I have 1 vCPU / 1GiB? yes
        9.9s     to the plugin: may I have 1 vCPU / 1GiB? yes
        13.0s  it has 1 vCPU / 1GiB, and waits: [Paused { until: Moment(15000) }]
    "#]]);
}

#[test]
fn a_call_off_that_has_no_effect_is_tried_later_each_time() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.load(0.1);
    story.gives_slowly = true;
    story.go(2);
    story.forget();
    story.idle = true;
    story.breaks = true;
    story.restart();
    story.go(12);
    story.check(expect![[r#"
        10.0s  another agent begins
        10.0s    to the informant: hello yes
        10.0s    to the hypervisor: make it 2GiB yes
        10.0s    to the plugin: may I have 2 vCPU / 2GiB? yes
        10.3s    to the plugin: may I have 1 vCPU / 2GiB? yes
        10.9s    to the hypervisor: make it 2GiB yes
        12.9s    to the hypervisor: make it 2GiB yes
        15.3s    to the plugin: may I have 1 vCPU / 2GiB? yes
        16.6s    to the hypervisor: make it 2GiB yes
        20.7s    to the plugin: may I have 1 vCPU / 2GiB? yes
        21.4s    to the hypervisor: make it 2GiB yes
        22.0s  it has 2 vCPU / 2GiB, and waits: [Unplug { left: Bytes(1073741824) }, NoEffect { until: Moment(26831) }]
    "#]]);
}

#[test]
fn a_resize_without_an_answer_counts_until_it_is_seen() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(2.7);
    story.hypervisor = Answer::Silence;
    story.go(3);
    story.hypervisor = Answer::Yes;
    story.go(6);
    story.check(expect![[r#"
        8.0s   the load is 2.7
        8.4s     to the plugin: may I have 3 vCPU / 3GiB? yes
        8.4s     to the hypervisor: make it 3GiB …
        8.9s     to the hypervisor: plug 3 …
        8.9s     to the informant: you have 2 vCPU / 3GiB yes
        9.4s     to the informant: you have 3 vCPU / 3GiB yes
        13.8s    to the plugin: may I have 3 vCPU / 3GiB? yes
        17.0s  it has 3 vCPU / 3GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn growth_that_was_lost_is_not_asked_for_again_when_it_is_not_wanted() {
    let mut story = Story::begin();
    story.load(1.6);
    story.go(8);
    story.forget();
    story.load(2.7);
    (story.hypervisor, story.idle) = (Answer::Silence, true);
    story.go(1);
    // It never arrived, and by now nobody wants it.
    (story.hypervisor, story.idle) = (Answer::Yes, false);
    story.load(1.6);
    story.go(6);
    assert_eq!(story.upper(), cu(2));
    story.check(expect![[r#"
        8.0s   the load is 2.7
        8.4s     to the plugin: may I have 3 vCPU / 3GiB? yes
        8.4s     to the hypervisor: make it 3GiB …
        8.9s     to the hypervisor: plug 3 …
        9.0s   the load is 1.6
        9.4s     to the plugin: may I have 2 vCPU / 2GiB? yes
        14.3s    to the plugin: may I have 2 vCPU / 2GiB? yes
        15.0s  it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_takes_its_word_back_is_left_alone_for_longer_each_time() {
    let mut story = Story::begin();
    story.load(2.7);
    story.go(12);
    story.forget();
    story.gives_slowly = true;
    story.order(Order::Release(Some(cu(2))));
    for seconds in [1, 6, 11] {
        story.go(seconds);
        story.calls_for_memory();
    }
    // At last it lets go.
    story.gives_slowly = false;
    story.go(25);
    story.check(expect![[r#"
        12.0s  a person orders: let go at 2 vCPU / 2GiB
        12.0s    to the informant: is 2 vCPU / 2GiB enough? yes
        12.0s    to the hypervisor: make it 2GiB yes
        12.0s    to the plugin: may I have 2 vCPU / 3GiB? yes
        13.0s  the guest calls for memory
        13.0s    to the hypervisor: make it 3GiB yes
        16.8s    to the plugin: may I have 2 vCPU / 3GiB? yes
        18.4s    to the informant: is 2 vCPU / 2GiB enough? yes
        18.4s    to the hypervisor: make it 2GiB yes
        19.0s  the guest calls for memory
        19.0s    to the hypervisor: make it 3GiB yes
        21.7s    to the plugin: may I have 2 vCPU / 3GiB? yes
        27.1s    to the plugin: may I have 2 vCPU / 3GiB? yes
        28.5s    to the informant: is 2 vCPU / 2GiB enough? yes
        28.5s    to the hypervisor: make it 2GiB yes
        30.0s  the guest calls for memory
        30.0s    to the hypervisor: make it 3GiB yes
        32.0s    to the plugin: may I have 2 vCPU / 3GiB? yes
        36.7s    to the plugin: may I have 2 vCPU / 3GiB? yes
        41.6s    to the plugin: may I have 2 vCPU / 3GiB? yes
        46.9s    to the plugin: may I have 2 vCPU / 3GiB? yes
        50.5s    to the informant: is 2 vCPU / 2GiB enough? yes
        50.5s    to the hypervisor: make it 2GiB yes
        50.5s    to the plugin: may I have 2 vCPU / 2GiB? yes
        50.5s    to the informant: good-bye yes
        55.0s  it has 3 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_calls_for_memory_gets_a_unit_more_than_it_has() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.calls_for_memory();
    story.go(3);
    story.check(expect![[r#"
        5.0s   the guest calls for memory
        5.0s     to the plugin: may I have 2 vCPU / 2GiB? yes
        5.0s     to the hypervisor: make it 2GiB yes
        5.0s     to the hypervisor: plug 2 yes
        5.0s     to the informant: you have 1 vCPU / 2GiB yes
        5.0s     to the informant: you have 2 vCPU / 2GiB yes
        8.0s   it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn who_only_watches_asks_nobody() {
    let mut story = Story::of(Mode::Observe);
    story.load(2.7);
    story.go(20);
    story.check(expect![[r#"
        0.0s   the load is 2.7
        20.0s  it has 1 vCPU / 1GiB, and waits: [Observing]
    "#]]);
}

#[test]
fn a_frozen_vm_keeps_what_it_has_and_goes_on_after_the_thaw() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.order(Order::Freeze);
    story.load(1.6);
    story.go(8);
    story.order(Order::Follow);
    story.go(4);
    story.check(expect![[r#"
        5.0s   a person orders: freeze
        5.0s   the load is 1.6
        5.0s     to the plugin: may I have 1 vCPU / 1GiB? yes
        9.9s     to the plugin: may I have 1 vCPU / 1GiB? yes
        13.0s  a person orders: follow the load
        13.0s    to the plugin: may I have 2 vCPU / 2GiB? yes
        13.0s    to the hypervisor: make it 2GiB yes
        13.0s    to the hypervisor: plug 2 yes
        13.0s    to the informant: you have 1 vCPU / 2GiB yes
        13.0s    to the informant: you have 2 vCPU / 2GiB yes
        17.0s  it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vm_that_is_let_go_moves_to_the_size_that_was_named() {
    let mut story = Story::begin();
    story.go(5);
    story.forget();
    story.order(Order::Release(Some(cu(2))));
    story.go(8);
    story.check(expect![[r#"
        5.0s   a person orders: let go at 2 vCPU / 2GiB
        5.0s     to the plugin: may I have 2 vCPU / 2GiB? yes
        5.0s     to the hypervisor: make it 2GiB yes
        5.0s     to the hypervisor: plug 2 yes
        5.0s     to the informant: you have 1 vCPU / 2GiB yes
        5.0s     to the informant: you have 2 vCPU / 2GiB yes
        5.0s     to the informant: good-bye yes
        13.0s  it has 2 vCPU / 2GiB, and waits: [AtGoal]
    "#]]);
}
