//! From a pod at a real API server to a real guest that follows its load: QEMU in a pod, whose kubelet decides what the pod may have.

use anyhow::Result;
use windlass_e2e::Cluster;

/// Its pod is resized first and its guest grows after; on the way down it is the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_is_a_pod_follows_its_load() -> Result<()> {
    let mut cluster = Cluster::start(&["one"]).await?;
    cluster.resizes_on("one").await?;
    cluster.pod_vm("a").await?;
    let guest = cluster.guest("a")?;
    guest.cpu(4).await?;
    let grown = |(cpu, mib), online| cpu == 4000 && mib > 1024 && online == Some(4);
    cluster.until_pod("a", "four vCPUs, and memory", grown).await?;
    guest.cpu(0).await?;
    let shrunk = |allocated, online| allocated == (1000, 256) && online == Some(1);
    cluster.until_pod("a", "one vCPU, and its memory given back", shrunk).await?;

    // What a crash leaves behind is found again.
    cluster.restart_agent("one").await?;
    guest.cpu(2).await?;
    // Two workers may weigh more than two vCPUs while the guest itself is at work.
    let more = |(cpu, _): (i64, i64), online| cpu > 1000 && online > Some(1);
    cluster.until_pod("a", "more than one vCPU with the agent that came after", more).await?;

    // It goes while it grows; one of the same name is another VM.
    guest.cpu(4).await?;
    drop(guest);
    cluster.delete_pod("a").await?;
    cluster.pod_vm("a").await?;
    cluster.guest("a")?.cpu(2).await?;
    cluster.until_pod("a", "more than one vCPU of the VM that came after", more).await?;
    cluster.close().await
}
