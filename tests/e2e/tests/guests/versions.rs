//! An informant that is limited to an older version of the protocol: up, a burst, a refusal, down.
//!
//! Below v2.0 a size has no number, so parked vCPUs are not trusted: the books keep them.

use crate::growth::{burst, bursting};
use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Stage, View, Vm};
use windlass_protocol::Waiting;

const MIB: u64 = 1 << 20;

/// Without a call for more, memory still grows by sampling.
#[tokio::test(flavor = "multi_thread")]
async fn an_informant_of_v1_0_is_grown_refuses_and_is_shrunk() -> Result<()> {
    let stage = limited_to("v1.0", &[Vm::named("a")]).await?;
    grow_refuse_shrink(&stage).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informant_of_v1_1_is_grown_bursts_refuses_and_is_shrunk() -> Result<()> {
    all_in("v1.1").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informant_of_v1_2_is_grown_bursts_refuses_and_is_shrunk() -> Result<()> {
    all_in("v1.2").await
}

async fn all_in(version: &str) -> Result<()> {
    let stage = limited_to(version, &[Vm::named("a"), bursting("b")]).await?;
    burst(&stage, "b").await?;
    stage.guest("b").memory(0).await?;
    grow_refuse_shrink(&stage).await?;
    stage.close().await?;
    Ok(())
}

/// Guests whose informants speak this version, each with a session.
async fn limited_to(version: &str, vms: &[Vm]) -> Result<Stage> {
    let mut stage = Stage::boot(Setting { room: 9, trust: true }, vms).await?;
    for vm in vms {
        stage.guest(vm.name).ask("informant stop").await?;
        stage.guest(vm.name).ask(&format!("informant start --versions {version}")).await?;
    }
    stage.host.start().await?;
    for vm in vms {
        stage.until(vm.name, "session", View::has_session).await?;
    }
    Ok(stage)
}

async fn grow_refuse_shrink(stage: &Stage) -> Result<()> {
    let vm = Vm::named("a");
    stage.until("a", "one unit", |view| view.has(1)).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units", |view| view.has(3)).await?;
    stage.guest("a").cpu(0).await?;
    let parked = |view: &View| view.uses(1) && view.booked_vcpus() == Some(3);
    stage.until("a", "one unit again, and its vCPUs in the books", parked).await?;

    stage.guest("a").ramp(300, 8, Duration::from_millis(250)).await?;
    let fits = |view: &View| view.held() == 300 * MIB && view.memory_mib() >= 512;
    stage.until("a", "300 MiB in use", fits).await?;
    stage.write(&Vm { most: 1, ..vm })?;
    let refuses = |view: &View| view.waits(|waiting| matches!(waiting, Waiting::Refused { .. }));
    stage.until("a", "refusal of the guest", refuses).await?;
    stage.stays("a", "its memory", Duration::from_secs(5), fits).await?;
    stage.guest("a").memory(0).await?;
    stage.until("a", "one unit, as the file says", |view| view.uses(1)).await?;
    Ok(())
}
