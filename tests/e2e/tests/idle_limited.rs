//! A real guest of a quarter of a vCPU that comes to rest after its load, under a host with default settings.
//!
//! It waits for minutes beside an idle guest, so it does not wait for its turn: it runs beside the rest of the
//! suite. Its cgroup is preferred, so that it has its quarter on a crowded machine too. What goes wrong while the
//! machine is crowded all the same says nothing of Windlass: then the wait begins anew.

use anyhow::{Result, bail, ensure};
use std::fs;
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, Told, View, Vm, is_not_run};
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// What the guest has while it is idle, in thousandths of a CPU.
const QUARTER: u64 = 250;

/// How long it may take to give back everything: three times what is promised.
const SHRUNK: Duration = Duration::from_secs(630);

/// For how long nothing happens then.
const QUIET: Duration = Duration::from_secs(300);

/// How often the wait begins anew at most.
const WAITS: usize = 3;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// So many processes for each CPU that want to run are a crowd.
const CROWD: f64 = 2.0;

/// What is counted of a session, and should not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    sessions: u64,
    unanswered: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarter_of_a_vcpu_comes_to_rest_after_its_load() -> Result<()> {
    if is_not_run("idle_limited") {
        return Ok(());
    }
    let quarter = u32::try_from(QUARTER)?;
    let vm = Vm { group: true, least_milli: Some(quarter), ..Vm::with_defaults("a") };
    let room = Resources { cpu: MilliCpu::from_cores(3), mem: Bytes::from_mib(3 << 10) };
    let mut stage = Stage::limited_beside_others(room, &[vm]).await?;
    stage.guest("a").group().expect("a has a cgroup").prefer()?;
    stage.host.start().await?;
    let least = |view: &View| view.has_cpu(QUARTER) && view.memory_mib() == 1 << 10;
    stage.until_within(SHRUNK, "a", "a quarter", least).await?;

    stage.guest("a").cpu(4).await?;
    stage.until("a", "three CPUs", |view| view.has_cpu(3000)).await?;
    stage.guest("a").cpu(0).await?;
    stage.until_within(SHRUNK, "a", "a quarter again", least).await?;

    for wait in 1..=WAITS {
        let Err((why, crowded)) = is_quiet(&stage).await? else {
            let Counted { sessions, unanswered } = counted(&stage).await?;
            let time = QUIET.as_secs();
            eprintln!("    {time} s quiet; {sessions} session, {unanswered} without an answer");
            // While a quarter of a CPU meets the load, a call may go unanswered; nothing else ends a session.
            let explained = sessions <= 1 + unanswered;
            ensure!(wait > 1 || explained, "there were {sessions} sessions");
            stage.close().await?;
            return Ok(());
        };
        ensure!(crowded, "{why}\n{}", Told::of(&stage.host, "a")?);
        eprintln!("    the machine is crowded, so this says nothing: {why}");
        stage.until_within(SHRUNK, "a", "a quarter again", least).await?;
    }
    bail!("the machine was crowded, and the guest not quiet, {WAITS} times");
}

/// Whether nothing is done, nothing moves, and nothing remains without an answer; else what it was, and whether
/// the machine was crowded.
async fn is_quiet(stage: &Stage) -> Result<Result<(), (String, bool)>> {
    let (start, since) = (Instant::now(), stage.host.state().await?.at);
    let (before, minimum) = (counted(stage).await?, stage.guest("a").outside().await?);
    let mut crowded = false;
    while start.elapsed() < QUIET {
        tokio::time::sleep(EVERY).await;
        crowded |= is_crowded();
        let (outside, quota) = (stage.guest("a").outside().await?, quota(stage)?);
        let counts = counted(stage).await?;
        let acts = Told::of(&stage.host, "a")?.since(since).acting();
        let why = if (outside, quota) != (minimum, Some(QUARTER)) {
            format!("it moved: {outside:?}, quota {quota:?}")
        } else if acts.count() > 0 {
            format!("it came to no rest:\n{acts}")
        } else if counts != before {
            format!("it was {before:?}, and is {counts:?}")
        } else {
            continue;
        };
        return Ok(Err((why, crowded)));
    }
    Ok(Ok(()))
}

async fn counted(stage: &Stage) -> Result<Counted> {
    let sessions = stage.host.counted("windlass_agent_calls_total{endpoint=\"resume\"").await?;
    let mut unanswered = 0;
    for peer in ["informant", "metrics"] {
        let series =
            format!("windlass_agent_requests_total{{peer=\"{peer}\",answered=\"no-answer\"}}");
        unanswered += stage.host.counted(&series).await?;
    }
    Ok(Counted { sessions, unanswered })
}

fn quota(stage: &Stage) -> Result<Option<u64>> {
    Ok(stage.guest("a").group().expect("a has a cgroup").quota()?)
}

/// Whether many more processes want to run than the machine has CPUs, over the last minute.
fn is_crowded() -> bool {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    load > CROWD * cpus as f64
}
