//! A real guest with the real informant, under a real `windlass-agent` that asks a real
//! `windlass-plugin`.

use anyhow::Result;
use windlass_e2e::{Fleet, Vm};

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_follows_its_load_with_permits_of_a_plugin_over_http() -> Result<()> {
    let fleet = Fleet::set(3, &[Vm::named("a")]).await?;
    let before = fleet.look("a").await;

    fleet.guest("a").cpu(4).await?;
    let loaded = fleet.until("a", "three units", |sight| sight.has(3)).await?;
    let total = |sight: &windlass_e2e::Sight| sight.inside.as_ref().unwrap().mem_total.unwrap();
    let gained = total(&loaded) - total(&before);
    assert!(gained > 500 * MIB, "the kernel gained {gained} bytes");
    assert_eq!(loaded.pod["runner"]["lastApproved"]["mem"], 6, "slots of 128 MiB");

    fleet.guest("a").cpu(0).await?;
    fleet.until("a", "one unit again", |sight| sight.has(1)).await?;
    fleet.close().await
}
