//! A guest that has a part of a vCPU: it grows when it is short, and returns; its session outlives all of that.

use crate::size;
use anyhow::{Result, ensure};
use std::time::Duration;
use windlass_e2e::{Stage, Vm, cpus_used, is_not_run};

/// For how long the host's accounting is read.
const ACCOUNTED: Duration = Duration::from_secs(20);

/// How long it may take to give everything back.
const RETURNS: Duration = Duration::from_secs(180);

/// How long anything else may.
const LIMIT: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_quarter_of_a_vcpu_grows_to_two_and_returns_in_one_session() -> Result<()> {
    if is_not_run("part") {
        return Ok(());
    }
    let vm = Vm { most: 3, ..Vm::limited("a", 250, 2) };
    let mut stage = Stage::limited(size(2000, 768), size(250, 256), &[vm]).await?;
    let booted = stage.guest("a").warnings().await?;
    stage.host.start().await?;
    stage.until("a", "a quarter", |view| view.has_cpu(250) && view.memory_mib() == 256).await?;

    stage.guest("a").cpu(4).await?;
    let grown = |view: &windlass_e2e::View| view.has_cpu(2000) && view.memory_mib() == 768;
    let (_, grew) = stage.until_within(LIMIT, "a", "two CPUs and all memory", grown).await?;
    stage.guest("a").cpu(0).await?;
    let least = |view: &windlass_e2e::View| view.has_cpu(250) && view.memory_mib() == 256;
    let (_, returned) = stage.until_within(RETURNS, "a", "a quarter again", least).await?;

    stage.host.command(&["freeze"])?;
    stage.guest("a").cpu(2).await?;
    let guest = stage.guest("a");
    guest.group().expect("a has a cgroup").prefer()?;
    let used = cpus_used(&[guest], ACCOUNTED).await?[0];
    eprintln!(
        "    a quarter: grew in {:.1} s, returned in {:.1} s, frozen with two busy loops {used:.3} CPU",
        grew.as_secs_f64(),
        returned.as_secs_f64()
    );
    ensure!(used <= 0.27, "it used {used:.3} CPU, and was granted 0.25");
    ensure!(used >= 0.2, "it did not compute: {used:.3} CPU");

    stage.guest("a").cpu(0).await?;
    stage.until("a", "session", |view| view.has_session()).await?;
    let resumed = stage.host.counted("windlass_agent_calls_total{endpoint=\"resume\"").await?;
    ensure!(resumed == 1, "there were {resumed} sessions\n{}", stage.host.log());
    let warnings = stage.guest("a").warnings().await?;
    let new: Vec<_> = warnings.iter().filter(|warning| !booted.contains(warning)).collect();
    ensure!(new.is_empty(), "the guest's kernel warns: {new:#?}");
    stage.close().await?;
    Ok(())
}
