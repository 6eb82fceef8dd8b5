//! A VM that vanishes, hangs, restarts, refuses or lies is that VM's problem only.

use super::guest::Manner;
use super::node::{Node, Vm, size};
use super::plugin::Answers;
use windlass_agent::NodeEvent;
use windlass_drivers_fake::Lost;
use windlass_protocol::status::SessionState;
use windlass_protocol::{Outcome, Resources, RunState, Waiting};
use windlass_testkit::log::Log;

#[tokio::test(start_paused = true)]
async fn a_vm_that_vanishes_is_dropped_and_taken_back_when_it_returns() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.grow(&a).await;
    b.guest.state().load = 3.4;
    a.fake.end();
    node.until("a is dropped", || node.status(&a).is_none()).await;
    assert_eq!(node.plugin.told(&a.name).last(), Some(&NodeEvent::Left { vm: a.name.clone() }));
    node.until_has(&b, size(4, 1024)).await;
    let asked = node.plugin.asked(&a.name).len();
    node.pass(60).await;
    assert_eq!(node.plugin.asked(&a.name).len(), asked, "nothing is asked for it");

    a.fake.set_taken(false);
    node.until("a is back", || {
        node.status(&a).is_some_and(|status| status.session == SessionState::Active)
    })
    .await;
    let entered = node.plugin.told(&a.name);
    assert!(entered.iter().filter(|e| matches!(e, NodeEvent::Entered { .. })).count() == 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_under_way_when_a_vm_vanished_is_explained() {
    let node = Node::start();
    let vm = node.add("a").await;
    vm.fake.set_refusal(Some("not today"));
    vm.guest.state().load = 3.4;
    node.until("it wants to grow", || !vm.fake.asked().is_empty()).await;
    let explained = || node.agent.decisions(&vm.name).unwrap();
    node.until("it says so", || explained().open.is_some()).await;
    assert_eq!(explained().open.unwrap().goal, size(4, 1024));
    vm.fake.end();
    node.until("it is dropped", || node.status(&vm).is_none()).await;
    let last = explained().closed.pop().unwrap();
    assert_eq!(last.goal, size(4, 1024));
    assert!(matches!(last.outcome, Outcome::Interrupted { .. }), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_not_there_is_not_counted_until_it_comes() {
    let node = Node::start();
    let vm = Vm::new("late").await;
    vm.fake.end();
    node.manage(&vm);
    node.pass(60).await;
    assert_eq!(node.plugin.told(&vm.name), []);
    assert_eq!(node.status(&vm), None);
    vm.fake.set_taken(false);
    node.grow(&vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_monitor_is_taken_counts_with_the_most_it_may_have() {
    let node = Node::start();
    let vm = Vm::new("taken").await;
    vm.fake.set_taken(true);
    node.manage(&vm);
    node.until("it is entered", || !node.plugin.told(&vm.name).is_empty()).await;
    node.pass(60).await;
    let entered = NodeEvent::Entered { info: vm.file.info.clone().into(), upper: None };
    assert_eq!(node.plugin.told(&vm.name), [entered]);
    let status = node.status(&vm).unwrap();
    assert_eq!((status.seen, status.waiting), (None, vec![Waiting::HypervisorLost]));
    vm.fake.set_taken(false);
    node.grow(&vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_qemu_has_paused_is_left_as_it_is_until_it_runs_again() {
    let node = Node::start();
    let log = Log::kept();
    let vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    vm.fake.set_run_state(RunState::Paused);
    let waiting = vec![Waiting::Stopped { state: RunState::Paused }];
    node.until("it says so", || node.status(&vm).is_some_and(|s| s.waiting == waiting)).await;
    vm.guest.state().load = 3.4;
    let reads = vm.guest.state().reads;
    node.pass(120).await;
    assert_eq!(vm.fake.asked(), []);
    assert_eq!(vm.guest.state().reads, reads, "a guest that stands still is not read");
    assert_eq!(node.status(&vm).unwrap().session, SessionState::Active);
    vm.fake.set_run_state(RunState::Running);
    node.until_has(&vm, size(4, 1024)).await;
    assert_eq!(log.count("INFO nothing is resized for now"), 1);
    assert_eq!(log.count("INFO the hypervisor runs the vm as usual again"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hypervisor_that_hangs_holds_up_nobody_else() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.until_has(&a, size(1, 256)).await;
    a.fake.hold();
    a.guest.state().load = 3.4;
    node.pass(30).await;
    assert!(node.status(&a).is_some(), "its state can still be read");
    node.grow(&b).await;
    assert!(a.fake.asked().len() <= 1, "one thing at a time is asked of it");
    a.fake.let_go();
    node.until_has(&a, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_guest_registers_anew_and_gets_its_size_back() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let session = vm.guest.session();
    vm.fake.reset();
    vm.guest.state().agent = None;
    node.until("it registers anew", || vm.guest.state().agent.is_some_and(|(id, _)| id != session))
        .await;
    vm.fake.boot();
    node.until_has(&vm, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_behind_a_new_connection_may_have_restarted_and_is_asked_anew() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let session = vm.guest.session();
    // Nobody is told of a restart while there is no connection.
    vm.fake.hang_up();
    node.until("it registers anew", || vm.guest.session() != session).await;
    node.until_has(&vm, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_took_the_place_of_a_larger_one_counts_with_what_it_has() {
    let node = Node::start();
    let vm = node.add("a").await;
    let small = vm.fake.seen();
    node.grow(&vm).await;
    // Its informant is not there yet, and nobody tried to attach while there was no machine.
    vm.guest.state().informant = Manner::Stalls;
    vm.fake.hang_up();
    vm.fake.set_seen(small);
    let counted = NodeEvent::Counted { vm: vm.name.clone(), upper: size(1, 256) };
    node.until("it counts", || node.plugin.told(&vm.name).last() == Some(&counted)).await;
    node.pass(60).await;
    assert_eq!(node.plugin.told(&vm.name).last(), Some(&counted));
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_is_refused_is_asked_for_again_and_harms_nobody() {
    let node = Node::start();
    let log = Log::kept();
    let (a, b) = (node.add("a").await, node.add("b").await);
    a.fake.set_refusal(Some("not today"));
    a.guest.state().load = 3.4;
    node.grow(&b).await;
    node.until("it is asked for again", || a.fake.asked().len() > 3).await;
    assert_eq!(a.upper(), size(1, 256));
    let asked = a.fake.asked().len();
    node.pass(60).await;
    let asked = a.fake.asked().len() - asked;
    assert!(asked < 200, "with rests in between: {asked} in a minute");
    assert_eq!(
        log.count("WARN the hypervisor refused"),
        1,
        "it refuses for the reason that was said"
    );
    a.fake.set_refusal(Some("nor tomorrow"));
    node.pass(60).await;
    assert_eq!(log.count("WARN the hypervisor refused"), 2);
    a.fake.set_refusal(None);
    node.until_has(&a, size(4, 1024)).await;
    a.guest.state().load = 0.1;
    a.fake.set_refusal(Some("nor tomorrow"));
    node.until("that is a new one", || log.count("WARN the hypervisor refused") == 3).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_settled_by_a_look_over_a_new_connection() {
    for lost in [Lost::Done, Lost::Undone] {
        let node = Node::start();
        let vm = node.add("a").await;
        node.until_has(&vm, size(1, 256)).await;
        vm.fake.lose_next_answer(lost);
        node.grow(&vm).await;
        vm.fake.hang_up();
        vm.guest.state().load = 0.1;
        node.until_has(&vm, size(1, 256)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_working_informant_a_vm_keeps_its_size() {
    for (manner, said) in [
        (Manner::Stalls, None),
        (Manner::Refuses(500), None),
        (Manner::Refuses(404), None),
        (Manner::Lies("<html>"), Some("WARN informant's answer is broken")),
        (
            Manner::Lies(r#"{"protoVersion":9,"metricsMethod":{"prometheus":{"port":1}}}"#),
            Some("WARN informant chose a version that was not offered"),
        ),
        (Manner::Babbles, None),
    ] {
        let node = Node::start();
        let log = Log::kept();
        let vm = node.add("a").await;
        vm.guest.state().informant = manner;
        vm.guest.state().load = 3.4;
        node.pass(120).await;
        assert_eq!(vm.upper(), size(1, 256), "another agent may act: {manner:?}");
        assert!(said.is_none_or(|said| log.count(said) > 0), "{manner:?}");
        vm.guest.state().informant = Manner::Works;
        node.until_has(&vm, size(4, 1024)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_would_rather_not_keeps_its_memory_and_is_not_pestered() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.guest.state().agrees = false;
    vm.guest.state().load = 0.1;
    node.pass(120).await;
    assert_eq!(vm.upper().mem, size(4, 1024).mem);
    let asked = vm.guest.count("/downscale");
    assert!((1..60).contains(&asked), "asked {asked} times");
    let waiting = node.agent.decisions(&vm.name).unwrap().waiting;
    assert!(waiting.iter().any(|w| matches!(w, Waiting::Refused { .. })), "{waiting:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agreement_with_an_odd_status_is_none() {
    for status in [201, 202, 206, 302] {
        let node = Node::start();
        let vm = node.add("a").await;
        node.grow(&vm).await;
        vm.guest.state().informant = Manner::Says(status, r#"{"Ok":true,"Status":"fine"}"#);
        vm.guest.state().load = 0.1;
        node.pass(120).await;
        assert_eq!(vm.upper().mem, size(4, 1024).mem, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_working_plugin_nothing_grows_and_shrinking_goes_on() {
    for answers in [
        Answers::Stalls,
        Answers::Refuses(500),
        Answers::Refuses(404),
        Answers::Fails,
        Answers::Lies("{}"),
        Answers::Lies(r#"{"permit":{"vCPUs":-3,"mem":70000}}"#),
        Answers::Lies("permit!"),
        Answers::AtMost(Resources::ZERO),
    ] {
        let node = Node::start();
        let vm = node.add("a").await;
        vm.guest.state().load = 1.7;
        node.until_has(&vm, size(2, 512)).await;
        node.plugin.set(answers);
        vm.guest.state().load = 3.4;
        node.pass(60).await;
        assert_eq!(vm.upper(), size(2, 512), "{answers:?}");
        vm.guest.state().load = 0.1;
        node.until_has(&vm, size(1, 256)).await;
        node.plugin.set(Answers::Works);
        node.grow(&vm).await;
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_that_stall_lie_or_babble_never_shrink_a_vm() {
    for manner in [
        Manner::Stalls,
        Manner::Refuses(503),
        Manner::Babbles,
        Manner::Lies(""),
        Manner::Lies("host_load1 NaN\nwindlass_memory_total_bytes -1\n"),
        Manner::Lies("host_load1 0\nhost_load1 7\n"),
        Manner::Lies("\u{0}\u{0}\u{0}"),
    ] {
        let node = Node::start();
        let (vm, other) = (node.add("a").await, node.add("b").await);
        node.grow(&vm).await;
        vm.guest.state().metrics = manner;
        vm.guest.state().load = 0.1;
        node.pass(120).await;
        assert_eq!(vm.upper(), size(4, 1024), "{manner:?}");
        node.grow(&other).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_vanishes_costs_its_session_and_gets_a_new_one() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let session = vm.guest.session();
    vm.guest.state().informant = Manner::Stalls;
    node.until("the session ends", || {
        node.status(&vm).is_some_and(|status| status.session == SessionState::Absent)
    })
    .await;
    vm.guest.state().informant = Manner::Works;
    node.until("there is a new one", || {
        vm.guest.session() != session
            && node.status(&vm).is_some_and(|status| status.session == SessionState::Active)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_breaks_is_started_again_and_its_vm_stays_in_the_books() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    node.plugin.set(Answers::Panics);
    vm.guest.state().load = 3.4;
    node.pass(30).await;
    assert_eq!(vm.upper(), size(1, 256));
    node.plugin.set(Answers::Works);
    node.until_has(&vm, size(4, 1024)).await;
    assert!(!node.plugin.told(&vm.name).iter().any(|e| matches!(e, NodeEvent::Left { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_not_taken_for_gone_because_its_file_names_a_monitor_that_is_not_there() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    let nobody = Vm::new("elsewhere").await;
    nobody.fake.end();
    vm.file.qmp = "mistyped".into();
    node.manage_at(&vm.file, &nobody.fake);
    node.grow(&vm).await;
    assert!(!node.plugin.told(&vm.name).iter().any(|e| matches!(e, NodeEvent::Left { .. })));
    // Once somebody is found there, he is the VM.
    nobody.fake.set_taken(false);
    node.until("the other one is used", || nobody.fake.looks() > 3).await;
    let looks = vm.fake.looks();
    node.pass(30).await;
    assert_eq!(vm.fake.looks(), looks);
}
