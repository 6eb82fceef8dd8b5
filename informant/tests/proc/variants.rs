//! Informants that are broken on purpose: the kit must notice each by the case that names it.
//!
//! A variant is the real program with a change between: what it is asked, and what it answers.
//! Calls to the agents come straight from the program, but where a variant stands in their way
//! too.

use crate::conformance::{Target, spoken};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_conformance::case::Choice;
use windlass_conformance::http::{Answer, Reply, Request, answer};
use windlass_conformance::informant::{Options, run};
use windlass_conformance::tamper::{Forward, Tamper, reply};

/// What a broken informant does otherwise.
type Change = fn(Request, Forward<'_>) -> Reply;

/// What is broken, the case that must fail, and how.
const VARIANTS: [(&str, &str, Change); 35] = [
    ("unknown paths are 400", "an-unknown-path-is-not-found", |request, forward| {
        status(forward(&request), 404, 400, |text| text.starts_with("404 page"))
    }),
    ("GET is accepted", "each-endpoint-takes-its-method-only", |mut request, forward| {
        if request.method == "GET" && request.path == "/upscale" {
            request.method = "PUT".to_owned();
        }
        reply(forward(&request))
    }),
    ("a wrong method is 404", "each-endpoint-takes-its-method-only", |request, forward| {
        status(forward(&request), 405, 404, |_| true)
    }),
    ("a refusal ends its line", "each-endpoint-takes-its-method-only", |request, forward| {
        ended(forward(&request), 405)
    }),
    (
        "a refusal of an amount ends its line",
        "amounts-of-another-are-refused",
        |request, forward| ended(forward(&request), 400),
    ),
    ("an unknown path ends no line", "an-unknown-path-is-not-found", |request, forward| {
        said(forward(&request), "404 page not found\n", "404 page not found")
    }),
    ("an empty body is read as {}", "each-endpoint-needs-a-body", |mut request, forward| {
        if request.body.is_empty() {
            request.body = b"{}".to_vec();
        }
        reply(forward(&request))
    }),
    ("a broken body is 422", "a-broken-body-is-refused", |request, forward| {
        status(forward(&request), 400, 422, |text| text.starts_with("bad JSON"))
    }),
    (
        "trailing data is refused",
        "what-follows-the-first-value-is-passed-over",
        |request, forward| {
            let whole = serde_json::from_slice::<serde_json::Value>(&request.body);
            match whole {
                Err(_) if request.path == "/register" => refuse(400, "bad JSON: trailing data"),
                Ok(_) | Err(_) => reply(forward(&request)),
            }
        },
    ),
    ("keys count in their own case only", "keys-are-read-in-any-case", |mut request, forward| {
        let text = request.text().replace("AGENTID", "x").replace("agentserveaddr", "y");
        request.body = text.into_bytes();
        reply(forward(&request))
    }),
    ("a number may be a text", "numbers-are-plain-digits", |mut request, forward| {
        request.body = request.text().replace(":\"4\"", ":4").into_bytes();
        reply(forward(&request))
    }),
    ("there is no limit to a body", "a-body-beyond-the-limit-is-refused", |request, forward| {
        if request.body.len() > 16 * 1024 { refuse(200, "{}") } else { reply(forward(&request)) }
    }),
    (
        "the version is a text",
        "a-registration-is-answered-with-version-and-port",
        |request, forward| said(forward(&request), "\"protoVersion\":4", "\"protoVersion\":\"4\""),
    ),
    (
        "a key has another case",
        "a-registration-is-answered-with-version-and-port",
        |request, forward| said(forward(&request), "metricsMethod", "MetricsMethod"),
    ),
    (
        "no port is announced",
        "a-registration-is-answered-with-version-and-port",
        |request, forward| match forward(&request) {
            Some(Answer { status: 200, .. }) if request.path == "/register" => {
                refuse(200, r#"{"protoVersion":4,"metricsMethod":{}}"#)
            }
            other => reply(other),
        },
    ),
    ("versions are refused in other words", "no-shared-version-is-refused", |request, forward| {
        said(forward(&request), "Protocol version mismatch", "unsupported version")
    }),
    (
        "it answers without a call",
        "an-agent-is-called-before-it-is-registered",
        |request, forward| match request.path.as_str() {
            "/register" => {
                refuse(200, r#"{"protoVersion":4,"metricsMethod":{"prometheus":{"port":1}}}"#)
            }
            _ => reply(forward(&request)),
        },
    ),
    (
        "an agent that refuses is taken",
        "an-agent-that-refuses-the-call-is-refused",
        |request, forward| {
            status(forward(&request), 400, 200, |text| text.starts_with("Error checking ID"))
        },
    ),
    ("a second registration is taken", "a-second-registration-is-refused", |request, forward| {
        match forward(&request) {
            Some(Answer { status: 409, .. }) => {
                refuse(200, r#"{"protoVersion":4,"metricsMethod":{"prometheus":{"port":1}}}"#)
            }
            other => reply(other),
        }
    }),
    ("Ok is written ok", "too-little-is-declined", |request, forward| {
        said(forward(&request), "\"Ok\"", "\"ok\"")
    }),
    ("it agrees to everything", "too-little-is-declined", |request, forward| {
        said(forward(&request), "\"Ok\":false", "\"Ok\":true")
    }),
    ("it agrees to what is stale", "an-older-number-is-stale", |request, forward| {
        match forward(&request) {
            Some(answered) if answered.text().contains("stale") => {
                refuse(200, r#"{"Ok":true,"Status":"done"}"#)
            }
            other => reply(other),
        }
    }),
    ("what is stale is refused", "an-older-number-is-stale", |request, forward| {
        match forward(&request) {
            Some(answered) if answered.text().contains("stale") => refuse(400, "stale"),
            other => reply(other),
        }
    }),
    ("number zero counts as new", "number-zero-is-stale", |mut request, forward| {
        request.body = request.text().replace("Number\":0", "Number\":999").into_bytes();
        reply(forward(&request))
    }),
    ("unknown ids are healthy", "a-health-check-of-nobody-is-not-found", |request, forward| {
        match forward(&request) {
            Some(Answer { status: 404, .. }) if request.path == "/health-check" => {
                refuse(200, "{}")
            }
            other => reply(other),
        }
    }),
    ("health checks are not found", "a-health-check-is-answered", |request, forward| match request
        .path
        .as_str()
    {
        "/health-check" => refuse(404, "No Agent with ID x registered"),
        _ => reply(forward(&request)),
    }),
    ("amounts of anybody are taken", "amounts-of-another-are-refused", |request, forward| {
        match forward(&request) {
            Some(found) if found.text().ends_with("is not the active Agent") => refuse(200, "{}"),
            other => reply(other),
        }
    }),
    ("a missing amount is zero", "a-missing-amount-is-refused", |mut request, forward| {
        let text = request.text().replace("\"x\":1", "\"cpu\":0,\"memory\":0");
        request.body = text.replace("null", "0").into_bytes();
        reply(forward(&request))
    }),
    (
        "an upscale is answered with null",
        "an-upscale-is-answered-with-an-empty-object",
        |request, forward| match forward(&request) {
            Some(Answer { status: 200, .. }) if request.path == "/upscale" => refuse(200, "null"),
            other => reply(other),
        },
    ),
    (
        "what is said twice is decided twice",
        "a-repeated-request-is-answered-alike",
        |request, forward| {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let nth = COUNT.fetch_add(1, Ordering::Relaxed);
            said(forward(&request), "\"Status\":\"", &format!("\"Status\":\"{nth} "))
        },
    ),
    (
        "an amount below zero is one above",
        "amounts-that-do-not-fit-are-broken",
        |mut request, forward| {
            request.body = request.text().replace("\"cpu\":-1", "\"cpu\":1").into_bytes();
            reply(forward(&request))
        },
    ),
    ("only bare numbers are amounts", "amounts-are-read-in-every-spelling", |request, forward| {
        match request.text() {
            text if text.contains("\"65536Mi\"") => refuse(400, "bad JSON: memory"),
            _ => reply(forward(&request)),
        }
    }),
    ("ids are read in lower case only", "an-id-is-read-in-every-spelling", |request, forward| {
        let text = request.text();
        let id = text.split('"').nth(3).unwrap_or_default();
        match id.chars().any(|c| c.is_ascii_uppercase()) {
            true => refuse(400, "bad JSON: agentID"),
            false => reply(forward(&request)),
        }
    }),
    (
        "everybody who leaves had counted",
        "taking-leave-says-whether-it-counted",
        |request, forward| said(forward(&request), "\"wasActive\":false", "\"wasActive\":true"),
    ),
    ("another address may leave", "who-names-another-address-cannot-leave", |request, forward| {
        match forward(&request) {
            Some(found) if found.text().starts_with("Agent serverAddr") => {
                refuse(200, r#"{"wasActive":false}"#)
            }
            other => reply(other),
        }
    }),
];

#[test]
fn each_broken_informant_is_caught_by_the_case_that_names_it() {
    let latest = spoken().into_iter().next_back().unwrap();
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let work = || {
        // A program of its own: what one variant leaves behind is not met by the next.
        while let Some((what, case, change)) = VARIANTS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let target = Target::start();
            let tamper = Tamper::before(target.program.addr, *change).unwrap();
            let choice =
                Choice { versions: vec![latest], only: vec![(*case).to_owned()], skip_ours: false };
            let options = Options { target: tamper.addr(), ..target.options(choice) };
            let report = run(&options, &mut |_| {});
            eprintln!("{what}:\n{report}");
            if report.failing() != [*case] {
                missed.lock().unwrap().push(*what);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "nobody noticed: {missed:?}");
}

fn refuse(status: u16, text: &str) -> Reply {
    Reply::Bytes(answer(status, text.as_bytes()))
}

/// Another status, where the answer has this one and such a text.
fn status(answered: Option<Answer>, from: u16, to: u16, such: fn(&str) -> bool) -> Reply {
    match answered {
        Some(found) if found.status == from && such(&found.text()) => {
            reply(Some(Answer { status: to, ..found }))
        }
        other => reply(other),
    }
}

/// A line's end after an answer of this status.
fn ended(answered: Option<Answer>, of: u16) -> Reply {
    reply(answered.map(|mut found| {
        if found.status == of {
            found.body.push(b'\n');
        }
        found
    }))
}

/// Other words in the answer.
fn said(answered: Option<Answer>, from: &str, to: &str) -> Reply {
    reply(answered.map(|found| {
        let body = found.text().replace(from, to).into_bytes();
        Answer { body, ..found }
    }))
}
