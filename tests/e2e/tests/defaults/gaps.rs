//! An informant that did not run for a while has nothing to say of that time.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, Told, View, Vm};

/// How long the informant does not run.
const GAP: Duration = Duration::from_secs(25);

/// For how long afterwards nothing grows.
const AFTER: Duration = Duration::from_secs(30);

/// How long growth may take then.
const GROWTH: Duration = Duration::from_secs(60);

/// vCPUs and memory that each VM had.
type Sizes = BTreeMap<&'static str, (u32, u64)>;

#[tokio::test(flavor = "multi_thread")]
async fn an_informant_that_did_not_run_makes_nothing_grow() -> Result<()> {
    let vms = [Vm::with_defaults("halted"), Vm::with_defaults("killed")];
    let stage = Stage::with_defaults(8, &vms).await?;
    let mut most = BTreeMap::new();
    for vm in &vms {
        // While it boots, a guest may have grown.
        let outside = stage.guest(vm.name).outside().await?;
        most.insert(vm.name, (outside.vcpus, outside.upper_memory()));
    }
    let start = stage.host.state().await?.at;

    stage.guest("halted").ask("informant halt").await?;
    keeps_its_size(&stage, &most, GAP).await?;
    stage.guest("halted").ask("informant continue").await?;
    stage.guest("killed").ask("informant kill").await?;
    stage.guest("killed").ask("informant start").await?;
    keeps_its_size(&stage, &most, AFTER).await?;
    for vm in &vms {
        let grew = Told::of(&stage.host, vm.name)?.since(start).growing();
        ensure!(grew.count() == 0, "{} was to grow:\n{grew}", vm.name);
    }

    for vm in &vms {
        stage.guest(vm.name).cpu(3).await?;
        let (vcpus, memory) = most[vm.name];
        let gib = u32::try_from(memory >> 30)?;
        let grown = |view: &View| view.is_above(vcpus, gib);
        stage.until_within(GROWTH, vm.name, "growth", grown).await?;
        stage.guest(vm.name).cpu(0).await?;
    }
    stage.close().await?;
    Ok(())
}

/// For so long, no VM has more vCPUs or memory than it had.
async fn keeps_its_size(stage: &Stage, had: &Sizes, time: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        for (name, (vcpus, memory)) in had {
            let outside = stage.guest(name).outside().await?;
            ensure!(
                outside.vcpus <= *vcpus && outside.upper_memory() <= *memory,
                "{name} grew: {outside:?}\n{}",
                Told::of(&stage.host, name)?
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    eprintln!("    {:5.1} s  both keep what they have", start.elapsed().as_secs_f64());
    Ok(())
}
