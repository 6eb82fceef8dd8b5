//! The guest restarts: its vCPUs and its memory come back by themselves, its load does not.

use anyhow::Result;
use windlass_e2e::{Setting, Stage, View, Vm};
use windlass_protocol::Waiting;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_from_inside_is_seen_and_recovered_from() -> Result<()> {
    let stage = grown_and_shrunk().await?;
    let before = stage.view("a").await.inside.unwrap().boot_id;
    stage.guest("a").reboot().await?;
    recovers(&stage, before).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_from_outside_is_seen_and_recovered_from() -> Result<()> {
    let stage = grown_and_shrunk().await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units again", |view| view.has(3)).await?;
    let before = stage.view("a").await.inside.unwrap().boot_id;
    stage.guest("a").system_reset().await?;
    recovers(&stage, before).await?;
    stage.close().await?;
    Ok(())
}

/// A VM that has parked vCPUs, which a restart brings back.
async fn grown_and_shrunk() -> Result<Stage> {
    let setting = Setting { room: 4, trust: true };
    let vms = [Vm { reboots: true, ..Vm::named("a") }, Vm::named("b")];
    let stage = Stage::set(setting, &vms).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units", |view| view.has(3)).await?;
    stage.guest("a").cpu(0).await?;
    let view = stage.until("a", "one unit", |view| view.has(1)).await?;
    assert_eq!(view.outside.unwrap().vcpus, 3, "vCPUs are parked, not removed");
    Ok(stage)
}

/// The guest comes back, gets a session, shrinks to one unit, and grows again with load. Another
/// VM, which wants all that there is from the moment of the restart, gets it only then.
async fn recovers(stage: &Stage, before: Option<String>) -> Result<()> {
    stage.until_waits("a", |waiting| matches!(waiting, Waiting::Reboot)).await?;
    stage.guest("b").cpu(4).await?;
    let restarted =
        |view: &View| view.inside.as_ref().is_some_and(|inside| inside.boot_id != before);
    stage.until("a", "another boot", restarted).await?;
    stage.until("a", "session at one unit", |view| view.has_session() && view.has(1)).await?;
    stage.until("b", "three units, once they are free", |view| view.has(3)).await?;
    stage.guest("b").cpu(0).await?;
    stage.until("b", "one unit", |view| view.has(1)).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units after the restart", |view| view.has(3)).await?;
    Ok(())
}
