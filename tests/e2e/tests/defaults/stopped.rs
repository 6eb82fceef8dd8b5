//! A QEMU that hangs is its own VM's problem: not the others', not the start's, not the end's.

use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use windlass_e2e::{Stage, View, Vm};
use windlass_protocol::status::{HostStatus, SessionState};

/// How long until the others are served, on a crowded machine: three times what is promised.
const SERVED: Duration = Duration::from_secs(30);

/// The same for the end of a host that is asked to.
const GRACE: Duration = Duration::from_secs(24);

#[tokio::test(flavor = "multi_thread")]
async fn one_qemu_that_hangs_keeps_no_other_vm_from_being_served() -> Result<()> {
    let vms = [Vm::with_defaults("a"), Vm::with_defaults("b")];
    let mut stage = Stage::with_defaults(8, &vms).await?;

    stage.guest("a").halt()?;
    stage.host.kill()?;
    let start = Instant::now();
    stage.host.start().await?;
    let left = SERVED.saturating_sub(start.elapsed());
    let ready = stage.host.ready_within(left).await?;
    eprintln!("    {:5.1} s  until it is ready", ready.as_secs_f64());
    let left = SERVED.saturating_sub(start.elapsed());
    stage
        .host
        .until_within(left, "session and figures of b", |state| is_served(state, "b"))
        .await?;
    let took = start.elapsed();
    eprintln!("    {:5.1} s  from the start until b is served", took.as_secs_f64());

    stage.guest("b").cpu(4).await?;
    stage.until("b", "growth", |view: &View| view.is_above(1, 1)).await?;
    stage.guest("b").cpu(0).await?;

    let asked = Instant::now();
    let status = stage.host.stop().await?;
    let took = asked.elapsed();
    eprintln!("    {:5.1} s  until the host ended: {status}", took.as_secs_f64());
    ensure!(took <= GRACE, "the host took {took:?} to end");

    stage.host.start().await?;
    let served = |state: &HostStatus| is_served(state, "b") && !is_served(state, "a");
    stage.host.until_within(SERVED, "b served without a", served).await?;
    stage.guest("a").go_on()?;
    stage.host.until_within(SERVED, "a served too", |state| is_served(state, "a")).await?;
    stage.guest("a").cpu(4).await?;
    stage.until("a", "growth", |view: &View| view.is_above(1, 1)).await?;
    stage.close().await?;
    Ok(())
}

/// Whether a VM has a session, and figures that this process has read.
fn is_served(state: &HostStatus, name: &str) -> bool {
    state.vms.iter().any(|vm| {
        let figures = vm.signals.load.is_some() && vm.signals.used.is_some();
        vm.name.name == name && vm.session == SessionState::Active && figures
    })
}
