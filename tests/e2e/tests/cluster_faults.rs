//! What goes wrong in a cluster, and what people are told of it: the laws hold, scaling goes on afterwards, and
//! `windlass explain`, the condition of the VM's pod and the events of its object say in words what is the matter while it lasts.
//!
//! It waits for conditions most of the time, so it does not wait for its turn: it is told beside the other stories of clusters.
//! Troubles of one VM last at the same time as those of others: a condition is written at most once a minute for each VM. At every
//! look at the cluster, the VMs of each node fit it.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_e2e::{Cluster, Look, Part};
use windlass_protocol::vm_view::Scaling;

const BOUNDS: &str = "windlass.dev/bounds";

/// Between two looks at a VM that is to be met while it grows.
const OFTEN: Duration = Duration::from_millis(20);

/// How long growth may take to begin.
const LIMIT: Duration = Duration::from_secs(180);

/// How long the plugin does nothing.
const AWAY: Duration = Duration::from_secs(60);

/// How long the plugin's way is cut, too, after people were told that the agents' is.
const CUT: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_what_is_wrong_and_that_it_is_over() -> Result<()> {
    let start = Instant::now();
    let mut cluster = Cluster::start_beside_others(&["one", "two"]).await?;
    for (vm, node) in [("a", "one"), ("b", "two"), ("c", "two"), ("d", "two")] {
        cluster.vm_on(vm, node).await?;
    }
    let past = |what: &str| eprintln!("  {:5.1} s  {what}", start.elapsed().as_secs_f64());
    past("an agent dies; a guest has no informant, an annotation is wrong, a VM that grows goes");
    an_agent_dies_beside_troubles_of_single_vms(&mut cluster).await?;
    past("nothing reaches the API server");
    the_way_to_the_api_server_is_cut(&cluster).await?;
    for vm in ["a", "b", "c", "d"] {
        is_well(&cluster, vm).await?;
    }
    past("a node is cordoned");
    a_node_is_cordoned(&cluster).await?;
    past("the plugin does nothing");
    the_plugin_is_away(&cluster).await?;
    for vm in ["a", "e"] {
        is_well(&cluster, vm).await?;
    }
    past("all is well");
    cluster.close().await
}

async fn an_agent_dies_beside_troubles_of_single_vms(cluster: &mut Cluster) -> Result<()> {
    cluster.guest("a")?.cpu(4).await?;
    let killed_at = until_it_grows(cluster, "a").await?;
    cluster.kill_agent("one")?;
    cluster.guest("a")?.cpu(0).await?;
    let online = killed_at.online();
    eprintln!("            killed: a asks for {:?} and has {online:?} vCPUs", killed_at.asked());
    cluster.guest("b")?.ask("informant stop").await?;
    cluster.guest("b")?.cpu(2).await?;
    cluster.patch("c", bounds(r#"{"max":{"cpu":2}}"#)).await?;
    cluster.guest("c")?.cpu(4).await?;
    cluster.until("c", "two vCPUs by its own bounds", |look| look.has(2)).await?;
    cluster.patch("c", bounds(r#"{"max":{"cpu":"much"}}"#)).await?;
    a_vm_that_grows_is_deleted(cluster).await?;

    let silent = cluster.until_told("a", Scaling::AgentSilent).await?;
    ensure!(silent.condition.contains("has not asked for the VM for"), "{silent:?}");
    let unheard = cluster.until_told("b", Scaling::InformantSilent).await?;
    ensure!(unheard.condition.contains("No informant in the guest speaks"), "{unheard:?}");
    let invalid = cluster.until_told("c", Scaling::AnnotationsInvalid).await?;
    for words in [&invalid.explained, &invalid.condition, &invalid.event] {
        ensure!(words.contains(BOUNDS) && words.contains("max.cpu"), "{words}");
    }
    let dead = cluster.look("a").await?;
    ensure!(dead.asked() == killed_at.asked(), "it was resized without an agent: {dead:?}");
    ensure!(cluster.look("b").await?.has(1), "it grew without an informant");
    ensure!(cluster.look("c").await?.has(2), "its last valid bounds are to count");

    cluster.start_agent("one").await?;
    cluster.guest("b")?.ask("informant start").await?;
    cluster.patch("c", bounds(r#"{"max":{"cpu":3}}"#)).await?;
    cluster.until("a", "one vCPU, as it needs", |look| look.asked() == (1000, 256)).await?;
    cluster.until("b", "more vCPUs with its informant", |look| look.has_more_than(1)).await?;
    // What it has more than two may be the last of its node.
    cluster.guest("b")?.cpu(0).await?;
    cluster.until("c", "three vCPUs by its next bounds", |look| look.has(3)).await?;
    cluster.guest("c")?.cpu(0).await?;
    for vm in ["a", "b", "c"] {
        cluster.until(vm, "one vCPU", |look| look.asked() == (1000, 256)).await?;
        cluster.until_explained(vm, Scaling::Following).await?;
    }
    Ok(())
}

/// Its room is free then, and people are told that there is no such VM. One of the same name is another VM.
async fn a_vm_that_grows_is_deleted(cluster: &Cluster) -> Result<()> {
    cluster.guest("d")?.cpu(4).await?;
    until_it_grows(cluster, "d").await?;
    cluster.delete("d").await?;
    cluster.until_not_booked("d").await?;
    let said = cluster.explain("d").await?;
    eprintln!("            {}", said.err.trim());
    ensure!(said.code == Some(66) && said.out.is_empty(), "{said:?}");
    ensure!(said.err.contains("no VM ") && said.err.contains("/d is on a node"), "{said:?}");
    cluster.vm_on("d", "two").await?;
    cluster.guest("d")?.cpu(2).await?;
    cluster
        .until("d", "more vCPUs of the VM that came after", |look| look.has_more_than(1))
        .await?;
    cluster.guest("d")?.cpu(0).await?;
    cluster.until_explained("d", Scaling::Following).await?;
    Ok(())
}

/// First the agents' way, which the plugin tells of, then its own, too. A watch that is cut is as silent as one of objects that do not
/// change: until an agent gives it up, what it tells changes.
async fn the_way_to_the_api_server_is_cut(cluster: &Cluster) -> Result<()> {
    cluster.until("d", "one vCPU", |look| look.asked() == (1000, 256)).await?;
    cluster.cut(Part::Agents, true);
    for vm in ["a", "d"] {
        cluster.guest(vm)?.cpu(4).await?;
    }
    let cut = cluster.until_told("d", Scaling::HypervisorSilent).await?;
    ensure!(cut.condition.contains("does not answer the agent"), "{cut:?}");
    cluster.cut(Part::Plugin, true);
    stays_for(cluster, "a", CUT).await?;
    cluster.until_explained("a", Scaling::HypervisorSilent).await?;
    cluster.cut(Part::ApiServer, false);
    for (vm, least) in [("a", 4), ("d", 2)] {
        let grown = format!("{least} vCPUs or more once the way is whole");
        cluster.until(vm, &grown, |look| look.online() >= Some(least)).await?;
        cluster.guest(vm)?.cpu(0).await?;
    }
    Ok(())
}

/// No VM of the node grows, and all give back what they do not need.
async fn a_node_is_cordoned(cluster: &Cluster) -> Result<()> {
    cluster.vm_on("e", "one").await?;
    cluster.guest("a")?.cpu(2).await?;
    cluster.until("a", "more vCPUs", |look| look.has_more_than(1)).await?;
    cluster.cordon("one", true).await;
    cluster.guest("e")?.cpu(4).await?;
    let held = cluster.until_told("e", Scaling::NodeCordoned).await?;
    for words in [&held.explained, &held.condition, &held.event] {
        ensure!(words.ends_with("the node is cordoned."), "{words}");
    }
    cluster.guest("a")?.cpu(0).await?;
    cluster.until("a", "one vCPU on a cordoned node", |look| look.asked().0 == 1000).await?;
    ensure!(cluster.look("e").await?.has(1), "it grew on a cordoned node");
    cluster.cordon("one", false).await;
    cluster.until("e", "four vCPUs once the node is not cordoned", |look| look.has(4)).await?;
    cluster.until_explained("e", Scaling::Following).await?;
    Ok(())
}

/// People are told that it does not answer, and where it was asked.
async fn the_plugin_is_away(cluster: &Cluster) -> Result<()> {
    cluster.halt(Part::Plugin)?;
    let start = Instant::now();
    cluster.guest("e")?.cpu(0).await?;
    cluster.guest("a")?.cpu(4).await?;
    cluster.until("e", "one vCPU without the plugin", |look| look.asked().0 == 1000).await?;
    let said = cluster.explain("a").await?;
    eprintln!("            {}", said.err.trim());
    ensure!(said.code == Some(69) && said.out.is_empty(), "{said:?}");
    let address = cluster.server().replace("https://", "");
    ensure!(said.err.contains(&address) && said.err.contains("no answer"), "{said:?}");
    stays_for(cluster, "a", AWAY.saturating_sub(start.elapsed())).await?;
    cluster.go_on(Part::Plugin)?;
    cluster.until("a", "four vCPUs after the plugin was away", |look| look.has(4)).await?;
    cluster.guest("a")?.cpu(0).await?;
    Ok(())
}

/// Looks at a VM until it is to have more vCPUs than it has.
async fn until_it_grows(cluster: &Cluster, vm: &str) -> Result<Look> {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        cluster.within_nodes().await?;
        let look = cluster.look(vm).await?;
        let has = look.online().context("the guest says what it has")?;
        if look.asked().0 > 1000 * i64::from(has) {
            eprintln!("    {:5.1} s  {vm}: it grows", start.elapsed().as_secs_f64());
            return Ok(look);
        }
        tokio::time::sleep(OFTEN).await;
    }
    anyhow::bail!("{vm} does not grow")
}

/// Looks for this long whether a VM keeps its one vCPU.
async fn stays_for(cluster: &Cluster, vm: &str, long: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < long {
        cluster.within_nodes().await?;
        let look = cluster.look(vm).await?;
        ensure!(look.online() == Some(1) && look.asked() == (1000, 256), "it grew: {look:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// Looks until people are told that a VM follows its load, where they were told that it does not.
async fn is_well(cluster: &Cluster, vm: &str) -> Result<()> {
    cluster.until_explained(vm, Scaling::Following).await?;
    cluster.until_condition(vm, Scaling::Following).await?;
    cluster.until_event(vm, Scaling::Following).await?;
    Ok(())
}

fn bounds(bounds: &str) -> serde_json::Value {
    json!({"metadata": {"annotations": {BOUNDS: bounds}}})
}
