//! What guests use of the host's CPUs, by the host's own accounting of their cgroups.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};
use windlass_lab::{Guest, groups_can_be_made};

/// CPUs that QEMU of each of these guests uses over this time.
///
/// # Errors
/// If one has no cgroup, or that cannot be read.
pub async fn cpus_used(guests: &[&Guest], time: Duration) -> Result<Vec<f64>> {
    let mut before = Vec::new();
    for guest in guests {
        before.push((Instant::now(), usage(guest)?));
    }
    tokio::time::sleep(time).await;
    let mut used = Vec::new();
    for (guest, (start, before)) in guests.iter().zip(before) {
        let after = usage(guest)?;
        used.push((after - before).as_secs_f64() / start.elapsed().as_secs_f64());
    }
    Ok(used)
}

fn usage(guest: &Guest) -> Result<Duration> {
    let group = guest.group().with_context(|| format!("{} has no cgroup", guest.name()))?;
    Ok(group.usage()?)
}

/// Says that a story cannot be told on this machine, and why, if that is so. `make test` counts these lines: such
/// a story has shown nothing.
pub fn is_not_run(story: &str) -> bool {
    let why = groups_can_be_made().err();
    if let Some(why) = &why {
        eprintln!("\nnot run: {story}: {why}");
    }
    why.is_some()
}
