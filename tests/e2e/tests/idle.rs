//! A real guest that comes to rest after its load, under a host with default settings.
//!
//! It waits for minutes beside an idle guest, so it does not wait for its turn: it runs beside the
//! rest of the suite.

use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, Told, View, Vm};
use windlass_protocol::MilliCpu;

/// How long the guest is loaded.
const LOADED: Duration = Duration::from_secs(25);

/// How long it may take to give back everything: three times what is promised.
const SHRUNK: Duration = Duration::from_secs(630);

/// How long it keeps at least what it may need again: `[scale_down]` says a minute.
const HELD: Duration = Duration::from_secs(50);

/// For how long nothing happens then.
const QUIET: Duration = Duration::from_secs(300);

/// How long the first growth may take.
const GROWTH: Duration = Duration::from_secs(180);

/// Beyond what the first growth took twice, the second may take this long: the first may go by a
/// shorter window, before the VM's own is filled.
const SLACK: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_comes_to_rest_after_its_load_and_grows_again_as_fast() -> Result<()> {
    let stage = Stage::beside_others(4, &[Vm::with_defaults("a")]).await?;
    stage.until("a", "its minimum", |view| view.is(1, 1)).await?;
    let start = Instant::now();
    let first = grows(&stage, GROWTH).await?;
    stage.until("a", "its maximum", |view: &View| view.is(3, 3)).await?;
    tokio::time::sleep(LOADED.saturating_sub(start.elapsed())).await;
    stage.guest("a").cpu(0).await?;

    let ended = stage.host.state().await?.at;
    let again = "its minimum again";
    let (_, took) = stage.until_within(SHRUNK, "a", again, |view| view.is(1, 1)).await?;
    ensure!(took >= HELD, "load that comes back at once would find nothing: {took:?}");
    let grew = Told::of(&stage.host, "a")?.since(ended).growing();
    ensure!(grew.count() == 0, "it was to grow after its load had ended:\n{grew}");

    is_quiet(&stage).await?;
    let grew = Told::of(&stage.host, "a")?.since(ended).growing();
    ensure!(grew.count() == 0, "it was to grow after its load had ended:\n{grew}");

    let second = grows(&stage, 2 * first + SLACK).await?;
    eprintln!("    first growth {first:.1?}, second {second:.1?}");
    stage.close().await?;
    Ok(())
}

/// Has the guest compute, and says how long it takes until it has more than its minimum.
async fn grows(stage: &Stage, limit: Duration) -> Result<Duration> {
    stage.guest("a").cpu(4).await?;
    let grown = |view: &View| view.is_above(1, 1);
    let (_, took) = stage.until_within(limit, "a", "growth", grown).await?;
    Ok(took)
}

/// Nothing is done, and nothing moves, as far as QEMU and the informant say.
async fn is_quiet(stage: &Stage) -> Result<()> {
    let (start, since) = (Instant::now(), stage.host.state().await?.at);
    let minimum = stage.guest("a").outside().await?;
    while start.elapsed() < QUIET {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let outside = stage.guest("a").outside().await?;
        ensure!(outside == minimum, "it moved: {outside:?}\n{}", Told::of(&stage.host, "a")?);
        let state = stage.host.state().await?;
        let online = state.vms.first().and_then(|vm| vm.online);
        ensure!(online == Some(MilliCpu::from_cores(1)), "{online:?} vCPUs are online");
    }
    let acts = Told::of(&stage.host, "a")?.since(since).acting();
    ensure!(acts.count() == 0, "it came to no rest:\n{acts}");
    Ok(())
}
