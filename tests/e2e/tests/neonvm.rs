//! From an object at a real API server to a real guest that follows its load: the stock scheduler with the plugin's extender,
//! the agent of the node, NeonVM's objects.

use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_e2e::{Cluster, Look, Part};

const BOUNDS: &str = "windlass.dev/bounds";

/// How long a part does nothing.
const AWAY: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_of_neonvm_follows_its_load() -> Result<()> {
    let mut cluster = Cluster::start(&["one"]).await?;
    cluster.vm_from("a", "250m").await?;
    let guest = cluster.guest("a")?;
    let before = cluster.look("a").await?;

    guest.cpu(4).await?;
    // A unit has memory, too.
    let gained = |look: &Look| memory(look).saturating_sub(memory(&before)) > 500 << 20;
    let shows_it = |look: &Look| look.object["status"]["cpus"] == "4000m";
    let has_grown = |look: &Look| look.has(4) && gained(look) && shows_it(look);
    cluster.until("a", "four vCPUs, and memory", has_grown).await?;

    guest.cpu(0).await?;
    cluster.until("a", "a quarter of a vCPU", |look| look.asked() == (250, 256)).await?;

    // What a crash leaves behind is found again.
    cluster.restart_agent("one").await?;
    guest.cpu(2).await?;
    cluster
        .until("a", "more with the agent that came after", |look| look.asked().0 >= 2000)
        .await?;
    guest.cpu(0).await?;
    cluster.until("a", "a quarter of a vCPU", |look| look.asked().0 == 250).await?;
    cluster.close().await
}

/// The agent of the node that it leaves lets go of it, and that of the node that it comes to takes it up.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_moves_follows_its_load_on_its_new_node() -> Result<()> {
    let cluster = Cluster::start(&["one", "two"]).await?;
    cluster.vm("a").await?;
    let guest = cluster.guest("a")?;
    guest.cpu(2).await?;
    cluster.until("a", "more than one vCPU", has_grown).await?;
    let there = cluster.moves("a").await?;
    guest.cpu(4).await?;
    let grown = cluster.until("a", "four vCPUs on the other node", |look| look.has(4)).await?;
    assert_eq!(grown.object["status"]["node"], there.object["status"]["node"]);
    guest.cpu(0).await?;
    cluster.until("a", "one vCPU again", |look| look.asked() == (1000, 256)).await?;
    cluster.close().await
}

/// What goes wrong with one object is that VM's problem, and ends when the object is right again.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_whose_object_is_wrong_follows_its_load_within_its_last_bounds() -> Result<()> {
    let cluster = Cluster::start(&["one"]).await?;
    cluster.vm("a").await?;
    let guest = cluster.guest("a")?;
    let bounds = |bounds: &str| json!({"metadata": {"annotations": {BOUNDS: bounds}}});
    cluster.patch("a", bounds(r#"{"max":{"cpu":2}}"#)).await?;
    guest.cpu(4).await?;
    cluster.until("a", "two vCPUs", |look| look.has(2)).await?;
    cluster.patch("a", bounds("nonsense")).await?;
    guest.cpu(0).await?;
    cluster.until("a", "one vCPU", |look| look.asked().0 == 1000).await?;
    guest.cpu(4).await?;
    cluster.until("a", "two vCPUs by the last valid bounds", |look| look.has(2)).await?;
    cluster.patch("a", bounds(r#"{"max":{"cpu":3}}"#)).await?;
    cluster.until("a", "three vCPUs by the next", |look| look.has(3)).await?;

    // While it grows, it goes; one of the same name is another VM.
    cluster.patch("a", json!({"metadata": {"annotations": {BOUNDS: null}}})).await?;
    drop(guest);
    cluster.delete("a").await?;
    cluster.vm("a").await?;
    cluster.guest("a")?.cpu(2).await?;
    cluster.until("a", "more than one vCPU of the VM that came after", has_grown).await?;
    cluster.close().await
}

/// Without any of these no VM grows, and none needs a restart when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_follows_its_load_after_each_part_was_away() -> Result<()> {
    let cluster = Cluster::start(&["one"]).await?;
    cluster.vm("a").await?;
    let guest = cluster.guest("a")?;
    for part in [Part::Plugin, Part::Agents, Part::ApiServer] {
        cluster.halt(part)?;
        guest.cpu(4).await?;
        let start = Instant::now();
        while start.elapsed() < AWAY {
            let online = guest.inside().await?.cpus_online;
            assert_eq!(online, Some(1), "it grew without {part:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        cluster.go_on(part)?;
        let grown = format!("four vCPUs after {part:?} was away");
        cluster.until("a", &grown, |look| look.has(4)).await?;
        guest.cpu(0).await?;
        cluster.until("a", "one vCPU again", |look| look.asked() == (1000, 256)).await?;
    }
    cluster.close().await
}

/// More than one vCPU, and as many as its object asks for.
fn has_grown(look: &Look) -> bool {
    look.has_more_than(1)
        && look.online().map(|online| 1000 * i64::from(online)) == Some(look.asked().0)
}

fn memory(look: &Look) -> u64 {
    look.inside.as_ref().and_then(|inside| inside.mem_total).unwrap_or_default()
}
