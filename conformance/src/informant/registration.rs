//! Registration: versions, the call-back before the answer, what is refused.

use super::agent::{Agent, Manner, desc};
use super::bench::{Bench, ENOUGH, until};
use super::endpoints::mismatch;
use crate::case::{Case, Verdict, ensure};
use crate::ids;
use crate::versions::Span;
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// A call that waits so long for its answer is within every informant's time-out.
const LATE: Duration = Duration::from_millis(150);

pub(super) const CASES: [Case<Bench>; 17] = [
    Case::new(
        "a-registration-is-answered-with-version-and-port",
        &["I-REG-1", "J-ERR-1"],
        described,
    ),
    Case::new("the-highest-shared-version-is-chosen", &["I-VER-2"], highest),
    Case::new("a-version-of-the-future-is-not-chosen", &["I-VER-2"], future).within(Span::from(4)),
    Case::new("no-shared-version-is-refused", &["I-VER-3", "I-VER-1"], not_shared),
    Case::new("versions-are-looked-at-first", &["I-VER-3"], versions_first),
    Case::new("an-agent-is-called-before-it-is-registered", &["I-REG-2", "I-GEN-3"], called_back),
    Case::new("the-answer-waits-for-the-call", &["I-REG-2"], answer_waits),
    Case::new("an-agent-that-cannot-be-reached-is-refused", &["I-REG-3"], unreachable),
    Case::new("an-agent-that-says-nothing-is-refused", &["I-REG-3"], silent),
    Case::new("an-agent-that-refuses-the-call-is-refused", &["I-REG-3"], refusing),
    Case::new("an-agent-whose-answer-is-broken-is-refused", &["I-REG-3", "J-BODY-1"], broken),
    Case::new("an-agent-that-answers-as-another-is-refused", &["I-REG-3"], another),
    Case::new("an-agent-that-answers-with-number-zero-is-refused", &["I-REG-3", "I-CB-3"], zero),
    Case::new("a-second-registration-is-refused", &["I-REG-4"], twice),
    Case::new("an-id-of-zeros-is-refused", &["I-REG-5"], zero_id).ours(),
    Case::new("an-address-that-cannot-be-called-is-refused", &["I-REG-5"], addresses).ours(),
    Case::new("an-agent-is-resumed-after-it-was-answered", &["I-REG-8", "I-CUR-1"], resumed_after)
        .ours(),
];

fn described(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    let found = agent.register()?.json("POST /register")?;
    let port = found["metricsMethod"]["prometheus"]["port"].as_u64().unwrap_or_default();
    ensure((1..=65535).contains(&port), || {
        format!("POST /register: metricsMethod.prometheus.port is {port} in {found}")
    })?;
    let number = bench.version.number;
    let expected = json!({"protoVersion": number, "metricsMethod": {"prometheus": {"port": port}}});
    ensure(found == expected, || format!("POST /register: answered {found}, expected {expected}"))
}

fn highest(bench: &Bench) -> Verdict {
    let number = bench.version.number;
    for (min, max) in [(number, number), (1, number), (0, number)] {
        let agent = Agent::new(bench)?;
        let asked = format!("POST /register with versions {min} to {max}");
        let found = bench.ask("POST", "/register", &agent.desc_with(min, max))?.json(&asked)?;
        ensure(found["protoVersion"] == number, || {
            format!("{asked}: protoVersion is {}, {number} was expected", found["protoVersion"])
        })?;
    }
    Ok(())
}

fn future(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    let (min, asked) = (bench.version.number, "POST /register with versions up to 4294967295");
    let found = bench.ask("POST", "/register", &agent.desc_with(min, u32::MAX))?.json(asked)?;
    ensure(found["protoVersion"] == min, || {
        format!("{asked}: protoVersion is {}, {min} was expected", found["protoVersion"])
    })
}

fn not_shared(bench: &Bench) -> Verdict {
    for (min, max) in [(9, 9), (7, u32::MAX), (0, 0), (4, 1)] {
        let agent = Agent::new(bench)?;
        let asked = format!("POST /register with versions {min} to {max}");
        let answer = bench.ask("POST", "/register", &agent.desc_with(min, max))?;
        mismatch(&answer, bench, &asked, (min, max))?;
        ensure(agent.calls("/id").is_empty(), || format!("{asked}: the agent was called"))?;
    }
    Ok(())
}

fn versions_first(bench: &Bench) -> Verdict {
    let zero = "00000000-0000-0000-0000-000000000000";
    for (id, addr) in [(ids::fresh(), "nowhere"), (zero.to_owned(), "127.0.0.1:1")] {
        let asked = format!("POST /register of {id} at {addr:?} with versions 9 to 9");
        let answer = bench.ask("POST", "/register", &desc(&id, addr, 9, 9))?;
        mismatch(&answer, bench, &asked, (9, 9))?;
    }
    let agent = Agent::new(bench)?;
    agent.join()?;
    let answer = bench.ask("POST", "/register", &agent.desc_with(9, 9))?;
    mismatch(&answer, bench, "POST /register of a registered id", (9, 9))
}

fn called_back(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.join()?;
    let first = agent.first("/id")?;
    ensure(first.request.method == "GET", || {
        format!("/id is called with {}, GET was expected", first.request.method)
    })?;
    agent.each_call_is("/id", "GET", "{}")
}

fn answer_waits(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/id", Manner::Late(LATE));
    agent.join()?;
    let answered = Instant::now();
    let called = agent.first("/id")?.answered;
    ensure(called.is_some_and(|called| called <= answered), || {
        "POST /register was answered before the agent had answered GET /id".to_owned()
    })
}

/// Whether a registration is refused, and nothing of it is kept.
fn unconfirmed(agent: &Agent<'_>, what: &str) -> Verdict {
    let words = format!("Error checking ID for agent {}/{}: ", agent.addr, agent.id);
    agent.register()?.refuses(&format!("POST /register, {what}"), 400, &words)?;
    agent.treats("/id", Manner::Works);
    let again = agent.register()?;
    again.json(&format!("POST /register of the same id after it was refused, {what}")).map(|_| ())
}

fn unreachable(bench: &Bench) -> Verdict {
    // A port that was free a moment ago.
    let free = TcpListener::bind((bench.advertise, 0)).or_else(|_| TcpListener::bind("0.0.0.0:0"));
    let port = free.and_then(|listener| listener.local_addr()).map_or(1, |addr| addr.port());
    let (id, number) = (ids::fresh(), bench.version.number);
    let addr = std::net::SocketAddr::new(bench.advertise, port).to_string();
    let answer = bench.ask("POST", "/register", &desc(&id, &addr, number, number))?;
    let words = format!("Error checking ID for agent {addr}/{id}: ");
    answer.refuses("POST /register with an address where nobody is", 400, &words)
}

fn silent(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/id", Manner::Silent);
    unconfirmed(&agent, "where GET /id is not answered")
}

fn refusing(bench: &Bench) -> Verdict {
    for status in [400, 404, 500] {
        let agent = Agent::new(bench)?;
        agent.treats("/id", Manner::Refuses(status));
        unconfirmed(&agent, &format!("where GET /id is answered with {status}"))?;
    }
    Ok(())
}

fn broken(bench: &Bench) -> Verdict {
    for said in ["", "{", "[]", "{}{}", r#"{"data":7}"#] {
        let agent = Agent::new(bench)?;
        agent.treats("/id", Manner::Says(said.to_owned()));
        unconfirmed(&agent, &format!("where GET /id is answered with {said:?}"))?;
    }
    let agent = Agent::new(bench)?;
    agent.treats("/id", Manner::HangsUp);
    unconfirmed(&agent, "where the call is hung up on")
}

fn another(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/id", Manner::As(ids::fresh()));
    unconfirmed(&agent, "where GET /id is answered with another id")
}

fn zero(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.treats("/id", Manner::Numbered(0));
    unconfirmed(&agent, "where GET /id is answered with sequenceNumber 0")
}

fn twice(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let words = format!("Agent with ID {} is already registered", agent.id);
    agent.register()?.refuses_with("POST /register of a registered id", 409, &words)?;
    agent.says("/upscale", ENOUGH)?.is("PUT /upscale after it", &json!({}))
}

fn zero_id(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    for id in ["\"00000000-0000-0000-0000-000000000000\"", "null"] {
        let body = agent.desc().replace(&format!("\"{}\"", agent.id), id);
        let asked = format!("POST /register with agentID {id}");
        bench.ask("POST", "/register", &body)?.refuses(&asked, 400, "agentID")?;
    }
    ensure(agent.calls("/id").is_empty(), || "an agent without an id was called".to_owned())
}

fn addresses(bench: &Bench) -> Verdict {
    let number = bench.version.number;
    for addr in ["", "127.0.0.1", "127.0.0.1:0", "0.0.0.0:80", "224.0.0.1:80", "localhost:80"] {
        let asked = format!("POST /register with agentServeAddr {addr:?}");
        let body = desc(&ids::fresh(), addr, number, number);
        bench.ask("POST", "/register", &body)?.refuses(&asked, 400, "agentServeAddr")?;
    }
    Ok(())
}

fn resumed_after(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    agent.join()?;
    let answered = Instant::now();
    until("POST /resume is sent", Duration::from_secs(20), || agent.answered("/resume") > 0)?;
    let resumed = agent.first("/resume")?.at;
    ensure(resumed > answered, || {
        "POST /resume was sent before POST /register was answered".to_owned()
    })?;
    agent.each_call_is("/resume", "POST", &agent.expected())
}
