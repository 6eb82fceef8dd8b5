//! One burst of memory: when it crosses the threshold, and when more memory is there.
//!
//! Both moments are seen over the same connection to the load program inside, and both
//! guests are looked at in the same way, so what looking costs is in both times. The burst
//! goes on meanwhile, to more than the guest had: that it is held in the end shows that what
//! was added can be used.

use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use windlass_lab::{Guest, Inside, wait};

const MIB: u64 = 1 << 20;
/// The load of the project's own promise, in tests and here.
pub(crate) const STEP_MIB: u32 = 16;
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// The informant calls memory urgent below this: 15 % of the total, and no less than this.
pub(crate) const THRESHOLD_MIB: u64 = 64;
/// What is held in the end: more than a guest of 256 MiB has.
pub(crate) const HOLD_MIB: u32 = 240;
/// What the lab asks for at once, and Windlass in units.
pub(crate) const UNIT_MIB: u64 = 256;
/// A unit as the guest's kernel counts it: what describes the pages is taken off.
pub(crate) const USABLE_MIB: u64 = UNIT_MIB - UNIT_MIB / 32;
/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(180);

/// Who sees to it that the guest gets more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A host, and the informant inside.
    Windlass,
    /// The benchmark, by the lab's monitor, as soon as it sees that the threshold is crossed.
    Hand,
}

/// How one burst was met, from the moment at which it was seen to cross the threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// Until QEMU had been asked for more.
    pub(crate) asked: Duration,
    /// Until the guest's kernel managed it.
    pub(crate) usable: Duration,
}

/// Makes a burst and undoes it.
pub(crate) async fn burst(guest: &Guest, by: By) -> Result<Met> {
    let before = at_rest(guest).await?;
    guest.ramp(HOLD_MIB, STEP_MIB, EVERY).await?;
    let met = watch(guest, by, &before).await.with_context(|| guest.name().to_owned())?;
    let held = |inside: &Inside| inside.held == u64::from(HOLD_MIB) * MIB;
    let after = wait::until("the whole burst", PATIENCE, || guest.inside(), held).await?;
    ensure!(after.holders_killed == before.holders_killed, "the guest ran out of memory");
    guest.memory(0).await?;
    if by == By::Hand {
        guest.request_memory(0).await?;
    }
    at_rest(guest).await?;
    Ok(met)
}

async fn watch(guest: &Guest, by: By, before: &Inside) -> Result<Met> {
    let begun = Instant::now();
    let (mut crossed, mut asked) = (None, None);
    loop {
        let inside = guest.inside().await?;
        let now = Instant::now();
        let gained = total(&inside)?.saturating_sub(total(before)?);
        let available = inside.mem_available.context("no MemAvailable")?;
        if crossed.is_none() && available < THRESHOLD_MIB * MIB {
            crossed = Some(now);
            if by == By::Hand {
                guest.request_memory(UNIT_MIB * MIB).await?;
            }
        }
        let outside = guest.outside().await?;
        if asked.is_none() && outside.upper_memory() > outside.boot {
            asked = Some(Instant::now());
        }
        match (crossed, asked) {
            (Some(crossed), Some(asked)) if gained >= USABLE_MIB * MIB => {
                return Ok(Met { asked: asked - crossed, usable: now - crossed });
            }
            (None, Some(_)) => bail!("it grew before the threshold was seen to be crossed"),
            _ => {}
        }
        ensure!(begun.elapsed() < PATIENCE, "not met: {outside:?} {inside:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the guest has its boot memory and nothing is held.
async fn at_rest(guest: &Guest) -> Result<Inside> {
    let look = || guest.outside();
    let small = |outside: &windlass_lab::Outside| outside.upper_memory() == outside.boot;
    wait::until("boot memory only", PATIENCE, look, small).await?;
    let free = |inside: &Inside| {
        inside.held == 0 && inside.mem_available > Some((THRESHOLD_MIB + 64) * MIB)
    };
    Ok(wait::until("memory given back", PATIENCE, || guest.inside(), free).await?)
}

fn total(inside: &Inside) -> Result<u64> {
    inside.mem_total.context("no MemTotal")
}
