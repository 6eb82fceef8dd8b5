//! Watching touches nothing.

use anyhow::Result;
use std::time::Duration;
use windlass_e2e::{Setting, Stage, View, Vm, get_tcp};
use windlass_protocol::status::SessionState;

#[tokio::test(flavor = "multi_thread")]
async fn an_observed_vm_has_a_goal_and_is_not_touched() -> Result<()> {
    let setting = Setting { room: 4, trust: true };
    let vm = Vm { mode: "observe", proxied: true, ..Vm::named("a") };
    let stage = Stage::set(setting, &[vm]).await?;
    let before = stage.guest("a").outside().await?;

    stage.guest("a").cpu(4).await?;
    let wants = |view: &View| {
        view.vm.as_ref().and_then(|vm| vm.goal).is_some_and(|goal| goal.cpu.cores_up() == 3)
    };
    stage.until("a", "goal of three units", wants).await?;
    let untouched = |view: &View| {
        view.outside == Some(before)
            && view.booked_units(1)
            && view.booked.as_ref().is_some_and(|booked| booked.claim.is_none())
            && view.vm.as_ref().is_some_and(|vm| vm.session == SessionState::Absent)
    };
    stage.stays("a", "everything as it was", Duration::from_secs(8), untouched).await?;

    let passed = stage.proxy("a").passed();
    let asks = |command: &str| {
        command.starts_with("query-")
            || ["qmp_capabilities", "qom-get", "qom-list"].contains(&command)
    };
    assert!(passed.keys().all(|command| asks(command)), "{passed:?}");
    let page = get_tcp(stage.guest("a").informant(), "/metrics").await?.body;
    assert!(page.lines().any(|line| line == "windlass_informant_agents 0"), "{page}");
    stage.close().await?;
    Ok(())
}
