//! Two VMs that want more than the node has.

use anyhow::Result;
use windlass_e2e::{Setting, Stage, Vm};
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
