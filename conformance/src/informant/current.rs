//! Which agent counts: the newest, then the one before it.

use super::agent::{Agent, Manner};
use super::bench::{Bench, ENOUGH, until};
use crate::case::{Case, Verdict, ensure};
use serde_json::json;
use std::time::Duration;

pub(super) const CASES: [Case<Bench>; 4] = [
    Case::new("the-newest-counts", &["I-CUR-1", "I-CUR-2"], newest),
    Case::new("the-one-before-returns", &["I-CUR-3", "I-CUR-4"], returns),
    Case::new("a-suspend-that-is-late-is-waited-for", &["I-CUR-2"], late),
    Case::new("who-refuses-to-wait-is-replaced", &["I-CUR-2"], refuses),
];

fn newest(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let second = Agent::current(bench)?;
    let suspended = first.first("/suspend")?;
    first.each_call_is("/suspend", "POST", &first.expected())?;
    second.each_call_is("/resume", "POST", &second.expected())?;
    let resumed = second.first("/resume")?;
    ensure(suspended.answered.is_some_and(|answered| answered <= resumed.at), || {
        "the newer agent was resumed before the older had answered POST /suspend".to_owned()
    })?;
    ensure(second.calls("/suspend").is_empty(), || "the newest agent was suspended".to_owned())?;
    second.says("/upscale", ENOUGH)?.is("PUT /upscale of the newest", &json!({}))
}

fn returns(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let second = Agent::current(bench)?;
    second.leave()?.json("DELETE /unregister")?;
    // Nobody is waited for: who takes its leave has stopped. Before v1.2 a word to run waits until
    // it cannot be older than the one to wait.
    first.until_resumed(2, Duration::from_secs(8))?;
    first.says("/upscale", ENOUGH)?.is("PUT /upscale of the one that is back", &json!({}))
}

fn late(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    first.treats("/suspend", Manner::Late(Duration::from_millis(900)));
    let second = Agent::current(bench)?;
    let (suspended, resumed) = (first.first("/suspend")?, second.first("/resume")?);
    ensure(suspended.answered.is_some_and(|answered| answered <= resumed.at), || {
        "the newer agent was resumed before the older had answered POST /suspend".to_owned()
    })
}

fn refuses(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    // As one that waits already: it had followed, and the answer was lost.
    first.treats("/suspend", Manner::Refuses(400));
    let second = Agent::new(bench)?;
    second.join()?;
    until("the newer agent is resumed", Duration::from_secs(20), || {
        second.answered("/resume") > 0
    })?;
    second.says("/upscale", ENOUGH)?.is("PUT /upscale of the newest", &json!({}))
}
