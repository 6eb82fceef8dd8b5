//! How an agent asks for permits, and what it does with them.

use super::bench::Bench;
use super::sessions::resumed;
use super::stage::{BEGIN, Stage};
use super::world::{BOOT, Manner, World, memory, milli};
use crate::case::{Case, Fault, Verdict, ensure};
use serde_json::Value;
use std::time::Duration;

/// From the load to the size.
const GROWN: Duration = Duration::from_secs(40);

/// From the end of the load to less.
const SHRUNK: Duration = Duration::from_secs(60);

pub(super) const CASES: [Case<Bench>; 9] = [
    Case::new(
        "a-request-has-the-keys-of-its-version",
        &["P-REQ-1", "P-REQ-3", "P-REQ-4", "P-REQ-5"],
        keys,
    ),
    Case::new("an-agent-walks-down-to-the-plugins-version", &["P-AGT-1"], walks).ours(),
    Case::new("nothing-grows-while-the-plugin-refuses", &["P-AGT-2", "P-AGT-3"], refuses),
    Case::new("nothing-grows-while-the-plugin-is-silent", &["P-AGT-2", "P-AGT-3"], silent),
    Case::new("a-broken-answer-is-no-permit", &["P-AGT-3", "J-BODY-1"], broken),
    Case::new("no-more-is-given-than-is-permitted", &["P-AGT-2"], partial),
    Case::new("what-went-is-reported-when-it-is-gone", &["P-AGT-4"], reported),
    Case::new("a-low-permit-takes-nothing", &["P-AGT-5"], low),
    Case::new("a-vm-that-is-moved-is-left-alone", &["P-MIG-1"], moved),
];

fn begun(bench: &Bench) -> Result<Stage, Fault> {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.until("a permit is asked for and given", BEGIN, |world| !world.permitted().is_empty())?;
    Ok(stage)
}

/// The requests in the version of the plugin.
fn requests(world: &World, bench: &Bench) -> Vec<Value> {
    let all = world.permits();
    let ours = |(_, body): &(_, Value)| body["protoVersion"] == bench.plugin.number;
    all.into_iter().filter(ours).map(|(_, body)| body).collect()
}

fn keys_of(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn keys(bench: &Bench) -> Verdict {
    let stage = begun(bench)?;
    let number = bench.plugin.number;
    let expected: &[&str] = match number {
        1..=3 => &["protoVersion", "pod", "resources", "metrics"],
        4 | 5 => &["protoVersion", "pod", "resources", "lastPermit", "metrics"],
        _ => &["protoVersion", "pod", "computeUnit", "resources", "lastPermit", "metrics"],
    };
    let loads: &[&str] = match number {
        1..=3 => &["loadAvg1M", "loadAvg5M"],
        4..=6 => &["loadAvg1M", "loadAvg5M", "memoryUsageBytes"],
        _ => &["loadAvg1M"],
    };
    let asked = requests(&stage.world(), bench);
    for body in asked {
        // What an agent of ours tells people is one more key of v5.0.
        let said = keys_of(&body).into_iter().filter(|key| number < 7 || *key != "windlass");
        ensure(said.eq(expected.iter().copied()), || {
            format!("POST {body}: the keys {expected:?} were expected")
        })?;
        ensure(body["pod"] == serde_json::json!({ "namespace": "default", "name": "a" }), || {
            format!("POST {body}: pod is not default/a")
        })?;
        let metrics = &body["metrics"];
        ensure(number > 1 && metrics.is_null() || keys_of(metrics) == loads, || {
            format!("POST {body}: the keys of metrics are not {loads:?}")
        })?;
        let mem = &body["resources"]["mem"];
        ensure(mem.is_u64() == (number < 6), || format!("POST {body}: mem is in the wrong unit"))?;
        let last = &body["lastPermit"];
        ensure(last.is_null() || keys_of(last) == ["vCPUs", "mem"], || {
            format!("POST {body}: lastPermit is neither null nor amounts")
        })?;
    }
    Ok(())
}

fn walks(bench: &Bench) -> Verdict {
    let stage = begun(bench)?;
    let stated = |stage: &Stage| -> Vec<u64> {
        let all = stage.world().permits();
        all.iter().map(|(_, body)| body["protoVersion"].as_u64().unwrap_or_default()).collect()
    };
    let (walked, number) = (stated(&stage), u64::from(bench.plugin.number));
    let down = walked.windows(2).all(|pair| pair[0] > pair[1] || pair == [number, number]);
    ensure(down && walked.contains(&number), || {
        format!(
            "the versions {walked:?} were stated: each below the one before, down to {number}, was expected"
        )
    })?;
    // And remembers.
    let known = walked.len();
    stage.wait(Duration::from_secs(11))?;
    let later = stated(&stage).split_off(known);
    ensure(later.len() > 1 && later.iter().all(|found| *found == number), || {
        format!(
            "the versions {later:?} were stated later, only {number} was expected, twice or more"
        )
    })
}

/// Nothing is moved while permits are treated so; then it grows.
fn grows_only_by_permit(bench: &Bench, manner: Manner) -> Verdict {
    let stage = begun(bench)?;
    stage.world().plugin = manner.clone();
    // What was under way is answered.
    stage.wait(Duration::from_secs(1))?;
    let before = stage.world().permits().len();
    stage.world().busy();
    stage.wait(Duration::from_secs(8))?;
    let changes = stage.world().commands();
    ensure(changes.is_empty(), || format!("{manner:?}, and the VM was changed: {changes:?}"))?;
    let asked = stage.world().permits().len() - before;
    ensure(asked > 1, || format!("{manner:?}, and a permit was asked for {asked} times only"))?;
    stage.world().plugin = Manner::Works;
    stage.until("the VM grows once there are permits", GROWN, |world| world.cpus > 1)
}

fn refuses(bench: &Bench) -> Verdict {
    grows_only_by_permit(bench, Manner::Refuses(500, "not now"))
}

fn silent(bench: &Bench) -> Verdict {
    grows_only_by_permit(bench, Manner::Silent)
}

fn broken(bench: &Bench) -> Verdict {
    let large = match bench.plugin.number {
        1..=4 => r#"{"permit":{"vCPUs":4,"mem":8},"resourceUnit":{"vCPUs":1,"mem":2}}{}"#,
        5 => r#"{"permit":{"vCPUs":4,"mem":8}}{}"#,
        _ => r#"{"permit":{"vCPUs":4,"mem":"1Gi"}}{}"#,
    };
    grows_only_by_permit(bench, Manner::Says(large))
}

fn partial(bench: &Bench) -> Verdict {
    let stage = begun(bench)?;
    stage.world().most = (2000, BOOT * 2);
    stage.world().busy();
    stage.until("the VM grows as far as it may", GROWN, |world| {
        world.cpus >= 2 && BOOT + world.plugged >= BOOT * 2
    })?;
    stage.wait(Duration::from_secs(6))?;
    let cpus = stage.world().cpus;
    let has = BOOT + stage.world().plugged;
    ensure(cpus == 2 && has == BOOT * 2, || {
        format!("2 vCPUs and {} bytes were permitted, and the VM has {cpus} and {has}", BOOT * 2)
    })
}

fn reported(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    {
        let mut world = stage.world();
        (world.plugged, world.agrees) = (BOOT * 2, false);
    }
    bench.play(&stage)?;
    resumed(&stage)?;
    // Else all may be gone before the first request is heard, whatever that one reports.
    stage.until("a permit is asked for", BEGIN, |world| !requests(world, bench).is_empty())?;
    stage.world().agrees = true;
    let number = u64::from(bench.plugin.number);
    // What is stated in another version is refused, and its memory is written otherwise.
    let said = |body: &Value| {
        (body["protoVersion"] == number).then(|| memory(&body["resources"]["mem"], number))
    };
    stage.until("less is reported", SHRUNK, |world| {
        world.permits().iter().any(|(_, body)| said(body).is_some_and(|said| said < BOOT * 3))
    })?;
    let world = stage.world();
    let (changes, permits) = (world.memory_requested(), world.permits());
    for (at, said) in permits.iter().filter_map(|(at, body)| Some((at, said(body)?))) {
        let before = changes.iter().rfind(|(changed, _)| changed < at);
        let there = BOOT + before.map_or(BOOT * 2, |(_, requested)| *requested);
        ensure(said >= there, || format!("{said} bytes were reported, and {there} were there"))?;
    }
    Ok(())
}

fn low(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    {
        let mut world = stage.world();
        (world.plugged, world.agrees, world.most) = (BOOT * 2, false, (1000, BOOT));
        world.busy();
    }
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.wait(Duration::from_secs(8))?;
    let left = stage.world().plugged;
    let asked = stage.world().permits();
    let cpu = asked.iter().map(|(_, body)| milli(&body["resources"]["vCPUs"])).max();
    ensure(cpu >= Some(1000), || format!("{cpu:?} thousandths of a vCPU were asked for"))?;
    ensure(left >= BOOT * 2, || {
        format!("{BOOT} bytes were permitted, and {left} of {} are left", BOOT * 2)
    })
}

fn moved(bench: &Bench) -> Verdict {
    let stage = begun(bench)?;
    stage.world().migrate = true;
    let before = stage.world().permitted().len();
    stage.until("the agent is told", GROWN, |world| world.permitted().len() > before)?;
    stage.world().busy();
    stage.wait(Duration::from_secs(8))?;
    let changes = stage.world().commands();
    ensure(changes.is_empty(), || {
        format!("the VM is about to be moved, and was changed: {changes:?}")
    })
}
