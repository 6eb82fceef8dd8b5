//! A peer is lost: what it had to agree to waits, everything else goes on.

use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Stage, View, Vm};
use windlass_lab::proxy::Hold;
use windlass_protocol::Waiting;

#[tokio::test(flavor = "multi_thread")]
async fn without_its_informant_a_vm_keeps_its_memory() -> Result<()> {
    let setting = Setting { room: 4, trust: true };
    let stage = Stage::set(setting, &[Vm::named("a")]).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units", |view| view.has(3)).await?;

    stage.guest("a").ask("informant kill").await?;
    stage.guest("a").cpu(0).await?;
    stage.until("a", "loss of the session", |view| !view.has_session()).await?;
    let keeps = |view: &View| view.memory_mib() == 768;
    stage.stays("a", "its memory", Duration::from_secs(15), keeps).await?;

    stage.guest("a").ask("informant start").await?;
    stage.until("a", "one unit", |view| view.has(1)).await?;
    stage.close().await?;
    Ok(())
}

/// What it has is not known, nor whether this is still its host: nothing is asked of anybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_whose_monitor_is_silent_is_left_as_it_is() -> Result<()> {
    let setting = Setting { room: 4, trust: true };
    let stage = Stage::set(setting, &[Vm { proxied: true, ..Vm::named("a") }]).await?;
    stage.proxy("a").hold(Hold::Answers(&["query-memory-devices"]));
    let lost = |view: &View| view.waits(|waiting| matches!(waiting, Waiting::HypervisorLost));
    stage.until("a", "loss of its hypervisor", lost).await?;

    stage.guest("a").cpu(4).await?;
    let keeps = |view: &View| view.has(1);
    stage.stays("a", "what it has, here and in the books", Duration::from_secs(10), keeps).await?;

    stage.proxy("a").release();
    stage.until("a", "three units", |view| view.has(3)).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_whose_qemu_is_killed_is_dropped_and_leaves_its_room() -> Result<()> {
    let setting = Setting { room: 4, trust: true };
    let stage = Stage::set(setting, &[Vm::named("a"), Vm::named("b")]).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three of four units", |view| view.has(3)).await?;

    stage.guest("a").kill();
    stage.until("a", "absence from the books", |view| view.booked.is_none()).await?;

    stage.guest("b").cpu(4).await?;
    stage.until("b", "three of four units", |view| view.has(3)).await?;
    stage.close().await?;
    Ok(())
}
