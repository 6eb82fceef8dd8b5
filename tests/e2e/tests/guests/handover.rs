//! Two agents of one VM, each a process with a monitor of its own: one of them acts at a time.
//!
//! The old one would have the VM no smaller than two units, the new one is content with one. So
//! it shows in the VM which of them acts; and one that acts though it may not is noticed, since each
//! undoes what the other one did.

use anyhow::{Result, ensure};
use std::time::Duration;
use windlass_e2e::Who::{self, New, Old};
use windlass_e2e::acts::LEASE;
use windlass_e2e::{Duo, Sight, Vm, Way};

/// A guest's clock may be a little fast.
const CLOCKS_DIFFER: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_dies_is_followed_once_its_lease_is_over() -> Result<()> {
    let mut duo = old_acts().await?;
    duo.kill(Old)?;
    duo.start(New)?;
    is_told_after_the_lease(&duo, New, 0).await?;
    duo.until(New, "one unit, as the new one would have it", acts_with(1)).await?;
    follows_its_load(&duo).await?;
    duo.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_lives_waits_and_acts_again_when_the_newer_one_ends() -> Result<()> {
    let mut duo = old_acts().await?;
    duo.start(New)?;
    duo.until(New, "one unit, as the new one would have it", acts_with(1)).await?;
    waits(&duo, Old).await?;
    follows_its_load(&duo).await?;

    duo.stop(New).await?;
    duo.until(Old, "two units, as the old one would have it", acts_with(2)).await?;

    duo.start(New)?;
    duo.until(New, "one unit again", acts_with(1)).await?;
    let before = duo.resumed(Old);
    duo.kill(New)?;
    is_told_after_the_lease(&duo, Old, before).await?;
    duo.until(Old, "two units again", acts_with(2)).await?;
    duo.close().await
}

/// The informant cannot tell it to wait, and lets its lease run out.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_called_is_followed_once_its_lease_is_over() -> Result<()> {
    cannot_be_called(old_acts().await?).await
}

/// The oldest version in which no two act. Parked vCPUs stay in the books.
#[tokio::test(flavor = "multi_thread")]
async fn in_v1_2_too_an_agent_is_followed_once_its_lease_is_over() -> Result<()> {
    let duo = both().await?;
    duo.guest().ask("informant stop").await?;
    duo.guest().ask("informant start --versions v1.2").await?;
    cannot_be_called(begin(duo).await?).await
}

async fn cannot_be_called(mut duo: Duo) -> Result<()> {
    duo.cut(Old, Way::Calls);
    duo.start(New)?;
    is_told_after_the_lease(&duo, New, 0).await?;
    duo.want(Old, 3)?;
    duo.until(New, "one unit, as the new one would have it", acts_with(1)).await?;
    old_comes_back(&duo).await?;
    duo.close().await
}

/// It hears what it is told, and cannot ask whether its session stands.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_not_heard_waits() -> Result<()> {
    let mut duo = old_acts().await?;
    if !duo.spoken().leases() {
        duo.spoken().lacks("handover::an_agent_that_is_not_heard_waits", "health check");
        return duo.close().await;
    }
    duo.cut(Old, Way::Requests);
    duo.start(New)?;
    duo.until(New, "one unit, as the new one would have it", acts_with(1)).await?;
    duo.want(Old, 3)?;
    duo.until(Old, "no session any more", |sight| sight.mode().is_empty()).await?;
    old_comes_back(&duo).await?;
    duo.close().await
}

/// Nobody can tell it that another one acts by now: its own clock does.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_slept_through_its_lease_waits() -> Result<()> {
    let mut duo = old_acts().await?;
    duo.cut(Old, Way::Calls);
    duo.cut(Old, Way::Requests);
    duo.pause(Old)?;
    duo.start(New)?;
    is_told_after_the_lease(&duo, New, 0).await?;
    duo.until(New, "one unit, as the new one would have it", acts_with(1)).await?;
    duo.want(Old, 3)?;
    duo.go_on(Old)?;
    duo.until(Old, "no session any more", |sight| sight.mode().is_empty()).await?;
    old_comes_back(&duo).await?;
    duo.close().await
}

/// The old one alone, with the VM as it would have it.
async fn old_acts() -> Result<Duo> {
    begin(both().await?).await
}

async fn both() -> Result<Duo> {
    let new = Vm::named("a");
    Duo::set(Vm { least: 2, ..new.clone() }, new).await
}

async fn begin(mut duo: Duo) -> Result<Duo> {
    duo.start(Old)?;
    duo.until(Old, "two units, as the old one would have it", acts_with(2)).await?;
    Ok(duo)
}

/// It was told to run `before` times until now; and the other one did not say that it waits.
async fn is_told_after_the_lease(duo: &Duo, who: Who, before: usize) -> Result<()> {
    let wait = duo.until_resumed(who, before).await?;
    let over = !duo.spoken().leases() || wait + CLOCKS_DIFFER > LEASE;
    ensure!(over, "{who} was told {wait:?} after a word with the other");
    Ok(())
}

/// Who registered last is the newest, and that is the old one again.
async fn old_comes_back(duo: &Duo) -> Result<()> {
    duo.want(Old, 2)?;
    duo.mend(Old);
    duo.until(Old, "two units, now that it is the newest", acts_with(2)).await?;
    waits(duo, New).await
}

async fn waits(duo: &Duo, who: Who) -> Result<()> {
    duo.until(who, "told to wait", |sight| sight.mode() == "suspended").await?;
    Ok(())
}

/// By the new one alone.
async fn follows_its_load(duo: &Duo) -> Result<()> {
    duo.guest().cpu(4).await?;
    duo.until(New, "three units", acts_with(3)).await?;
    duo.guest().cpu(0).await?;
    let gave = |sight: &Sight| sight.mode() == "running" && duo.has(sight, 1);
    duo.until(New, "one unit again, and no more in the books", gave).await?;
    Ok(())
}

fn acts_with(units: u32) -> impl Fn(&Sight) -> bool {
    move |sight| sight.mode() == "running" && sight.uses(units)
}
