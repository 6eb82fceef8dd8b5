//! A kind world: a VM follows its load, and whoever keeps the books hears of it in order.

use super::guest::Manner;
use super::node::{Node, Vm, size};
use super::plugin::Record;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_agent::NodeEvent;
use windlass_drivers::any::AnyAttach;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_fake::{FakeDriver, FakeVm};
use windlass_protocol::{Capabilities, LoadWindow, Mode, Outcome, Resize, Seen, Target, Waiting};

/// A hypervisor of another kind, which may be at the same place.
struct SecondKind {
    vm: FakeVm,
    looks: Arc<AtomicUsize>,
}

struct SecondDriver {
    driver: FakeDriver,
    looks: Arc<AtomicUsize>,
}

#[tokio::test(start_paused = true)]
async fn a_vm_grows_with_its_load_and_shrinks_after_it() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    assert_eq!(vm.upper(), size(4, 1024));
    node.until("the guest is told", || vm.guest.state().told == Some(size(4, 1024))).await;

    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
    // Parked, not removed.
    assert_eq!(vm.fake.seen().plugged, size(4, 0).cpu);
    assert!(vm.guest.count("/downscale") >= 3, "one unit at a time");
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_entered_before_its_first_permit_is_asked_for_and_nothing_moves_before_it() {
    let node = Node::start();
    let vm = node.add("a").await;
    vm.guest.state().load = 3.4;
    node.until("it moves", || !vm.fake.asked().is_empty()).await;
    let record = node.plugin.record();
    assert!(
        matches!(&record[0], Record::Told(NodeEvent::Entered { info, upper: Some(upper) })
            if info.name == vm.name && *upper == size(1, 256)),
        "{record:?}"
    );
    assert!(!node.plugin.asked(&vm.name).is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_vms_are_reached_at_their_own_ports_and_do_not_mix() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.grow(&a).await;
    node.pass(30).await;
    assert_eq!(b.upper(), size(1, 256));
    let ports = node.agent.ports();
    assert_ne!(ports[&a.name], ports[&b.name]);
    assert_ne!(a.guest.session(), b.guest.session());
}

#[tokio::test(start_paused = true)]
async fn vms_of_different_drivers_are_side_by_side() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, Vm::new("b").await);
    let looks = Arc::<AtomicUsize>::default();
    let second = SecondKind { vm: b.fake.clone(), looks: looks.clone() };
    node.agent.manage(windlass_vm_files::vm(&b.file), AnyAttach::new(second));
    for vm in [&a, &b] {
        node.grow(vm).await;
        vm.guest.state().load = 0.1;
        node.until_has(vm, size(1, 256)).await;
    }
    let looks_of_the_second = looks.load(Ordering::Relaxed);
    assert!(looks_of_the_second > 3 && b.fake.tried() == 1, "{looks_of_the_second}");
    // What is at the same place is reached anew where its kind is another.
    node.manage(&b);
    node.until("it is reached by the first kind", || b.fake.tried() == 2).await;
    let before = looks.load(Ordering::Relaxed);
    node.grow(&b).await;
    assert_eq!((looks.load(Ordering::Relaxed), b.fake.turned_away()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn every_decision_of_a_vm_can_be_explained() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
    let at_rest = || node.agent.decisions(&vm.name).unwrap().waiting == [Waiting::AtGoal];
    node.until("it is at rest", at_rest).await;
    let explained = node.agent.decisions(&vm.name).unwrap();
    let grew = explained.closed.iter().find(|d| d.goal == size(4, 1024)).unwrap();
    assert!(matches!(grew.outcome, Outcome::Reached { .. }), "{grew:?}");
    let (mut registry, mut text) = (Registry::default(), String::new());
    node.agent.metrics().register(&mut registry);
    encode(&mut text, &registry).unwrap();
    for line in [
        r#"windlass_agent_decisions_total{signal="load"} 1"#,
        r#"windlass_agent_resizes_total{aim="grow",effect="seen"}"#,
    ] {
        assert!(text.lines().any(|has| has.starts_with(line)), "{line} in {text}");
    }
    assert_eq!(grew.permit.unwrap().permit, size(4, 1024));
    let unknown = windlass_protocol::VmName::on_host("nobody");
    assert_eq!(
        node.agent.decisions(&unknown).unwrap_err().to_string(),
        "no vm default/nobody is managed here"
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_takes_effect_without_a_restart() {
    let node = Node::start();
    let mut vm = node.add("a").await;
    vm.guest.state().load = 1.7;
    node.until_has(&vm, size(2, 512)).await;
    vm.file.info.target = Target { load_average: 0.45, ..Target::default() };
    vm.file.info.load_window = LoadWindow::FiveSeconds;
    let session = vm.guest.session();
    node.manage(&vm);
    node.until_has(&vm, size(4, 1024)).await;
    assert_eq!(vm.guest.session(), session, "the session goes on");
    assert!(node.plugin.told(&vm.name).iter().any(|e| matches!(e, NodeEvent::Updated { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_observed_vm_is_read_and_decided_about_but_not_touched_and_nobody_is_asked() {
    let node = Node::start();
    let mut vm = Vm::new("a").await;
    vm.file.info.mode = Mode::Observe;
    vm.guest.state().load = 3.4;
    node.manage(&vm);
    node.until("it decides", || {
        node.status(&vm).is_some_and(|status| status.goal == Some(size(4, 1024)))
    })
    .await;
    node.pass(120).await;
    assert_eq!(vm.fake.asked(), []);
    assert_eq!(vm.guest.state().asked, Vec::<String>::new());
    assert_eq!(node.plugin.asked(&vm.name), []);
    assert!(vm.guest.state().reads > 30);
    let counted = NodeEvent::Counted { vm: vm.name.clone(), upper: size(1, 256) };
    assert!(node.plugin.told(&vm.name).contains(&counted));
    let status = node.status(&vm).unwrap();
    assert!(status.waiting.contains(&Waiting::Observing), "{:?}", status.waiting);
}

#[tokio::test(start_paused = true)]
async fn what_others_hear_of_a_size_is_what_the_hypervisor_said() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let witnessed = |upper| {
        node.plugin.told(&vm.name).contains(&NodeEvent::Witnessed { vm: vm.name.clone(), upper })
    };
    node.until("it is witnessed", || witnessed(size(4, 1024))).await;
    let (told, looks) = (node.plugin.told(&vm.name).len(), vm.fake.looks());
    node.pass(30).await;
    let told = node.plugin.told(&vm.name).len() - told;
    assert!(told > 3 && told + 1 >= vm.fake.looks() - looks, "{told}: at every look");
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
    // Somebody else gives the VM memory: that is a fact, and is told.
    vm.guest.state().agrees = false;
    let mut foreign = vm.fake.seen();
    foreign.memory.requested = size(0, 512).mem;
    foreign.memory.size = foreign.memory.requested;
    vm.fake.set_seen(foreign);
    node.until("that is witnessed", || witnessed(size(1, 768))).await;
}

#[tokio::test(start_paused = true)]
async fn parked_vcpus_count_again_from_the_restart_of_their_guest_on() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
    let witnessed = |upper| NodeEvent::Witnessed { vm: vm.name.clone(), upper };
    let last = || node.plugin.told(&vm.name).pop();
    node.until("what is parked does not count", || last() == Some(witnessed(size(1, 256)))).await;
    // Nobody answers meanwhile, neither QEMU nor the guest.
    vm.fake.hold();
    vm.guest.state().informant = Manner::Stalls;
    vm.guest.state().metrics = Manner::Stalls;
    vm.fake.reset();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let counted = NodeEvent::Counted { vm: vm.name.clone(), upper: size(4, 256) };
    assert_eq!(last(), Some(counted), "and no permit counts any more");
    vm.fake.let_go();
}

// === impl SecondKind ===

impl Attach for SecondKind {
    type Driver = SecondDriver;

    fn place(&self) -> String {
        self.vm.place()
    }

    async fn attach(&self) -> Result<(SecondDriver, mpsc::Receiver<Notice>), DriverError> {
        let (driver, notices) = self.vm.attach().await?;
        Ok((SecondDriver { driver, looks: self.looks.clone() }, notices))
    }
}

// === impl SecondDriver ===

impl Driver for SecondDriver {
    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.driver.see().await
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        self.driver.resize(resize).await
    }
}
