//! The host is killed in the middle of a change, and started again.

use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Stage, View, Vm};
use windlass_lab::proxy::{CHANGES, Hold};
use windlass_protocol::Waiting;

const LIMIT: Duration = Duration::from_secs(120);
const SETTING: Setting = Setting { room: 4, trust: true };

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_answer_to_growth_is_on_its_way() -> Result<()> {
    let mut stage = proxied().await?;
    let before = stage.guest("a").outside().await?;

    stage.proxy("a").hold(Hold::Answers(CHANGES));
    stage.guest("a").cpu(4).await?;
    stage.proxy("a").until_held(0, LIMIT).await?;
    crash(&mut stage).await?;
    assert_ne!(stage.guest("a").outside().await?, before, "QEMU did what it was told");

    shares(&stage).await?;
    goes_on(&stage).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_answer_to_shrinkage_is_on_its_way() -> Result<()> {
    let mut stage = proxied().await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three units", |view| view.has(3)).await?;
    let before = stage.guest("a").outside().await?;

    let held = stage.proxy("a").held();
    stage.proxy("a").hold(Hold::Answers(CHANGES));
    stage.guest("a").cpu(0).await?;
    stage.proxy("a").until_held(held, LIMIT).await?;
    crash(&mut stage).await?;
    assert_ne!(stage.guest("a").outside().await?, before, "QEMU did what it was told");

    stage.until("a", "one unit", |view| view.has(1)).await?;
    stage.until("b", "three units, once they are free", |view| view.has(3)).await?;
    goes_on(&stage).await?;
    stage.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_the_permit_and_the_hypervisor() -> Result<()> {
    let mut stage = proxied().await?;
    let before = stage.guest("a").outside().await?;

    stage.proxy("a").hold(Hold::Commands(CHANGES));
    stage.guest("a").cpu(4).await?;
    stage.proxy("a").until_held(0, LIMIT).await?;
    let booked = stage.view("a").await.booked.unwrap().reserved;
    assert!(booked.cpu.cores_up() > 1, "there is no permit yet: {booked}");
    crash(&mut stage).await?;
    assert_eq!(stage.guest("a").outside().await?, before, "QEMU never heard of it");

    shares(&stage).await?;
    goes_on(&stage).await?;
    stage.close().await?;
    Ok(())
}

/// Two VMs, of which one has a proxy before its monitor.
async fn proxied() -> Result<Stage> {
    let vms = [Vm { proxied: true, ..Vm::named("a") }, Vm::named("b")];
    Stage::set(SETTING, &vms).await
}

/// Kills the host, loses what is on the wire, and starts it again, when another VM wants all
/// that it could be given.
async fn crash(stage: &mut Stage) -> Result<()> {
    stage.guest("b").cpu(4).await?;
    stage.host.kill()?;
    stage.proxy("a").hang_up();
    stage.host.start().await
}

/// Both want three units of four. Who is heard first after the crash may have them all, and then the
/// other is short; else both are.
async fn shares(stage: &Stage) -> Result<()> {
    let short = |view: &View| view.waits(|waiting| matches!(waiting, Waiting::Room { .. }));
    for (name, other) in [("a", "b"), ("b", "a")] {
        let served = |view: &View| view.has(3) || short(view);
        let view = stage.until(name, "three units, or too few of them", served).await?;
        if view.has(3) {
            stage.until(other, "less than it wants", short).await?;
            return Ok(());
        }
    }
    Ok(())
}

/// Load takes the VM up to its maximum, and its end down to its minimum; the other one has
/// what is left.
async fn goes_on(stage: &Stage) -> Result<()> {
    stage.guest("b").cpu(0).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("b", "its unit and its session", |view| view.has(1) && view.has_session()).await?;
    stage.until("a", "three units after the crash", |view| view.has(3)).await?;
    stage.guest("a").cpu(0).await?;
    stage.until("a", "one unit after the crash", |view| view.has(1)).await?;
    Ok(())
}
