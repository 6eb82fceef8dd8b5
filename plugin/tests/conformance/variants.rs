//! Plugins that are broken on purpose: the kit must notice each by the case that names it.
//!
//! A variant is the real endpoint with a change between: what it is asked, and what it answers.

use crate::target::{Target, options, spoken};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_conformance::case::Choice;
use windlass_conformance::http::{Answer, Reply, Request, answer};
use windlass_conformance::plugin::{catalogue, run};
use windlass_conformance::tamper::{Forward, Tamper, reply};
use windlass_conformance::versions::PLUGIN;

/// What a broken plugin does otherwise.
type Change = fn(Request, Forward<'_>) -> Reply;

/// Takes longest, and finds nothing that is broken here.
const SLOW: &str = "a-slow-sender-keeps-nobody-waiting";

/// What is broken, the number of the version in which it is tried, the case that must fail, and
/// how it is broken.
const VARIANTS: [(&str, u32, &str, Change); 47] = [
    ("GET is accepted", 3, "only-post-asks-for-permits", |mut request, forward| {
        request.method = "POST".to_owned();
        reply(forward(&request))
    }),
    ("a wrong method is 405", 3, "only-post-asks-for-permits", |request, forward| {
        status(forward(&request), 400, 405, |text| text == "must be POST")
    }),
    ("only / is a path", 3, "every-path-is-as-good", |request, forward| {
        if request.path == "/" { reply(forward(&request)) } else { said(404, "not found") }
    }),
    (
        "there is no limit to a body",
        3,
        "what-is-longer-than-1024-bytes-is-not-read",
        |request, forward| asked(request, forward, |text| text.trim_start().to_owned()),
    ),
    ("blanks count too", 3, "what-ends-within-1024-bytes-is-read", |request, forward| {
        if request.body.len() > 1024 { said(400, "bad JSON") } else { reply(forward(&request)) }
    }),
    (
        "an empty body is read as {}",
        3,
        "a-body-that-is-no-message-is-refused",
        |request, forward| {
            asked(
                request,
                forward,
                |text| if text.is_empty() { "{}".to_owned() } else { text.to_owned() },
            )
        },
    ),
    ("a broken body is 422", 3, "a-body-that-is-no-message-is-refused", |request, forward| {
        status(forward(&request), 400, 422, |text| text.starts_with("bad JSON"))
    }),
    ("trailing data is refused", 3, "what-follows-a-request-is-passed-over", |request, forward| {
        match serde_json::from_slice::<serde_json::Value>(&request.body) {
            Err(error) if error.to_string().starts_with("trailing") => said(400, "bad JSON"),
            Ok(_) | Err(_) => reply(forward(&request)),
        }
    }),
    (
        "keys count in their own case only",
        3,
        "keys-of-a-request-are-read-in-any-case",
        |request, forward| asked(request, forward, |text| text.replace("PROTOversion", "x")),
    ),
    (
        "no version is the latest",
        3,
        "a-request-without-a-version-is-refused",
        |request, forward| {
            asked(request, forward, |text| text.replace("Version\":0", "Version\":3"))
        },
    ),
    (
        "every version is the latest",
        3,
        "a-version-that-is-not-spoken-is-refused",
        |request, forward| {
            asked(request, forward, |text| text.replace("Version\":99", "Version\":3"))
        },
    ),
    ("an unknown VM is 400", 3, "an-unknown-vm-is-not-found", |request, forward| {
        status(forward(&request), 404, 400, |_| true)
    }),
    ("an unknown VM is permitted", 3, "an-unknown-vm-is-not-found", |request, forward| {
        asked(request, forward, |text| {
            text.replace("nobody", "a").replace("conformance", "default")
        })
    }),
    ("the VM is looked up first", 3, "the-first-check-that-fails-answers", |request, forward| {
        let text = request.text();
        if text.contains("nobody") { said(404, "pod not found") } else { reply(forward(&request)) }
    }),
    ("a refusal is JSON", 3, "a-refusal-is-plain-text-and-changes-nothing", |request, forward| {
        match forward(&request) {
            Some(found) if found.status != 200 => {
                let Reply::Bytes(bytes) = reply(Some(found)) else { return Reply::HangUp };
                let text = String::from_utf8(bytes).unwrap();
                Reply::Bytes(text.replace("text/plain", "application/json").into_bytes())
            }
            other => reply(other),
        }
    }),
    ("a number may be a text", 3, "slots-have-16-bits", |request, forward| {
        asked(request, forward, |text| text.replace("\"mem\":\"8\"", "\"mem\":8"))
    }),
    ("slots wrap", 3, "slots-have-16-bits", |request, forward| {
        asked(request, forward, |text| text.replace("\"mem\":65536", "\"mem\":0"))
    }),
    ("CPU is a text", 3, "whole-cpus-are-bare-and-parts-are-quoted", |request, forward| {
        answered(forward(&request), |text| text.replace("\"vCPUs\":1,", "\"vCPUs\":\"1\","))
    }),
    ("slots are a text", 3, "memory-is-counted-in-slots", |request, forward| {
        answered(forward(&request), |text| text.replace("\"mem\":8", "\"mem\":\"8\""))
    }),
    (
        "parts of a CPU are floats",
        3,
        "whole-cpus-are-bare-and-parts-are-quoted",
        |request, forward| answered(forward(&request), |text| text.replace("\"750m\"", "0.75")),
    ),
    ("memory below zero is memory", 7, "memory-below-zero-is-broken", |mut request, forward| {
        let text = request.text();
        request.body =
            text.replace("\"mem\":-1", "\"mem\":1").replace("\"-1Gi", "\"1Gi").into_bytes();
        reply(forward(&request))
    }),
    (
        "a CPU below zero is one above",
        3,
        "cpu-that-does-not-fit-is-broken",
        |mut request, forward| {
            request.body = request.text().replace("\"vCPUs\":-1", "\"vCPUs\":1").into_bytes();
            reply(forward(&request))
        },
    ),
    ("only bare numbers are CPUs", 3, "cpu-is-read-in-every-spelling", |request, forward| {
        let text = request.text();
        if text.contains("\"1000m\"") { said(400, "bad JSON") } else { reply(forward(&request)) }
    }),
    ("migrate is always there", 3, "an-answer-has-the-keys-of-its-version", |request, forward| {
        answered(forward(&request), |text| {
            text.replace(",\"resourceUnit\"", ",\"migrate\":null,\"resourceUnit\"")
        })
    }),
    ("the unit has another name", 3, "the-unit-is-told-to-old-agents", |request, forward| {
        answered(forward(&request), |text| text.replace("resourceUnit", "computeUnit"))
    }),
    ("the unit changes", 3, "the-unit-is-told-to-old-agents", |request, forward| {
        answered(forward(&request), |text| match text.contains("{\"permit\":{\"vCPUs\":1,") {
            true => text.to_owned(),
            false => text
                .replace("\"resourceUnit\":{\"vCPUs\":\"250m\"", "\"resourceUnit\":{\"vCPUs\":2"),
        })
    }),
    ("more is permitted than asked for", 3, "less-is-taken-back-at-once", |request, forward| {
        answered(forward(&request), |text| text.replace("\"mem\":6}", "\"mem\":7}"))
    }),
    ("a decrease is not heard", 3, "less-is-taken-back-at-once", |request, forward| {
        asked(request, forward, |text| text.replace("\"mem\":6}", "\"mem\":12}"))
    }),
    (
        "less is permitted than the VM has",
        3,
        "too-much-is-permitted-in-part",
        |request, forward| {
            let large = request.text().contains("\"mem\":60000");
            answered(forward(&request), |text| match large {
                true => {
                    "{\"permit\":{\"vCPUs\":0,\"mem\":0},\"resourceUnit\":{\"vCPUs\":1,\"mem\":8}}"
                        .to_owned()
                }
                false => text.to_owned(),
            })
        },
    ),
    ("there are no books", 3, "a-node-is-given-out-once", |request, forward| {
        let large = request.text().contains("\"mem\":60000");
        answered(forward(&request), |text| {
            match large {
            true => "{\"permit\":{\"vCPUs\":512,\"mem\":60000},\"resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}}".to_owned(),
            false => text.to_owned(),
        }
        })
    }),
    (
        "what is said twice is taken twice",
        3,
        "a-request-said-twice-is-permitted-no-less",
        |request, forward| {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let odd = request.text().contains("\"mem\":10}")
                && COUNT.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            answered(forward(&request), |text| match odd {
                true => text.replace("\"mem\":10}", "\"mem\":8}"),
                false => text.to_owned(),
            })
        },
    ),
    ("nothing is refused", 3, "nothing-may-be-asked-for", |request, forward| {
        let text = request.text();
        if text.contains("\"vCPUs\":0,\"mem\":0}") {
            said(400, "resources: zero")
        } else {
            reply(forward(&request))
        }
    }),
    ("load counts", 3, "load-changes-no-permit", |request, forward| {
        let busy = request.text().contains("\"loadAvg1M\":100");
        answered(forward(&request), |text| {
            if busy { text.replace("\"mem\":", "\"mem\":1") } else { text.to_owned() }
        })
    }),
    ("metrics are never needed", 1, "v1.0-needs-metrics", |request, forward| {
        asked(request, forward, |text| {
            text.replace("\"metrics\":null", "\"metrics\":{}")
                .replace("\"other\":{", "\"metrics\":{")
        })
    }),
    (
        "parts of a CPU are taken",
        1,
        "parts-of-a-cpu-are-refused-before-v2.0",
        |request, forward| {
            asked(request, forward, |text| text.replace("Version\":1", "Version\":3"))
        },
    ),
    (
        "parts of a CPU are refused in other words",
        2,
        "parts-of-a-cpu-are-refused-before-v2.0",
        |request, forward| {
            answered(forward(&request), |text| text.replace("fractional CPU", "parts of a CPU"))
        },
    ),
    (
        "increases are not rounded",
        2,
        "an-increase-is-rounded-down-to-whole-cpus",
        |request, forward| {
            asked(request, forward, |text| text.replace("Version\":2", "Version\":3"))
        },
    ),
    ("the unit is told in parts", 2, "the-unit-is-told-in-whole-cpus", |request, forward| {
        answered(forward(&request), |text| {
            text.replace(
                "resourceUnit\":{\"vCPUs\":1,\"mem\":4}",
                "resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}",
            )
        })
    }),
    ("the unit is rounded on one axis", 2, "the-unit-is-told-in-whole-cpus", |request, forward| {
        answered(forward(&request), |text| {
            text.replace(
                "resourceUnit\":{\"vCPUs\":1,\"mem\":4}",
                "resourceUnit\":{\"vCPUs\":1,\"mem\":1}",
            )
        })
    }),
    (
        "the last permit is believed",
        4,
        "a-last-permit-gives-no-more-than-is-asked",
        |request, forward| {
            let believes = request.text().contains("\"lastPermit\":{");
            answered(forward(&request), |text| match believes {
                true => text.replace("\"vCPUs\":1,", "\"vCPUs\":512,"),
                false => text.to_owned(),
            })
        },
    ),
    ("the unit outlives v2.1", 5, "an-answer-has-the-keys-of-its-version", |request, forward| {
        answered(forward(&request), |text| {
            text.replace("}}", "},\"resourceUnit\":{\"vCPUs\":1,\"mem\":4}}")
        })
    }),
    ("a compute unit of nothing is taken", 6, "a-compute-unit-is-needed", |request, forward| {
        asked(request, forward, |text| {
            text.replace("{\"vCPUs\":0,\"mem\":\"1Gi\"}", "{\"vCPUs\":1,\"mem\":\"1Gi\"}")
        })
    }),
    (
        "a unit of nothing is refused in other words",
        7,
        "a-compute-unit-is-needed",
        |request, forward| {
            answered(forward(&request), |text| text.replace("mem must be non-zero", "mem is zero"))
        },
    ),
    ("no unit is refused in words of v4.0", 7, "a-compute-unit-is-needed", |request, forward| {
        let none = request.text().contains("\"computeUnit\":null");
        answered(forward(&request), |text| match none {
            true => "computeUnit required for protocol version v5.0".to_owned(),
            false => text.to_owned(),
        })
    }),
    ("bytes are bare numbers", 7, "memory-is-counted-in-bytes", |request, forward| {
        answered(forward(&request), |text| text.replace("\"1Gi\"", "1073741824"))
    }),
    ("a move is never said", 3, "a-vm-that-is-moved-is-told-so", |request, forward| {
        answered(forward(&request), |text| text.replace(",\"migrate\":{}", ""))
    }),
    (
        "a VM that is moved may change",
        3,
        "a-vm-that-is-moved-keeps-its-size",
        |request, forward| match forward(&request) {
            Some(found) if found.text().starts_with("cannot change resources") => said(
                200,
                "{\"permit\":{\"vCPUs\":1,\"mem\":8},\"resourceUnit\":{\"vCPUs\":1,\"mem\":4}}",
            ),
            other => reply(other),
        },
    ),
];

#[test]
fn each_broken_plugin_is_caught_by_the_case_that_names_it() {
    let spoken: Vec<u32> = spoken().iter().map(|version| version.number).collect();
    let variants: Vec<_> =
        VARIANTS.iter().filter(|(_, number, ..)| spoken.contains(number)).collect();
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let work = || {
        while let Some((what, number, case, change)) =
            variants.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let target = Target::start();
            let tamper = Tamper::before(target.addr, *change).unwrap();
            let versions = PLUGIN.into_iter().filter(|version| version.number == *number);
            let names = catalogue().into_iter().map(|case| case.name.to_owned());
            let only = names.filter(|name| name != SLOW).collect();
            let choice = Choice { versions: versions.collect(), only, skip_ours: false };
            let report = run(&options(tamper.addr(), choice), &mut |_| {});
            eprintln!("{what}: {}", report.failing().join(" "));
            if !report.failing().contains(case) {
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

fn said(status: u16, text: &str) -> Reply {
    Reply::Bytes(answer(status, text.as_bytes()))
}

/// Another request.
fn asked(mut request: Request, forward: Forward<'_>, change: fn(&str) -> String) -> Reply {
    request.body = change(&request.text()).into_bytes();
    reply(forward(&request))
}

/// Another answer.
fn answered(answered: Option<Answer>, change: impl Fn(&str) -> String) -> Reply {
    reply(answered.map(|found| {
        let body = change(&found.text()).into_bytes();
        Answer { body, ..found }
    }))
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
