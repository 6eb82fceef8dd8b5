//! What a scaler makes of a host's limit that somebody else changes, that cannot be set, or that is there already.
//!
//! Each of these histories was found by the simulation.

use crate::story::{Answer, Story, quarters};
use expect_test::expect;
use windlass_agent_core::Order;
use windlass_protocol::MilliCpu;

#[test]
fn a_vm_that_is_let_go_at_a_size_is_not_limited_again() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.order(Order::Release(Some(quarters(4))));
    story.go(12);
    story.check(expect![[r#"
        12.0s  a person orders: let go at 1 vCPU / 1GiB
        12.0s    to the plugin: may I have 1 vCPU / 1GiB? yes
        12.0s    to the hypervisor: limit it to 1 yes
        12.0s    to the hypervisor: make it 1GiB yes
        12.0s    to the informant: you have 1 vCPU / 1GiB yes
        12.2s    to the plugin: may I have 2 vCPU / 1GiB? yes
        12.2s    to the hypervisor: lift the limit yes
        12.2s    to the informant: good-bye yes
        24.0s  it has 2 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_limit_is_not_lowered_while_the_guest_is_told_of_vcpus() {
    let mut story = Story::limited(2);
    story.go(12);
    story.another_limited_to(quarters(5).cpu);
    story.forget();
    story.load(1.2);
    story.go(8);
    story.check(expect![[r#"
        12.0s  the load is 1.2
        12.0s    to the informant: hello yes
        12.0s    to the plugin: may I have 1.25 vCPU / 768MiB? yes
        12.3s    to the plugin: may I have 1.25 vCPU / 1.25GiB? yes
        12.3s    to the informant: you have 2 vCPU / 768MiB yes
        12.3s    to the hypervisor: make it 1.25GiB yes
        12.3s    to the informant: you have 2 vCPU / 1.25GiB yes
        17.1s    to the plugin: may I have 1.25 vCPU / 1.25GiB? yes
        20.0s  it has 1.25 vCPU / 1.25GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_limit_that_was_reset_is_set_for_what_the_guest_has_got_since() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.refuses_limits = true;
    story.limit_is_reset();
    story.load(1.6);
    story.go(10);
    story.refuses_limits = false;
    story.go(20);
    story.check(expect![[r#"
        12.0s  the limit is reset
        12.0s  the load is 1.6
        12.4s    to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        12.4s    to the hypervisor: limit it to 1.75 no
        13.0s    to the hypervisor: make it 1.75GiB yes
        13.0s    to the plugin: may I have 2 vCPU / 1.75GiB? yes
        13.0s    to the hypervisor: limit it to 2 no
        13.0s    to the informant: you have 2 vCPU / 1.75GiB yes
        14.4s    to the hypervisor: limit it to 2 no
        16.9s    to the hypervisor: limit it to 2 no
        17.5s    to the plugin: may I have 2 vCPU / 1.75GiB? yes
        21.2s    to the hypervisor: limit it to 2 no
        22.2s    to the plugin: may I have 2 vCPU / 1.75GiB? yes
        27.5s    to the plugin: may I have 2 vCPU / 1.75GiB? yes
        29.7s    to the hypervisor: limit it to 2 yes
        29.7s    to the hypervisor: limit it to 1.75 yes
        29.7s    to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        34.7s    to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        39.6s    to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        42.0s  it has 1.75 vCPU / 1.75GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_ceiling_that_was_reset_with_our_limit_is_a_ceiling_still() {
    let mut story = Story::limited(2);
    story.go(12);
    story.load(1.6);
    story.go(8);
    story.forget();
    story.somebody_limits(Some(MilliCpu::from_milli(620)));
    story.limit_is_reset();
    story.go(8);
    story.check(expect![[r#"
        20.0s  somebody sets the limit: 0.62
        20.0s  the limit is reset
        20.4s    to the hypervisor: limit it to 0.62 yes
        20.4s    to the plugin: may I have 2 vCPU / 1.75GiB? yes
        20.4s    to the informant: is 1 vCPU / 1.75GiB enough? yes
        20.4s    to the hypervisor: limit it to 0.6 yes
        20.7s    to the plugin: may I have 0.6 vCPU / 1.75GiB? yes
        26.1s    to the plugin: may I have 0.6 vCPU / 1.75GiB? yes
        28.0s  it has 0.6 vCPU / 1.75GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn what_a_guest_has_once_it_is_told_of_vcpus_is_asked_for() {
    let mut story = Story::limited_where(2, true);
    story.go(12);
    story.another_limited_to(quarters(7).cpu);
    story.forget();
    story.load(1.2);
    story.go(8);
    story.check(expect![[r#"
        12.0s  the load is 1.2
        12.0s    to the informant: hello yes
        12.0s    to the plugin: may I have 1.75 vCPU / 768MiB? yes
        12.3s    to the hypervisor: limit it to 1.25 yes
        12.3s    to the plugin: may I have 1.75 vCPU / 1.25GiB? yes
        12.3s    to the informant: you have 2 vCPU / 768MiB yes
        12.3s    to the hypervisor: make it 1.25GiB yes
        12.3s    to the informant: you have 2 vCPU / 1.25GiB yes
        12.6s    to the plugin: may I have 1.25 vCPU / 1.25GiB? yes
        17.6s    to the plugin: may I have 1.25 vCPU / 1.25GiB? yes
        20.0s  it has 1.25 vCPU / 1.25GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vm_that_is_about_to_be_moved_does_not_say_that_it_has_less_than_it_has() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.stays = Some(quarters(3));
    story.go(6);
    story.limit_is_reset();
    story.go(12);
    story.stays = None;
    story.plugin = Answer::Yes;
    story.go(30);
    story.check(expect![[r#"
        15.4s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        18.0s  the limit is reset
        18.6s    to the plugin: may I have 2 vCPU / 768MiB? no
        19.5s    to the plugin: may I have 2 vCPU / 768MiB? no
        21.4s    to the plugin: may I have 2 vCPU / 768MiB? no
        25.8s    to the plugin: may I have 2 vCPU / 768MiB? no
        30.3s    to the plugin: may I have 2 vCPU / 768MiB? yes
        35.5s    to the plugin: may I have 2 vCPU / 768MiB? yes
        40.5s    to the plugin: may I have 2 vCPU / 768MiB? yes
        45.4s    to the plugin: may I have 2 vCPU / 768MiB? yes
        50.2s    to the plugin: may I have 2 vCPU / 768MiB? yes
        55.3s    to the plugin: may I have 2 vCPU / 768MiB? yes
        55.8s    to the hypervisor: limit it to 0.75 yes
        55.8s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        60.0s  it has 0.75 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vm_that_is_about_to_be_moved_is_not_rid_of_its_limit() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.stays = Some(quarters(8));
    story.load(1.8);
    story.go(2);
    story.order(Order::Release(None));
    story.go(4);
    story.stays = None;
    story.go(40);
    story.check(expect![[r#"
        12.0s  the load is 1.8
        12.4s    to the plugin: may I have 2 vCPU / 2GiB? yes
        14.0s  a person orders: let go
        17.8s    to the plugin: may I have 2 vCPU / 2GiB? yes
        22.4s    to the plugin: may I have 2 vCPU / 2GiB? yes
        27.1s    to the plugin: may I have 2 vCPU / 2GiB? yes
        31.6s    to the plugin: may I have 2 vCPU / 2GiB? yes
        34.0s    to the informant: good-bye yes
        58.0s  it has 0.75 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}
