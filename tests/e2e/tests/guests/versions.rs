//! In every version of the informant's protocol: up, a burst, a refusal, down.
//!
//! `make test` plays this one story in each older version, and all of them in the newest;
//! `make guests` plays all of them in all.

use crate::growth::{asked, burst, bursting};
use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Spoken, Stage, View, Vm};
use windlass_protocol::Waiting;

const MIB: u64 = 1 << 20;

/// Without a call for more, memory still grows by sampling.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_is_grown_bursts_refuses_and_is_shrunk() -> Result<()> {
    let spoken = Spoken::of_run()?;
    let mut vms = vec![Vm::named("a")];
    if spoken.calls() {
        vms.push(bursting("b"));
    }
    let mut stage = Stage::boot(Setting { room: 9, trust: true }, &vms).await?;
    stage.host.start().await?;
    for vm in &vms {
        stage.until(vm.name, "session", View::has_session).await?;
    }
    if spoken.calls() {
        burst(&stage, "b").await?;
        stage.guest("b").memory(0).await?;
    }
    grow_refuse_shrink(&stage).await?;
    if !spoken.calls() {
        assert_eq!(asked(&stage, "a").await?, 0, "the informant called for more");
    }
    stage.close().await?;
    Ok(())
}

async fn grow_refuse_shrink(stage: &Stage) -> Result<()> {
    let vm = Vm::named("a");
    stage.until("a", "one unit", |view| view.has(1)).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units", |view| view.has(3)).await?;
    stage.guest("a").cpu(0).await?;
    let view = stage.until("a", "one unit again", |view| view.has(1)).await?;
    let kept = if stage.spoken().parks() { 1 } else { 3 };
    assert_eq!(view.booked_vcpus(), Some(kept), "two vCPUs are parked: {view:#?}");

    let step = stage.spoken().filled_in_time();
    stage.guest("a").ramp(300, step, Duration::from_millis(250)).await?;
    let fits = |view: &View| view.held() == 300 * MIB && view.memory_mib() >= 512;
    stage.until("a", "300 MiB in use", fits).await?;
    stage.write(&Vm { most: 1, ..vm })?;
    let refuses = |view: &View| view.waits(|waiting| matches!(waiting, Waiting::Refused { .. }));
    stage.until("a", "refusal of the guest", refuses).await?;
    stage.stays("a", "its memory", Duration::from_secs(5), fits).await?;
    stage.guest("a").memory(0).await?;
    stage.until("a", "one unit, as the file says", |view| view.has(1)).await?;
    Ok(())
}
