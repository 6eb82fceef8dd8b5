//! From an object at a real API server to a real guest that follows its load: the stock scheduler with the plugin's extender,
//! the agent of the node, NeonVM's objects.

use anyhow::Result;
use windlass_e2e::{Cluster, Look};

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_of_neonvm_follows_its_load() -> Result<()> {
    let mut cluster = Cluster::start(&["one"]).await?;
    cluster.vm("a", "one").await?;
    let guest = cluster.guest("a")?;
    let before = cluster.look("a").await?;

    guest.cpu(4).await?;
    let loaded = cluster.until("a", "four vCPUs", |look| has(look, 4) && look.asked().0 == 4000);
    let loaded = loaded.await?;
    assert_eq!(loaded.object["status"]["cpus"], "4000m");
    let gained = memory(&loaded) - memory(&before);
    assert!(gained > 500 << 20, "a unit has memory, too: the kernel gained {gained} bytes");

    guest.cpu(0).await?;
    cluster.until("a", "one vCPU again", |look| look.asked() == (1000, 256)).await?;

    // What a crash leaves behind is found again.
    cluster.restart_agent("one").await?;
    guest.cpu(2).await?;
    cluster.until("a", "two vCPUs with the agent that came after", |look| has(look, 2)).await?;
    guest.cpu(0).await?;
    cluster.until("a", "one vCPU", |look| look.asked().0 == 1000).await?;
    cluster.close().await
}

/// As the guest's kernel has it.
fn has(look: &Look, vcpus: u32) -> bool {
    look.inside.as_ref().is_some_and(|inside| inside.cpus_online == Some(vcpus))
}

fn memory(look: &Look) -> u64 {
    look.inside.as_ref().and_then(|inside| inside.mem_total).unwrap_or_default()
}
