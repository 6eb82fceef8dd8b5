//! What an agent answers when its informant calls.

use super::bench::Bench;
use super::sessions::resumed;
use super::stage::{BEGIN, Stage};
use super::world::{Manner, World};
use crate::case::{Case, Fault, Verdict, ensure};
use crate::http::Answer;
use crate::ids;
use crate::versions::Span;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longer than a word to run may be older than the one to wait.
const STILL: Duration = Duration::from_secs(6);

/// A resize follows its reason within this.
const SOON: Duration = Duration::from_secs(30);

pub(super) const CASES: [Case<Bench>; 10] = [
    Case::new("a-call-while-registering-is-answered", &["I-CB-1", "I-CB-2", "I-CB-6"], first_call),
    Case::new("each-answer-has-a-higher-number", &["I-CB-2"], numbers),
    Case::new("a-call-is-checked-by-path-method-body", &["I-GEN-1", "I-GEN-2", "I-GEN-3"], checks),
    Case::new("a-call-for-another-session-changes-nothing", &["I-CB-4", "I-GEN-6"], another),
    Case::new("an-agent-waits-until-it-is-resumed", &["I-REG-7", "I-AGT-2"], waits),
    Case::new("a-suspended-agent-moves-nothing", &["I-AGT-2", "I-CB-5", "I-CB-6"], suspended),
    Case::new("what-was-followed-is-answered-again", &["I-CB-5"], again).ours(),
    Case::new("a-suspend-waits-for-what-is-under-way", &["I-HND-4"], under_way),
    Case::new("a-guest-that-is-short-gets-more", &["I-CB-7"], more).within(Span::from(2)),
    Case::new("in-v1.0-nothing-can-be-asked-for", &["I-CB-7", "I-VER-4"], no_more)
        .within(Span::only(1)),
];

/// Peers, and an agent whose session counts.
fn active(bench: &Bench) -> Result<Stage, Fault> {
    let stage = bench.set()?;
    bench.play(&stage)?;
    resumed(&stage)?;
    Ok(stage)
}

/// The number of an answer that has exactly the keys of one.
fn number(stage: &Stage, answer: &Answer, asked: &str) -> Result<u64, Fault> {
    let found = answer.json(asked)?;
    let number = found["sequenceNumber"].as_u64().unwrap_or_default();
    let expected = json!({ "data": { "agentID": stage.id() }, "sequenceNumber": number });
    ensure(found == expected && number > 0, || {
        format!("{asked}: answered {found}, expected {expected} with a number above zero")
    })?;
    Ok(number)
}

fn first_call(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let identified = stage.world().identified.clone();
    let Some(answer) = identified else {
        return Err(Fault("GET /id was not answered while the agent registered".to_owned()));
    };
    let first = number(&stage, &answer, "GET /id")?;
    ensure(first == 1, || format!("GET /id: the first number is {first}, 1 was expected"))
}

fn numbers(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let mut last = 1;
    for _ in 0..5 {
        let next = number(&stage, &stage.call("GET", "/id", "{}")?, "GET /id")?;
        ensure(next > last, || format!("GET /id: number {next} after {last}"))?;
        // A refusal has none.
        stage.call("POST", "/suspend", &json!({ "expectedID": ids::fresh() }).to_string())?;
        last = next;
    }
    Ok(())
}

fn checks(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    for (method, path, body, status, words) in [
        ("POST", "/", "{}", 404, "404 page not found\n"),
        ("POST", "/register", "{}", 404, "404 page not found\n"),
        ("POST", "/id", "{}", 405, "request method must be GET"),
        ("PUT", "/resume", "{}", 405, "request method must be POST"),
        ("GET", "/suspend", "", 405, "request method must be POST"),
        ("post", "/try-upscale", "{}", 405, "request method must be POST"),
    ] {
        let asked = format!("{method} {path} with the body {body:?}");
        stage.call(method, path, body)?.refuses_with(&asked, status, words)?;
    }
    for (method, path, body) in [
        ("GET", "/id", ""),
        ("POST", "/resume", "{"),
        ("POST", "/suspend", "[]"),
        ("POST", "/try-upscale", "{\"cpu\":1}"),
    ] {
        let asked = format!("{method} {path} with the body {body:?}");
        stage.call(method, path, body)?.refuses_body(&asked)?;
    }
    number(&stage, &stage.call("GET", "/id", "{} and more")?, "GET /id, followed by more")?;
    Ok(())
}

fn another(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let other = ids::fresh();
    let expected = json!({ "expectedID": other }).to_string();
    let more = json!({ "cpu": true, "memory": true, "expectedID": other }).to_string();
    let words = format!("AgentID \"{other}\" not found");
    for (path, body) in [("/resume", &expected), ("/suspend", &expected), ("/try-upscale", &more)] {
        let asked = format!("POST {path} to another");
        stage.call("POST", path, body)?.refuses_with(&asked, 404, &words)?;
    }
    // It counts as before.
    stage.world().busy();
    stage.until("the agent still acts", SOON, |world| !world.changes().is_empty())
}

/// Nothing is moved and nothing said for this long, though there is load.
fn still(stage: &Stage, why: &str) -> Verdict {
    let moves = |world: &World| (world.changes().len(), world.amounts());
    let before = moves(&stage.world());
    stage.world().busy();
    stage.wait(STILL)?;
    let world = stage.world();
    let after = moves(&world);
    ensure(after == before, || {
        format!(
            "{why}: changes and amounts were {before:?}, and are {after:?}: {:?}",
            world.commands()
        )
    })
}

fn waits(bench: &Bench) -> Verdict {
    let stage = bench.set()?;
    stage.world().resumes = false;
    bench.play(&stage)?;
    stage.until("the agent registers", BEGIN, |world| world.session.is_some())?;
    still(&stage, "the agent registered and was not resumed")?;
    let answer = stage.call("POST", "/resume", &stage.expected())?;
    number(&stage, &answer, "POST /resume")?;
    stage.until("the agent acts once it is resumed", SOON, |world| !world.changes().is_empty())
}

fn suspended(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let expected = stage.expected();
    let post = |path: &str| stage.call("POST", path, &expected);
    number(&stage, &post("/suspend")?, "POST /suspend")?;
    let more = json!({ "cpu": true, "memory": true, "expectedID": stage.id() }).to_string();
    let words = "Cannot process upscale while suspended";
    let answer = stage.call("POST", "/try-upscale", &more)?;
    answer.refuses_with("POST /try-upscale of one that waits", 400, words)?;
    still(&stage, "the agent is suspended")?;
    number(&stage, &stage.call("GET", "/id", "{}")?, "GET /id of one that waits")?;
    number(&stage, &post("/resume")?, "POST /resume of one that waits")?;
    stage.until("the agent acts once it is resumed", SOON, |world| !world.changes().is_empty())
}

fn again(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let expected = stage.expected();
    let post = |path: &str| stage.call("POST", path, &expected);
    number(&stage, &post("/resume")?, "POST /resume of one that runs")?;
    number(&stage, &post("/suspend")?, "POST /suspend")?;
    number(&stage, &post("/suspend")?, "POST /suspend of one that waits")?;
    Ok(())
}

fn under_way(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let late = Duration::from_millis(1200);
    stage.world().plugin = Manner::Late(late);
    stage.world().busy();
    let before = stage.world().permits().len();
    stage.until("a permit is asked for", SOON, |world| world.permits().len() > before)?;
    let answered = stage.call("POST", "/suspend", &stage.expected())?;
    number(&stage, &answered, "POST /suspend")?;
    let now = Instant::now();
    let world = stage.world();
    let open = world.permits().len().saturating_sub(world.permitted().len());
    ensure(open == 0, || {
        format!("POST /suspend was answered while {open} request for a permit was under way")
    })?;
    drop(world);
    stage.wait(late * 2)?;
    let world = stage.world();
    let later = world.permits().iter().filter(|(at, _)| *at > now).count();
    ensure(later == 0, || {
        format!("{later} permits were asked for after POST /suspend was answered")
    })
}

fn more(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    stage.wait(Duration::from_secs(2))?;
    ensure(stage.world().changes().is_empty(), || "the VM changes though nobody asks".to_owned())?;
    let body = json!({ "cpu": false, "memory": true, "expectedID": stage.id() }).to_string();
    let answer = stage.call("POST", "/try-upscale", &body)?;
    number(&stage, &answer, "POST /try-upscale")?;
    stage.until("the guest is told of more memory", SOON, |world| {
        world.plugged > 0 && !world.asked("/upscale").is_empty()
    })
}

fn no_more(bench: &Bench) -> Verdict {
    let stage = active(bench)?;
    let body: Value = json!({ "cpu": false, "memory": true, "expectedID": stage.id() });
    let answer = stage.call("POST", "/try-upscale", &body.to_string())?;
    let words = "/try-upscale not supported for protocol version v1.0";
    answer.refuses_with("POST /try-upscale in v1.0", 400, words)
}
