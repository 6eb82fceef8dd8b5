//! How an agent has a VM grow and shrink: what is said before, and what after.

use super::bench::Bench;
use super::sessions::resumed;
use super::stage::Stage;
use super::world::Manner;
use crate::case::{Case, Fault, Verdict, ensure};
use crate::versions::Span;
use serde_json::{Value, json};
use std::time::Duration;

/// From the load to the size.
const GROWN: Duration = Duration::from_secs(40);

/// From the end of the load to the first question.
const SHRUNK: Duration = Duration::from_secs(60);

/// Memory that a VM has which is to give some back.
const LARGE: u64 = 512 << 20;

pub(super) const CASES: [Case<Bench>; 7] = [
    Case::new(
        "amounts-are-said-in-the-shape-of-the-version",
        &["I-AMT-1", "I-AMT-2", "I-VER-4"],
        shape,
    ),
    Case::new("each-amount-has-a-higher-number", &["I-SEQ-1"], numbered).within(Span::from(4)),
    Case::new("memory-is-told-of-when-it-is-there", &["I-AGT-4"], told).ours(),
    Case::new("memory-goes-once-the-guest-agrees", &["I-AGT-3"], agreed),
    Case::new("memory-stays-while-the-guest-declines", &["I-AGT-3"], declined),
    Case::new("memory-stays-while-the-guest-refuses", &["I-AGT-3", "I-AGT-5"], refused),
    Case::new("memory-stays-while-the-guest-is-silent", &["I-AGT-3"], silent),
];

fn grown(bench: &Bench) -> Result<Stage, Fault> {
    let stage = bench.set()?;
    stage.world().busy();
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.until("the VM grows and the guest is told", GROWN, |world| {
        world.cpus > 1 && world.plugged > 0 && world.asked("/upscale").len() > 1
    })?;
    Ok(stage)
}

/// A VM that has more than it needs, and an agent whose questions are treated so.
fn large(bench: &Bench, agrees: bool, manner: Manner) -> Result<Stage, Fault> {
    let stage = bench.set()?;
    let mut world = stage.world();
    (world.plugged, world.agrees) = (LARGE, agrees);
    world.manners.insert("/downscale", manner);
    drop(world);
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.until("the guest is asked to have less", SHRUNK, |world| {
        !world.asked("/downscale").is_empty()
    })?;
    Ok(stage)
}

fn shape(bench: &Bench) -> Verdict {
    let stage = grown(bench)?;
    let id = stage.id();
    for (_, body) in stage.world().asked("/upscale") {
        let amounts = if bench.version.number < 4 { &body } else { &body["data"] };
        let text = |key: &str| amounts[key].as_str().map(str::to_owned);
        let (Some(cpu), Some(memory)) = (text("cpu"), text("memory")) else {
            return Err(Fault(format!(
                "PUT /upscale {body}: cpu and memory are not quoted quantities"
            )));
        };
        let expected = if bench.version.number < 4 {
            json!({ "cpu": cpu, "memory": memory })
        } else {
            let number = body["sequenceNumber"].clone();
            let data = json!({ "cpu": cpu, "memory": memory, "id": { "agentID": id } });
            json!({ "data": data, "sequenceNumber": number })
        };
        ensure(body == expected, || format!("PUT /upscale {body}: {expected} was expected"))?;
    }
    Ok(())
}

fn numbered(bench: &Bench) -> Verdict {
    let stage = grown(bench)?;
    let mut last = 1;
    for (_, body) in stage.world().asked("/upscale") {
        let number = body["sequenceNumber"].as_u64().unwrap_or_default();
        ensure(number > last, || format!("PUT /upscale has number {number} after {last}"))?;
        last = number;
    }
    let next = stage.call("GET", "/id", "{}")?.json("GET /id")?["sequenceNumber"].as_u64();
    ensure(next.is_some_and(|next| next > last), || {
        format!("GET /id has number {next:?} after a PUT /upscale with {last}")
    })
}

fn told(bench: &Bench) -> Verdict {
    let stage = grown(bench)?;
    let world = stage.world();
    let first =
        world.changes().iter().find(|(_, what)| what.starts_with("qom-set")).map(|(at, _)| *at);
    let told = world.asked("/upscale").into_iter().find(|(_, body)| more_than_boot(body));
    match (first, told) {
        (Some(plugged), Some((told, _))) => ensure(plugged < told, || {
            "PUT /upscale told of memory before the hypervisor had it".to_owned()
        }),
        (_, told) => Err(Fault(format!("memory was never plugged and told of: {told:?}"))),
    }
}

/// Whether this tells of more memory than the VM was started with.
fn more_than_boot(body: &Value) -> bool {
    let amounts = if body["data"].is_object() { &body["data"] } else { body };
    amounts["memory"].as_str() != Some("256Mi")
}

fn agreed(bench: &Bench) -> Verdict {
    let stage = large(bench, true, Manner::Works)?;
    stage.until("memory goes", SHRUNK, |world| world.plugged < LARGE)?;
    let world = stage.world();
    let asked = world.asked("/downscale").first().map(|(at, _)| *at);
    let taken =
        world.changes().iter().find(|(_, what)| what.starts_with("qom-set")).map(|(at, _)| *at);
    ensure(asked < taken, || "memory went before PUT /downscale was sent".to_owned())
}

/// Whether memory stays, though the agent would rather have it go.
fn stays(stage: &Stage) -> Verdict {
    stage.wait(Duration::from_secs(6))?;
    let left = stage.world().plugged;
    ensure(left >= LARGE, || {
        format!("{LARGE} bytes were plugged, {left} are left: {:?}", stage.world().commands())
    })
}

fn declined(bench: &Bench) -> Verdict {
    let stage = large(bench, false, Manner::Works)?;
    stays(&stage)
}

fn refused(bench: &Bench) -> Verdict {
    let stage = large(bench, true, Manner::Refuses(400, "Agent ID is not the active Agent"))?;
    stays(&stage)
}

fn silent(bench: &Bench) -> Verdict {
    let stage = large(bench, true, Manner::Silent)?;
    stays(&stage)
}
