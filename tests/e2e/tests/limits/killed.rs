//! The host is killed between any two steps up and down; the next one's books cover the quota that it finds.
//!
//! Each kill is as soon as a thing is seen, so what was done by then is said, and not supposed.

use crate::size;
use anyhow::{Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, View, Vm, is_not_run};
use windlass_lab::{Guest, Inside, wait};
use windlass_protocol::informant::DOWNSCALE;

/// How long a phase may take to come.
const LIMIT: Duration = Duration::from_secs(120);

/// How often it is looked for.
const EVERY: Duration = Duration::from_micros(200);

/// What a kill left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    quota: Option<u64>,
    vcpus: u32,
    mib: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_each_phase_the_books_cover_the_quota() -> Result<()> {
    if is_not_run("killed") {
        return Ok(());
    }
    let vm = Vm { most: 3, relayed: true, ..Vm::limited("a", 500, 2) };
    let mut stage = Stage::limited(size(2000, 768), size(500, 256), &[vm]).await?;
    stage.host.start().await?;
    let least = |view: &View| view.has_cpu(500) && view.memory_mib() == 256;
    stage.until("a", "its minimum", least).await?;

    stage.guest("a").cpu(4).await?;
    let kept = modified(&stage);
    when(&stage, "what is found kept, for a limit", async |_| modified(&stage) != kept).await?;
    let left = crash(&mut stage, "limit about to be raised").await?;
    if left.quota == Some(500) {
        let raised = async |stage: &Stage| quota(stage) > Some(500);
        when(&stage, "a higher limit", raised).await?;
        crash(&mut stage, "limit raised, before vCPU and memory").await?;
    }
    let plugs = async |stage: &Stage| outside(stage).await.is_some_and(|(vcpus, ..)| vcpus > 1);
    when(&stage, "a vCPU", plugs).await?;
    crash(&mut stage, "vCPU plugged").await?;
    let most = |view: &View| view.has_cpu(2000) && view.memory_mib() == 768;
    stage.until("a", "its maximum", most).await?;

    stage.lose_answer("a", DOWNSCALE.path, "\"cpu\":\"1\"");
    stage.guest("a").cpu(0).await?;
    when(&stage, "vCPU to be parked", async |stage| stage.has_lost("a")).await?;
    let parked = |inside: &Inside| inside.cpus_online == Some(1);
    wait::until("a parked vCPU", LIMIT, || stage.guest("a").inside(), parked).await?;
    let left = crash(&mut stage, "parked, before the limit is lowered").await?;
    ensure!(left.quota > Some(1000), "the limit was lowered before it was told: {left:?}");

    let leaves = async |stage: &Stage| outside(stage).await.is_some_and(|(_, mib)| mib < 768);
    when(&stage, "memory that leaves", leaves).await?;
    crash(&mut stage, "memory leaves").await?;

    let before = quota(&stage);
    when(&stage, "a lower limit", async |stage: &Stage| quota(stage) < before).await?;
    crash(&mut stage, "limit lowered").await?;
    stage.until("a", "its minimum", least).await?;

    let looks = stage.covered().looks;
    eprintln!("    in {looks} looks the books covered the quota");
    ensure!(looks > 100, "it was looked {looks} times");
    stage.close().await?;
    Ok(())
}

/// Looks until something is so.
async fn when(stage: &Stage, what: &str, mut is_so: impl AsyncFnMut(&Stage) -> bool) -> Result<()> {
    let start = Instant::now();
    while !is_so(stage).await {
        ensure!(start.elapsed() < LIMIT, "no {what}\n{}", stage.host.log());
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}

/// Kills the host, says what is left, and starts it again.
async fn crash(stage: &mut Stage, phase: &str) -> Result<Left> {
    stage.host.kill()?;
    let (vcpus, mib) = outside(stage).await.unwrap_or_default();
    let left = Left { quota: quota(stage), vcpus, mib };
    eprintln!("             killed: {phase}: {left:?}");
    stage.mend("a");
    stage.host.start().await?;
    Ok(left)
}

fn guest(stage: &Stage) -> &Guest {
    stage.guest("a")
}

fn quota(stage: &Stage) -> Option<u64> {
    guest(stage).group()?.quota().ok()?
}

/// vCPUs, and the memory that the guest is to have.
async fn outside(stage: &Stage) -> Option<(u32, u64)> {
    let outside = guest(stage).outside().await.ok()?;
    let added = outside.virtio_mem.map_or(0, |device| device.requested);
    Some((outside.vcpus, (outside.boot + added) >> 20))
}

/// When the host wrote down last what limits it sets.
fn modified(stage: &Stage) -> Vec<(PathBuf, Option<std::time::SystemTime>)> {
    let folder = stage.host.state_dir().join("limits");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut times: Vec<_> = files
        .map(|file| (file.path(), file.metadata().and_then(|found| found.modified()).ok()))
        .collect();
    times.sort();
    times
}
