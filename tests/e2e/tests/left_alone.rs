//! VMs of a cluster that are left alone, with default settings: they come to rest, and so do the requests to the API server.
//!
//! It takes a quarter of an hour, so it is played when `WINDLASS_ALONE` says for how many minutes, as `make alone` does.

use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use windlass_e2e::Cluster;

/// How long the guests are loaded.
const LOADED: Duration = Duration::from_secs(30);

/// How long a VM may take to give back everything.
const SHRUNK: Duration = Duration::from_secs(630);

/// The sizes of both VMs may change as often while they are left alone.
const CHANGES: i64 = 4;

/// As many minutes at the end have no more requests than as many at the start.
const COMPARED: usize = 3;

/// Requests that minutes may differ by.
const SLACK: u64 = 12;

const MINUTE: Duration = Duration::from_secs(60);

/// Requests of each kind, counted from the start.
type Asked = BTreeMap<String, u64>;

#[tokio::test(flavor = "multi_thread")]
async fn vms_that_are_left_alone_rest_and_so_does_the_api_server() -> Result<()> {
    let Ok(minutes) = std::env::var("WINDLASS_ALONE") else {
        eprintln!("    WINDLASS_ALONE asks for no minutes");
        return Ok(());
    };
    let minutes: usize = minutes.parse()?;
    ensure!(minutes >= 2 * COMPARED, "WINDLASS_ALONE is to be at least {}", 2 * COMPARED);
    let cluster = Cluster::start_audited(&["one", "two"]).await?;
    cluster.resizes_on("two").await?;
    cluster.vm_with_defaults("a", "one").await?;
    cluster.pod_vm_with_defaults("p", "two").await?;
    loaded(&cluster).await?;
    cluster.until_within(SHRUNK, "a", "its minimum", |look| look.asked() == (1000, 256)).await?;
    let least = |allocated, _| allocated == (1000, 256);
    cluster.until_pod_within(SHRUNK, "p", "its minimum", least).await?;

    let before = changes(&cluster).await?;
    let mut asked = vec![requests(&cluster)];
    let start = Instant::now();
    for minute in 1..=minutes {
        let end = MINUTE * u32::try_from(minute)?;
        tokio::time::sleep(end.saturating_sub(start.elapsed())).await;
        asked.push(requests(&cluster));
    }
    let changed = changes(&cluster).await? - before;
    let sums = table(&asked);
    eprintln!("    {changed} changes of size in {minutes} minutes");
    ensure!(changed <= CHANGES, "the VMs come to no rest: {changed} changes");
    let (first, last) = (&sums[..COMPARED], &sums[minutes - COMPARED..]);
    let (first, last): (u64, u64) = (first.iter().sum(), last.iter().sum());
    ensure!(last * 5 <= first * 6 + SLACK * 5, "there are more and more requests: {sums:?}");
    cluster.close().await
}

/// Both guests compute for a while, and grow.
async fn loaded(cluster: &Cluster) -> Result<()> {
    let start = Instant::now();
    for vm in ["a", "p"] {
        cluster.guest(vm)?.cpu(2).await?;
    }
    cluster.until("a", "growth", |look| look.asked().0 > 1000).await?;
    cluster.until_pod("p", "growth", |(cpu, _), _| cpu > 1000).await?;
    tokio::time::sleep(LOADED.saturating_sub(start.elapsed())).await;
    for vm in ["a", "p"] {
        cluster.guest(vm)?.cpu(0).await?;
    }
    Ok(())
}

/// How often the size of either VM was changed since it was made: nothing else changes their specs.
async fn changes(cluster: &Cluster) -> Result<i64> {
    let (_, of_pod) = cluster.allocated("p").await?;
    Ok(cluster.look("a").await?.generation + of_pod)
}

fn requests(cluster: &Cluster) -> Asked {
    cluster.requests().into_iter().map(|(kind, many)| (kind.to_string(), many)).collect()
}

/// Prints how many requests of each kind there were in each minute; the sums of the minutes.
fn table(asked: &[Asked]) -> Vec<u64> {
    let minutes = |kind: Option<&String>| -> Vec<u64> {
        let count = |asked: &Asked| match kind {
            Some(kind) => asked.get(kind).copied().unwrap_or_default(),
            None => asked.values().sum(),
        };
        asked.windows(2).map(|pair| count(&pair[1]) - count(&pair[0])).collect()
    };
    let kinds: BTreeSet<&String> = asked.iter().flat_map(BTreeMap::keys).collect();
    for kind in kinds {
        let row = minutes(Some(kind));
        if row.iter().any(|many| *many > 0) {
            eprintln!("    {row:>4?} {kind}");
        }
    }
    let sums = minutes(None);
    eprintln!("    {sums:>4?} in all");
    sums
}
