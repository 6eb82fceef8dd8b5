//! What a person or a monitor asks of any process: alive, ready, metrics, log level.
//!
//! Over TCP everything is read and nothing is changed ([`router`]): any user of the machine can
//! connect to its loopback. What changes the process is served over a unix socket alone
//! ([`changing`]), whose permissions say which users may.

use crate::program::Failure;
use crate::server::{Limits, bind_unix, serve};
use crate::tasks::Tasks;
use crate::telemetry::LogLevel;
use crate::watchdog::Watchdog;
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
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, UnixListener};

/// What is asked about.
#[derive(Clone)]
pub struct Admin {
    /// What `/readyz` answers.
    pub readiness: Readiness,
    /// What `/metrics` answers.
    pub registry: Arc<Registry>,
    /// What `/log-level` reads and sets.
    pub log_level: LogLevel,
    /// What `/livez` answers.
    pub watchdog: Watchdog,
    /// How the log level is changed, for a request that tries to over TCP: a sentence.
    pub change_level: String,
}

/// A socket for those who may change the process: of mode 0600, so its owner and root.
#[derive(Debug)]
pub struct OwnerSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// What a process is still waiting for before it is ready; nothing, once it is.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

/// The paths `/livez`, `/readyz`, `/healthz`, `/metrics` and `/log-level`, for everyone: they are
/// read, and nothing is changed.
pub fn router(admin: Admin) -> Router {
    let level = get(log_level).fallback(unchanged);
    paths().route("/log-level", level).with_state(admin)
}

/// The same for those who may change the process: `/log-level` takes PUT.
pub fn changing(admin: Admin) -> Router {
    paths().route("/log-level", get(log_level).put(set_log_level)).with_state(admin)
}

/// Serves what is read at `tcp`, and what changes the process at `socket`, until `tasks` stop.
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
    let hanging = admin.watchdog.hanging();
    if hanging.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let lines = hanging.iter().map(|hanging| format!("{hanging}\n"));
    (StatusCode::SERVICE_UNAVAILABLE, lines.collect())
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, String) {
    match admin.readiness.missing() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {missing}\n")),
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
    /// Listens at this path, if one is given.
    ///
    /// # Errors
    /// It cannot be listened on.
    pub async fn listen(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let listener = bind_unix(path, 0o600).await.map_err(|error| {
            let path = path.display();
            Failure::CannotCreate(format!("cannot serve the admin socket {path}: {error}"))
        })?;
        Ok(Some(Self { listener, path: path.to_path_buf() }))
    }

    /// How the log level is changed where this is `socket`: a sentence.
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
    /// The process is not ready until `part` is [`Readiness::done`].
    pub fn wait_for(&self, part: &'static str) {
        self.parts().insert(part);
    }

    /// `part` is there.
    pub fn done(&self, part: &'static str) {
        self.parts().remove(part);
    }

    /// What is missing, if something is.
    pub fn missing(&self) -> Option<String> {
        let parts = self.parts();
        let names = parts.iter().copied().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then_some(names)
    }

    fn parts(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let pulse = admin.watchdog.watch("steward");
        let (stop, watchdog) = (CancellationToken::new(), admin.watchdog.clone());
        let _watching = JoinSet::from_iter([watchdog.run(Notify::default(), stop)]);
        assert_eq!(ask(&admin, "GET", "/livez", "").await, (200, "ok\n".to_owned()));
        pulse.turn("orders");
        tokio::time::sleep(Duration::from_secs(13)).await;
        let text = "steward hangs, waiting for orders\n".to_owned();
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
    async fn who_may_changes_the_log_level_and_a_bad_one_is_refused_in_words() {
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
    async fn how_the_log_level_is_changed_is_said_by_its_socket_if_there_is_one() {
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
