//! What a person orders: pause, freeze, release, forget, stop.

use super::node::{Node, Vm, size};
use std::time::Duration;
use windlass_agent::{Lifecycle, NodeEvent};
use windlass_drivers::any::AnyAttach;
use windlass_protocol::Waiting;
use windlass_testkit::log::Log;

#[tokio::test(start_paused = true)]
async fn a_frozen_host_moves_nothing_until_it_is_thawed() {
    let node = Node::start();
    let log = Log::kept();
    node.agent.freeze(true);
    let vm = node.add("a").await;
    vm.guest.state().load = 3.4;
    node.pass(60).await;
    assert!(node.agent.is_frozen() && vm.upper() == size(1, 256));
    assert!(node.status(&vm).unwrap().waiting.contains(&Waiting::Frozen));
    node.agent.freeze(false);
    node.until_has(&vm, size(4, 1024)).await;
    assert_eq!(log.count("INFO ordered"), 2, "to freeze, and to follow");
}

#[tokio::test(start_paused = true)]
async fn a_release_from_a_frozen_host_waits_for_the_thaw_if_it_moves_the_vm() {
    let node = Node::start();
    let (moved, left) = (node.add("moved").await, node.add("left").await);
    node.grow(&moved).await;
    node.agent.freeze(true);
    node.agent.release(&left.name, None).unwrap();
    node.agent.release(&moved.name, Some(size(2, 512))).unwrap();
    node.until("it is let go", || node.status(&left).is_none()).await;
    node.pass(60).await;
    assert_eq!((moved.upper(), node.status(&moved).is_some()), (size(4, 1024), true));
    node.agent.freeze(false);
    node.until("it is let go", || node.status(&moved).is_none()).await;
    assert_eq!(moved.upper().mem, size(2, 512).mem);
}

#[tokio::test(start_paused = true)]
async fn a_paused_vm_moves_at_its_time_and_others_meanwhile() {
    let node = Node::start();
    let (mut a, b) = (node.add("a").await, node.add("b").await);
    let until = node.clock.now().after(Duration::from_secs(300));
    a.file.info.paused_until = Some(until);
    node.manage(&a);
    a.guest.state().load = 3.4;
    node.grow(&b).await;
    node.until("its time comes", || node.clock.now() >= until || a.upper() != size(1, 256)).await;
    assert_eq!(a.upper(), size(1, 256));
    node.until_has(&a, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_can_be_ended() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    let until = node.clock.now().after(Duration::from_secs(3_000));
    vm.file.info.paused_until = Some(until);
    node.manage(&vm);
    vm.guest.state().load = 3.4;
    node.pass(60).await;
    assert_eq!(vm.upper(), size(1, 256));
    vm.file.info.paused_until = None;
    node.manage(&vm);
    node.until_has(&vm, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_released_vm_is_brought_to_a_size_left_alone_and_counted() {
    let node = Node::start();
    let log = Log::kept();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    node.agent.release(&vm.name, Some(size(2, 512))).unwrap();
    node.until("it is let go", || node.status(&vm).is_none()).await;
    assert_eq!(vm.upper().mem, size(2, 512).mem);
    assert!(vm.guest.count("/unregister") >= 1);
    let (asked, reads) = (vm.fake.asked(), vm.guest.state().reads);
    vm.guest.state().load = 3.4;
    node.pass(60).await;
    assert_eq!((vm.fake.asked(), vm.guest.state().reads), (asked, reads));
    let told = node.plugin.told(&vm.name);
    assert!(matches!(told.last(), Some(NodeEvent::Counted { upper, .. })
        if upper.mem == size(2, 512).mem));
    let (_, lifecycle, upper) = node.agent.lifecycles().pop().unwrap();
    assert_eq!((lifecycle, upper), (Lifecycle::Released, Some(vm.upper())));
    // Over another connection it is counted, too.
    vm.fake.hang_up();
    node.until("it is reached again", || vm.fake.is_connected()).await;
    node.pass(10).await;
    assert_eq!(log.count("INFO attached"), 1);
    // And taken back.
    node.manage(&vm);
    node.until_has(&vm, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_file_is_gone_is_counted_until_its_hypervisor_is_gone() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    node.agent.forget(&vm.name).unwrap();
    node.until("it is left", || node.status(&vm).is_none()).await;
    let looks = vm.fake.looks();
    node.pass(60).await;
    assert!(vm.fake.looks() > looks + 10, "it is looked at");
    assert!(matches!(node.plugin.told(&vm.name).last(), Some(NodeEvent::Counted { .. })));
    vm.fake.end();
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
    assert_eq!(node.plugin.told(&vm.name).last(), Some(&NodeEvent::Left { vm: vm.name.clone() }));
    assert!(node.agent.forget(&vm.name).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_comes_back_while_its_vm_is_there_manages_it_again() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    node.agent.forget(&vm.name).unwrap();
    node.manage(&vm);
    node.pass(30).await;
    node.agent.forget(&vm.name).unwrap();
    node.until("it is left", || node.status(&vm).is_none()).await;
    node.manage(&vm);
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_let_go_before_a_restart_counts_from_the_first_moment() {
    let node = Node::start();
    let vm = Vm::new("old").await;
    vm.fake.hold();
    let last = size(3, 768);
    node.agent.count(vm.name.clone(), AnyAttach::new(vm.fake.clone()), last, Lifecycle::Removed);
    node.until("it is counted", || !node.plugin.told(&vm.name).is_empty()).await;
    let counted = NodeEvent::Counted { vm: vm.name.clone(), upper: last };
    assert_eq!(node.plugin.told(&vm.name), [counted]);
    vm.fake.let_go();
    let exact = NodeEvent::Counted { vm: vm.name.clone(), upper: size(1, 256) };
    node.until("it is seen", || node.plugin.told(&vm.name).last() == Some(&exact)).await;
    vm.fake.end();
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_released_before_a_restart_has_a_session_once_it_is_taken_back() {
    let node = Node::start();
    let vm = Vm::new("old").await;
    node.agent.count(
        vm.name.clone(),
        AnyAttach::new(vm.fake.clone()),
        size(1, 256),
        Lifecycle::Released,
    );
    node.until("it is counted", || !node.plugin.told(&vm.name).is_empty()).await;
    node.manage(&vm);
    node.grow(&vm).await;
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_without_a_call_back_port_keeps_its_size_until_there_is_one() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let node = Node::with_ports(port..=port);
    let log = Log::kept();
    let vm = node.add("a").await;
    vm.guest.state().load = 3.4;
    node.pass(60).await;
    assert_eq!(log.count("WARN no session until it can call back"), 1, "however often it fails");
    assert_eq!(vm.fake.seen().upper(), size(1, 256), "nobody says that it counts");
    drop(taken);
    node.until_has(&vm, size(4, 1024)).await;
    assert_eq!(node.agent.ports().get(&vm.name), Some(&port));
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_let_go_before_a_restart_and_is_gone_leaves_the_books() {
    let node = Node::start();
    let vm = Vm::new("old").await;
    vm.fake.end();
    node.agent.count(
        vm.name.clone(),
        AnyAttach::new(vm.fake.clone()),
        size(3, 768),
        Lifecycle::Removed,
    );
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
    assert_eq!(node.plugin.told(&vm.name).last(), Some(&NodeEvent::Left { vm: vm.name.clone() }));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_takes_leave_and_changes_nothing() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let asked = vm.fake.asked().len();
    let log = Log::kept();
    assert_eq!(node.tasks.drain(Duration::from_secs(5)).await, Ok(()));
    assert!(vm.guest.count("/unregister") >= 1);
    assert_eq!(vm.fake.asked().len(), asked);
    let last = NodeEvent::Witnessed { vm: vm.name.clone(), upper: size(4, 1024) };
    assert_eq!(node.plugin.told(&vm.name).last(), Some(&last), "what it has counts on a permit");
    assert_eq!(log.count("INFO ordered"), 0, "nobody did");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_does_not_wait_for_a_guest_that_hangs() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.guest.state().informant = super::guest::Manner::Stalls;
    vm.fake.hold();
    assert_eq!(node.tasks.drain(Duration::from_secs(5)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_ends_what_it_only_counts_and_what_is_not_there() {
    let node = Node::start();
    let (counted, absent) = (node.add("counted").await, Vm::new("absent").await);
    absent.fake.end();
    node.manage(&absent);
    node.grow(&counted).await;
    node.agent.release(&counted.name, None).unwrap();
    node.until("it is let go", || node.agent.known(&counted.name).unwrap().let_go).await;
    assert_eq!(node.tasks.drain(Duration::from_secs(5)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_port_of_a_vm_that_is_forgotten_is_the_next_one_s() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let node = Node::with_ports(port..=port);
    for name in ["a", "b", "c"] {
        let vm = node.add(name).await;
        node.grow(&vm).await;
        assert_eq!(node.agent.ports().get(&vm.name), Some(&port));
        node.agent.forget(&vm.name).unwrap();
        vm.fake.end();
        node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
        assert!(node.agent.ports().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_carried_out_over_a_new_connection() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.fake.set_taken(true);
    vm.fake.hang_up();
    node.agent.release(&vm.name, Some(size(2, 512))).unwrap();
    // Its file names the way anew, so nothing is left of what was known.
    let mut file = vm.file.clone();
    file.vcpu_removal = true;
    node.pass(10).await;
    node.manage_at(&file, &vm.fake);
    node.agent.release(&vm.name, Some(size(2, 512))).unwrap();
    node.pass(10).await;
    vm.fake.set_taken(false);
    node.until("it is let go", || node.status(&vm).is_none() && vm.fake.is_connected()).await;
    node.pass(10).await;
    assert_eq!(vm.upper().mem, size(2, 512).mem);
}
