//! Up and down with the load, and never below what is in use.

use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Spoken, Stage, View, Vm, get_tcp};
use windlass_protocol::Waiting;

const MIB: u64 = 1 << 20;
const ALONE: Setting = Setting { room: 4, trust: true };

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_grows_with_load_and_shrinks_when_it_ends() -> Result<()> {
    let stage = Stage::set(ALONE, &[Vm::named("a")]).await?;
    let before = stage.view("a").await.inside.unwrap();

    stage.guest("a").cpu(4).await?;
    let loaded = stage.until("a", "three units", |view| view.has(3)).await?.inside.unwrap();
    let gained = loaded.mem_total.unwrap() - before.mem_total.unwrap();
    assert!(gained > 500 * MIB, "the kernel gained {gained} bytes");

    stage.guest("a").cpu(0).await?;
    stage.until("a", "one unit again", |view| view.has(1)).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_with_dimms_grows_by_them_and_gives_them_back() -> Result<()> {
    let vm = Vm { dimms: true, ..Vm::named("a") };
    let stage = Stage::set(ALONE, &[vm]).await?;
    let before = stage.view("a").await.inside.unwrap().mem_total.unwrap();

    stage.guest("a").cpu(4).await?;
    let loaded = stage.until("a", "three units", |view| view.has(3)).await?;
    let gained = loaded.inside.unwrap().mem_total.unwrap() - before;
    assert!(gained > 500 * MIB, "the kernel gained {gained} bytes");
    assert_eq!(loaded.outside.unwrap().dimms, 512 * MIB);

    stage.guest("a").cpu(0).await?;
    // The informant has them movable, so the guest can let go of them.
    let view = stage.until("a", "one unit again", |view| view.has(1)).await?;
    assert_eq!(view.outside.unwrap().dimms, 0);
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_memory_is_met_because_the_informant_asks() -> Result<()> {
    let spoken = Spoken::of_run()?;
    if !spoken.calls() {
        spoken
            .lacks("growth::a_burst_of_memory_is_met_because_the_informant_asks", "call for more");
        return Ok(());
    }
    let mut stage = Stage::boot(Setting { room: 6, trust: true }, &[bursting("a")]).await?;
    stage.host.start().await?;
    stage.until("a", "session", View::has_session).await?;
    burst(&stage, "a").await?;
    stage.close().await?;
    Ok(())
}

/// A VM in which it is the informant that calls for more, three steps before anything else: the
/// memory policy aims at full use, and filling memory is no load over a minute.
pub(crate) fn bursting(name: &'static str) -> Vm {
    let (window, memory_target) = (Some("1m"), Some(1.0));
    Vm { boot: 3, most: 5, most_cpus: 1, window, memory_target, ..Vm::named(name) }
}

/// Memory that is used faster than it is sampled, in such a VM.
pub(crate) async fn burst(stage: &Stage, name: &str) -> Result<()> {
    let available = stage.view(name).await.inside.unwrap().mem_available.unwrap();
    let before = asked(stage, name).await?;
    let base = u32::try_from(available / MIB)? - 200;
    stage.guest(name).memory(base).await?;
    let filled = |view: &View| view.held() == u64::from(base) * MIB;
    let view = stage.until(name, "200 MiB left", filled).await?;
    assert_eq!((view.memory_mib(), asked(stage, name).await?), (768, before), "it grew too early");

    // 16 MiB every 250 ms, across the threshold and short of the end.
    let crossed = base + 160;
    stage.guest(name).ramp(crossed, 16, Duration::from_millis(250)).await?;
    stage.until(name, "growth", |view| view.memory_mib() >= 1024).await?;
    assert!(asked(stage, name).await? > before, "the informant did not ask");

    let more = crossed + 64;
    stage.until(name, "end of the burst", |view| view.held() == u64::from(crossed) * MIB).await?;
    stage.guest(name).memory(more).await?;
    let holds = |view: &View| view.held() == u64::from(more) * MIB;
    stage.until(name, "64 MiB that would not have fit at the start", holds).await?;
    assert!(u64::from(more) * MIB > available, "{available} bytes were available at the start");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_in_use_is_kept_whatever_the_maximum_says() -> Result<()> {
    let vm = Vm::named("a");
    let stage = Stage::set(ALONE, std::slice::from_ref(&vm)).await?;
    let step = stage.spoken().filled_in_time();
    stage.guest("a").ramp(300, step, Duration::from_millis(250)).await?;
    let fits = |view: &View| view.held() == 300 * MIB && view.memory_mib() >= 512;
    stage.until("a", "300 MiB in use", fits).await?;

    stage.write(&Vm { most: 1, ..vm.clone() })?;
    stage
        .until("a", "refusal of the guest", |view| {
            view.waits(|waiting| matches!(waiting, Waiting::Refused { .. }))
        })
        .await?;
    let keeps = |view: &View| view.held() == 300 * MIB && view.memory_mib() >= 512;
    stage.stays("a", "its memory", Duration::from_secs(10), keeps).await?;
    let explained = stage.host.command(&["explain", "a"])?;
    assert!(explained.contains("refused") || explained.contains("declined"), "{explained}");

    stage.guest("a").memory(0).await?;
    stage.until("a", "one unit, as the file says", |view| view.has(1)).await?;
    stage.close().await?;
    Ok(())
}

/// How often the informant of this VM has asked for memory.
pub(crate) async fn asked(stage: &Stage, name: &str) -> Result<u64> {
    let page = get_tcp(stage.guest(name).informant(), "/metrics").await?.body;
    let name = "windlass_informant_memory_requests_total ";
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.unwrap_or_else(|| panic!("no {name}in {page}")).parse()?)
}
