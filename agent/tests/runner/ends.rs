//! A VM that ends is out of the books, whatever its runner was about to do with it.

use super::node::{Node, Vm, size};
use super::plugin::Answers;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use windlass_agent::{Lifecycle, NodeEvent};

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_taken_back_and_ends_before_it_is_seen_leaves_the_books() {
    let node = Node::start();
    let vm = released(&node).await;
    node.manage(&vm);
    vm.fake.end();
    leaves(&node, &vm).await;
    // And the next one under this name is taken up as a new one.
    vm.fake.set_taken(false);
    node.grow(&vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_taken_back_is_entered_with_what_it_has() {
    let node = Node::start();
    let vm = released(&node).await;
    let before = node.plugin.told(&vm.name).len();
    node.manage(&vm);
    node.until("the books hear of it", || node.plugin.told(&vm.name).len() > before).await;
    let entered = NodeEvent::Entered { info: vm.file.info.clone().into(), upper: Some(vm.upper()) };
    assert_eq!(node.plugin.told(&vm.name)[before], entered);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_taken_back_and_ends_before_it_is_attached_to_leaves_the_books() {
    let node = Node::start();
    let vm = released(&node).await;
    vm.fake.hold();
    node.manage(&vm);
    node.pass(30).await;
    vm.fake.end();
    vm.fake.let_go();
    leaves(&node, &vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_taken_back_counts_until_it_is_entered_anew() {
    let node = Node::start();
    let vm = released(&node).await;
    vm.fake.hold();
    node.manage(&vm);
    node.pass(30).await;
    node.agent.forget(&vm.name).unwrap();
    node.pass(30).await;
    assert_eq!(node.agent.lifecycles().len(), 1, "it is there, and is not forgotten");
    vm.fake.end();
    vm.fake.let_go();
    leaves(&node, &vm).await;
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_ends_while_its_runner_is_broken_leaves_the_books() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    node.plugin.set(Answers::Panics);
    vm.guest.state().load = 3.4;
    let broken = node.plugin.asked(&vm.name).len() + 1;
    node.until("it breaks", || node.plugin.asked(&vm.name).len() > broken).await;
    assert_eq!(present(&node), 1, "it is there, whatever became of its runner");
    vm.fake.end();
    leaves(&node, &vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_without_a_file_that_ends_while_it_is_attached_to_again_leaves_the_books() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.fake.hold();
    vm.fake.hang_up();
    node.pass(5).await;
    node.agent.forget(&vm.name).unwrap();
    node.pass(30).await;
    vm.fake.end();
    vm.fake.let_go();
    leaves(&node, &vm).await;
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_ends_while_its_file_names_another_monitor_leaves_the_books() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    let other = Vm::new("b").await;
    other.fake.end();
    vm.file.qmp = other.file.qmp.clone();
    node.manage_at(&vm.file, &other.fake);
    node.pass(30).await;
    vm.fake.end();
    leaves(&node, &vm).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_file_goes_before_it_was_seen_counts_with_the_most_it_may_have() {
    let node = Node::start();
    let vm = Vm::new("a").await;
    vm.fake.hold_commands();
    node.manage(&vm);
    node.until("it is attached to", || vm.fake.is_connected()).await;
    node.until("its guest was read", || vm.guest.state().reads > 1).await;
    assert_eq!(node.plugin.told(&vm.name), []);
    node.agent.forget(&vm.name).unwrap();
    node.until("it counts", || !node.plugin.told(&vm.name).is_empty()).await;
    vm.fake.let_go();
    let exact = NodeEvent::Counted { vm: vm.name.clone(), upper: size(1, 256) };
    node.until("it is seen", || node.plugin.told(&vm.name).last() == Some(&exact)).await;
    vm.fake.end();
    leaves(&node, &vm).await;
}

/// A VM that was let go, and is counted.
async fn released(node: &Node) -> Vm {
    let vm = node.add("a").await;
    node.grow(&vm).await;
    node.agent.release(&vm.name, None).unwrap();
    node.until("it is let go", || node.status(&vm).is_none()).await;
    assert!(
        node.agent.lifecycles().iter().any(|(_, lifecycle, _)| *lifecycle == Lifecycle::Released)
    );
    vm
}

/// Waits until nothing is kept for the VM any more.
async fn leaves(node: &Node, vm: &Vm) {
    let left = NodeEvent::Left { vm: vm.name.clone() };
    node.until("it leaves", || node.plugin.told(&vm.name).last() == Some(&left)).await;
    node.pass(10).await;
    assert_eq!(node.plugin.told(&vm.name).last(), Some(&left), "and nothing enters again");
    assert_eq!(present(node), 0);
}

/// VMs that are there, as a metric says.
fn present(node: &Node) -> usize {
    let (mut registry, mut text) = (Registry::default(), String::new());
    node.agent.metrics().register(&mut registry);
    encode(&mut text, &registry).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("windlass_agent_vms "));
    count.unwrap().parse().unwrap()
}
