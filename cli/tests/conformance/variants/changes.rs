//! What each broken agent does otherwise.

use super::Change::{Answers, Asks, Says};
use super::{Act, Change, Variant, address};
use std::time::Duration;
use windlass_conformance::http::{self, Answer, Reply, Request, answer};
use windlass_conformance::tamper::reply;

/// Longer than a peer takes that answers, and shorter than an agent waits for one.
const PROMPT: Duration = Duration::from_millis(400);

const fn broken(
    what: &'static str,
    version: &'static str,
    case: &'static str,
    change: Change,
) -> Variant {
    Variant { what, version, case, change }
}

pub(super) const VARIANTS: [Variant; 37] = [
    // Sessions.
    broken("the range of versions is text", "v2.0", "an-agent-registers-by-itself", Says(RANGE)),
    broken("it keeps its id", "v1.0", "a-refused-registration-is-tried-anew", Says(KEEPS_ID)),
    broken(
        "a version that it does not speak is as good",
        "v2.0",
        "a-version-that-was-not-offered-is-no-session",
        Says(ANY_VERSION),
    ),
    broken(
        "a session needs no port for metrics",
        "v1.1",
        "without-a-port-for-metrics-there-is-no-session",
        Says(|request, way| {
            let port = "\"metricsMethod\":{\"prometheus\":{\"port\":1}}";
            said(way.pass(&request), "\"metricsMethod\":{}", port)
        }),
    ),
    broken(
        "more than a value opens a session",
        "v2.0",
        "a-broken-answer-opens-no-session",
        Says(|request, way| said(way.pass(&request), "}{}", "}")),
    ),
    broken("it checks no health", "v1.2", "health-is-checked-every-5-s", Says(NO_HEALTH)),
    broken(
        "it checks health in every version",
        "v1.1",
        "before-v1.2-no-health-is-checked",
        Says(EARLY_HEALTH),
    ),
    broken(
        "a session that is gone goes on",
        "v2.0",
        "a-session-that-is-not-known-is-opened-anew",
        Says(|request, way| status(way.pass(&request), 404, 200, "{}")),
    ),
    broken("it acts without a lease", "v1.2", "who-is-not-heard-stops-acting", Says(UNHEARD)),
    broken("it goes without a word", "v2.0", "an-agent-takes-its-leave", Says(NO_LEAVE)),
    // Calls.
    broken(
        "it does not answer /id",
        "v1.0",
        "a-call-while-registering-is-answered",
        Answers(|request, way| match request.path.as_str() {
            "/id" => Reply::HangUp,
            _ => way.on(&request),
        }),
    ),
    broken("its numbers stand still", "v1.1", "each-answer-has-a-higher-number", Answers(STILL)),
    broken(
        "a wrong method is not found",
        "v2.0",
        "a-call-is-checked-by-path-method-body",
        Answers(|request, way| status(way.pass(&request), 405, 404, "404 page not found")),
    ),
    broken(
        "a refusal ends its line",
        "v2.0",
        "a-call-is-checked-by-path-method-body",
        Answers(|request, way| {
            said(way.pass(&request), "method must be POST", "method must be POST\n")
        }),
    ),
    broken(
        "another session is not found in other words",
        "v2.0",
        "a-call-for-another-session-changes-nothing",
        Answers(|request, way| said(way.pass(&request), "\" not found", "\" not found.")),
    ),
    broken(
        "it takes the id of another session",
        "v2.0",
        "a-call-for-another-session-changes-nothing",
        Answers(|request, way| match way.pass(&request) {
            Some(Answer { status: 404, .. }) => way.id(&request),
            other => reply(other),
        }),
    ),
    broken(
        "it acts before it is resumed",
        "v2.0",
        "an-agent-waits-until-it-is-resumed",
        Says(AT_ONCE),
    ),
    broken("it acts while suspended", "v1.0", "a-suspended-agent-moves-nothing", Answers(DEAF)),
    broken(
        "it says that it waits, and goes on",
        "v2.0",
        "a-suspend-waits-for-what-is-under-way",
        Answers(DEAF),
    ),
    broken(
        "what was followed is refused",
        "v1.2",
        "what-was-followed-is-answered-again",
        Answers(ONCE),
    ),
    broken(
        "it does not hear that the guest is short",
        "v1.1",
        "a-guest-that-is-short-gets-more",
        Answers(|request, way| match request.path.as_str() {
            "/try-upscale" => way.id(&request),
            _ => way.on(&request),
        }),
    ),
    broken(
        "it may be asked for more in v1.0",
        "v1.0",
        "in-v1.0-nothing-can-be-asked-for",
        Answers(|request, way| match request.path.as_str() {
            "/try-upscale" => way.id(&request),
            _ => way.on(&request),
        }),
    ),
    // Sizes.
    broken(
        "amounts are bare in every version",
        "v2.0",
        "amounts-are-said-in-the-shape-of-the-version",
        Says(|mut request, way| {
            request.body = request.text().replace("\"agentID\"", "\"agent\"").into_bytes();
            way.on(&request)
        }),
    ),
    broken(
        "memory is told of before it comes",
        "v2.0",
        "memory-is-told-of-when-it-is-there",
        Says(EARLY),
    ),
    broken(
        "memory goes before it is asked for",
        "v2.0",
        "memory-goes-once-the-guest-agrees",
        Says(LATE),
    ),
    broken("a number is used again", "v2.0", "each-amount-has-a-higher-number", Says(SAME_NUMBER)),
    broken(
        "what is declined is agreed to",
        "v1.0",
        "memory-stays-while-the-guest-declines",
        Says(|request, way| said(way.pass(&request), "\"Ok\":false", "\"Ok\":true")),
    ),
    broken(
        "a refusal is a consent",
        "v2.0",
        "memory-stays-while-the-guest-refuses",
        Says(|request, way| match request.path.as_str() {
            "/downscale" => status(way.pass(&request), 400, 200, AGREED),
            _ => way.on(&request),
        }),
    ),
    broken("silence is a consent", "v1.2", "memory-stays-while-the-guest-is-silent", Says(SILENCE)),
    // Permits.
    broken(
        "it begins with the highest version each time",
        "v3.0",
        "an-agent-walks-down-to-the-plugins-version",
        Asks(|request, way| {
            let text = request.text().replace("\"protoVersion\":5", "\"protoVersion\":7");
            way.pass_within(&Request { body: text.into_bytes(), ..request.clone() }, PROMPT);
            way.on(&request)
        }),
    ),
    broken(
        "a refusal is a permit",
        "v2.1",
        "nothing-grows-while-the-plugin-refuses",
        Asks(|request, way| match way.pass(&request) {
            Some(Answer { status: 500, .. }) => granted(&request),
            other => reply(other),
        }),
    ),
    broken(
        "a key is spelt otherwise",
        "v5.0",
        "a-request-has-the-keys-of-its-version",
        Asks(|mut request, way| {
            request.body = request.text().replace("\"lastPermit\"", "\"lastpermit\"").into_bytes();
            way.on(&request)
        }),
    ),
    broken(
        "silence is a permit",
        "v3.0",
        "nothing-grows-while-the-plugin-is-silent",
        Asks(|request, way| match way.pass_within(&request, PROMPT) {
            None => granted(&request),
            answered => reply(answered),
        }),
    ),
    broken(
        "what is to go is reported as gone",
        "v5.0",
        "what-went-is-reported-when-it-is-gone",
        Asks(|mut request, way| {
            let less = |text: String, there: &str| text.replace(there, "\"256Mi\"");
            let text = less(less(request.text(), "\"768Mi\""), "\"512Mi\"");
            request.body = text.into_bytes();
            way.on(&request)
        }),
    ),
    broken(
        "more than a value is a permit",
        "v4.0",
        "a-broken-answer-is-no-permit",
        Asks(|request, way| said(way.pass(&request), "}{}", "}")),
    ),
    broken(
        "it takes more than is permitted",
        "v5.0",
        "no-more-is-given-than-is-permitted",
        Asks(|request, way| match way.pass(&request) {
            Some(Answer { status: 200, .. }) => granted(&request),
            other => reply(other),
        }),
    ),
    broken(
        "it does not hear of a move",
        "v1.0",
        "a-vm-that-is-moved-is-left-alone",
        Asks(|request, way| said(way.pass(&request), "migrate", "moves")),
    ),
];

const AGREED: &str = r#"{"Ok":true,"Status":"agreed"}"#;

const RANGE: Act = |mut request, way| {
    request.body =
        request.text().replace("\"minProtoVersion\":1", "\"minProtoVersion\":\"1\"").into_bytes();
    way.on(&request)
};

const KEEPS_ID: Act = |mut request, way| {
    let text = request.text();
    if let Some(id) = text.split("\"agentID\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
        request.body = text.replace(id, "00000000-0000-4000-8000-000000000001").into_bytes();
    }
    way.on(&request)
};

const ANY_VERSION: Act =
    |request, way| said(way.pass(&request), "\"protoVersion\":99", "\"protoVersion\":4");

const NO_HEALTH: Act = |request, way| match request.path.as_str() {
    "/health-check" => refuse(200, "{}"),
    _ => way.on(&request),
};

/// A check goes with every registration.
const EARLY_HEALTH: Act = |request, way| {
    if request.path == "/register" {
        let _ = http::ask(way.informant, "PUT", "/health-check", &request.body, PROMPT);
    }
    way.on(&request)
};

const UNHEARD: Act = |request, way| match request.path.as_str() {
    "/health-check" => way
        .pass_within(&request, PROMPT)
        .map_or_else(|| refuse(200, "{}"), |answered| reply(Some(answered))),
    _ => way.on(&request),
};

const NO_LEAVE: Act = |request, way| match request.path.as_str() {
    "/unregister" => refuse(200, r#"{"wasActive":true}"#),
    _ => way.on(&request),
};

const STILL: Act = |request, way| {
    let answered = way.pass(&request);
    reply(answered.map(|found| {
        let text = found.text();
        let body = match text.split_once("\"sequenceNumber\":") {
            Some((head, _)) => format!("{head}\"sequenceNumber\":1}}"),
            None => text,
        };
        Answer { body: body.into_bytes(), ..found }
    }))
};

/// It tells itself to run, once it has registered.
const AT_ONCE: Act = |request, way| {
    let answered = way.pass(&request);
    let text = request.text();
    let id = text.split('"').nth(3).unwrap_or_default().to_owned();
    if let Some(agent) = address(&text).filter(|_| request.path == "/register") {
        std::thread::spawn(move || {
            std::thread::sleep(PROMPT);
            let body = format!(r#"{{"expectedID":"{id}"}}"#);
            // Where it is refused nothing is broken, and the case says so.
            let _ = http::ask(agent, "POST", "/resume", body.as_bytes(), PROMPT);
        });
    }
    reply(answered)
};

/// It answers `/suspend` and does not follow.
const DEAF: Act = |request, way| match request.path.as_str() {
    "/suspend" => way.id(&request),
    _ => way.on(&request),
};

/// As the reference: what it does already is refused.
const ONCE: Act = |request, way| {
    static RESUMED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    if request.path == "/resume" {
        let mut resumed = RESUMED.lock().unwrap();
        if resumed.contains(&request.text()) {
            return refuse(400, "already running");
        }
        resumed.push(request.text());
    }
    way.on(&request)
};

/// It tells of memory as soon as it is registered.
const EARLY: Act = |request, way| {
    let answered = way.pass(&request);
    if request.path == "/register" {
        let body =
            r#"{"data":{"cpu":"1","memory":"512Mi","id":{"agentID":""}},"sequenceNumber":2}"#;
        let _ = http::ask(way.informant, "PUT", "/upscale", body.as_bytes(), PROMPT);
    }
    reply(answered)
};

/// It asks once it has taken.
const LATE: Act = |request, way| {
    if request.path == "/downscale" {
        let informant = way.informant;
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(4));
            // Where the case has ended nobody hears it.
            let _ = http::ask(informant, "PUT", "/downscale", &request.body, PROMPT);
        });
        return refuse(200, AGREED);
    }
    way.on(&request)
};

const SAME_NUMBER: Act = |mut request, way| {
    let text = request.text();
    if let Some((head, _)) = text.split_once("\"sequenceNumber\":") {
        request.body = format!("{head}\"sequenceNumber\":2}}").into_bytes();
    }
    way.on(&request)
};

const SILENCE: Act = |request, way| match request.path.as_str() {
    "/downscale" => {
        way.pass_within(&request, PROMPT);
        refuse(200, AGREED)
    }
    _ => way.on(&request),
};

/// What was asked for, as a permit.
fn granted(request: &Request) -> Reply {
    let asked: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let unit = serde_json::json!({ "vCPUs": 1, "mem": 2 });
    let body = serde_json::json!({ "permit": asked["resources"], "resourceUnit": unit });
    refuse(200, &body.to_string())
}

fn refuse(status: u16, text: &str) -> Reply {
    Reply::Bytes(answer(status, text.as_bytes()))
}

/// Another status and text, where the answer has this one.
fn status(answered: Option<Answer>, from: u16, to: u16, text: &str) -> Reply {
    match answered {
        Some(found) if found.status == from => refuse(to, text),
        other => reply(other),
    }
}

/// Other words in the answer.
fn said(answered: Option<Answer>, from: &str, to: &str) -> Reply {
    reply(answered.map(|found| {
        let body = found.text().replace(from, to).into_bytes();
        Answer { body, ..found }
    }))
}
