//! The order of a plugin's checks, and the rules of JSON.

use super::Vm;
use super::bench::{ALL, BASE, Bench};
use super::said::{Said, size};
use crate::case::{Case, Fault, Verdict, ensure};
use crate::http::{self, Answer};
use crate::versions::Span;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);

/// What is said to parts of a CPU in a version that has none.
const FRACTION: &str =
    "agent requested fractional CPU with protocol version that does not support it";

/// A slow sender is let go of within this time.
const SLOW: Duration = Duration::from_secs(40);

pub(super) const CASES: [Case<Bench>; 19] = [
    Case::new("every-path-is-as-good", &["P-CHK-1"], every_path),
    Case::new("only-post-asks-for-permits", &["P-CHK-1"], only_post),
    Case::new("what-ends-within-1024-bytes-is-read", &["P-CHK-2"], padded),
    Case::new("what-is-longer-than-1024-bytes-is-not-read", &["P-CHK-2"], too_long),
    Case::new("a-body-that-is-no-message-is-refused", &["P-CHK-3", "J-BODY-2", "J-ERR-1"], broken),
    Case::new("what-follows-a-request-is-passed-over", &["J-BODY-1"], trailing),
    Case::new("keys-of-a-request-are-read-in-any-case", &["J-KEY-1"], any_case),
    Case::new("a-request-without-a-version-is-refused", &["P-CHK-4", "J-KEY-2"], no_version),
    Case::new("a-version-that-is-not-spoken-is-refused", &["P-CHK-5"], not_spoken),
    Case::new("v1.0-needs-metrics", &["P-CHK-6"], needs_metrics).within(Span::only(1)),
    Case::new("metrics-may-be-null", &["P-CHK-6", "P-REQ-5"], null_metrics).within(Span::from(2)),
    Case::new("an-unknown-vm-is-not-found", &["P-CHK-7"], unknown_vm),
    Case::new("parts-of-a-cpu-are-refused-before-v2.0", &["P-CHK-8"], fraction)
        .within(Span::up_to(2)),
    Case::new("a-compute-unit-is-needed", &["P-CHK-9"], needs_unit).within(Span::from(6)),
    Case::new("a-refusal-is-plain-text-and-changes-nothing", &["P-CHK-10"], harmless),
    Case::new("the-first-check-that-fails-answers", &["P-CHK-11"], order),
    Case::new("numbers-of-a-request-are-plain-digits", &["J-NUM-1"], numbers),
    Case::new("slots-have-16-bits", &["J-NUM-1", "P-REQ-2"], slots).within(Span::up_to(5)),
    // Nothing of it depends on the version.
    Case::new("a-slow-sender-keeps-nobody-waiting", &["P-CHK-12"], slow)
        .ours()
        .within(Span::only(3)),
];

/// A request that changes nothing.
fn good(bench: &Bench) -> String {
    bench.said(&bench.vm, BASE).body()
}

/// Whether this body is granted what the VM has.
pub(super) fn granted(bench: &Bench, body: &str) -> Verdict {
    let permit = bench.read(&bench.post(body)?, &format!("POST {body}"))?.size;
    ensure(permit == BASE, || format!("POST {body}: permitted {permit:?}, expected {BASE:?}"))
}

fn refused(bench: &Bench, body: &str, status: u16, words: &str) -> Result<Answer, Fault> {
    let answer = bench.post(body)?;
    let short: String = body.chars().take(300).collect();
    answer.refuses(&format!("POST {short}"), status, words)?;
    Ok(answer)
}

fn every_path(bench: &Bench) -> Verdict {
    bench.settle()?;
    for path in ["/", "/permit", "/a/b/c", "/x?y=z"] {
        let answer = http::ask(bench.target, "POST", path, good(bench).as_bytes(), LIMIT)?;
        bench.read(&answer, &format!("POST {path}"))?;
    }
    Ok(())
}

fn only_post(bench: &Bench) -> Verdict {
    for method in ["GET", "PUT", "DELETE", "PATCH", "post", "OPTIONS"] {
        for body in [good(bench), String::new()] {
            let answer = http::ask(bench.target, method, "/", body.as_bytes(), LIMIT)?;
            answer.refuses(&format!("{method} /"), 400, "must be POST")?;
        }
    }
    Ok(())
}

fn padded(bench: &Bench) -> Verdict {
    bench.settle()?;
    granted(bench, &format!("{}{}", good(bench), " ".repeat(5000)))?;
    let lead = 1024 - good(bench).len();
    granted(bench, &format!("{}{}", " ".repeat(lead), good(bench)))
}

fn too_long(bench: &Bench) -> Verdict {
    let lead = 1025 - good(bench).len();
    refused(bench, &format!("{}{}", " ".repeat(lead), good(bench)), 400, "bad JSON")?;
    let key = format!("{{\"x\":\"{}\",{}", "y".repeat(2000), &good(bench)[1..]);
    refused(bench, &key, 400, "bad JSON").map(|_| ())
}

fn broken(bench: &Bench) -> Verdict {
    let half = &good(bench)[..good(bench).len() - 1];
    for body in ["", " \n", "{", half, "nonsense", "[]", "7", "\"text\"", "\u{feff}{}"] {
        refused(bench, body, 400, "bad JSON")?;
    }
    Ok(())
}

fn trailing(bench: &Bench) -> Verdict {
    bench.settle()?;
    for rest in ["garbage", "{}", "]"] {
        granted(bench, &format!("{}{rest}", good(bench)))?;
    }
    Ok(())
}

fn any_case(bench: &Bench) -> Verdict {
    bench.settle()?;
    let body = good(bench);
    granted(bench, &body.replace("protoVersion", "PROTOversion"))?;
    granted(bench, &body.replace("\"resources\"", "\"unknown\":[{}],\"RESOURCES\""))?;
    granted(bench, &body.replace("\"vCPUs\"", "\"VCPUS\"").replace("\"mem\"", "\"Mem\""))?;
    granted(bench, &format!("{{\"protoVersion\":99,{}", &body[1..]))
}

fn no_version(bench: &Bench) -> Verdict {
    // Slots or bytes: who does not know the version cannot know which.
    let zero = Said { mem: "8".to_owned(), ..bench.said(&bench.vm, BASE) };
    let body = |version: &str| Said { version: version.to_owned(), ..zero.clone() }.body();
    for body in [body("0"), body("null"), "null".to_owned(), "{}".to_owned()] {
        refused(bench, &body, 400, "Invalid protocol version <invalid: zero>")?;
    }
    Ok(())
}

/// In the words of a plugin that does not know this version.
fn mismatch(bench: &Bench, body: &str, offset: u32) -> Verdict {
    let answer = refused(bench, body, 400, "Protocol version mismatch: Need v")?;
    let text = answer.text();
    let got = text.trim_end().split_once(" but got ").map(|(_, got)| got.to_owned());
    // It counts from the last name that it knows.
    let known = got.as_deref().is_some_and(|got| {
        crate::versions::PLUGIN
            .iter()
            .any(|last| got == format!("<unknown = {} + {}>", last.name, offset - last.number))
    });
    ensure(known, || format!("POST {body}: says {text:?}, which does not name version {offset}"))
}

fn not_spoken(bench: &Bench) -> Verdict {
    for number in [99, u32::MAX] {
        let said = bench.said(&bench.vm, BASE);
        mismatch(bench, &Said { version: number.to_string(), ..said }.body(), number)?;
    }
    Ok(())
}

fn without_metrics(bench: &Bench, vm: &Vm) -> String {
    Said { metrics: "null".to_owned(), ..bench.said(vm, BASE) }.body()
}

fn needs_metrics(bench: &Bench) -> Verdict {
    let words = "nil metrics not supported for protocol version v1.0";
    refused(bench, &without_metrics(bench, &bench.vm), 400, words)?;
    let body = good(bench).replace("\"metrics\"", "\"other\"");
    refused(bench, &body, 400, words).map(|_| ())
}

fn null_metrics(bench: &Bench) -> Verdict {
    bench.settle()?;
    granted(bench, &without_metrics(bench, &bench.vm))?;
    granted(bench, &good(bench).replace("\"metrics\"", "\"other\""))
}

fn nobody() -> Vm {
    Vm::named("conformance/nobody")
}

fn unknown_vm(bench: &Bench) -> Verdict {
    refused(bench, &bench.said(&nobody(), BASE).body(), 404, "pod not found")?;
    let body = Said { pod: "null".to_owned(), ..bench.said(&bench.vm, BASE) }.body();
    refused(bench, &body, 404, "pod not found").map(|_| ())
}

fn fraction(bench: &Bench) -> Verdict {
    for milli in [250, 1500, 999] {
        refused(bench, &bench.said(&bench.vm, size(milli, 8)).body(), 400, FRACTION)?;
    }
    Ok(())
}

fn needs_unit(bench: &Bench) -> Verdict {
    let with = |unit: &str| Said { unit: unit.to_owned(), ..bench.said(&bench.vm, BASE) }.body();
    for (unit, axis) in [
        ("{}", "vCPUs"),
        (r#"{"vCPUs":0,"mem":"1Gi"}"#, "vCPUs"),
        (r#"{"vCPUs":1,"mem":0}"#, "mem"),
    ] {
        refused(bench, &with(unit), 400, &zero_unit(axis))?;
    }
    no_unit(bench, &with("null"))?;
    no_unit(bench, &good(bench).replace("computeUnit", "other"))
}

fn zero_unit(axis: &str) -> String {
    format!("computeUnit fields must be non-zero: {axis} must be non-zero")
}

/// A request without a unit, in one of the words that the reference has for it.
fn no_unit(bench: &Bench, body: &str) -> Verdict {
    let text = refused(bench, body, 400, "computeUnit ")?.text();
    // Of those that speak v4.0, older releases tell none from one of nothing, newer ones do not.
    let required = "computeUnit required for protocol version v4.0";
    let known = text.starts_with(&zero_unit("vCPUs"))
        || (bench.version.number == 6 && text.starts_with(required));
    ensure(known, || format!("POST {body}: says {text:?}, which the reference does not"))
}

fn harmless(bench: &Bench) -> Verdict {
    bench.settle()?;
    let zero = size(0, 0);
    for (body, status) in [
        (bench.said(&bench.vm, zero).body().replacen('{', "[", 1), 400),
        (Said { version: "99".to_owned(), ..bench.said(&bench.vm, zero) }.body(), 400),
        (bench.said(&nobody(), zero).body(), 404),
    ] {
        let answer = refused(bench, &body, status, "")?;
        let kind = answer.header("content-type").unwrap_or_default();
        ensure(kind.starts_with("text/plain"), || {
            format!("POST {body}: Content-Type is {kind:?}, text/plain was expected")
        })?;
    }
    // Had one of them counted, the other VM could have had all but this.
    let left = bench.permitted(&bench.other, ALL)?.size;
    let mine = bench.permitted(&bench.vm, BASE)?.size;
    ensure(mine == BASE, || format!("after refusals only, {} is permitted {mine:?}", bench.vm))?;
    bench.permitted(&bench.other, BASE)?;
    let again = bench.permitted(&bench.other, ALL)?.size;
    ensure(again == left, || {
        format!("there was room for {left:?} after refusals, and then for {again:?}")
    })
}

fn order(bench: &Bench) -> Verdict {
    let answer = http::ask(bench.target, "GET", "/", b"{", LIMIT)?;
    answer.refuses("GET / with a broken body", 400, "must be POST")?;
    let of = |vm: &Vm| bench.said(vm, size(1500, 8));
    let other = Said { version: "99".to_owned(), metrics: "null".to_owned(), ..of(&nobody()) };
    mismatch(bench, &other.body(), 99)?;
    match bench.version.number {
        1 => {
            let body = Said { metrics: "null".to_owned(), ..of(&nobody()) }.body();
            refused(bench, &body, 400, "nil metrics not supported")?;
            refused(bench, &of(&nobody()).body(), 404, "pod not found")?;
        }
        2 => {
            refused(bench, &of(&nobody()).body(), 404, "pod not found")?;
        }
        6.. => {
            let body = Said { unit: "null".to_owned(), ..of(&nobody()) }.body();
            no_unit(bench, &body)?;
        }
        _ => {}
    }
    Ok(())
}

fn numbers(bench: &Bench) -> Verdict {
    let said = bench.said(&bench.vm, BASE);
    for version in ["-3", "3.0", "3e0", "\"3\"", "true", "4294967296"] {
        let body = Said { version: version.to_owned(), ..said.clone() }.body();
        refused(bench, &body, 400, "bad JSON")?;
    }
    for load in ["\"0.5\"", "true", "[]", "1e39"] {
        let body = said.body().replace("0.5", load);
        refused(bench, &body, 400, "bad JSON")?;
    }
    Ok(())
}

fn slots(bench: &Bench) -> Verdict {
    let said = bench.said(&bench.vm, BASE);
    for mem in ["-1", "65536", "1.0", "1e0", "\"8\"", "\"1Gi\"", "true"] {
        let body = Said { mem: mem.to_owned(), ..said.clone() }.body();
        refused(bench, &body, 400, "bad JSON")?;
    }
    Ok(())
}

fn slow(bench: &Bench) -> Verdict {
    bench.settle()?;
    let lost = |error: std::io::Error| Fault(format!("a slow sender: {error}"));
    let mut slow = TcpStream::connect(bench.target).map_err(lost)?;
    slow.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{").map_err(lost)?;
    let started = Instant::now();
    granted(bench, &good(bench))?;
    let took = started.elapsed();
    ensure(took < Duration::from_secs(2), || {
        format!("beside a slow sender an answer took {took:?}")
    })?;
    let ended = http::read_answer(&mut slow, started + SLOW);
    let status = ended
        .map_err(|error| Fault(format!("a slow sender is not let go of within {SLOW:?}: {error}")))?
        .map(|answer| answer.status);
    ensure(status.is_none_or(|status| status == 408 || status == 400), || {
        format!("a slow sender is answered with {status:?}, 408, 400 or nothing was expected")
    })
}
