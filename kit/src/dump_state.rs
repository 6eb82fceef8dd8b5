//! The state of a process as JSON, for a person who looks for a fault: the reference's dump-state.
//!
//! `GET` on any path, with a JSON object as body, as in the reference (an empty body is invalid). A separate
//! thread gathers the state, one at a time and with a time limit. So readers never delay the program, and a
//! stuck lock holds only one thread.

use crate::program::{Failure, listen};
use crate::server::{Counts, Limits, serve};
use crate::tasks::Tasks;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{Method, StatusCode, header};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The largest state that is sent.
const MOST: usize = 16 << 20;

/// A listener that shows the state, where the configuration has one.
#[derive(Debug)]
pub struct DumpListener {
    listener: TcpListener,
    at: SocketAddr,
    limit: Duration,
}

/// The source of the state, and the time limit.
#[derive(Clone)]
struct DumpState {
    gather: Arc<dyn Fn() -> Value + Send + Sync>,
    limit: Duration,
    turn: Arc<Semaphore>,
}

// === impl DumpListener ===

impl DumpListener {
    /// Listens at this address, if one is given; gathering the state may take as long as is said there.
    ///
    /// # Errors
    /// It cannot be listened on.
    pub async fn listen(at: Option<(SocketAddr, Duration)>) -> Result<Option<Self>, Failure> {
        let Some((at, limit)) = at else { return Ok(None) };
        let (listener, at) = listen("dump_state", at).await?;
        Ok(Some(Self { listener, at, limit }))
    }

    /// Shows what `gather` says of a process that `stop` ends. Where that is, as a program says it.
    ///
    /// It goes on while the process drains: the state can be looked at until the very end.
    pub fn serve(
        self,
        counts: Counts,
        stop: CancellationToken,
        gather: impl Fn(bool) -> Value + Send + Sync + 'static,
    ) -> String {
        let Self { listener, at, limit } = self;
        let state = DumpState::new(limit, move || gather(stop.is_cancelled()));
        let request_time = limit + Duration::from_secs(5);
        let limits = Limits { connections: 8, request_time, ..Limits::small(counts) };
        let served = serve(listener, router(state), limits, CancellationToken::new());
        // Of no group that is drained.
        Tasks::default().minor("dump-state", served);
        format!("dump-state http://{at}\n")
    }
}

// === impl DumpState ===

impl DumpState {
    /// `gather` may wait for locks; it never runs twice at the same time.
    fn new(limit: Duration, gather: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self { gather: Arc::new(gather), limit, turn: Arc::new(Semaphore::new(1)) }
    }

    /// The state, or the status and the text of a refusal.
    async fn get(&self) -> Result<Vec<u8>, (StatusCode, String)> {
        let started = Instant::now();
        let gathered = timeout(self.limit, async {
            // The turn goes with the thread: one that hangs is the only one.
            let turn = self.turn.clone().acquire_owned().await.map_err(|e| e.to_string())?;
            let gather = self.gather.clone();
            let thread = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                serde_json::to_vec(&gather())
            });
            thread.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
        });
        let why = match gathered.await {
            Ok(Ok(state)) if state.len() <= MOST => return Ok(state),
            Ok(Ok(state)) => format!("the state has {} bytes, more than {MOST}", state.len()),
            Ok(Err(why)) => format!("error while getting state: {why}"),
            Err(_) => format!("timed out after {:?} while getting state", started.elapsed()),
        };
        Err((StatusCode::INTERNAL_SERVER_ERROR, why))
    }
}

/// Answers on every path, as the reference does.
fn router(state: DumpState) -> Router {
    Router::new().fallback(dump).with_state(state)
}

async fn dump(State(state): State<DumpState>, method: Method, body: Bytes) -> Response {
    let answer = if method != Method::GET {
        Err((StatusCode::METHOD_NOT_ALLOWED, "request method must be GET".to_owned()))
    } else if is_object(&body) {
        state.get().await
    } else {
        Err((StatusCode::BAD_REQUEST, "bad JSON".to_owned()))
    };
    let kind = |kind| [(header::CONTENT_TYPE, kind)];
    match answer {
        Ok(state) => (kind("application/json"), state).into_response(),
        Err((status, text)) => (status, kind("text/plain; charset=utf-8"), text).into_response(),
    }
}

/// Whether Go would decode the first value of a body into an empty struct.
fn is_object(body: &[u8]) -> bool {
    let first = serde_json::Deserializer::from_slice(body).into_iter::<Value>().next();
    matches!(first, Some(Ok(Value::Object(_) | Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt;
    use serde_json::json;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use tower::ServiceExt;

    #[tokio::test]
    async fn it_answers_as_the_reference_does() {
        let state = DumpState::new(Duration::from_secs(5), || json!({ "stopped": false }));
        for (method, body, status, text) in [
            ("GET", "{}", 200, "{\"stopped\":false}"),
            ("GET", "null x", 200, "{\"stopped\":false}"),
            ("GET", "", 400, "bad JSON"),
            ("GET", "[]", 400, "bad JSON"),
            ("GET", "{", 400, "bad JSON"),
            ("POST", "{}", 405, "request method must be GET"),
            // An answer to HEAD has no body.
            ("HEAD", "{}", 405, ""),
        ] {
            let (got, said) = ask(&state, method, body).await;
            assert_eq!(got, status, "{method} {body}");
            assert_eq!(said, text, "{method} {body}");
        }
    }

    #[tokio::test]
    async fn a_stuck_state_is_given_up_and_holds_one_thread() {
        let (asked, stuck) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
        let (counter, held) = (asked.clone(), stuck.clone());
        let state = DumpState::new(Duration::from_millis(50), move || {
            counter.fetch_add(1, Ordering::SeqCst);
            while held.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            json!({})
        });
        for _ in 0..5 {
            let (status, text) = ask(&state, "GET", "{}").await;
            assert_eq!(status, 500);
            assert!(text.starts_with("timed out after "), "{text}");
            assert!(text.ends_with(" while getting state"), "{text}");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        stuck.store(false, Ordering::SeqCst);
        let patient = DumpState { limit: Duration::from_secs(60), ..state };
        assert_eq!(ask(&patient, "GET", "{}").await.0, 200);
    }

    #[tokio::test]
    async fn a_state_without_end_is_not_sent_and_a_panic_is_said() {
        let limit = Duration::from_secs(60);
        let large = DumpState::new(limit, || json!("x".repeat(MOST)));
        let (status, text) = ask(&large, "GET", "{}").await;
        assert!(status == 500 && text.contains("more than 16777216"), "{text}");
        let largest = DumpState::new(limit, || json!("x".repeat(MOST - 2)));
        assert_eq!(ask(&largest, "GET", "{}").await.0, 200);
        let broken = DumpState::new(limit, || panic!("on purpose"));
        let (status, text) = ask(&broken, "GET", "{}").await;
        assert!(status == 500 && text.starts_with("error while getting state: "), "{text}");
    }

    async fn ask(state: &DumpState, method: &str, body: &'static str) -> (u16, String) {
        let request = Request::builder().method(method).uri("/x").body(Body::from(body)).unwrap();
        let response = router(state.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}
