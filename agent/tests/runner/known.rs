//! What is known of a VM without waiting for it, from before it is found until it is gone.

use super::guest::Manner;
use super::node::{Node, Vm, size};
use super::plugin::Answers;
use serde_json::json;
use std::net::IpAddr;
use windlass_agent::{Config, Explained, Known, UnknownVm};
use windlass_protocol::Bytes;

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_vm_follows_it_until_it_is_gone() {
    let node = Node::start();
    let vm = Vm::new("a").await;
    let known = || node.agent.known(&vm.name);
    let is_absent = || node.agent.is_absent(&vm.name);
    assert_eq!(known(), Err(UnknownVm(vm.name.clone())));
    assert!(is_absent(), "nobody knows it");
    vm.fake.end();
    vm.fake.hold();
    node.manage(&vm);
    node.pass(5).await;
    assert_eq!((known(), is_absent()), (Ok(Known::default()), false), "nobody has looked for it");
    vm.fake.let_go();
    node.until("it is not found", is_absent).await;
    assert_eq!(known(), Ok(Known::default()));
    vm.fake.set_taken(true);
    node.until("it is there", || known().is_ok_and(|known| known.present)).await;
    assert!(!is_absent());
    vm.fake.set_taken(false);
    node.grow(&vm).await;
    let Known { can, present, upper, let_go } = known().unwrap();
    assert_eq!(can.map(|can| can.max), Some(size(4, 1024)));
    assert_eq!((present, upper, let_go), (true, Some(size(4, 1024)), false));
    node.agent.release(&vm.name, None).unwrap();
    node.until("it is let go", || known().is_ok_and(|known| known.let_go)).await;
    let counted = Known { can: None, present, upper, let_go: true };
    assert_eq!((known(), is_absent()), (Ok(counted), false));
    node.manage(&vm);
    assert!(!known().unwrap().let_go, "it is to be managed again");
    node.grow(&vm).await;
    vm.fake.end();
    node.until("it is gone", is_absent).await;
    assert!(!known().unwrap().present);
}

#[tokio::test(start_paused = true)]
async fn what_is_dumped_of_a_vm_is_what_it_was_told_and_has() {
    let node = Node::start();
    let vm = node.add("a").await;
    vm.guest.state().load = 1.7;
    node.until_has(&vm, size(2, 512)).await;
    node.agent.freeze(true);
    let dump = node.agent.dump();
    assert_eq!(dump["frozen"], true);
    let port = node.agent.ports()[&vm.name];
    for (key, value) in [
        ("name", json!(vm.name)),
        ("standing", json!("managed")),
        ("callback_port", json!(port)),
        ("monitor", json!(vm.file.qmp)),
        ("informant", json!(vm.file.informant)),
        ("told", json!(vm.file.info)),
        ("upper", json!(size(2, 512))),
        ("status", json!(node.status(&vm))),
        ("open", json!(node.agent.decisions(&vm.name).unwrap().open)),
    ] {
        assert_eq!(dump["vms"][0][key], value, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_host_has_available_is_known() {
    let node = Node::start();
    assert_eq!(node.agent.host_available(), Some(Bytes::from_gib(12)));
    let nowhere = |config: &mut Config| config.meminfo = "/nonexistent/meminfo".into();
    assert_eq!(Node::told(nowhere).agent.host_available(), None);
}

#[tokio::test(start_paused = true)]
async fn decisions_of_a_vm_are_known_before_the_first_and_after_its_end_and_after_a_restart() {
    let node = Node::start();
    let vm = node.add("a").await;
    assert_eq!(node.agent.decisions(&vm.name), Ok(Explained::default()));
    node.grow(&vm).await;
    node.agent.forget(&vm.name).unwrap();
    vm.fake.end();
    node.until("it is forgotten", || node.agent.lifecycles().is_empty()).await;
    let explained = node.agent.decisions(&vm.name).unwrap();
    assert_ne!(explained.closed, []);
    assert_eq!((explained.open.as_ref(), &explained.waiting[..]), (None, &[][..]));
    let next = Node::start();
    next.agent.recall(explained.closed.clone());
    assert_eq!(next.agent.decisions(&vm.name), Ok(explained));
}

/// In the shape of the reference.
#[tokio::test(start_paused = true)]
async fn what_is_dumped_for_the_reference_s_tools_has_its_names_and_units() {
    let node = Node::start();
    let vm = node.add("a").await;
    vm.guest.state().load = 1.7;
    node.until_has(&vm, size(2, 512)).await;
    let dump = node.agent.reference_dump(true, IpAddr::from([10, 0, 0, 7]));
    assert_eq!(dump["stopped"], true);
    let pod = &dump["pods"][0];
    for (at, value) in [
        ("/podName", json!({ "namespace": "default", "name": "a" })),
        ("/status/startTime", json!("2023-11-14T22:13:20Z")),
        ("/status/endpointID", json!("a")),
        ("/status/vmInfo/cpu", json!({ "min": 1, "max": 4, "use": 2 })),
        ("/status/vmInfo/mem", json!({ "min": 2, "max": 8, "use": 4, "slotSize": "128Mi" })),
        ("/runner/podIP", json!("127.0.0.1")),
        ("/runner/scheduler/info/IP", json!("10.0.0.7")),
        ("/runner/scheduler/registered", json!(true)),
        ("/runner/lastMetrics", json!({ "loadAvg1M": 1.7, "loadAvg5M": 1.7 })),
        ("/runner/server/mode", json!("running")),
        ("/runner/informant/protoVersion", json!(4)),
        ("/runner/computeUnit", json!({ "vCPUs": 1, "mem": 2 })),
        ("/runner/lastApproved", json!({ "vCPUs": 2, "mem": 4 })),
        ("/runner/migrationStarted", json!(false)),
        ("/windlass/standing", json!("managed")),
    ] {
        assert_eq!(pod.pointer(at), Some(&value), "{at} of {pod:#}");
    }
    assert!(pod["status"]["lastSuccessfulInformantComm"].is_string(), "{pod:#}");
    // Another one, whose informant and plugin answer nobody's questions.
    let mute = Vm::new("b").await;
    mute.guest.state().informant = Manner::Refuses(500);
    node.plugin.set(Answers::Stalls);
    node.manage(&mute);
    let pod = || node.agent.reference_dump(true, IpAddr::from([10, 0, 0, 7]))["pods"][1].clone();
    let refused = json!("refused with status 500");
    node.until("it says so", || pod()["runner"]["lastInformantError"] == refused).await;
    assert_eq!(pod()["status"]["lastSuccessfulInformantComm"], json!(null));
}
