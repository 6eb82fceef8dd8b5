//! Hand-over from an agent that does not answer `/suspend`.

use super::agent::{Agent, Manner};
use super::bench::Bench;
use crate::case::{Case, Verdict, ensure};
use crate::versions::Span;
use serde_json::json;
use std::time::{Duration, Instant};

/// For so long an agent may act after it was last heard.
const LEASE: Duration = Duration::from_secs(10);

/// An agent before v1.2 that nobody calls stops within this.
const UNCALLED: Duration = Duration::from_secs(13);

/// The lease, the calls that fail meanwhile, and a busy machine.
const AT_LAST: Duration = Duration::from_secs(40);

pub(super) const CASES: [Case<Bench>; 3] = [
    Case::new("an-agent-that-cannot-be-stopped-is-waited-out", &["I-HND-2"], waited_out)
        .ours()
        .within(Span::from(3)),
    Case::new("a-health-check-prolongs-no-lease-that-ends", &["I-HND-2"], not_prolonged)
        .within(Span::from(3)),
    Case::new("before-v1.2-silence-is-waited-out", &["I-HND-3"], silence)
        .ours()
        .within(Span::up_to(2)),
];

fn waited_out(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let heard = Instant::now();
    first.health()?.is("PUT /health-check", &json!({}))?;
    first.treats("/suspend", Manner::Silent);
    first.treats("/id", Manner::Silent);
    let second = Agent::new(bench)?;
    second.join()?;
    second.until_resumed(1, AT_LAST)?;
    let after = second.first("/resume")?.at.duration_since(heard);
    ensure(after >= LEASE, || {
        format!(
            "the next agent was resumed {after:?} after the last health check, 10s were expected"
        )
    })
}

fn not_prolonged(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    first.treats("/suspend", Manner::Silent);
    let second = Agent::new(bench)?;
    second.join()?;
    let started = Instant::now();
    while second.answered("/resume") == 0 {
        ensure(started.elapsed() < AT_LAST, || {
            format!(
                "the next agent was not resumed within {AT_LAST:?}, while the old one checks its health"
            )
        })?;
        // Known or forgotten, it is answered; what is said is another case's.
        first.health()?;
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

fn silence(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let heard = first.first("/resume")?.answered.unwrap_or_else(Instant::now);
    first.treats("/suspend", Manner::Silent);
    first.treats("/id", Manner::Silent);
    let second = Agent::new(bench)?;
    second.join()?;
    second.until_resumed(1, AT_LAST)?;
    let after = second.first("/resume")?.at.duration_since(heard);
    ensure(after >= UNCALLED, || {
        format!("the next agent was resumed {after:?} after the last answer, 13s were expected")
    })
}
