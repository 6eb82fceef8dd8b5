//! `/health-check` and `/unregister`.

use super::agent::Agent;
use super::bench::{Bench, ENOUGH};
use crate::case::{Case, Verdict};
use crate::ids;
use crate::versions::Span;
use serde_json::json;

pub(super) const CASES: [Case<Bench>; 7] = [
    Case::new("a-health-check-is-answered", &["I-HLT-1"], healthy).within(Span::from(3)),
    Case::new("a-waiting-agent-is-healthy", &["I-HLT-1", "I-CUR-3"], waiting).within(Span::from(3)),
    Case::new("a-health-check-of-nobody-is-not-found", &["I-HLT-2"], nobody),
    Case::new("an-agent-before-v1.2-has-no-health-checks", &["I-HLT-3", "I-VER-4"], too_old)
        .within(Span::up_to(2)),
    Case::new("taking-leave-says-whether-it-counted", &["I-UNR-1"], leave),
    Case::new("who-is-not-registered-cannot-leave", &["I-UNR-2"], unknown),
    Case::new("who-names-another-address-cannot-leave", &["I-UNR-3"], elsewhere),
];

fn healthy(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.join()?;
    agent.health()?.is("PUT /health-check of one that registered", &json!({}))?;
    agent.until_resumed(1, std::time::Duration::from_secs(20))?;
    agent.health()?.is("PUT /health-check of the one that counts", &json!({}))
}

fn waiting(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let _second = Agent::current(bench)?;
    first.health()?.is("PUT /health-check of one that waits", &json!({}))
}

fn nobody(bench: &Bench) -> Verdict {
    let id = ids::fresh();
    let words = format!("No Agent with ID {id} registered");
    let answer = bench.ask("PUT", "/health-check", &format!(r#"{{"agentID":"{id}"}}"#))?;
    answer.refuses_with("PUT /health-check of an unknown id", 404, &words)?;
    let answer = bench.ask("PUT", "/health-check", "{}")?;
    let words = "No Agent with ID 00000000-0000-0000-0000-000000000000 registered";
    answer.refuses_with("PUT /health-check without an id", 404, words)?;
    let gone = Agent::current(bench)?;
    gone.leave()?.json("DELETE /unregister")?;
    let words = format!("No Agent with ID {} registered", gone.id);
    gone.health()?.refuses_with("PUT /health-check after DELETE /unregister", 404, &words)
}

fn too_old(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let words =
        format!("health checks are not supported in protocol version {}", bench.version.name);
    agent.health()?.refuses_with("PUT /health-check", 400, &words)?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale after it", &json!({}))
}

fn leave(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let second = Agent::current(bench)?;
    first.leave()?.is("DELETE /unregister of one that waits", &json!({"wasActive": false}))?;
    second.leave()?.is("DELETE /unregister of the one that counts", &json!({"wasActive": true}))
}

fn unknown(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    let words = format!("No agent with ID \"{}\"", agent.id);
    agent.leave()?.refuses_with("DELETE /unregister of an unknown id", 404, &words)?;
    agent.join()?;
    agent.leave()?.json("DELETE /unregister")?;
    agent.leave()?.refuses_with("DELETE /unregister, twice", 404, &words)
}

fn elsewhere(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let other = "127.0.0.9:9";
    let body = agent.desc().replace(&agent.addr.to_string(), other);
    let words = format!("Agent serverAddr is incorrect, got \"{other}\"");
    let answer = bench.ask("DELETE", "/unregister", &body)?;
    answer.refuses_with("DELETE /unregister with another address", 400, &words)?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale after it", &json!({}))
}
