//! The host's second socket: members of its group look, and order nothing.
//!
//! The kernel keeps the two groups apart: each socket has its own, and what a user may do follows
//! from the socket that the user may open. Everything that comes through this one and does not
//! merely read is refused before a handler sees it. Without the group, the socket is root's.

use crate::api::{GROUP, VIEW_GROUP, view_socket};
use crate::commands::QUEUE;
use crate::refused::Refused;
use crate::socket;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tokio::net::UnixListener;
use tracing::{info, warn};
use windlass_kit::server::Limits;
use windlass_protocol::status::Caller;

/// Listens beside `socket`. A host that cannot goes on without: it sizes its VMs all the same.
pub(crate) async fn listen(socket: &Path) -> Option<UnixListener> {
    let listening = socket::listen(&view_socket(socket), VIEW_GROUP).await;
    listening.inspect_err(|error| warn!(%error, "no socket for group windlass-view")).ok()
}

/// Removes the socket beside `socket`, at the end.
pub(crate) fn remove(socket: &Path) {
    let path = view_socket(socket);
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
        // What is left behind is replaced at the next start.
        let _ = std::fs::remove_file(path);
    }
}

/// What this socket puts up with: a quarter of what waits for the controller at a time, so that those who
/// only look keep no order out.
pub(crate) fn limits(all: &Limits) -> Limits {
    Limits { connections: QUEUE / 4, ..all.clone() }
}

/// The paths of the host's socket, for those who may only look.
pub(crate) fn router(all: Router) -> Router {
    all.layer(from_fn(only_reads))
}

async fn only_reads(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let order: String = request.uri().path().chars().take(100).collect();
    let by = request.extensions().get::<Caller>().copied();
    let (uid, pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
    info!(order, uid, pid, "order refused: it came through the socket that only shows");
    let message = format!(
        "{order} is an order, and members of group {VIEW_GROUP} may only look: orders are for \
         root and members of group {GROUP}"
    );
    Refused::Forbidden(message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::idle;
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use tower::ServiceExt;
    use windlass_kit::tasks::Tasks;
    use windlass_protocol::UnitChoice;

    #[tokio::test]
    async fn whatever_is_no_question_is_refused_before_a_handler_sees_it() {
        let tasks = Tasks::default();
        let socket = router(idle(&tasks, UnitChoice::default().usual()));
        for (method, path, status) in [
            ("GET", "/v1/state", 200),
            ("HEAD", "/v1/state", 200),
            ("GET", "/v1/nothing", 404),
            ("POST", "/v1/freeze", 403),
            ("POST", "/v1/vm/a/pause", 403),
            ("POST", "/v1/check", 403),
            ("PUT", "/v1/log-level", 403),
            ("DELETE", "/v1/nothing", 403),
            ("FREEZE", "/v1/freeze", 403),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let answer = socket.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{method} {path}");
            if answer.status() == StatusCode::FORBIDDEN {
                let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
                let said = String::from_utf8(body.to_vec()).unwrap();
                assert!(said.contains(&format!("{path} is an order")), "{said}");
                assert!(said.contains("root and members of group windlass\""), "{said}");
            }
        }
    }
}
