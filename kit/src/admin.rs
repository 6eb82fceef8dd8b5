//! The admin endpoints of every process: liveness, readiness, metrics, log level.
//!
//! Any user of the machine can connect to its loopback, so the endpoints over TCP are read-only ([`router`]).
//! Only a unix socket serves changes of the process ([`changing`]); its permissions select the users.

use crate::catch_panic::lock;
use crate::program::Failure;
use crate::server::{Limits, bind_unix, serve};
use crate::tasks::Tasks;
use crate::telemetry::LogLevel;
use crate::watchdog::{Hanging, Watchdog};
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use http::{StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, UnixListener};

/// The state behind the endpoints.
#[derive(Clone)]
pub struct Admin {
    /// Answers `/readyz`.
    pub readiness: Readiness,
    /// Answers `/metrics`.
    pub registry: Arc<Registry>,
    /// `/log-level` reads and sets it.
    pub log_level: LogLevel,
    /// Answers `/livez`.
    pub watchdog: Watchdog,
    /// A sentence on how to change the log level, for requests that try it over TCP.
    pub change_level: String,
}

/// A socket of mode 0600, through which its owner and root can change the process.
#[derive(Debug)]
pub struct OwnerSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// The parts that a process waits for before it is ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

/// The read-only paths `/livez`, `/readyz`, `/healthz`, `/metrics` and `/log-level`.
pub fn router(admin: Admin) -> Router {
    let level = get(log_level).fallback(unchanged);
    paths().route("/log-level", level).with_state(admin)
}

/// The same paths, where `/log-level` also takes PUT.
pub fn changing(admin: Admin) -> Router {
    paths().route("/log-level", get(log_level).put(set_log_level)).with_state(admin)
}

/// Serves the read-only paths at `tcp` and changes at `socket`, until `tasks` stop.
pub fn start(
    admin: Admin,
    tcp: TcpListener,
    socket: Option<OwnerSocket>,
    limits: &Limits,
    tasks: &Tasks,
) {
    let stop = tasks.stopping();
    tasks.vital("admin", serve(tcp, router(admin.clone()), limits.clone(), stop.clone()));
    if let Some(OwnerSocket { listener, path }) = socket {
        let served = serve(listener, changing(admin), limits.clone(), stop);
        tasks.vital("admin socket", async move {
            let ended = served.await;
            let _ = std::fs::remove_file(path);
            ended
        });
    }
}

fn paths() -> Router<Admin> {
    Router::new()
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/healthz", get(ready))
        .route("/metrics", get(metrics))
}

async fn alive(State(admin): State<Admin>) -> (StatusCode, String) {
    let hanging = admin.watchdog.hanging().into_iter();
    let words = |Hanging { part, waits_for }| format!("{part} hangs, waiting for {waits_for}\n");
    ok_unless(hanging.map(words).collect())
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, String) {
    let missing = admin.readiness.missing();
    ok_unless(missing.map(|parts| format!("not ready: {parts}\n")).unwrap_or_default())
}

fn ok_unless(problem: String) -> (StatusCode, String) {
    match problem.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, problem),
    }
}

async fn metrics(
    State(admin): State<Admin>,
) -> Result<([(header::HeaderName, &'static str); 1], String), StatusCode> {
    let mut text = String::new();
    encode(&mut text, &admin.registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let open_metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, open_metrics)], text))
}

async fn log_level(State(admin): State<Admin>) -> (StatusCode, String) {
    match admin.log_level.get() {
        Ok(filter) => (StatusCode::OK, filter + "\n"),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn unchanged(State(admin): State<Admin>) -> impl IntoResponse {
    let allow = [(header::ALLOW, "GET, HEAD")];
    let words = format!("nothing is changed at this address: {}\n", admin.change_level);
    (StatusCode::METHOD_NOT_ALLOWED, allow, words)
}

async fn set_log_level(State(admin): State<Admin>, body: Bytes) -> (StatusCode, String) {
    let Ok(filter) = std::str::from_utf8(&body) else {
        return (StatusCode::BAD_REQUEST, "log filter: not UTF-8\n".to_owned());
    };
    match admin.log_level.set(filter) {
        Ok(()) => log_level(State(admin)).await,
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

// === impl OwnerSocket ===

impl OwnerSocket {
    /// Listens at this path, if given.
    ///
    /// # Errors
    /// The system cannot listen there.
    pub async fn listen(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let listener = bind_unix(path, 0o600).await.map_err(|error| {
            let path = path.display();
            Failure::CannotCreate(format!("cannot serve the admin socket {path}: {error}"))
        })?;
        Ok(Some(Self { listener, path: path.to_path_buf() }))
    }

    /// A sentence on how to change the log level, with this socket or without.
    pub fn change_level(socket: Option<&Self>) -> String {
        match socket {
            Some(Self { path, .. }) => format!(
                "the log level takes PUT at the socket {}, as by curl --unix-socket",
                path.display()
            ),
            None => "the log level is set at the start, with --log; only with --admin-socket PATH \
                     can it be changed later"
                .to_owned(),
        }
    }
}

// === impl Readiness ===

impl Readiness {
    /// Keeps the process unready until `part` is [`Readiness::done`].
    pub fn wait_for(&self, part: &'static str) {
        lock(&self.0).insert(part);
    }

    /// `part` is ready.
    pub fn done(&self, part: &'static str) {
        lock(&self.0).remove(part);
    }

    /// The missing parts; `None` if the process is ready.
    pub fn missing(&self) -> Option<String> {
        let parts = lock(&self.0);
        let names = parts.iter().copied().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Notify;
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt;
    use prometheus_client::metrics::counter::Counter;
    use std::time::Duration;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_process_is_ready_when_nothing_is_missing() {
        let admin = admin();
        admin.readiness.wait_for("vm files");
        let text = "not ready: vm files\n".to_owned();
        assert_eq!(ask(&admin, "GET", "/readyz", "").await, (503, text));
        assert_eq!(ask(&admin, "GET", "/livez", "").await.0, 200);
        admin.readiness.done("vm files");
        assert_eq!(ask(&admin, "GET", "/healthz", "").await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_of_which_a_part_hangs_is_not_alive() {
        let admin = admin();
        let pulse = admin.watchdog.watch("controller");
        let (stop, watchdog) = (CancellationToken::new(), admin.watchdog.clone());
        let _watching = JoinSet::from_iter([watchdog.run(Notify::default(), stop)]);
        assert_eq!(ask(&admin, "GET", "/livez", "").await, (200, "ok\n".to_owned()));
        pulse.turn("orders");
        tokio::time::sleep(Duration::from_secs(13)).await;
        let text = "controller hangs, waiting for orders\n".to_owned();
        assert_eq!(ask(&admin, "GET", "/livez", "").await, (503, text));
        pulse.turn("orders");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(ask(&admin, "GET", "/livez", "").await.0, 200);
    }

    #[tokio::test]
    async fn metrics_are_open_metrics_text() {
        let (status, text) = ask(&admin(), "GET", "/metrics", "").await;
        assert_eq!(status, 200);
        assert!(text.contains("looks_total 1\n") && text.ends_with("# EOF\n"), "{text}");
    }

    #[tokio::test]
    async fn the_socket_changes_the_log_level_and_refuses_an_invalid_one() {
        let admin = admin();
        let router = || changing(admin.clone());
        let changed = ask_of(router(), "PUT", "/log-level", "debug\n").await;
        assert_eq!(changed, (200, "debug\n".to_owned()));
        let (status, text) = ask_of(router(), "PUT", "/log-level", "x=loudest").await;
        assert!(status == 400 && text.contains("x=loudest"), "{text}");
        assert_eq!(ask_of(router(), "POST", "/log-level", "info").await.0, 405);
        assert_eq!(ask_of(router(), "GET", "/livez", "").await.0, 200);
    }

    #[tokio::test]
    async fn nothing_is_changed_over_tcp() {
        let admin = admin();
        for method in ["PUT", "POST", "PATCH", "DELETE"] {
            let (status, text) = ask(&admin, method, "/log-level", "debug").await;
            assert_eq!(status, 405, "{method}");
            let words = "nothing is changed at this address: a restart takes --log\n";
            assert_eq!(text, words, "{method}");
        }
        assert_eq!(ask(&admin, "GET", "/log-level", "").await, (200, "info\n".to_owned()));
    }

    #[tokio::test]
    async fn a_socket_tells_how_to_change_the_log_level() {
        assert!(OwnerSocket::listen(None).await.unwrap().is_none());
        assert!(OwnerSocket::change_level(None).contains("only with --admin-socket PATH"));
        let folder = windlass_testkit::Folder::create().unwrap();
        let path = folder.at("admin.sock");
        let socket = OwnerSocket::listen(Some(&path)).await.unwrap();
        let said = OwnerSocket::change_level(socket.as_ref());
        let begins = format!("the log level takes PUT at the socket {},", path.display());
        assert!(said.starts_with(&begins), "{said}");
    }

    fn admin() -> Admin {
        let mut registry = Registry::default();
        let looks = Counter::<u64>::default();
        looks.inc();
        registry.register("looks", "Looks", looks);
        let (layer, log_level) = LogLevel::unconnected("info");
        // The handle is weak: the layer has to live as long as the test.
        std::mem::forget(layer);
        let change_level = "a restart takes --log".to_owned();
        let (readiness, watchdog) = (Readiness::default(), Watchdog::default());
        Admin { readiness, registry: Arc::new(registry), log_level, watchdog, change_level }
    }

    async fn ask(admin: &Admin, method: &str, path: &str, body: &'static str) -> (u16, String) {
        ask_of(router(admin.clone()), method, path, body).await
    }

    async fn ask_of(router: Router, method: &str, path: &str, body: &'static str) -> (u16, String) {
        let request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}
