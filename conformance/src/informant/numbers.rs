//! Sequence numbers of the agent's amounts: said twice, said late.

use super::agent::Agent;
use super::amounts::decides;
use super::bench::{Bench, ENOUGH, TOO_LITTLE};
use crate::case::{Case, Verdict, ensure};
use crate::http::Answer;
use crate::versions::Span;
use serde_json::json;

pub(super) const CASES: [Case<Bench>; 6] = [
    Case::new("a-repeated-request-is-answered-alike", &["I-SEQ-2"], repeated)
        .ours()
        .within(Span::from(4)),
    Case::new("an-older-number-is-stale", &["I-SEQ-3"], older).ours().within(Span::from(4)),
    Case::new("number-zero-is-stale", &["I-SEQ-3"], zero).ours().within(Span::from(4)),
    Case::new("a-number-belongs-to-its-endpoint", &["I-SEQ-3"], crossed)
        .ours()
        .within(Span::from(4)),
    Case::new("numbers-are-counted-by-agent", &["I-SEQ-1", "I-SEQ-3"], by_agent)
        .within(Span::from(4)),
    Case::new("each-request-is-examined-anew", &["I-SEQ-4"], anew),
];

fn stale(answer: &Answer, asked: &str) -> Verdict {
    answer.is(asked, &json!({"Ok": false, "Status": "stale"}))
}

fn repeated(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let first = agent.says_numbered("/downscale", TOO_LITTLE, 50)?;
    decides(&first, "PUT /downscale to 1Mi, number 50", false)?;
    for _ in 0..2 {
        let again = agent.says_numbered("/downscale", TOO_LITTLE, 50)?;
        ensure(again.status == first.status && again.body == first.body, || {
            format!("number 50 was answered {}, and then {}", first.text(), again.text())
        })?;
    }
    agent.says_numbered("/upscale", ENOUGH, 51)?.is("PUT /upscale, number 51", &json!({}))?;
    agent.says_numbered("/upscale", ENOUGH, 51)?.is("PUT /upscale, number 51 again", &json!({}))
}

fn older(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    decides(&agent.says_numbered("/downscale", ENOUGH, 70)?, "PUT /downscale, number 70", true)?;
    agent.says_numbered("/upscale", ENOUGH, 71)?.is("PUT /upscale, number 71", &json!({}))?;
    stale(&agent.says_numbered("/downscale", ENOUGH, 70)?, "PUT /downscale, 70 after 71")?;
    stale(&agent.says_numbered("/downscale", ENOUGH, 3)?, "PUT /downscale, 3 after 71")?;
    agent.says_numbered("/upscale", ENOUGH, 60)?.is("PUT /upscale, 60 after 71", &json!({}))?;
    decides(&agent.says_numbered("/downscale", ENOUGH, 72)?, "PUT /downscale, number 72", true)
}

fn zero(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    stale(&agent.says_numbered("/downscale", ENOUGH, 0)?, "PUT /downscale, number 0")?;
    agent.says_numbered("/upscale", ENOUGH, 0)?.is("PUT /upscale, number 0", &json!({}))
}

fn crossed(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    agent.says_numbered("/upscale", ENOUGH, 80)?.is("PUT /upscale, number 80", &json!({}))?;
    stale(
        &agent.says_numbered("/downscale", ENOUGH, 80)?,
        "PUT /downscale, with the number 80 of an /upscale",
    )?;
    decides(&agent.says_numbered("/downscale", ENOUGH, 81)?, "PUT /downscale, number 81", true)?;
    let crossed = agent.says_numbered("/upscale", ENOUGH, 81)?;
    crossed.is("PUT /upscale, with the number 81 of a /downscale", &json!({}))
}

fn by_agent(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    decides(
        &first.says_numbered("/downscale", ENOUGH, 9000)?,
        "PUT /downscale, number 9000",
        true,
    )?;
    let second = Agent::current(bench)?;
    let low = second.says_numbered("/downscale", ENOUGH, 90)?;
    decides(&low, "PUT /downscale of the next agent, number 90", true)
}

fn anew(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    for (amounts, ok) in [(ENOUGH, true), (TOO_LITTLE, false), (ENOUGH, true), (TOO_LITTLE, false)]
    {
        let asked = format!("PUT /downscale to {}", amounts.1);
        decides(&agent.says("/downscale", amounts)?, &asked, ok)?;
    }
    Ok(())
}
