//! An extender that filters as a test says, and gives no node a score.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use windlass_testkit::http::Server;

/// Path and body of each request.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An extender. It ends with its value.
pub(crate) struct Extender {
    server: Server,
    asked: Asked,
}

// === impl Extender ===

impl Extender {
    /// Starts an extender with this answer to each filter request.
    pub(crate) fn start(filter: impl Fn(&Value) -> Value + Send + 'static) -> Self {
        let asked = Asked::default();
        let heard = Arc::clone(&asked);
        let server = Server::start(move |request| {
            let args: Value = serde_json::from_str(&request.body).unwrap();
            let answer = match request.path.as_str() {
                "/filter" => filter(&args),
                "/prioritize" => json!([]),
                other => panic!("asked for {other}"),
            };
            heard.lock().unwrap().push((request.path.clone(), args));
            let body = answer.to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {length}\r\n\r\n{body}"
            )
        });
        Self { server, asked }
    }

    /// Its part of a scheduler's configuration: it is asked about pods with a VM.
    pub(crate) fn config(&self) -> Value {
        json!({
            "urlPrefix": format!("http://{}", self.server.address()),
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": true,
            "managedResources": [{"name": "windlass.dev/vm", "ignoredByScheduler": true}],
        })
    }

    /// What it was asked, in this order.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}
