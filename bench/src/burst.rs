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
/// Of the total, what is available when the informant calls memory urgent. In so large a guest
/// that is more than the 100 MiB that the memory policy adds to what is in use, so urgency comes
/// first.
pub(crate) const THRESHOLD_PERCENT: u64 = 15;
/// What a guest boots with.
pub(crate) const BOOT_MIB: u32 = 768;
/// What is left when the burst begins.
pub(crate) const LEFT_MIB: u64 = 200;
/// What the burst takes beyond all that the guest had.
pub(crate) const BEYOND_MIB: u64 = 48;
/// What the lab asks for at once, and Windlass in units.
pub(crate) const UNIT_MIB: u64 = 256;
/// A unit as the guest's kernel counts it: what describes the pages is taken off.
pub(crate) const USABLE_MIB: u64 = UNIT_MIB - UNIT_MIB / 32;
/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Bursts that may say nothing, in a row.
const ATTEMPTS: u32 = 5;
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

/// Makes a burst and undoes it, and waits until the guest has its boot memory again.
pub(crate) async fn burst_and_rest(guest: &Guest, by: By) -> Result<Met> {
    let met = burst(guest, by).await?;
    at_rest(guest).await?;
    Ok(met)
}

/// Makes a burst, once the guest has its boot memory, and undoes it. A burst in which the guest grew
/// before the threshold was seen to be crossed says nothing, and is made again.
pub(crate) async fn burst(guest: &Guest, by: By) -> Result<Met> {
    for _ in 0..ATTEMPTS {
        if let Some(met) = attempt(guest, by).await? {
            return Ok(met);
        }
    }
    bail!("it grew before the threshold was seen to be crossed, {ATTEMPTS} times in a row")
}

async fn attempt(guest: &Guest, by: By) -> Result<Option<Met>> {
    let before = at_rest(guest).await?;
    let had = before.mem_available.context("no MemAvailable")? / MIB;
    let (begin, end) = (had.saturating_sub(LEFT_MIB), had + BEYOND_MIB);
    guest.memory(u32::try_from(begin)?).await?;
    let held = |inside: &Inside| inside.held == begin * MIB;
    wait::until("what is held before the burst", PATIENCE, || guest.inside(), held).await?;
    guest.ramp(u32::try_from(end)?, STEP_MIB, EVERY).await?;
    let met = watch(guest, by, &before).await.with_context(|| guest.name().to_owned())?;
    let held = |inside: &Inside| inside.held == end * MIB;
    let after = wait::until("the whole burst", PATIENCE, || guest.inside(), held).await?;
    ensure!(after.holders_killed == before.holders_killed, "the guest ran out of memory");
    guest.memory(0).await?;
    if by == By::Hand {
        guest.request_memory(0).await?;
    }
    Ok(met)
}

/// `None` if it grew before the threshold was seen to be crossed.
async fn watch(guest: &Guest, by: By, before: &Inside) -> Result<Option<Met>> {
    let begun = Instant::now();
    let (mut crossed, mut asked) = (None, None);
    loop {
        let inside = guest.inside().await?;
        let now = Instant::now();
        let gained = total(&inside)?.saturating_sub(total(before)?);
        let available = inside.mem_available.context("no MemAvailable")?;
        if crossed.is_none() && available < threshold(before)? {
            crossed = Some(now);
            if by == By::Hand {
                guest.request_memory(UNIT_MIB * MIB).await?;
            }
        }
        let outside = guest.outside().await?;
        if asked.is_none() && outside.upper_memory() > outside.boot {
            asked = Some(Instant::now());
            // It may have been crossed since that look, by one step and no more.
            if available < threshold(before)? + u64::from(STEP_MIB) * MIB {
                crossed = crossed.or(Some(now));
            }
        }
        match (crossed, asked) {
            (Some(crossed), Some(asked)) if gained >= USABLE_MIB * MIB => {
                return Ok(Some(Met { asked: asked - crossed, usable: now - crossed }));
            }
            (None, Some(_)) => {
                let (available, threshold) = (available / MIB, threshold(before)? / MIB);
                eprintln!("{}: grew at {available} MiB available, above {threshold}", guest.name());
                return Ok(None);
            }
            _ => {}
        }
        ensure!(begun.elapsed() < PATIENCE, "not met: {outside:?} {inside:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the guest has its boot memory and nothing is held.
pub(crate) async fn at_rest(guest: &Guest) -> Result<Inside> {
    let look = || guest.outside();
    let small = |outside: &windlass_lab::Outside| outside.upper_memory() == outside.boot;
    wait::until("boot memory only", PATIENCE, look, small).await?;
    let free = |inside: &Inside| {
        inside.held == 0 && inside.mem_available > inside.mem_total.map(|total| total / 2)
    };
    Ok(wait::until("memory given back", PATIENCE, || guest.inside(), free).await?)
}

/// Less than this available is urgent.
fn threshold(inside: &Inside) -> Result<u64> {
    Ok(total(inside)? / 100 * THRESHOLD_PERCENT)
}

fn total(inside: &Inside) -> Result<u64> {
    inside.mem_total.context("no MemTotal")
}
