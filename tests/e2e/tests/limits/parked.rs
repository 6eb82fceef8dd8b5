//! A vCPU that a guest has parked is another's, and the guest cannot take it back.

use crate::size;
use anyhow::{Result, ensure};
use std::time::Duration;
use windlass_e2e::{Stage, View, Vm, cpus_used, is_not_run};

/// For how long the host's accounting is read.
const ACCOUNTED: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn parked_vcpus_are_of_no_use_to_a_guest_that_takes_them_back() -> Result<()> {
    if is_not_run("parked") {
        return Ok(());
    }
    let vms = [Vm::limited("a", 1000, 4), Vm::limited("b", 1000, 4)];
    let mut stage = Stage::limited(size(5000, 512), size(1000, 256), &vms).await?;
    stage.host.start().await?;
    for vm in &vms {
        stage.until(vm.name, "limit of 1 CPU", |view| view.has_cpu(1000)).await?;
    }
    stage.guest("a").cpu(6).await?;
    stage.until("a", "four CPUs", |view| view.has_cpu(4000)).await?;
    stage.guest("a").cpu(0).await?;
    let parked = |view: &View| view.has_cpu(1000) && view.online() == Some(1);
    let view = stage.until("a", "limit of 1 CPU again, and one vCPU", parked).await?;
    ensure!(view.plugged() == Some(4), "vCPUs are parked, not removed: {view:#?}");

    stage.guest("b").cpu(6).await?;
    stage.until("b", "four CPUs, of which a has three plugged", |view| view.has_cpu(4000)).await?;
    stage.host.command(&["freeze"])?;
    stage.guest("b").cpu(0).await?;

    stage.guest("a").ask("online").await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "four vCPUs online", |view| view.online() == Some(4)).await?;
    let guest = stage.guest("a");
    guest.group().expect("a has a cgroup").prefer()?;
    let used = cpus_used(&[guest], ACCOUNTED).await?[0];
    eprintln!("    parked to 1 vCPU, un-parked to 4, four busy loops: {used:.3} CPU");
    ensure!(used <= 1.05, "it used {used:.3} CPU, and was granted 1");
    ensure!(used >= 0.8, "it did not compute: {used:.3} CPU");
    let view = stage.view("a").await;
    ensure!(view.online() == Some(4) && view.has_cpu(1000), "it did not stay so: {view:#?}");
    stage.close().await?;
    Ok(())
}
