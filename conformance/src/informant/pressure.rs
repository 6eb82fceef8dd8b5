//! `/try-upscale`: what the guest says when its memory runs short.

use super::PROVOKE;
use super::agent::Agent;
use super::bench::{Bench, ENOUGH, until};
use crate::case::{Case, Verdict, ensure};
use crate::versions::Span;
use serde_json::json;
use std::thread::sleep;
use std::time::Duration;

/// From the command to the call.
const PROMPT: Duration = Duration::from_secs(20);

pub(super) const CASES: [Case<Bench>; 4] = [
    Case::new("more-memory-is-asked-for", &["I-CB-7", "I-GEN-6"], asked)
        .within(Span::from(2))
        .needing(PROVOKE),
    Case::new("it-is-asked-for-again-until-it-comes", &["I-CB-9"], again)
        .ours()
        .within(Span::from(2))
        .needing(PROVOKE),
    Case::new("it-is-not-asked-for-once-there-is-enough", &["I-CB-9", "I-UPS-2"], content)
        .within(Span::from(2))
        .needing(PROVOKE),
    Case::new("an-agent-in-v1.0-is-not-asked-for-more", &["I-CB-8"], never)
        .within(Span::only(1))
        .needing(PROVOKE),
];

fn asked(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let _pressure = bench.press()?;
    until("POST /try-upscale is sent", PROMPT, || agent.answered("/try-upscale") > 0)?;
    let body = format!(r#"{{"cpu":false,"memory":true,"expectedID":"{}"}}"#, agent.id);
    agent.each_call_is("/try-upscale", "POST", &body)
}

fn again(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let _pressure = bench.press()?;
    until("POST /try-upscale is sent twice", PROMPT, || agent.answered("/try-upscale") > 1)?;
    let calls = agent.calls("/try-upscale");
    let apart = calls[1].at.duration_since(calls[0].at);
    ensure(apart >= Duration::from_millis(200), || {
        format!("POST /try-upscale was sent again after {apart:?}, about a second was expected")
    })
}

fn content(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let pressure = bench.press()?;
    until("POST /try-upscale is sent", PROMPT, || agent.answered("/try-upscale") > 0)?;
    drop(pressure);
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale", &json!({}))?;
    // Time for what was under way, and for the next sample.
    sleep(Duration::from_secs(2));
    let before = agent.calls("/try-upscale").len();
    sleep(Duration::from_secs(4));
    let after = agent.calls("/try-upscale").len() - before;
    ensure(after == 0, || {
        format!("POST /try-upscale was sent {after} times, though there is enough")
    })
}

fn never(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let _pressure = bench.press()?;
    sleep(Duration::from_secs(4));
    let calls = agent.calls("/try-upscale").len();
    ensure(calls == 0, || format!("POST /try-upscale was sent {calls} times in v1.0"))?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale", &json!({}))
}
