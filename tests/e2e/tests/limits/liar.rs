//! A guest that lies: its informant says that one vCPU is in use and nothing runs, and it uses four.

use crate::size;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use windlass_e2e::{Stage, View, Vm, cpus_used, is_not_run};

/// For how long the host's accounting is read.
const ACCOUNTED: Duration = Duration::from_secs(20);

/// How often at most: what else runs on a crowded machine takes from the neighbour too.
const TIMES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_lies_gets_what_it_is_granted_and_takes_nothing_from_others() -> Result<()> {
    if is_not_run("liar") {
        return Ok(());
    }
    let vms = [Vm::limited("liar", 500, 4), Vm::limited("b", 750, 1)];
    let mut stage = Stage::limited(size(4750, 512), size(250, 256), &vms).await?;
    stage.host.start().await?;
    stage.until("b", "three quarters", |view| view.has_cpu(750)).await?;
    stage.until("liar", "a half", |view| view.has_cpu(500)).await?;
    stage.guest("liar").cpu(6).await?;
    stage.until("liar", "four CPUs", |view| view.has_cpu(4000)).await?;
    stage.guest("liar").cpu(0).await?;
    let least = |view: &View| view.has_cpu(500) && view.online() == Some(1);
    stage.until("liar", "a half again", least).await?;
    stage.guest("b").cpu(4).await?;
    stage.until("b", "a whole vCPU", |view| view.has_cpu(1000)).await?;

    lies(&stage).await?;
    let guests = [stage.guest("liar"), stage.guest("b")];
    for guest in guests {
        guest.group().expect("both have cgroups").prefer()?;
    }
    let mut other = 0.0;
    for _ in 0..TIMES {
        let used = cpus_used(&guests, ACCOUNTED).await?;
        let liar = used[0];
        other = used[1];
        eprintln!(
            "    a liar with 0.5 CPU used {liar:.3}; its neighbour with 1 CPU used {other:.3}"
        );
        still_lies(&stage, 500).await?;
        ensure!(liar <= 0.53, "the liar used {liar:.3} CPU, and was granted 0.5");
        ensure!(liar >= 0.4, "the liar did not compute: {liar:.3} CPU");
        if other >= 0.9 {
            break;
        }
    }
    ensure!(other >= 0.9, "its neighbour had {other:.3} CPU, and was granted 1, {TIMES} times");
    stage.close().await?;
    Ok(())
}

/// What `cpu_limit = "trust"` means, and says.
#[tokio::test(flavor = "multi_thread")]
async fn where_guests_are_trusted_a_liar_gets_more_than_it_is_granted() -> Result<()> {
    if is_not_run("liar, trusted") {
        return Ok(());
    }
    let vm = Vm { least_milli: None, ..Vm::limited("liar", 1000, 4) };
    let sizes = (size(4000, 256), size(1000, 256));
    let mut stage = Stage::limited_by("trust", sizes.0, sizes.1, &[vm]).await?;
    stage.host.start().await?;
    stage.until("liar", "one unit", |view| view.has(1)).await?;
    let said = stage.host.command(&["vm", "check", "liar"])?;
    ensure!(said.contains("trust"), "`windlass vm check` does not say that it is trusted:\n{said}");
    for line in said.lines().filter(|line| line.contains("trust")) {
        eprintln!("    vm check: {}", line.trim());
    }

    stage.guest("liar").cpu(8).await?;
    let most = |view: &View| view.booked_vcpus() == Some(4) && view.online() == Some(4);
    stage.until("liar", "four vCPUs", most).await?;
    stage.guest("liar").cpu(0).await?;
    let least = |view: &View| view.booked_vcpus() == Some(1) && view.online() == Some(1);
    stage.until("liar", "one vCPU again", least).await?;
    // The laws are about to be broken: this is where nobody enforces them.
    stage.stop_watching().await?;
    lies(&stage).await?;
    let guest = stage.guest("liar");
    guest.group().expect("it has a cgroup").prefer()?;
    let booked = |view: &View| view.has_session() && view.booked_vcpus() == Some(1);
    let mut used = None;
    for _ in 0..TIMES {
        stage.until("liar", "session, with one vCPU in the books", booked).await?;
        let time = cpus_used(&[guest], ACCOUNTED / 2).await?[0];
        eprintln!("    a liar that is trusted, with 1 CPU in the books, used {time:.3}");
        let view = stage.view("liar").await;
        if booked(&view) {
            used = Some(time);
            break;
        }
        // Its informant is on vCPUs that are as busy as the host's: a word of it may come late.
        eprintln!("    the host says of it then: {:?}, books: {:?}", view.vm, view.booked);
    }
    let used = used.context("the books found out each time")?;
    ensure!(used > 1.2, "it used no more than it was granted: {used:.3}");
    stage.close().await?;
    Ok(())
}

/// Has the liar's informant replaced by one that lies, and the guest use all that is plugged.
async fn lies(stage: &Stage) -> Result<()> {
    let guest = stage.guest("liar");
    guest.ask("informant stop").await?;
    guest.ask("informant lie").await?;
    guest.ask("online").await?;
    guest.cpu(4).await?;
    let lies = |view: &View| {
        let said = view.vm.as_ref().and_then(|vm| vm.online).map(|online| online.cores_up());
        view.has_session() && said == Some(1) && view.online() == Some(4)
    };
    stage.until("liar", "session, with one vCPU said and four online", lies).await?;
    Ok(())
}

async fn still_lies(stage: &Stage, milli: u64) -> Result<()> {
    let view = stage.view("liar").await;
    ensure!(view.has_cpu(milli) && view.online() == Some(4), "it did not stay so: {view:#?}");
    Ok(())
}
