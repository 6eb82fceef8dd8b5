//! Two VMs that want more than the node has.

use anyhow::Result;
use windlass_e2e::{Setting, Stage, View, Vm};
use windlass_protocol::Waiting;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_vm_is_refused_beyond_the_room_and_gets_it_when_the_first_gives_back() -> Result<()>
{
    let setting = Setting { room: 4, trust: true };
    let stage = Stage::set(setting, &[Vm::named("a"), Vm::named("b")]).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three of four units", |view| view.has(3)).await?;

    stage.guest("b").cpu(4).await?;
    let refused = |waiting: &Waiting| matches!(waiting, Waiting::Room { .. });
    let view = stage.until("b", "refusal for want of room", |view| view.waits(refused)).await?;
    assert!(view.has(1), "it moved: {view:#?}");

    stage.guest("a").cpu(0).await?;
    stage.until("b", "three of four units", |view| view.has(3)).await?;
    stage.until("a", "one unit", |view| view.has(1)).await?;
    stage.close().await?;
    Ok(())
}

/// By default nobody is given what another guest could take back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn parked_vcpus_stay_in_the_books_where_parking_is_not_trusted() -> Result<()> {
    let setting = Setting { room: 4, trust: false };
    let stage = Stage::set(setting, &[Vm::named("a"), Vm::named("b")]).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "three of four units", |view| view.has(3)).await?;
    stage.guest("a").cpu(0).await?;
    let parked = |view: &View| view.uses(1) && view.booked_vcpus() == Some(3);
    stage.until("a", "two vCPUs parked, and still in the books", parked).await?;

    stage.guest("b").cpu(4).await?;
    let refused = |waiting: &Waiting| matches!(waiting, Waiting::Room { .. });
    let grown = |view: &View| view.memory_mib() == 768 && view.waits(refused);
    let view = stage.until("b", "the memory that came back, and no vCPU", grown).await?;
    assert_eq!(view.outside.unwrap().vcpus, 1, "it got a vCPU that may be taken back: {view:#?}");
    stage.close().await?;
    Ok(())
}
