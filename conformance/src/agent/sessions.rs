//! How an agent opens sessions, checks them, and ends them.

use super::bench::Bench;
use super::stage::{BEGIN, Stage};
use super::world::{Manner, World};
use crate::case::{Case, Fault, Verdict, ensure};
use crate::versions::Span;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// From a refused registration to the next, with every back-off.
const AGAIN: Duration = Duration::from_secs(20);

/// An agent acts for so long after it was last heard.
const LEASE: Duration = Duration::from_secs(10);

pub(super) const CASES: [Case<Bench>; 10] = [
    Case::new("an-agent-registers-by-itself", &["I-AGT-1", "I-VER-2"], registers),
    Case::new("a-refused-registration-is-tried-anew", &["I-AGT-1"], refused),
    Case::new("a-version-that-was-not-offered-is-no-session", &["I-VER-5"], not_offered),
    Case::new("without-a-port-for-metrics-there-is-no-session", &["I-VER-5"], no_port),
    Case::new("a-broken-answer-opens-no-session", &["I-VER-5", "J-BODY-1"], broken),
    Case::new("health-is-checked-every-5-s", &["I-HLT-4"], health).within(Span::from(3)),
    Case::new("before-v1.2-no-health-is-checked", &["I-HLT-4", "I-VER-4"], no_health)
        .within(Span::up_to(2)),
    Case::new("a-session-that-is-not-known-is-opened-anew", &["I-HLT-5", "I-AGT-5"], unknown)
        .within(Span::from(3)),
    Case::new("who-is-not-heard-stops-acting", &["I-HND-1"], lease).ours().within(Span::from(3)),
    Case::new("an-agent-takes-its-leave", &["I-UNR-4"], leave),
];

/// Waits until the session counts, and an amount or a permit was heard since.
pub(super) fn resumed(stage: &Stage) -> Verdict {
    stage.until("the agent registers", BEGIN, |world| world.session.is_some())?;
    let resumed = |world: &World| {
        world
            .resumed
            .as_ref()
            .is_some_and(|(id, _)| world.session.as_ref().is_some_and(|(session, _)| session == id))
    };
    stage.until("the agent answers /resume", BEGIN, resumed)?;
    let status = stage.world().resumed.as_ref().map(|(_, status)| *status);
    ensure(status == Some(Some(200)), || {
        format!("POST /resume: answered with {status:?}, 200 was expected")
    })
}

fn registers(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    stage.until("the agent registers", BEGIN, |world| !world.asked("/register").is_empty())?;
    let world = stage.world();
    let (_, body) = &world.asked("/register")[0];
    let keys: Vec<&str> =
        body.as_object().map(|body| body.keys().map(String::as_str).collect()).unwrap_or_default();
    ensure(keys == ["agentID", "agentServeAddr", "minProtoVersion", "maxProtoVersion"], || {
        format!("POST /register: the keys of {body} are not the message's, in its order")
    })?;
    let number = u64::from(bench.version.number);
    let (min, max) = (body["minProtoVersion"].as_u64(), body["maxProtoVersion"].as_u64());
    ensure(min.is_some_and(|min| min <= number) && max.is_some_and(|max| number <= max), || {
        format!("POST /register: {} is not in the range of {body}", bench.version)
    })
}

/// Every id that was registered, once per attempt.
fn ids(world: &World) -> Vec<String> {
    let id = |(_, body): &(_, Value)| body["agentID"].as_str().unwrap_or_default().to_owned();
    world.asked("/register").iter().map(id).collect()
}

/// Whether several attempts to register each had an id of its own.
fn each_anew(stage: &Stage) -> Verdict {
    stage.until("the agent registers again", AGAIN, |world| ids(world).len() > 1)?;
    let ids = ids(&stage.world());
    let different: BTreeSet<&String> = ids.iter().collect();
    ensure(different.len() == ids.len(), || {
        format!("POST /register: an id was used again: {ids:?}")
    })
}

/// Nothing is said about sizes, though there is load.
fn says_nothing(stage: &Stage, why: &str) -> Verdict {
    let amounts = stage.world().amounts();
    ensure(amounts == 0, || format!("{why}, the agent sent amounts {amounts} times"))
}

/// Whether an agent registers anew where its registration is treated so.
fn anew(bench: &Bench, manner: Manner, why: &str) -> Verdict {
    let stage = bench.set()?;
    stage.world().manners.insert("/register", manner);
    stage.world().busy();
    bench.play(&stage)?;
    each_anew(&stage)?;
    says_nothing(&stage, why)
}

fn refused(bench: &Bench) -> Verdict {
    anew(bench, Manner::Refuses(400, "no"), "its registration refused")
}

fn not_offered(bench: &Bench) -> Verdict {
    let said = r#"{"protoVersion":99,"metricsMethod":{"prometheus":{"port":1}}}"#;
    anew(bench, Manner::Says(said), "in a version that it did not offer")
}

fn no_port(bench: &Bench) -> Verdict {
    let said = match bench.version.number {
        1 => r#"{"protoVersion":1,"metricsMethod":{}}"#,
        2 => r#"{"protoVersion":2,"metricsMethod":{}}"#,
        3 => r#"{"protoVersion":3,"metricsMethod":{}}"#,
        _ => r#"{"protoVersion":4,"metricsMethod":{}}"#,
    };
    anew(bench, Manner::Says(said), "without a port for metrics")
}

fn broken(bench: &Bench) -> Verdict {
    let said = r#"{"protoVersion":4,"metricsMethod":{"prometheus":{"port":1}}}{}"#;
    anew(bench, Manner::Says(said), "after an answer that is two values")
}

fn health(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.until("health is checked twice", Duration::from_secs(15), |world| {
        world.asked("/health-check").len() > 1
    })?;
    let expected = json!({ "agentID": stage.id() });
    for (_, body) in stage.world().asked("/health-check") {
        ensure(body == expected, || format!("PUT /health-check: {body}, expected {expected}"))?;
    }
    let checks = stage.world().asked("/health-check");
    let apart = checks[1].0.duration_since(checks[0].0);
    ensure((2..=7).contains(&apart.as_secs()), || {
        format!("PUT /health-check was sent {apart:?} after the one before, 5s were expected")
    })
}

fn no_health(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.wait(Duration::from_secs(7))?;
    let checks = stage.world().asked("/health-check").len();
    ensure(checks == 0, || {
        format!("PUT /health-check was sent {checks} times in {}", bench.version)
    })
}

fn unknown(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.world().manners.insert("/health-check", Manner::Refuses(404, "No Agent"));
    each_anew(&stage)
}

fn lease(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.world().manners.insert("/health-check", Manner::Silent);
    // A new session would be heard.
    stage.world().manners.insert("/register", Manner::Silent);
    stage.wait(LEASE + Duration::from_millis(500))?;
    let before = stage.world().amounts();
    stage.world().busy();
    stage.wait(Duration::from_secs(6))?;
    let amounts = stage.world().amounts() - before;
    ensure(amounts == 0, || {
        format!("the agent sent amounts {amounts} times, though it was not heard for {LEASE:?}")
    })
}

fn leave(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    stage.stop_agent();
    let world = stage.world();
    let (said, left) = (world.asked("/register"), world.asked("/unregister"));
    let last = said.last().map(|(_, body)| body.clone()).unwrap_or_default();
    let Some((_, body)) = left.last() else {
        return Err(Fault("an agent that stopped did not DELETE /unregister".to_owned()));
    };
    ensure(
        body["agentID"] == last["agentID"] && body["agentServeAddr"] == last["agentServeAddr"],
        || format!("DELETE /unregister: {body}, expected what POST /register said: {last}"),
    )
}
