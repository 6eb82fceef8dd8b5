//! The driver with a real guest, whose own kernel says what became of it.
//!
//! There is no informant inside: the guest's kernel brings added memory online by its own
//! command line, and vCPUs stay as they are plugged.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, Driver, Notice};
use windlass_drivers_qemu::{Qemu, QemuDriver};
use windlass_lab::{Extension, Guest, GuestSpec, Inside, Lab, wait};
use windlass_protocol::{Bytes, MemorySeen, MilliCpu, Resize};

const MIB: u64 = 1 << 20;
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn virtio_mem_reaches_the_guest_comes_back_and_outlives_a_reset() {
    let spec = GuestSpec { reboots: true, ..spec("virtio") };
    let (guest, mut driver, mut notices) = boot(spec).await;
    let before = guest.inside().await.unwrap();

    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    settle(&mut driver, 256).await;
    in_guest(&guest, "512 MiB", |inside| gained(inside, &before) > 240).await;

    guest.system_reset().await.unwrap();
    while next(&mut notices).await != Notice::Reset {}
    assert_eq!(driver.see().await.unwrap().memory.requested, Bytes::from_mib(256));
    let back = |inside: &Inside| inside.boot_id != before.boot_id && gained(inside, &before) > 240;
    in_guest(&guest, "512 MiB after a restart", back).await;
    settle(&mut driver, 256).await;

    // An odd number of blocks, then nothing.
    for extra in [130, 0] {
        driver.resize(Resize::Memory(Bytes::from_mib(256 + extra))).await.unwrap();
        settle(&mut driver, extra).await;
    }
    in_guest(&guest, "256 MiB", |inside| gained(inside, &before) < 16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shrinkage_that_the_guest_cannot_follow_is_seen_as_such_and_taken_back() {
    let (guest, mut driver, _notices) = boot(spec("full")).await;
    driver.resize(Resize::Memory(Bytes::from_mib(768))).await.unwrap();
    settle(&mut driver, 512).await;
    guest.ramp(400, 32, Duration::from_millis(100)).await.unwrap();
    in_guest(&guest, "400 MiB in use", |inside| inside.held == 400 * MIB).await;

    // 128 MiB of the 512 are still free; giving up one more block is what is taken back.
    driver.resize(Resize::Memory(Bytes::from_mib(640))).await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(768))).await.unwrap();
    settle(&mut driver, 512).await;
    let inside = guest.inside().await.unwrap();
    assert_eq!((inside.held, inside.holders_killed), (400 * MIB, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn dimms_and_vcpus_reach_the_guest_and_dimms_come_back_to_the_host() {
    let dimms = Extension::Dimms { slots: 4, mib: 512 };
    let (guest, mut driver, mut notices) =
        boot(GuestSpec { extension: dimms, ..spec("dimms") }).await;
    let before = guest.inside().await.unwrap();

    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    driver.resize(Resize::Cpu(MilliCpu::from_cores(2))).await.unwrap();
    in_guest(&guest, "two DIMMs", |inside| gained(inside, &before) > 240).await;
    in_guest(&guest, "a second vCPU", |inside| inside.cpus_present == Some(2)).await;

    driver.resize(Resize::Memory(Bytes::from_mib(384))).await.unwrap();
    settle(&mut driver, 128).await;
    in_guest(&guest, "one DIMM", |inside| gained(inside, &before) < 140).await;
    next(&mut notices).await;
    // The look after the last one has been seen to leave deletes what was behind it.
    driver.see().await.unwrap();
    let backends = guest.lab_monitor().execute("query-memdev", serde_json::json!({})).await;
    assert_eq!(backends.unwrap().to_string().matches("windlass-mem-").count(), 1);

    driver.resize(Resize::Memory(Bytes::from_mib(768))).await.unwrap();
    in_guest(&guest, "four DIMMs", |inside| gained(inside, &before) > 490).await;
}

fn spec(name: &str) -> GuestSpec {
    GuestSpec { onlining: true, informant: false, ..GuestSpec::named(name) }
}

async fn boot(spec: GuestSpec) -> (Guest, QemuDriver, mpsc::Receiver<Notice>) {
    let lab = tokio::task::spawn_blocking(Lab::prepared_without_informant).await.unwrap().unwrap();
    let guest = Guest::boot(&lab, spec).await.unwrap();
    let qemu = Qemu { qmp: guest.qmp(), vcpu_removal: false, cpu_limit: None, limits: None };
    let (driver, notices) = qemu.attach().await.unwrap();
    (guest, driver, notices)
}

/// Waits until the guest has this much above boot memory, and is asked for no other.
async fn settle(driver: &mut QemuDriver, extra_mib: u64) {
    let begun = Instant::now();
    let extra = Bytes::from_mib(extra_mib);
    let wanted = MemorySeen { boot: Bytes::from_mib(256), requested: extra, size: extra };
    loop {
        let seen = driver.see().await.unwrap().memory;
        if seen == wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{seen:?}, and not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn in_guest(guest: &Guest, what: &str, wanted: impl FnMut(&Inside) -> bool) {
    wait::until(what, PATIENCE, || guest.inside(), wanted).await.unwrap();
}

async fn next(notices: &mut mpsc::Receiver<Notice>) -> Notice {
    tokio::time::timeout(PATIENCE, notices.recv()).await.unwrap().unwrap()
}

/// MiB that the kernel manages more than before.
fn gained(now: &Inside, before: &Inside) -> u64 {
    now.mem_total.unwrap().saturating_sub(before.mem_total.unwrap()) / MIB
}
