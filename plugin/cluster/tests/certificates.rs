//! What becomes of the plugin's own certificates at an API server in memory that answers late or wrongly.

#![expect(clippy::unwrap_used, reason = "tests")]

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use windlass_kit::admin::Readiness;
use windlass_kit::clock::Clock;
use windlass_kit::notify::Notify;
use windlass_kit::server::{Reloads, Tls};
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::certificates::names::{BUNDLE, KEPT};
use windlass_plugin_cluster::certificates::{Certificates, EVERY, Port, run, terms};
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::{ClusterBooks, Epoch, Leadership};
use windlass_plugin_core::pods::Pools;
use windlass_protocol::{Resources, UnitChoice};

/// What becomes of the next write.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Passes,
    /// It is answered with this status, and has no effect.
    Fails(u16),
    /// The same, and it takes effect.
    TakesEffect(u16),
    /// The object is deleted before it.
    ComesAfterADeletion,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

struct State {
    objects: BTreeMap<String, Value>,
    /// How often each object was written.
    written: BTreeMap<String, usize>,
    revision: u64,
    answers_after: Duration,
    next_write: Fate,
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_late_is_no_hang() {
    let plugin = Plugin::new();
    // A little less than what no answer is waited for.
    plugin.server.state().answers_after = Duration::from_millis(2900);
    let watchdog = Watchdog::default();
    plugin.start(&watchdog);
    plugin.until("all is made", || plugin.server.state().objects.len() == 3).await;
    // Rounds without a write go on.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut registry = Registry::default();
    watchdog.register(&mut registry);
    let text = text(&registry);
    assert!(text.contains("windlass_hangs_total 0\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_failed_is_counted_by_the_rule_for_all_requests_and_made_again() {
    for (fate, answer) in [
        (Fate::Fails(409), "conflict"),
        (Fate::Fails(403), "refused"),
        (Fate::Fails(404), "refused"),
        (Fate::Fails(422), "refused"),
        (Fate::Fails(401), "no-answer"),
        (Fate::Fails(408), "no-answer"),
        (Fate::Fails(429), "no-answer"),
        (Fate::Fails(500), "no-answer"),
        (Fate::TakesEffect(500), "no-answer"),
        (Fate::TakesEffect(504), "no-answer"),
    ] {
        let plugin = Plugin::new();
        plugin.server.state().next_write = fate;
        plugin.start(&Watchdog::default());
        plugin.until("all is made", || plugin.server.state().objects.len() == 3).await;
        assert_eq!(plugin.written(KEPT, answer), Some(1), "{fate:?}");
        assert_eq!(plugin.server.state().written[KEPT], 1, "{fate:?}: it is made once");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_deleted_before_its_replacement_is_made_again() {
    let plugin = Plugin::new();
    plugin.start(&Watchdog::default());
    plugin.until("all is made", || plugin.server.state().objects.len() == 3).await;
    {
        let mut state = plugin.server.state();
        state.next_write = Fate::ComesAfterADeletion;
        let mut broken = state.objects[BUNDLE].clone();
        broken["data"]["ca.crt"] = json!("nothing");
        state.write(false, broken);
    }
    plugin.until("it is deleted", || !plugin.server.state().is_pending()).await;
    plugin.until("it is made again", || plugin.server.state().objects.len() == 3).await;
    assert_eq!(plugin.written(BUNDLE, "conflict"), Some(1));
    assert_eq!(plugin.written(BUNDLE, "refused"), None);
}

/// A plugin's part for certificates. It ends with its value.
struct Plugin {
    server: Server,
    counts: Counts,
    tasks: Tasks,
    stop: CancellationToken,
}

// === impl Plugin ===

impl Plugin {
    fn new() -> Self {
        let (server, counts) = (Server::default(), Counts::default());
        Self { server, counts, tasks: Tasks::default(), stop: CancellationToken::new() }
    }

    fn start(&self, watchdog: &Watchdog) {
        let server = self.server.clone();
        let carry = move |request| {
            let server = server.clone();
            async move { server.carry(request).await }
        };
        let certificates = Certificates {
            client: Client::new(tower::service_fn(carry), "default"),
            namespace: "windlass".to_owned(),
            terms: terms("windlass", Some("system:kube-scheduler".to_owned())),
            leadership: Leadership::sole(Epoch(1)),
            ports: vec![Port { tls: Tls::awaiting(Reloads::default()), asks_clients: true }],
            counts: self.counts.certificates.clone(),
            clock: Clock::system(),
            every: EVERY,
            readiness: Readiness::default(),
            pulse: watchdog.watch("certificates"),
            stop: self.stop.clone(),
        };
        self.tasks.minor("certificates", run(certificates));
        let watches = watchdog.clone().run(Notify::default(), self.stop.clone());
        self.tasks.minor("watchdog", watches);
    }

    /// Waits by the paused clock.
    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        for _ in 0..600 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("in vain: {what}");
    }

    /// How many writes of an object were answered so.
    fn written(&self, object: &str, answer: &str) -> Option<u64> {
        let terms = Terms {
            unit: UnitChoice::default().usual(),
            reserve: Resources::ZERO,
            pools: Pools::default(),
        };
        let books = ClusterBooks::new(terms, Clock::system(), Leadership::sole(Epoch(1)));
        let mut registry = Registry::default();
        self.counts.register(&books, &mut registry);
        let name = "windlass_plugin_certificate_writes_total";
        let labels = format!("{name}{{object=\"{object}\",answer=\"{answer}\"}} ");
        text(&registry).lines().find_map(|line| line.strip_prefix(&labels)?.parse().ok())
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

// === impl Server ===

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn carry(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let after = self.state().answers_after;
        tokio::time::sleep(after).await;
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let object: Value = serde_json::from_slice(&body).unwrap_or_default();
        let name = head.uri.path().rsplit('/').next().unwrap_or_default();
        let mut state = self.state();
        if head.method == Method::GET {
            return Ok(state.objects.get(name).map_or_else(|| status(404), |it| answer(200, it)));
        }
        let is_new = head.method == Method::POST;
        Ok(match std::mem::replace(&mut state.next_write, Fate::Passes) {
            Fate::Fails(code) => status(code),
            Fate::TakesEffect(code) => {
                state.write(is_new, object);
                status(code)
            }
            Fate::ComesAfterADeletion => {
                state.objects.remove(name);
                state.write(is_new, object)
            }
            Fate::Passes => state.write(is_new, object),
        })
    }
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        let (objects, written, revision) = Default::default();
        let (answers_after, next_write) = (Duration::ZERO, Fate::Passes);
        Self { objects, written, revision, answers_after, next_write }
    }
}

impl State {
    fn write(&mut self, is_new: bool, mut object: Value) -> Response<Body> {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let there = self.objects.get(&name).map(|it| &it["metadata"]["resourceVersion"]);
        match there {
            Some(_) if is_new => return status(409),
            None if !is_new => return status(404),
            Some(revision) if *revision != object["metadata"]["resourceVersion"] => {
                return status(409);
            }
            Some(_) | None => {}
        }
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let written = answer(if is_new { 201 } else { 200 }, &object);
        *self.written.entry(name.clone()).or_default() += 1;
        self.objects.insert(name, object);
        written
    }

    /// Whether the next write is yet to meet its fate.
    fn is_pending(&self) -> bool {
        !matches!(self.next_write, Fate::Passes)
    }
}

fn status(code: u16) -> Response<Body> {
    // The client knows what is not there by the word.
    let reason = if code == 404 { "NotFound" } else { "" };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": "why", "code": code,
    });
    answer(code, &body)
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}
