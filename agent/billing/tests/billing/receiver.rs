//! A receiver of events that counts each key once, and whose answers can be lost, late or wrong.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use windlass_testkit::http::{self, Request, Server};
use windlass_testkit::wait::PATIENCE;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Counted, answered with 200.
    Answered,
    /// Refused with this status, and not counted.
    Refused(u16),
    /// Counted, and answered with this status all the same.
    CountedButRefused(u16),
    /// The connection is cut before anything is counted.
    CutBefore,
    /// Counted; the connection is cut before the answer.
    CutAfter,
    /// Counted; the answer comes after so many milliseconds.
    Slow(u64),
    /// Counted; no answer ever comes, until the caller is gone.
    Silent,
    /// The same, and not counted.
    Deaf,
}

/// Decides what becomes of the next request.
pub(crate) type Fates = Box<dyn FnMut() -> Fate + Send>;

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Endpoint, metric and value, by key.
    pub(crate) events: BTreeMap<String, (String, String, u64)>,
    /// Events that came with a key that was there.
    pub(crate) repeated: u64,
    /// What is wrong with what came.
    pub(crate) wrong: Vec<String>,
    /// Trace ids.
    pub(crate) traces: Vec<String>,
    /// Requests of each fate that were met.
    pub(crate) met: BTreeMap<String, u64>,
}

type Tally = (Mutex<Counted>, Condvar);

/// A receiver.
pub(crate) struct Receiver {
    server: Server,
    counted: Arc<Tally>,
    fates: Arc<Mutex<Fates>>,
}

// === impl Receiver ===

impl Receiver {
    pub(crate) fn start(fates: Fates) -> Self {
        let (counted, fates) = (Arc::<Tally>::default(), Arc::new(Mutex::new(fates)));
        let (tally, fate) = (Arc::clone(&counted), Arc::clone(&fates));
        let server = Server::talking(move |request, stream| {
            let fate = (fate.lock().unwrap())();
            serve(&tally, fate, &request, &stream);
        });
        Self { server, counted, fates }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/v1/", self.server.address())
    }

    pub(crate) fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.0.lock().unwrap()
    }

    /// From now on requests meet this.
    pub(crate) fn meet(&self, fates: Fates) {
        *self.fates.lock().unwrap() = fates;
    }

    /// Waits until what was counted is as wished.
    pub(crate) fn wait_until(&self, wished: impl Fn(&Counted) -> bool) {
        let waiting = |counted: &mut Counted| !wished(counted);
        let (guard, waited) =
            self.counted.1.wait_timeout_while(self.counted(), PATIENCE, waiting).unwrap();
        assert!(!waited.timed_out(), "{} events, {:?}", guard.events.len(), guard.wrong);
    }

    /// Sums by endpoint and metric.
    pub(crate) fn sums(&self) -> BTreeMap<(String, String), u64> {
        let mut sums = BTreeMap::new();
        for (endpoint, metric, value) in self.counted().events.values() {
            *sums.entry((endpoint.clone(), metric.clone())).or_insert(0) += value;
        }
        sums
    }
}

fn serve(tally: &Tally, fate: Fate, request: &Request, mut stream: &TcpStream) {
    {
        let mut counted = tally.0.lock().unwrap();
        if !matches!(fate, Fate::Refused(_) | Fate::CutBefore | Fate::Deaf) {
            counted.take(request);
        }
        *counted.met.entry(format!("{fate:?}")).or_insert(0) += 1;
    }
    tally.1.notify_all();
    match fate {
        Fate::Answered => answer(stream, 200),
        Fate::Refused(status) | Fate::CountedButRefused(status) => answer(stream, status),
        Fate::CutBefore | Fate::CutAfter => {}
        Fate::Slow(millis) => {
            std::thread::sleep(Duration::from_millis(millis));
            answer(stream, 200);
        }
        Fate::Silent | Fate::Deaf => {
            // Ends when the caller is gone.
            let _ = stream.read(&mut [0]);
        }
    }
}

// === impl Counted ===

impl Counted {
    fn take(&mut self, Request { head, body, .. }: &Request) {
        let line = head.lines().next().unwrap_or_default();
        if line != "POST /api/v1/usage_events HTTP/1.1" {
            self.wrong.push(format!("asked for {line}"));
        }
        let header = |name: &str| {
            let value = head.lines().find_map(|line| line.strip_prefix(name));
            value.unwrap_or_default().trim().to_owned()
        };
        if header("content-type:") != "application/json" {
            self.wrong.push(format!("content-type: {}", header("content-type:")));
        }
        self.traces.push(header("x-trace-id:"));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        for event in body["events"].as_array().into_iter().flatten() {
            self.event(event);
        }
    }

    fn event(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let value = event["value"].as_u64().unwrap_or_default();
        let content = (text("endpoint_id"), text("metric"), value);
        let key = text("idempotency_key");
        let complete = text("type") == "incremental"
            && value > 0
            && !key.is_empty()
            && text("start_time") < text("stop_time")
            && text("stop_time").ends_with('Z');
        if !complete {
            self.wrong.push(format!("no event: {event}"));
        }
        match self.events.get(&key) {
            None => {
                self.events.insert(key, content);
            }
            Some(known) if *known == content => self.repeated += 1,
            Some(known) => self.wrong.push(format!("{key}: {known:?}, then {content:?}")),
        }
    }
}

fn answer(mut stream: &TcpStream, status: u16) {
    // The caller may be gone.
    let _ = stream.write_all(http::answer(status, "{}").as_bytes());
}
