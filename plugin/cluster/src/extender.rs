//! What a stock kube-scheduler asks its extender, over HTTP: `POST /filter`, `/prioritize`, `/preempt` and `/bind`.
//!
//! Only 200 counts as success for the scheduler, and its own log shows no other body: what is understood is
//! answered with 200, and an error is in the answer's field. The source of the wire is
//! `k8s.io/kube-scheduler/extender/v1`.

use crate::binder::Binder;
use crate::books::ClusterBooks;
use crate::metrics::Calls;
use crate::rebuild::NotYet;
use axum::Json;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, Request, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Once};
use tracing::warn;
use windlass_kit::server::{OpenSince, Service};
use windlass_plugin_core::pods::{Reason, Sifted};
use windlass_protocol::extender::{
    BindingArgs, BindingResult, ExtenderArgs, FilterAnswer, HostPriority, PreemptionArgs,
    PreemptionResult,
};
use windlass_protocol::words::sanitized;

/// A field's value may be a part of an error.
const LONGEST_ERROR: usize = 300;

/// Answers the scheduler.
#[derive(Clone)]
pub struct Extender {
    books: ClusterBooks,
    binder: Binder,
    calls: Calls,
    /// Whether the log has said that whole nodes come.
    whole_nodes: Arc<Once>,
}

// === impl Extender ===

impl Extender {
    /// From these books; pods are bound by this binder.
    pub fn new(books: ClusterBooks, binder: Binder, calls: Calls) -> Self {
        Self { books, binder, calls, whole_nodes: Arc::new(Once::new()) }
    }

    fn filter(&self, args: ExtenderArgs) -> Response {
        let nodes_too = self.notice(&args).sent_whole_nodes;
        if let Err(not_yet) = self.books.serves() {
            self.calls.count("filter", not_yet.word());
            let error = &not_yet.to_scheduler();
            return json(FilterAnswer { error, nodes_too, ..FilterAnswer::default() });
        }
        let ExtenderArgs { pod, nodes, .. } = args;
        let Sifted { fit, others } = self.books.filter(&pod, &nodes);
        if !fit.is_empty() {
            self.binder.expect(pod);
        }
        self.calls.count("filter", if fit.is_empty() { "none" } else { "some" });
        let others: Vec<_> =
            others.into_iter().map(|(why, nodes)| (why.to_string(), why, nodes)).collect();
        let mut answer = FilterAnswer { nodes: fit, nodes_too, ..FilterAnswer::default() };
        for (words, why, nodes) in &others {
            let list = match why {
                Reason::NoRoom { .. } | Reason::UnknownNode => &mut answer.failed,
                // No eviction changes that.
                Reason::Elsewhere(_) | Reason::Gone(_) => &mut answer.unresolvable,
            };
            list.extend(nodes.iter().map(|node| (*node, words.as_str())));
        }
        json(answer)
    }

    fn prioritize(&self, args: ExtenderArgs) -> Vec<HostPriority> {
        self.notice(&args);
        let word = self.books.serves().map_or_else(NotYet::word, |_| "some");
        self.calls.count("prioritize", word);
        self.books.prioritize(&args.pod, args.nodes)
    }

    fn preempt(&self, args: PreemptionArgs) -> PreemptionResult {
        if let Err(not_yet) = self.books.serves() {
            self.calls.count("preempt", not_yet.word());
            return PreemptionResult::default();
        }
        let result = self.books.preempt(args);
        self.calls.count("preempt", if result.victims.is_empty() { "none" } else { "some" });
        result
    }

    async fn bind(&self, args: BindingArgs) -> BindingResult {
        let bound = self.binder.bind(&args).await;
        self.calls.count("bind", if bound.is_ok() { "some" } else { "none" });
        BindingResult { error: bound.err().map(|why| why.to_string()).unwrap_or_default() }
    }

    /// A scheduler that sends whole nodes does so in every request: it is logged once.
    fn notice<'a>(&self, args: &'a ExtenderArgs) -> &'a ExtenderArgs {
        if args.sent_whole_nodes {
            self.whole_nodes.call_once(|| {
                warn!(
                    "the scheduler sends whole nodes, which is slow: nodeCacheCapable is not true"
                );
            });
        }
        args
    }

    /// Counts and refuses what is no request of this verb.
    fn read<T: DeserializeOwned>(&self, verb: &'static str, body: &[u8]) -> Result<T, Response> {
        serde_json::from_slice(body).map_err(|error| {
            let error = with_field::<T>(body).unwrap_or_else(|| error.to_string());
            self.calls.count(verb, "bad-request");
            warn!(verb, %error, "a request of the scheduler is not understood");
            refuse(StatusCode::BAD_REQUEST, format!("{verb}: {error}\n"))
        })
    }
}

impl Service for Extender {
    async fn answer(&self, request: Request<Bytes>, _: OpenSince) -> Response {
        if request.method() != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "must be POST\n".to_owned());
        }
        let (path, body) = (request.uri().path(), request.body());
        let answer = match path {
            "/filter" => self.read("filter", body).map(|args| self.filter(args)),
            "/prioritize" => self.read("prioritize", body).map(|args| json(self.prioritize(args))),
            "/preempt" => self.read("preempt", body).map(|args| json(self.preempt(args))),
            "/bind" => match self.read("bind", body) {
                Ok(args) => Ok(json(self.bind(args).await)),
                Err(refusal) => Err(refusal),
            },
            _ => Err(refuse(
                StatusCode::NOT_FOUND,
                format!("{path}: must be /filter, /prioritize, /preempt or /bind\n"),
            )),
        };
        let mut answer = answer.unwrap_or_else(|refusal| refusal);
        // Behind a Service a new connection may lead to the plugin that answers.
        if self.books.serves().is_err() {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// The error with the path of its field, which costs time: only a body that was refused is read for it.
fn with_field<T: DeserializeOwned>(body: &[u8]) -> Option<String> {
    let mut from = serde_json::Deserializer::from_slice(body);
    let error = serde_path_to_error::deserialize::<_, T>(&mut from).err()?;
    Some(sanitized(&error.to_string(), LONGEST_ERROR))
}

fn json(answer: impl Serialize) -> Response {
    Json(answer).into_response()
}

fn refuse(status: StatusCode, why: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], why).into_response()
}
