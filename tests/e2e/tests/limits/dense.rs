//! Many guests of a quarter of a vCPU on one node: one of them grows at once, and none of the others loses anything.

use crate::size;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, View, Vm, is_not_run};
use windlass_protocol::MilliCpu;

/// How long the growth may take.
const GROWS: Duration = Duration::from_secs(10);

/// How long until all are at their minimum.
const SETTLES: Duration = Duration::from_secs(240);

const NAMES: [&str; 12] =
    ["busy", "g01", "g02", "g03", "g04", "g05", "g06", "g07", "g08", "g09", "g10", "g11"];

#[tokio::test(flavor = "multi_thread")]
async fn one_of_twelve_quarters_grows_to_two_while_the_others_keep_theirs() -> Result<()> {
    if is_not_run("dense") {
        return Ok(());
    }
    let vms = NAMES.map(|name| Vm::limited(name, 250, 2));
    let mut stage = Stage::limited(size(4750, 12 * 256), size(250, 256), &vms).await?;
    stage.host.start().await?;
    let quarter = |state: &windlass_protocol::status::HostStatus| {
        let booked = state.node.iter().flat_map(|node| &node.vms);
        booked.filter(|vm| vm.reserved.cpu == MilliCpu::from_milli(250)).count() == NAMES.len()
    };
    stage.host.until_within(SETTLES, "twelve quarters", quarter).await?;

    stage.watch_anew().await;
    let start = Instant::now();
    stage.guest("busy").cpu(6).await?;
    let grown = |state: &windlass_protocol::status::HostStatus| {
        let vm = state.vms.iter().find(|vm| vm.name.name == "busy");
        vm.is_some_and(|vm| vm.upper.is_some_and(|upper| upper.cpu == MilliCpu::from_cores(2)))
    };
    stage.host.until_within(GROWS, "two CPUs for the one that is busy", grown).await?;
    let took = start.elapsed();
    eprintln!("    one of twelve quarters grew to 2 CPUs in {:.1} s", took.as_secs_f64());
    let state = stage.host.state().await?;
    for name in &NAMES[1..] {
        let view = stage.view(name).await;
        let keeps = |view: &View| view.has_cpu(250);
        ensure!(keeps(&view), "{name} did not keep its quarter: {view:#?}");
    }
    let reserved = state.node.map(|node| node.reserved.cpu);
    ensure!(reserved == Some(MilliCpu::from_milli(4750)), "reserved: {reserved:?}");
    ensure!(took <= GROWS, "it took {took:?}");
    stage.close().await?;
    Ok(())
}
