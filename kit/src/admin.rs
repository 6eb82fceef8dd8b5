//! What a person or a monitor asks of any process: alive, ready, metrics, log level.
//!
//! It is served on an address of its own, which nobody but the operator reaches.

use crate::telemetry::LogLevel;
use crate::watchdog::Watchdog;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use http::{StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

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
}

/// What a process is still waiting for before it is ready; nothing, once it is.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

/// The paths `/livez`, `/readyz`, `/healthz`, `/metrics` and `/log-level`.
pub fn router(admin: Admin) -> Router {
    Router::new()
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/healthz", get(ready))
        .route("/metrics", get(metrics))
        .route("/log-level", get(log_level).put(set_log_level))
        .with_state(admin)
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

async fn set_log_level(State(admin): State<Admin>, body: Bytes) -> (StatusCode, String) {
    let Ok(filter) = std::str::from_utf8(&body) else {
        return (StatusCode::BAD_REQUEST, "log filter: not UTF-8\n".to_owned());
    };
    match admin.log_level.set(filter) {
        Ok(()) => log_level(State(admin)).await,
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
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
    async fn the_log_level_can_be_changed_and_a_bad_one_is_refused_in_words() {
        let admin = admin();
        assert_eq!(ask(&admin, "PUT", "/log-level", "debug\n").await, (200, "debug\n".to_owned()));
        let (status, text) = ask(&admin, "PUT", "/log-level", "x=loudest").await;
        assert!(status == 400 && text.contains("x=loudest"), "{text}");
        assert_eq!(ask(&admin, "POST", "/log-level", "info").await.0, 405);
    }

    fn admin() -> Admin {
        let mut registry = Registry::default();
        let looks = Counter::<u64>::default();
        looks.inc();
        registry.register("looks", "Looks", looks);
        let (layer, log_level) = LogLevel::unconnected("info");
        // The handle is weak: the layer has to live as long as the test.
        std::mem::forget(layer);
        let (readiness, watchdog) = (Readiness::default(), Watchdog::default());
        Admin { readiness, registry: Arc::new(registry), log_level, watchdog }
    }

    async fn ask(admin: &Admin, method: &str, path: &str, body: &'static str) -> (u16, String) {
        let request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
        let response = router(admin.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}
