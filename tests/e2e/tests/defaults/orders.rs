//! Many orders and edits in a row: each is answered, and the VM follows its load afterwards.

use anyhow::{Result, ensure};
use serde_json::Value;
use std::time::Duration;
use windlass_e2e::{Stage, View, Vm};
use windlass_protocol::status::HostStatus;

/// How long an answer may take on a crowded machine: three times what is promised.
const ANSWER: Duration = Duration::from_secs(15);

/// How often each is done.
const TIMES: u32 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn ten_pauses_and_ten_edits_in_a_row_are_each_answered() -> Result<()> {
    let vm = Vm::with_defaults("a");
    let stage = Stage::with_defaults(4, std::slice::from_ref(&vm)).await?;

    let mut slowest = Duration::ZERO;
    for turn in 1..=TIMES {
        for (arguments, paused) in
            [(&["pause", "a", "--for", "1h"][..], true), (&["resume", "a"], false)]
        {
            let (_, took) = stage.host.command_within(ANSWER, arguments).await?;
            ensure!(is_paused(&stage).await? == paused, "{arguments:?} {turn} had no effect");
            slowest = slowest.max(took);
        }
    }
    eprintln!("    {:5.1} s  slowest of {TIMES} pauses, each ended", slowest.as_secs_f64());

    let mut slowest = Duration::ZERO;
    for turn in 1..=TIMES {
        let most_cpus = 2 + turn % 2;
        stage.write(&Vm { most_cpus, ..vm.clone() })?;
        let edited = |state: &HostStatus| {
            state.vms.iter().any(|vm| vm.bounds.max.cpu.cores_up() == u64::from(most_cpus))
        };
        let what = format!("edit {turn}");
        slowest = slowest.max(stage.host.until_within(ANSWER, &what, edited).await?);
    }
    eprintln!("    {:5.1} s  slowest of {TIMES} edits", slowest.as_secs_f64());
    stage.write(&vm)?;

    for arguments in [&["explain", "a"][..], &["vm", "list"], &["top", "--once"]] {
        let (said, _) = stage.host.command_within(ANSWER, arguments).await?;
        ensure!(said.contains('a') && said.lines().count() > 1, "{arguments:?}: {said}");
    }
    stage.guest("a").cpu(4).await?;
    stage.until("a", "growth", |view: &View| view.is_above(1, 1)).await?;
    stage.close().await?;
    Ok(())
}

/// Whether the host lists the VM as paused.
async fn is_paused(stage: &Stage) -> Result<bool> {
    let list = ["vm", "list", "--output", "json"];
    let (said, _) = stage.host.command_within(ANSWER, &list).await?;
    let said: Value = serde_json::from_str(&said)?;
    Ok(!said[0]["paused_until"].is_null())
}
