//! The run: three guests, bursts in turn, then sizes.
//!
//! Two guests are Windlass's (one bursts, one idles), the third is met by hand. They burst in
//! turn, so both ways see the same machine.

use crate::burst::{self, By, Met};
use crate::host::{self, Host};
use crate::print::{self, Sizes};
use crate::sizes::{self, Resident};
use anyhow::{Context, Result};
use windlass_lab::{Guest, GuestSpec, Lab};

pub(crate) async fn run(rounds: usize) -> Result<()> {
    let windlass = host::binary()?;
    let lab = tokio::task::spawn_blocking(Lab::prepared).await??;
    print::conditions(rounds, &lab, &windlass)?;
    let named = |name| GuestSpec { boot_mib: burst::BOOT_MIB, ..GuestSpec::named(name) };
    let by_hand = GuestSpec { onlining: true, informant: false, ..named("hand") };
    let specs = [named("burst"), named("idle"), by_hand];
    let guests = Guest::boot_all(&lab, specs).await?;
    let [burst, idle, hand] = &guests[..] else { unreachable!("three were booted") };
    let vms = [burst, idle].map(|guest| host::burst_text(guest, host::AT_ONCE));
    let host = Host::start(&windlass, &vms).await?;

    let (mut met, mut least) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let by_windlass = one(burst, By::Windlass).await;
        let by_windlass = by_windlass.with_context(|| host.log())?;
        let by_hand = one(hand, By::Hand).await?;
        print::round(round, by_windlass, by_hand)?;
        met.push(by_windlass);
        least.push(by_hand);
    }
    print::times(&met, &least)?;

    let qemu = [burst, idle].map(Guest::resident);
    let qemu = qemu.into_iter().sum::<Option<u64>>().context("a guest has ended")?;
    let total = burst.inside().await?.mem_total.context("no MemTotal")?;
    print::sizes(&Sizes {
        host: Resident::of_process(host.pid())?,
        qemu,
        informant: Resident::of_informant(burst).await?,
        guest: total,
        informant_file: sizes::informant_file(&lab)?,
        host_file: sizes::file(&windlass)?,
    })
}

async fn one(guest: &Guest, by: By) -> Result<Met> {
    burst::burst_and_rest(guest, by).await.with_context(|| format!("burst met by {by:?}"))
}
