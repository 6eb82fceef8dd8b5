//! `/downscale` and `/upscale`: what they carry, and what is answered.

use super::DISRUPTIVE;
use super::agent::Agent;
use super::bench::{Bench, ENOUGH, TOO_LITTLE};
use crate::case::{Case, Fault, Verdict, ensure};
use crate::http::Answer;
use crate::ids;
use crate::versions::Span;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const CASES: [Case<Bench>; 10] = [
    Case::new("amounts-have-the-shape-of-the-version", &["I-AMT-1", "I-AMT-2", "I-VER-4"], shape),
    Case::new("an-upscale-is-answered-with-an-empty-object", &["I-UPS-1"], upscale),
    Case::new("enough-is-agreed-to", &["I-DWN-1", "I-DWN-3"], enough),
    Case::new("too-little-is-declined", &["I-DWN-1", "I-DWN-2"], too_little),
    Case::new("amounts-of-another-are-refused", &["I-AMT-3", "I-GEN-6"], another)
        .within(Span::from(4)),
    Case::new("amounts-without-an-agent-are-refused", &["I-AMT-3"], nobody).within(Span::from(4)),
    Case::new("amounts-of-who-was-replaced-are-refused", &["I-AMT-3", "I-CUR-2"], replaced)
        .within(Span::from(4)),
    Case::new("the-bare-body-is-refused-in-v2.0", &["I-AMT-3"], bare).within(Span::from(4)),
    Case::new("a-missing-amount-is-refused", &["I-AMT-4"], missing).ours(),
    Case::new("vcpus-beyond-what-was-agreed-are-parked", &["I-DWN-2", "I-DWN-5"], parked)
        .ours()
        .needing(DISRUPTIVE),
];

/// Whether the guest agrees, or not.
pub(super) fn decides(answer: &Answer, asked: &str, ok: bool) -> Verdict {
    let found = answer.json(asked)?;
    let keys: Vec<&str> = found
        .as_object()
        .map(|object| object.keys().map(String::as_str).collect())
        .unwrap_or_default();
    ensure(keys == ["Ok", "Status"], || {
        format!("{asked}: the keys of {found} are not Ok, Status")
    })?;
    ensure(found["Ok"] == ok, || format!("{asked}: answered {found}, \"Ok\":{ok} was expected"))?;
    ensure(found["Status"].as_str().is_some_and(|status| !status.is_empty()), || {
        format!("{asked}: Status says nothing in {found}")
    })
}

fn shape(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let body = bench.amounts(ENOUGH, &agent.id, agent.next());
    decides(&bench.ask("PUT", "/downscale", &body)?, &format!("PUT /downscale {body}"), true)?;
    let body = bench.amounts(ENOUGH, &agent.id, agent.next());
    bench.ask("PUT", "/upscale", &body)?.is(&format!("PUT /upscale {body}"), &json!({}))
}

fn upscale(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    for _ in 0..3 {
        agent.says("/upscale", ENOUGH)?.is("PUT /upscale", &json!({}))?;
    }
    Ok(())
}

fn enough(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    for _ in 0..3 {
        decides(&agent.says("/downscale", ENOUGH)?, "PUT /downscale to 64Gi", true)?;
    }
    Ok(())
}

fn too_little(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    decides(&agent.says("/downscale", TOO_LITTLE)?, "PUT /downscale to 1Mi", false)?;
    decides(&agent.says("/downscale", ("64", "0"))?, "PUT /downscale to no memory", false)?;
    decides(&agent.says("/downscale", ENOUGH)?, "PUT /downscale to 64Gi after it", true)
}

/// Whether both endpoints refuse amounts of this id.
fn not_active(bench: &Bench, id: &str) -> Verdict {
    for path in ["/downscale", "/upscale"] {
        let body = bench.amounts(ENOUGH, id, 1000);
        let words = format!("Agent ID {id} is not the active Agent");
        bench.ask("PUT", path, &body)?.refuses_with(&format!("PUT {path} of {id}"), 400, &words)?;
    }
    Ok(())
}

fn another(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    not_active(bench, &ids::fresh())?;
    not_active(bench, "00000000-0000-0000-0000-000000000000")?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale of the one that counts", &json!({}))
}

fn nobody(bench: &Bench) -> Verdict {
    let id = Agent::current(bench)?.id.clone();
    not_active(bench, &id)?;
    not_active(bench, "00000000-0000-0000-0000-000000000000")
}

fn replaced(bench: &Bench) -> Verdict {
    let first = Agent::current(bench)?;
    let second = Agent::current(bench)?;
    not_active(bench, &first.id)?;
    second.says("/upscale", ENOUGH)?.is("PUT /upscale of the newest", &json!({}))
}

fn bare(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let (cpu, memory) = ENOUGH;
    for path in ["/downscale", "/upscale"] {
        let body = format!(r#"{{"cpu":"{cpu}","memory":"{memory}"}}"#);
        bench.ask("PUT", path, &body)?.refuses(&format!("PUT {path} {body}"), 400, "")?;
    }
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale after it", &json!({}))
}

fn missing(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let (cpu, memory) =
        (format!("\"cpu\":\"{}\"", ENOUGH.0), format!("\"memory\":\"{}\"", ENOUGH.1));
    for path in ["/downscale", "/upscale"] {
        for (what, other) in [
            (&cpu, "\"x\":1"),
            (&memory, "\"x\":1"),
            (&cpu, "\"cpu\":null"),
            (&memory, "\"memory\":null"),
        ] {
            let body = bench.amounts(ENOUGH, &agent.id, agent.next()).replace(what.as_str(), other);
            bench.ask("PUT", path, &body)?.refuses(&format!("PUT {path} {body}"), 400, "")?;
        }
    }
    Ok(())
}

/// What the guest reports as online.
fn online(bench: &Bench) -> Result<u64, Fault> {
    let page = bench.ask("GET", "/metrics", "")?.text();
    let line = page.lines().find_map(|line| line.strip_prefix("windlass_cpus_online "));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| Fault("GET /metrics has no figure windlass_cpus_online".to_owned()))
}

fn parked(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let before = online(bench)?;
    ensure(before > 1, || format!("the guest has {before} vCPU online, 2 or more are needed"))?;
    let plenty = ENOUGH.1;
    decides(&agent.says("/downscale", ("1", plenty))?, "PUT /downscale to 1 vCPU", true)?;
    let left = online(bench)?;
    ensure(left == 1, || format!("{left} vCPUs are online after PUT /downscale to 1"))?;
    agent.says("/upscale", (&before.to_string(), plenty))?.is("PUT /upscale", &json!({}))?;
    // They come back before the answer, or a little later on a busy machine.
    let started = Instant::now();
    while online(bench)? != before {
        ensure(started.elapsed() < Duration::from_secs(5), || {
            format!("PUT /upscale to {before} vCPUs did not bring them back within 5s")
        })?;
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
