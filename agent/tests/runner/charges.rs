//! What is billed of a VM, from before it is found until it is gone.

use super::guest::Manner;
use super::node::{Node, Vm};
use windlass_agent::{BilledVm, Charge};
use windlass_protocol::Mode;

#[tokio::test(start_paused = true)]
async fn what_is_billed_is_open_from_the_start_until_a_vm_acts_and_nothing_once_it_is_gone() {
    let node = Node::start();
    let vm = node.add("a").await;
    let unknown = BilledVm { vm: vm.name.clone(), charge: Charge::Open, mode: None, silent: false };
    assert_eq!(charged(&node), unknown, "it is listed at once");
    let certain = Charge::Certain(vm.upper().cpu);
    node.until("it acts", || charged(&node).charge == certain).await;
    assert_eq!(charged(&node).mode, Some(Mode::Act));
    vm.fake.end();
    node.until("it is gone", || charged(&node).mode.is_none()).await;
    assert_eq!(charged(&node), BilledVm { charge: Charge::Nothing, ..unknown });
    vm.fake.set_taken(false);
    node.until("it acts again", || charged(&node).charge == certain).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_not_there_is_nothing_and_one_that_is_not_reached_is_open() {
    let node = Node::start();
    let vm = Vm::new("late").await;
    vm.fake.end();
    node.manage(&vm);
    node.until("it is not there", || charged(&node).charge == Charge::Nothing).await;
    vm.fake.set_taken(true);
    node.until("its monitor is taken", || charged(&node).charge == Charge::Open).await;
    node.pass(60).await;
    assert_eq!(charged(&node).charge, Charge::Open);
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_informant_has_died_is_silent_and_billed_again() {
    let node = Node::start();
    let vm = node.add("a").await;
    let (certain, presumed) = (Charge::Certain(vm.upper().cpu), Charge::Presumed(vm.upper().cpu));
    node.until("it acts", || charged(&node).charge == certain).await;
    vm.guest.state().informant = Manner::Stalls;
    node.until("it may not act", || charged(&node).charge == Charge::Open).await;
    node.until("nobody is there", || charged(&node).charge == presumed).await;
    assert!(charged(&node).silent);
    node.pass(3_600).await;
    assert_eq!(charged(&node).charge, presumed);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_only_looked_at_is_nothing() {
    let node = Node::start();
    let mut vm = Vm::new("a").await;
    vm.file.info.mode = Mode::Observe;
    node.manage(&vm);
    node.until("it is seen", || charged(&node).mode == Some(Mode::Observe)).await;
    assert_eq!(charged(&node).charge, Charge::Nothing);
    vm.file.info.mode = Mode::Act;
    node.manage(&vm);
    node.until("it acts", || charged(&node).charge.is_settled() && acts(&node)).await;
    node.agent.release(&vm.name, None).unwrap();
    node.until("it is let go", || charged(&node).mode.is_none()).await;
    assert_eq!(charged(&node).charge, Charge::Nothing);
}

fn acts(node: &Node) -> bool {
    charged(node).charge.cpu().is_some()
}

fn charged(node: &Node) -> BilledVm {
    node.agent.charges().pop().unwrap()
}
