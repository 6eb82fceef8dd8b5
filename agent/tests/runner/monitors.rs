//! A monitor serves one client: beside a connection to it, no second one is tried.

use super::node::{Node, Vm, size};
use windlass_agent::{Lifecycle, NodeEvent};
use windlass_drivers::any::AnyAttach;

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_taken_back_after_a_restart_is_connected_to_once() {
    let node = Node::start();
    let vm = Vm::new("old").await;
    node.agent.count(
        vm.name.clone(),
        AnyAttach::new(vm.fake.clone()),
        size(1, 256),
        Lifecycle::Released,
    );
    node.until("it is looked at", || vm.fake.looks() > 2).await;
    node.manage(&vm);
    node.grow(&vm).await;
    node.pass(600).await;
    assert_eq!((vm.fake.tried(), vm.fake.turned_away()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_let_go_and_taken_back_again_and_again_is_connected_to_once_each_time() {
    let node = Node::start();
    let vm = node.add("a").await;
    for times in 1..4 {
        node.grow(&vm).await;
        assert_eq!((vm.fake.tried(), vm.fake.turned_away()), (times, 0));
        node.agent.release(&vm.name, None).unwrap();
        node.until("it is let go", || node.status(&vm).is_none()).await;
        node.manage(&vm);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_monitor_that_is_set_right_is_tried_no_more() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    let mistyped = Vm::new("b").await;
    mistyped.fake.end();
    for _ in 0..2 {
        let right = std::mem::replace(&mut vm.file.qmp, mistyped.file.qmp.clone());
        node.manage_at(&vm.file, &mistyped.fake);
        node.pass(30).await;
        assert!(mistyped.fake.tried() > 2, "it is looked for where the file says");
        vm.file.qmp = right;
        node.manage(&vm);
        node.pass(5).await;
        let tried = mistyped.fake.tried();
        node.pass(60).await;
        assert_eq!((mistyped.fake.tried(), vm.fake.turned_away()), (tried, 0));
    }
    node.grow(&vm).await;
    assert!(!node.plugin.told(&vm.name).iter().any(|e| matches!(e, NodeEvent::Left { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_released_vm_whose_file_names_another_monitor_is_taken_back_where_it_is() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    node.agent.release(&vm.name, None).unwrap();
    node.until("it is let go", || node.status(&vm).is_none()).await;
    let mistyped = Vm::new("b").await;
    mistyped.fake.end();
    vm.file.qmp = mistyped.file.qmp.clone();
    node.manage_at(&vm.file, &mistyped.fake);
    node.grow(&vm).await;
    assert!(!node.plugin.told(&vm.name).iter().any(|e| matches!(e, NodeEvent::Left { .. })));
    // A VM that is found there is the VM, and each of the two has had one client at a time.
    mistyped.fake.set_taken(false);
    node.until("the other one is used", || mistyped.fake.looks() > 3).await;
    assert!(!vm.fake.is_connected());
    assert_eq!((mistyped.fake.turned_away(), vm.fake.turned_away()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_else_changed_with_the_way_to_a_vm_is_told_too() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    node.until_has(&vm, size(1, 256)).await;
    for (removal, priority) in [(true, 3), (false, 4)] {
        (vm.file.vcpu_removal, vm.file.info.priority) = (removal, priority);
        node.manage(&vm);
        node.until("its priority is told", || {
            node.plugin.told(&vm.name).iter().any(|event| match event {
                NodeEvent::Entered { info, .. } | NodeEvent::Updated { info } => {
                    info.priority == priority
                }
                NodeEvent::Witnessed { .. }
                | NodeEvent::Counted { .. }
                | NodeEvent::Left { .. } => false,
            })
        })
        .await;
    }
    assert_eq!(vm.fake.turned_away(), 0);
    // Also while it cannot be reached.
    vm.fake.set_taken(true);
    vm.fake.hang_up();
    node.pass(5).await;
    vm.file.info.priority = 5;
    node.manage(&vm);
    node.until("its priority is told", || {
        node.plugin
            .told(&vm.name)
            .iter()
            .any(|event| matches!(event, NodeEvent::Updated { info } if info.priority == 5))
    })
    .await;
}
