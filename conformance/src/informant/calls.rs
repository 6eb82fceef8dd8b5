//! Calls to agents that fail: one lost answer, several, an answer of somebody else.

use super::agent::{Agent, Manner};
use super::bench::{Bench, ENOUGH, until};
use crate::case::{Case, Verdict, ensure};
use crate::ids;
use serde_json::json;
use std::thread::sleep;
use std::time::Duration;

/// Longer than the period of the checks, with their spread and a failure.
const A_PERIOD: Duration = Duration::from_secs(14);

/// Three failures, each after its time-out.
const THREE_FAILURES: Duration = Duration::from_secs(10);

pub(super) const CASES: [Case<Bench>; 5] = [
    Case::new("one-lost-answer-costs-no-session", &["I-CUR-5"], one_lost).ours(),
    Case::new("another-id-ends-the-session", &["I-CUR-5"], another_id),
    Case::new("an-old-number-is-no-answer", &["I-CB-3", "I-CUR-5"], old_number).ours(),
    Case::new("every-agent-is-asked-whether-it-is-there", &["I-CUR-6"], asked),
    Case::new("an-agent-that-is-gone-is-forgotten", &["I-CUR-5", "I-CUR-3"], gone),
];

/// Whether the informant has forgotten this agent.
fn is_forgotten(bench: &Bench, agent: &Agent<'_>) -> bool {
    // An address that is not the agent's: it is refused, whether the agent is known or not.
    let body = agent.desc().replace(&agent.addr.to_string(), "127.0.0.9:9");
    bench.ask("DELETE", "/unregister", &body).is_ok_and(|answer| answer.status == 404)
}

fn one_lost(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/resume", Manner::HangsUpFirst(1));
    agent.join()?;
    agent.until_resumed(1, Duration::from_secs(20))?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale after a lost answer", &json!({}))
}

fn another_id(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/resume", Manner::As(ids::fresh()));
    agent.join()?;
    let what = "an agent that answers POST /resume with another id is forgotten";
    until(what, Duration::from_secs(20), || is_forgotten(bench, &agent))?;
    let calls = agent.calls("/resume").len();
    ensure(calls == 1, || format!("{what}, and at once: it was called {calls} times"))
}

fn old_number(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    // The number of the answer to /id is 1.
    agent.treats("/resume", Manner::Numbered(1));
    agent.join()?;
    let what = "an agent whose numbers do not rise is asked again";
    until(what, Duration::from_secs(20), || agent.calls("/resume").len() > 1)?;
    let what = "an agent whose numbers do not rise is forgotten";
    until(what, THREE_FAILURES, || is_forgotten(bench, &agent)).map(|_| ())
}

fn asked(bench: &Bench) -> Verdict {
    let waits = Agent::current(bench)?;
    let counts = Agent::current(bench)?;
    let before = [&waits, &counts].map(|agent| agent.calls("/id").len());
    sleep(A_PERIOD);
    for (agent, before) in [&waits, &counts].into_iter().zip(before) {
        let times = agent.calls("/id").len() - before;
        ensure((1..=4).contains(&times), || {
            format!("GET /id was sent {times} times within {A_PERIOD:?}, once was expected")
        })?;
    }
    Ok(())
}

fn gone(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let mut second = Agent::current(bench)?;
    second.go_deaf();
    let what = "the agent before is resumed once the newest is gone";
    // A period, three failures, and where there are leases, one of them.
    let limit = A_PERIOD + THREE_FAILURES + Duration::from_secs(16);
    until(what, limit, || first.answered("/resume") >= 2)?;
    ensure(is_forgotten(bench, &second), || "an agent that is gone is still known".to_owned())?;
    first.says("/upscale", ENOUGH)?.is("PUT /upscale of the agent before", &json!({}))
}
