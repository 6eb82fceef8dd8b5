//! What the fake's knobs do.

use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_fake::{FakeVm, Lost, Unplug};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, Resources, RunState, Seen,
    ShrinkCpu,
};

#[tokio::test]
async fn growth_is_seen_and_whoever_listens_is_told() {
    let vm = vm();
    let (mut driver, mut notices) = vm.attach().await.unwrap();
    driver.resize(Resize::Cpu(MilliCpu::from_cores(3))).await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    let seen = driver.see().await.unwrap();
    assert_eq!(seen.upper(), Resources::new(MilliCpu::from_cores(3), Bytes::from_mib(512)));
    assert_eq!(notices.recv().await, Some(Notice::Changed));
}

#[tokio::test]
async fn a_slow_guest_gives_back_a_step_at_each_look_and_a_stuck_one_nothing() {
    let vm = vm();
    let (mut driver, _notices) = vm.attach().await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    vm.set_unplug(Unplug::Slow(Bytes::from_mib(100)));
    driver.resize(Resize::Memory(Bytes::from_mib(256))).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(driver.see().await.unwrap().memory.present().mib());
    }
    assert_eq!(sizes, [412, 312, 256, 256]);

    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    vm.set_unplug(Unplug::Stuck);
    driver.resize(Resize::Memory(Bytes::from_mib(256))).await.unwrap();
    let memory = driver.see().await.unwrap().memory;
    assert_eq!(memory.unplugging(), Bytes::from_mib(256));
    assert_eq!(memory.upper(), Bytes::from_mib(512));
}

#[tokio::test]
async fn a_lost_answer_ends_the_connection_and_may_have_happened() {
    for (lost, cores) in [(Lost::Undone, 1), (Lost::Done, 2)] {
        let vm = vm();
        let (mut driver, mut notices) = vm.attach().await.unwrap();
        vm.lose_next_answer(lost);
        let error = driver.resize(Resize::Cpu(MilliCpu::from_cores(2))).await.unwrap_err();
        assert!(matches!(error, DriverError::NoAnswer { .. }) && error.may_have_happened());
        while notices.recv().await.is_some() {}
        assert!(matches!(driver.see().await, Err(DriverError::Broken(_))));
        let (mut driver, _notices) = vm.attach().await.unwrap();
        assert_eq!(driver.see().await.unwrap().plugged, MilliCpu::from_cores(cores));
    }
}

#[tokio::test]
async fn a_refusal_changes_nothing() {
    let vm = vm();
    let (mut driver, _notices) = vm.attach().await.unwrap();
    vm.set_refusal(Some("not today"));
    let error = driver.resize(Resize::Cpu(MilliCpu::from_cores(2))).await.unwrap_err();
    assert_eq!(error.to_string(), "resize refused: not today");
    assert!(!error.may_have_happened());
    vm.set_refusal(None);
    let too_many = driver.resize(Resize::Cpu(MilliCpu::from_cores(9))).await.unwrap_err();
    assert!(matches!(too_many, DriverError::Refused { .. }));
    assert_eq!(vm.seen().plugged, MilliCpu::from_cores(1));
}

#[tokio::test]
async fn a_held_answer_comes_when_it_is_let_go_though_its_effect_came_before() {
    let vm = vm();
    let (mut driver, _notices) = vm.attach().await.unwrap();
    vm.hold();
    let growth = driver.resize(Resize::Cpu(MilliCpu::from_cores(2)));
    let watcher = async {
        while vm.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(vm.seen().plugged, MilliCpu::from_cores(2));
        vm.let_go();
    };
    let (outcome, ()) = tokio::join!(growth, watcher);
    outcome.unwrap();
}

#[tokio::test]
async fn a_reset_guest_has_its_boot_memory_until_it_has_booted() {
    let vm = vm();
    let (mut driver, mut notices) = vm.attach().await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    vm.reset();
    assert_eq!(driver.see().await.unwrap().memory.present(), Bytes::from_mib(256));
    assert_eq!(driver.see().await.unwrap().memory.upper(), Bytes::from_mib(512));
    vm.boot();
    assert_eq!(driver.see().await.unwrap().memory.present(), Bytes::from_mib(512));
    let heard = [notices.recv().await, notices.recv().await, notices.recv().await];
    assert_eq!(heard, [Notice::Changed, Notice::Reset, Notice::Changed].map(Some));
}

#[tokio::test]
async fn a_reset_finds_room_among_notices_that_nobody_reads() {
    let vm = vm();
    let (_driver, mut notices) = vm.attach().await.unwrap();
    for _ in 0..100 {
        vm.set_seen(vm.seen());
    }
    vm.reset();
    vm.end();
    let mut last = None;
    while let Some(notice) = notices.recv().await {
        last = Some(notice);
    }
    assert_eq!(last, Some(Notice::Reset));
}

#[tokio::test]
async fn gone_and_taken_are_told_apart() {
    let vm = vm();
    vm.set_taken(true);
    assert!(matches!(vm.attach().await, Err(DriverError::Taken { .. })));
    vm.set_taken(false);
    let (mut driver, mut notices) = vm.attach().await.unwrap();
    vm.end();
    assert_eq!(notices.recv().await, None);
    assert!(matches!(driver.see().await, Err(DriverError::Gone { .. })));
    assert!(matches!(vm.attach().await, Err(DriverError::Gone { .. })));
}

#[tokio::test]
async fn a_monitor_serves_one_client_until_it_hangs_up_or_is_hung_up_on() {
    let vm = vm();
    let (first, _notices) = vm.attach().await.unwrap();
    assert!(matches!(vm.attach().await, Err(DriverError::Taken { .. })));
    assert_eq!((vm.tried(), vm.turned_away(), vm.is_connected()), (2, 1, true));
    drop(first);
    let (second, _notices) = vm.attach().await.unwrap();
    vm.hang_up();
    let (mut third, _notices) = vm.attach().await.unwrap();
    // What is left of an old connection ends no other.
    drop(second);
    third.see().await.unwrap();
    assert_eq!((vm.tried(), vm.turned_away(), vm.is_connected()), (4, 1, true));
}

fn vm() -> FakeVm {
    let (one, four) = (MilliCpu::from_cores(1), MilliCpu::from_cores(4));
    let boot = Bytes::from_mib(256);
    let capabilities = Capabilities {
        cpu_step: one,
        limit_step: None,
        memory_step: Bytes::from_mib(2),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: Resources::new(one, boot),
        max: Resources::new(four, Bytes::from_gib(1)),
    };
    let memory = MemorySeen { boot, ..MemorySeen::default() };
    FakeVm::new(
        capabilities,
        Seen { plugged: one, limit: None, found_limit: None, memory, state: RunState::Running },
    )
}
