//! What a scaler asks for where the host can limit its VM's CPU, as transcripts.
//!
//! Looks, measurements and health checks are left out: they go on at all times.

use crate::story::{Answer, Story, quarters};
use expect_test::expect;
use windlass_agent_core::Order;
use windlass_protocol::MilliCpu;

#[test]
fn a_limit_is_raised_before_the_vcpu_and_lowered_after_memory_and_parking() {
    let mut story = Story::limited(1);
    story.go(6);
    story.tell_size();
    story.load(1.6);
    story.go(3);
    story.tell_size();
    story.load(0.0);
    story.go(12);
    story.check(expect![[r#"
        0.0s     to the informant: hello yes
        0.0s     to the hypervisor: limit it to 1 yes
        0.0s     to the plugin: may I have 1 vCPU / 256MiB? yes
        0.3s     to the hypervisor: limit it to 0.75 yes
        0.3s     to the plugin: may I have 1 vCPU / 512MiB? yes
        0.3s     to the hypervisor: make it 512MiB yes
        0.3s     to the hypervisor: limit it to 0.5 yes
        0.3s     to the informant: you have 1 vCPU / 512MiB yes
        0.6s     to the plugin: may I have 0.5 vCPU / 512MiB? yes
        1.3s     to the plugin: may I have 0.75 vCPU / 768MiB? yes
        1.3s     to the hypervisor: limit it to 0.75 yes
        1.3s     to the hypervisor: make it 768MiB yes
        1.3s     to the informant: you have 1 vCPU / 768MiB yes
        6.0s   it has 0.75 vCPU / 768MiB
        6.0s   the load is 1.6
        6.0s     to the plugin: may I have 0.75 vCPU / 768MiB? yes
        6.4s     to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        6.4s     to the hypervisor: limit it to 1.75 yes
        6.4s     to the hypervisor: make it 1.75GiB yes
        6.4s     to the hypervisor: plug 2 yes
        6.4s     to the informant: you have 1 vCPU / 1.75GiB yes
        6.4s     to the informant: you have 2 vCPU / 1.75GiB yes
        9.0s   it has 1.75 vCPU / 1.75GiB
        9.0s   the load is 0
        9.4s     to the informant: is 2 vCPU / 1.5GiB enough? yes
        9.4s     to the hypervisor: make it 1.5GiB yes
        9.4s     to the plugin: may I have 1.75 vCPU / 1.5GiB? yes
        9.4s     to the informant: is 2 vCPU / 1.25GiB enough? yes
        9.4s     to the hypervisor: make it 1.25GiB yes
        9.4s     to the informant: is 2 vCPU / 1GiB enough? yes
        9.4s     to the hypervisor: make it 1GiB yes
        9.4s     to the informant: is 2 vCPU / 768MiB enough? yes
        9.4s     to the hypervisor: make it 768MiB yes
        9.4s     to the hypervisor: limit it to 1.5 yes
        9.4s     to the hypervisor: limit it to 1.25 yes
        9.4s     to the informant: is 1 vCPU / 768MiB enough? yes
        9.4s     to the hypervisor: limit it to 0.75 yes
        9.6s     to the plugin: may I have 0.75 vCPU / 768MiB? yes
        14.5s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        19.4s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        21.0s  it has 0.75 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn what_somebody_takes_away_is_set_again_and_a_lower_limit_is_a_ceiling() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.somebody_limits(None);
    story.go(6);
    story.tell_size();
    story.load(1.6);
    story.somebody_limits(Some(MilliCpu::from_milli(620)));
    story.go(6);
    story.check(expect![[r#"
        12.0s  somebody sets the limit: none
        12.6s    to the hypervisor: limit it to 0.75 yes
        12.6s    to the plugin: may I have 2 vCPU / 768MiB? yes
        12.8s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        18.0s  it has 0.75 vCPU / 768MiB
        18.0s  the load is 1.6
        18.0s  somebody sets the limit: 0.62
        18.3s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        18.5s    to the plugin: may I have 1.75 vCPU / 1.75GiB? yes
        18.5s    to the hypervisor: limit it to 1.75 yes
        18.5s    to the hypervisor: make it 1.75GiB yes
        18.5s    to the hypervisor: limit it to 0.6 yes
        18.5s    to the informant: you have 1 vCPU / 1.75GiB yes
        18.8s    to the plugin: may I have 0.6 vCPU / 1.75GiB? yes
        23.4s    to the plugin: may I have 0.6 vCPU / 1.75GiB? yes
        24.0s  it has 0.6 vCPU / 1.75GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_that_takes_up_vcpus_by_itself_gets_no_more_cpu() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.guest_unparks(quarters(8).cpu);
    story.go(8);
    story.check(expect![[r#"
        12.0s  the guest takes up 2 vCPU by itself
        12.4s    to the informant: is 1 vCPU / 768MiB enough? yes
        15.4s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        20.0s  it has 0.75 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_vm_that_is_let_go_gets_back_what_was_found_once_there_is_room() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.plugin = Answer::Silence;
    story.order(Order::Release(None));
    story.go(4);
    story.plugin = Answer::Yes;
    story.go(8);
    story.check(expect![[r#"
        12.0s  a person orders: let go
        12.0s    to the plugin: may I have 2 vCPU / 768MiB? …
        12.9s    to the plugin: may I have 2 vCPU / 768MiB? …
        15.1s    to the plugin: may I have 2 vCPU / 768MiB? …
        19.4s    to the plugin: may I have 2 vCPU / 768MiB? yes
        19.4s    to the hypervisor: lift the limit yes
        19.4s    to the informant: good-bye yes
        24.0s  it has 2 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn an_agent_that_ends_leaves_its_limit() {
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.order(Order::Leave);
    story.go(4);
    story.check(expect![[r#"
        12.0s  a person orders: leave
        12.0s    to the informant: good-bye yes
        16.0s  it has 0.75 vCPU / 768MiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_frozen_or_observed_vm_is_not_limited_anew() {
    let mut story = Story::limited(2);
    story.order(Order::Freeze);
    story.go(12);
    story.check(expect![[r#"
        0.0s   a person orders: freeze
        0.0s     to the informant: hello yes
        0.0s     to the plugin: may I have 2 vCPU / 256MiB? yes
        5.0s     to the plugin: may I have 2 vCPU / 256MiB? yes
        9.9s     to the plugin: may I have 2 vCPU / 256MiB? yes
        12.0s  it has 2 vCPU / 256MiB, and waits: [Frozen]
    "#]]);
    let mut story = Story::limited(2);
    story.go(12);
    story.forget();
    story.watch();
    story.go(6);
    story.check(expect![[r#"
        12.0s  a person says: only watch
        12.0s    to the plugin: may I have 0.75 vCPU / 768MiB? yes
        12.2s    to the plugin: may I have 2 vCPU / 768MiB? yes
        12.2s    to the hypervisor: lift the limit yes
        12.2s    to the informant: good-bye yes
        18.0s  it has 2 vCPU / 768MiB, and waits: [Observing]
    "#]]);
}
