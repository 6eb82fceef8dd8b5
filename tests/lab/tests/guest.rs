//! Real guests, without Windlass: what the lab says of them is so.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::TcpListener;
use std::time::Duration;
use windlass_lab::{Guest, GuestSpec, Inside, Lab, groups_can_be_made, wait};

const LIMIT: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn growth_is_seen_from_both_sides_and_survives_two_restarts() {
    let lab = Lab::prepared_without_informant().unwrap();
    let spec = GuestSpec { reboots: true, ..GuestSpec::named("growing") };
    let guest = Guest::boot(&lab, spec).await.unwrap();
    let before = guest.inside().await.unwrap();
    let outside = guest.outside().await.unwrap();
    assert_eq!((before.cpus_online, outside.vcpus), (Some(1), 1));
    assert_eq!((outside.boot, outside.memory()), (256 * MIB, 256 * MIB));
    assert_eq!(before.informant, None);

    guest.ask("movable on").await.unwrap();
    guest.plug_vcpu().await.unwrap();
    guest.request_memory(256 * MIB).await.unwrap();
    see(&guest, "second vCPU", |inside| inside.cpus_present == Some(2)).await;
    guest.ask("online").await.unwrap();
    let total = before.mem_total.unwrap() + 250 * MIB;
    see(&guest, "second vCPU in use and more memory", |inside| {
        inside.cpus_online == Some(2) && inside.mem_total >= Some(total)
    })
    .await;
    let outside = guest.outside().await.unwrap();
    assert_eq!((outside.vcpus, outside.memory()), (2, 512 * MIB));

    guest.reboot().await.unwrap();
    let second = restarted(&guest, &before).await;
    guest.system_reset().await.unwrap();
    restarted(&guest, &second).await;
    let outside = guest.outside().await.unwrap();
    assert_eq!((outside.vcpus, outside.upper_memory()), (2, 512 * MIB));
}

#[tokio::test(flavor = "multi_thread")]
async fn load_is_made_and_taken_back_and_outlives_the_oom_killer() {
    let lab = Lab::prepared_without_informant().unwrap();
    let guest = Guest::boot(&lab, GuestSpec::named("loaded")).await.unwrap();
    let idle = guest.inside().await.unwrap();

    guest.cpu(2).await.unwrap();
    guest.ramp(48, 16, Duration::from_millis(50)).await.unwrap();
    see(&guest, "48 MiB held", |inside| inside.held == 48 * MIB).await;
    see(&guest, "load average that rises", |inside| inside.load1 > idle.load1).await;
    let busy = guest.inside().await.unwrap();
    assert_eq!(busy.workers, 2);
    assert!(busy.mem_available.unwrap() + 40 * MIB < idle.mem_available.unwrap(), "{busy:?}");

    guest.cpu(0).await.unwrap();
    guest.memory(16).await.unwrap();
    see(&guest, "32 MiB given back", |inside| {
        inside.workers == 0
            && inside.held == 16 * MIB
            && inside.mem_available.unwrap() > busy.mem_available.unwrap() + 24 * MIB
    })
    .await;

    guest.memory(4096).await.unwrap();
    let after = see(&guest, "holder killed", |inside| inside.holders_killed == 1).await;
    assert!(after.oom_kills >= Some(1), "{after:?}");
    assert_eq!((after.held, after.boot_id), (0, idle.boot_id));
    guest.ask("memory 99999999").await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_guest_leaves_nothing() {
    let lab = Lab::prepared_without_informant().unwrap();
    let guest = Guest::start(&lab, GuestSpec::named("dropped")).unwrap();
    let monitor = async || guest.outside().await;
    wait::until("monitor", LIMIT, monitor, |outside| outside.vcpus == 1).await.unwrap();
    let (pid, qmp, informant) = (guest.pid(), guest.qmp(), guest.informant());
    assert!(TcpListener::bind(informant).is_err(), "qemu does not forward {informant}");
    assert!(guest.resident().unwrap() > 10 * MIB);

    drop(guest);

    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!qmp.exists() && !qmp.parent().unwrap().exists());
    TcpListener::bind(informant).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_has_a_cgroup_of_its_own_that_limits_it_and_goes_with_it() {
    if let Err(why) = groups_can_be_made() {
        eprintln!("\nnot run: lab: {why}");
        return;
    }
    let lab = Lab::prepared_without_informant().unwrap();
    let spec = GuestSpec { group: true, ..GuestSpec::named("grouped") };
    let guest = Guest::boot(&lab, spec).await.unwrap();
    let group = guest.group().unwrap();
    let folder = group.path().to_owned();
    let members = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), guest.pid().to_string());
    assert_eq!(group.quota().unwrap(), None);

    let (v1, v2) = (folder.join("cpu.cfs_quota_us"), folder.join("cpu.max"));
    let set =
        if v1.exists() { std::fs::write(v1, "25000") } else { std::fs::write(v2, "25000 100000") };
    set.unwrap();
    assert_eq!(group.quota().unwrap(), Some(250));
    guest.cpu(1).await.unwrap();
    let (start, before) = (std::time::Instant::now(), group.usage().unwrap());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let used = (group.usage().unwrap() - before).as_secs_f64() / start.elapsed().as_secs_f64();
    assert!((0.05..0.28).contains(&used), "it used {used:.3} CPU of 0.25");

    drop(guest);
    assert!(!folder.exists());
}

async fn see(guest: &Guest, what: &str, wanted: impl FnMut(&Inside) -> bool) -> Inside {
    wait::until(what, LIMIT, async || guest.inside().await, wanted).await.unwrap()
}

async fn restarted(guest: &Guest, before: &Inside) -> Inside {
    see(guest, "another boot", |inside| inside.boot_id != before.boot_id).await
}
