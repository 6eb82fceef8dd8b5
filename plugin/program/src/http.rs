//! Permits on every path: each request goes to the router of the node that its VM is on.
//!
//! Whatever is no request of a listed VM goes to the router of a node without VMs, which refuses
//! it in the words that it deserves. As much of a body is read as the plugin looks at, and no more;
//! the listener refuses what is larger than its own limit before it comes here.

use crate::plugin::Plugin;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use tower::ServiceExt;
use windlass_kit::server::{Counts, Limits};
use windlass_plugin::http::first_bytes;
use windlass_plugin_core::wire;
use windlass_protocol::timing::CONNECTION_KEPT;
use windlass_protocol::{PluginVersion, VmName};

/// Agents of a large cluster that ask at once.
const CONNECTIONS: usize = 512;

/// Answers permit requests on every path.
pub fn router(plugin: Plugin) -> Router {
    Router::new().fallback(permit).with_state(plugin)
}

/// What the listener for permits puts up with.
pub(crate) fn limits(counts: Counts) -> Limits {
    Limits {
        connections: CONNECTIONS,
        // Agents keep their connections between requests.
        head_time: CONNECTION_KEPT,
        connection_time: Duration::from_secs(600),
        ..Limits::small(counts)
    }
}

async fn permit(State(plugin): State<Plugin>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = match first_bytes(body).await {
        Ok(body) => body,
        Err(refusal) => {
            plugin.answered(plugin.directory().home_of(None), refusal.status(), false);
            return refusal.into_response();
        }
    };
    let (vm, with_metrics) = asked(&body).unzip();
    let directory = plugin.directory();
    let place = directory.home_of(vm.as_ref());
    let request = Request::from_parts(head, Body::from(body));
    let Ok(response) = place.router.clone().oneshot(request).await;
    plugin.answered(place, response.status().as_u16(), with_metrics.unwrap_or(false));
    response
}

/// For which VM a permit is asked, and whether its load goes with that.
fn asked(body: &[u8]) -> Option<(VmName, bool)> {
    let request = wire::read(body, PluginVersion::SPOKEN).ok()?;
    Some((request.vm(), request.has_metrics()))
}
