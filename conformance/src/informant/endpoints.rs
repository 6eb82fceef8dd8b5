//! What is common to an informant's endpoints: paths, methods, bodies, the rules of JSON.

use super::agent::{Agent, desc};
use super::bench::{Bench, ENOUGH};
use crate::case::{Case, Fault, Verdict, ensure};
use crate::http::{self, Answer, Lost};
use crate::ids;
use crate::versions::{INFORMANT, Version};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Each endpoint: method and path.
const ENDPOINTS: [(&str, &str); 5] = [
    ("POST", "/register"),
    ("PUT", "/health-check"),
    ("PUT", "/downscale"),
    ("PUT", "/upscale"),
    ("DELETE", "/unregister"),
];

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "post", "put"];

/// What Go's own server says where nothing is: the only refusal that ends its line.
const NOT_FOUND: &str = "404 page not found\n";

/// A slow sender is let go of within this time.
const SLOW: Duration = Duration::from_secs(14);

pub(super) const CASES: [Case<Bench>; 15] = [
    Case::new("an-unknown-path-is-not-found", &["I-GEN-1"], unknown_path),
    Case::new("each-endpoint-takes-its-method-only", &["I-GEN-2"], methods),
    Case::new("the-method-is-looked-at-before-the-body", &["I-GEN-1", "I-GEN-2"], method_first),
    Case::new("each-endpoint-needs-a-body", &["I-GEN-3", "J-BODY-2"], no_body),
    Case::new("a-broken-body-is-refused", &["J-BODY-2", "J-ERR-1"], broken_body),
    Case::new("what-follows-the-first-value-is-passed-over", &["J-BODY-1"], trailing),
    Case::new("keys-are-read-in-any-case", &["J-KEY-1"], any_case),
    Case::new("what-is-missing-is-zero", &["J-KEY-2", "I-VER-1"], missing),
    Case::new("numbers-are-plain-digits", &["J-NUM-1"], numbers),
    Case::new("an-id-is-read-in-every-spelling", &["J-ID-1"], spellings),
    Case::new("amounts-are-read-in-every-spelling", &["J-QTY-1"], quantities),
    Case::new("amounts-that-do-not-fit-are-broken", &["J-QTY-1"], misfits).ours(),
    Case::new("a-body-beyond-the-limit-is-refused", &["I-GEN-4"], large_body).ours(),
    Case::new("a-slow-sender-is-let-go-of", &["I-GEN-4"], slow_sender).ours(),
    Case::new("those-who-say-nothing-keep-no-agent-out", &["I-GEN-5"], silent_crowd),
];

fn unknown_path(bench: &Bench) -> Verdict {
    for path in ["/", "/nothing", "/register/", "/Register", "/id"] {
        let asked = format!("POST {path}");
        bench.ask("POST", path, "{}")?.refuses_with(&asked, 404, NOT_FOUND)?;
    }
    Ok(())
}

fn methods(bench: &Bench) -> Verdict {
    for (method, path) in ENDPOINTS {
        for other in METHODS.into_iter().filter(|other| *other != method) {
            let asked = format!("{other} {path}");
            let words = format!("request method must be {method}");
            bench.ask(other, path, "{}")?.refuses_with(&asked, 405, &words)?;
        }
    }
    Ok(())
}

fn method_first(bench: &Bench) -> Verdict {
    let words = "request method must be PUT";
    bench.ask("GET", "/downscale", "")?.refuses_with(
        "GET /downscale without a body",
        405,
        words,
    )?;
    bench.ask("GET", "/nothing", "")?.refuses_with("GET /nothing without a body", 404, NOT_FOUND)
}

fn no_body(bench: &Bench) -> Verdict {
    for (method, path) in ENDPOINTS {
        for body in ["", " \n"] {
            let asked = format!("{method} {path} with the body {body:?}");
            bench.ask(method, path, body)?.refuses_body(&asked)?;
        }
    }
    Ok(())
}

fn broken_body(bench: &Bench) -> Verdict {
    for (method, path) in ENDPOINTS {
        for body in ["{", "nonsense", "[]", "7", "\"text\"", "{\"agentID\":", "\u{feff}{}"] {
            let asked = format!("{method} {path} with the body {body:?}");
            let answer = bench.ask(method, path, body)?;
            answer.refuses_body(&asked)?;
            let kind = answer.header("content-type").unwrap_or_default();
            ensure(kind.starts_with("text/plain"), || {
                format!("{asked}: Content-Type is {kind:?}, text/plain was expected")
            })?;
        }
    }
    Ok(())
}

fn trailing(bench: &Bench) -> Verdict {
    for rest in ["garbage", "{}", "]", "\0"] {
        let agent = Agent::new(bench)?;
        let body = format!("{}{rest}", agent.desc());
        let asked = format!("POST /register, followed by {rest:?}");
        bench.ask("POST", "/register", &body)?.json(&asked)?;
    }
    Ok(())
}

fn any_case(bench: &Bench) -> Verdict {
    let agent = Agent::new(bench)?;
    let body = agent
        .desc()
        .replace("agentID", "AGENTID")
        .replace("agentServeAddr", "agentserveaddr")
        .replace(
            "\"minProtoVersion\"",
            "\"unknown\":{\"a\":[1,2]},\"MinPROTOVersion\":99,\"minProtoVersion\"",
        );
    bench.ask("POST", "/register", &body)?.json("POST /register with keys in another case")?;
    ensure(!agent.calls("/id").is_empty(), || {
        "POST /register with keys in another case was answered without a call to /id".to_owned()
    })
}

fn missing(bench: &Bench) -> Verdict {
    for body in ["null", "{}", r#"{"minProtoVersion":null,"maxProtoVersion":null}"#] {
        let asked = format!("POST /register with the body {body}");
        let answer = bench.ask("POST", "/register", body)?;
        mismatch(&answer, bench, &asked, (0, 0))?;
    }
    Ok(())
}

/// Whether this range of versions is refused in the reference's words, by an informant that knows
/// the version under test, and maybe later ones.
pub(super) fn mismatch(answer: &Answer, bench: &Bench, asked: &str, range: (u32, u32)) -> Verdict {
    answer.refuses(asked, 400, "Protocol version mismatch: Need v")?;
    let text = answer.text();
    let end = text.split_once(" but got ").map(|(_, got)| got);
    let last = INFORMANT.iter().filter(|last| last.number >= bench.version.number);
    let words: Vec<String> = last.map(|last| printed(range, *last)).collect();
    ensure(words.iter().any(|words| end == Some(words)), || {
        format!("{asked}: says {text:?}, which was to end with one of {words:?}")
    })
}

/// A range as it is printed by whoever knows no version after `last`.
fn printed((min, max): (u32, u32), last: Version) -> String {
    let one = |number: u32| match number {
        0 => "<invalid: zero>".to_owned(),
        _ if number > last.number => format!("<unknown = {last} + {}>", number - last.number),
        _ => INFORMANT[number as usize - 1].name.to_owned(),
    };
    if min == max { one(min) } else { format!("{} to {}", one(min), one(max)) }
}

fn numbers(bench: &Bench) -> Verdict {
    let (id, number) = (ids::fresh(), bench.version.number);
    let good = desc(&id, "127.0.0.1:1", number, number);
    for other in ["-1", "1.0", "4e0", "\"4\"", "true", "4294967296", "[]", "{}"] {
        let key = "\"maxProtoVersion\":";
        let body = good.replace(&format!("{key}{number}"), &format!("{key}{other}"));
        let asked = format!("POST /register with {key}{other}");
        bench.ask("POST", "/register", &body)?.refuses_body(&asked)?;
    }
    Ok(())
}

fn spellings(bench: &Bench) -> Verdict {
    let plain = |id: &str| id.replace('-', "");
    let forms: [fn(&str) -> String; 3] =
        [|id| id.to_uppercase(), |id| format!("urn:uuid:{id}"), |id| format!("{{{id}}}")];
    for form in forms.iter().map(|form| form as &dyn Fn(&str) -> String).chain([&plain as _]) {
        let agent = Agent::new(bench)?;
        let spelt = form(&agent.id);
        let body = agent.desc().replace(&agent.id, &spelt);
        bench.ask("POST", "/register", &body)?.json(&format!("POST /register as {spelt}"))?;
        let words = format!("Agent with ID {} is already registered", agent.id);
        agent.register()?.refuses_with("POST /register with the usual spelling", 409, &words)?;
    }
    Ok(())
}

/// `/upscale` with amounts as they are to stand in the body.
fn spelt(agent: &Agent<'_>, bench: &Bench, cpu: &str, memory: &str) -> Result<Answer, Lost> {
    let body = bench.amounts(ENOUGH, &agent.id, agent.next());
    let body = body.replace(&format!("\"{}\"", ENOUGH.0), cpu);
    bench.ask("PUT", "/upscale", &body.replace(&format!("\"{}\"", ENOUGH.1), memory))
}

fn quantities(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    let (cpu, memory) = ENOUGH;
    let say = |cpu: &str, memory: &str| spelt(&agent, bench, cpu, memory);
    let (quoted_cpu, quoted_memory) = (format!("\"{cpu}\""), format!("\"{memory}\""));
    for cpu in ["64", "64.5", "\"64000m\"", "6.4e1", "\"64e0\"", "\"0.064k\""] {
        say(cpu, &quoted_memory)?.json(&format!("PUT /upscale with cpu {cpu}"))?;
    }
    for memory in ["68719476736", "\"65536Mi\"", "\"68719476736\"", "\"64e9\""] {
        say(&quoted_cpu, memory)?.json(&format!("PUT /upscale with memory {memory}"))?;
    }
    for (cpu, memory) in [("\"x\"", "\"64Gi\""), ("64", "\"64Qi\""), ("64", "true")] {
        let asked = format!("PUT /upscale with cpu {cpu} and memory {memory}");
        say(cpu, memory)?.refuses_body(&asked)?;
    }
    Ok(())
}

fn misfits(bench: &Bench) -> Verdict {
    let agent = Agent::current(bench)?;
    for (cpu, memory) in [("-1", "\"64Gi\""), ("64", "\"-1Gi\""), ("64", "\"99999Ei\"")] {
        let asked = format!("PUT /upscale with cpu {cpu} and memory {memory}");
        spelt(&agent, bench, cpu, memory)?.refuses_body(&asked)?;
    }
    Ok(())
}

fn large_body(bench: &Bench) -> Verdict {
    let body = format!("{{\"x\":\"{}\"}}", "y".repeat(17 * 1024));
    for (method, path) in ENDPOINTS {
        // A server that has seen enough may hang up before it was told everything.
        match bench.ask(method, path, &body) {
            Ok(answer) => {
                answer.refuses(&format!("{method} {path} with 17 KiB"), 413, "")?;
            }
            Err(_) => continue,
        }
    }
    Ok(())
}

fn slow_sender(bench: &Bench) -> Verdict {
    let half = b"PUT /downscale HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"data\":";
    for (what, bytes) in [("half a head", &half[..30]), ("half a body", &half[..])] {
        let started = Instant::now();
        let answer = http::exchange(bench.target, bytes, SLOW);
        let status = answer
            .map_err(|error| Fault(format!("{what}: not let go of within {SLOW:?}: {error}")))?
            .map(|answer| answer.status);
        ensure(status.is_none_or(|status| status == 408 || status == 400), || {
            format!("{what}: status is {status:?}, 408 or none was expected")
        })?;
        let took = started.elapsed();
        ensure(took < Duration::from_secs(12), || format!("{what}: let go of after {took:?}"))?;
    }
    Ok(())
}

fn silent_crowd(bench: &Bench) -> Verdict {
    let mut crowd = Vec::new();
    for _ in 0..64 {
        // Those that are refused keep nobody out.
        if let Ok(mut stream) = TcpStream::connect_timeout(&bench.target, Duration::from_secs(2)) {
            let _ = stream.write_all(b"PUT");
            crowd.push(stream);
        }
    }
    Agent::new(bench)?.join()
}
