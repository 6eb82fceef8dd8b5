//! cgroup v2, which this machine may not have, inside a guest, whose kernel has it: what the driver sets, binds.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use windlass_lab::{Guest, GuestSpec, Lab};

#[tokio::test(flavor = "multi_thread")]
async fn on_cgroup_v2_a_quarter_of_a_cpu_is_a_quarter() -> Result<()> {
    let lab = tokio::task::spawn_blocking(Lab::prepared_with_limits).await??;
    let spec = GuestSpec { informant: false, ..GuestSpec::named("v2") };
    let guest = Guest::start(&lab, spec)?;
    guest.ready().await?;
    let said = guest.ask("limit 250 10").await?;
    let said: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
    eprintln!("    in the guest: {said}");
    let used = said["used"].as_f64().context("no figure")?;
    ensure!((0.20..=0.30).contains(&used), "it used {used:.3} CPU of 0.25");
    ensure!(said["version"] == "v2" && said["limit"] == 250, "{said}");
    ensure!(said["after"] == "max 100000", "what was found was not put back: {said}");
    Ok(())
}
