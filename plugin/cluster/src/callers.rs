//! Lets agents and the scheduler in, each at its port, and nobody else.
//!
//! A caller that is denied gets the reason as its answer. Each denial is counted; the log tells of one a minute for each
//! reason, port and address.

use crate::books::ClusterBooks;
use crate::metrics::Denials;
use crate::operators::Operators;
use crate::tokens::Tokens;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{Method, Request, StatusCode, header};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tracing::warn;
use windlass_kit::seldom::Seldom;
use windlass_kit::server::{OpenSince, Peer, Service};
use windlass_plugin::Endpoint;
use windlass_plugin::http::read;
use windlass_plugin_core::trust::Denied;
use windlass_protocol::plugin::{SPOKEN_PATH, Spoken};

/// Tells of callers that are denied. Clones share it.
#[derive(Clone, Default)]
pub struct Callers {
    denials: Denials,
    said: Arc<Seldom<(&'static str, &'static str, IpAddr)>>,
}

/// Permits for agents: each shows a token, and asks for the VMs of its own node.
#[derive(Clone)]
pub struct AgentsOnly {
    books: ClusterBooks,
    tokens: Tokens,
    /// The user that agents' tokens are of.
    agent: Arc<str>,
    callers: Callers,
    /// Who shows VMs to people, at the same port.
    operators: Option<Operators>,
}

/// A service for the scheduler, which shows a certificate.
#[derive(Clone)]
pub struct SchedulerOnly<S> {
    service: S,
    /// The common name of its certificate.
    scheduler: Arc<str>,
    callers: Callers,
}

// === impl Callers ===

impl Callers {
    /// Denials are counted there.
    pub fn new(denials: Denials) -> Self {
        Self { denials, ..Self::default() }
    }

    /// Denies a request at a port.
    fn deny(&self, port: &'static str, request: &Request<Bytes>, denied: &Denied) -> Response {
        self.denials.count(port, denied);
        let peer = request.extensions().get::<Peer>();
        let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address.ip());
        if self.said.is_due((port, denied.as_str(), address)) {
            warn!(port, peer = %address, reason = denied.as_str(), why = %denied, "a caller was denied");
        }
        let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::FORBIDDEN);
        (status, plain, format!("{denied}\n")).into_response()
    }
}

// === impl AgentsOnly ===

impl AgentsOnly {
    /// Permits from these books for agents, whose tokens are of the user `agent`.
    pub fn new(books: ClusterBooks, tokens: Tokens, agent: &str, callers: Callers) -> Self {
        Self { books, tokens, agent: agent.into(), callers, operators: None }
    }

    /// The same, with people beside the agents: they read, and agents POST.
    #[must_use]
    pub fn beside(self, operators: Operators) -> Self {
        Self { operators: Some(operators), ..self }
    }

    /// Answers an agent.
    async fn permit(&self, request: &Request<Bytes>) -> Result<Response, Denied> {
        let caller = self.tokens.caller(request.headers()).await?;
        let node = caller.node_as(&self.agent)?;
        if request.uri().path().ends_with(SPOKEN_PATH) && request.method() == Method::POST {
            return Ok(self.hear(&node, request.body()));
        }
        let read = read(request);
        if let Ok(asked) = &read {
            Denied::unless_same(&node, self.books.node_of(asked.vm()).as_deref())?;
        }
        Ok(Endpoint(self.books.clone()).respond(read).await)
    }
}

impl AgentsOnly {
    /// An agent tells of VMs for which it asks no permit. Those of another node are passed over: a VM may have moved.
    fn hear(&self, node: &Arc<str>, body: &[u8]) -> Response {
        if self.books.serves().is_err() {
            // Behind the Service a new connection leads to the plugin that leads.
            let close = [(header::CONNECTION, "close")];
            return (StatusCode::SERVICE_UNAVAILABLE, close).into_response();
        }
        let read = serde_json::from_slice::<Spoken>(body).map_err(|error| error.to_string());
        match read.and_then(|spoken| spoken.bounded().map_err(|bad| bad.to_string())) {
            Ok(spoken) => {
                let of_node = spoken
                    .vms
                    .into_iter()
                    .filter(|vm| self.books.node_of(&vm.pod).is_some_and(|its| *its == **node));
                of_node.for_each(|vm| self.books.hear(&vm.pod, vm.told));
                StatusCode::OK.into_response()
            }
            Err(why) => {
                let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
                (StatusCode::BAD_REQUEST, plain, format!("{why}\n")).into_response()
            }
        }
    }
}

impl Service for AgentsOnly {
    async fn answer(&self, request: Request<Bytes>, _: OpenSince) -> Response {
        let operators = self.operators.as_ref().filter(|_| request.method() == Method::GET);
        let permitted = match operators {
            Some(operators) => operators.show(&request).await,
            None => self.permit(&request).await,
        };
        permitted.unwrap_or_else(|denied| self.callers.deny("permits", &request, &denied))
    }
}

// === impl SchedulerOnly ===

impl<S> SchedulerOnly<S> {
    /// This service, for callers whose certificate has the common name `scheduler`.
    pub fn new(service: S, scheduler: &str, callers: Callers) -> Self {
        Self { service, scheduler: scheduler.into(), callers }
    }
}

impl<S: Service> Service for SchedulerOnly<S> {
    async fn answer(&self, request: Request<Bytes>, since: OpenSince) -> Response {
        let peer = request.extensions().get::<Peer>();
        let name = peer.and_then(|peer| peer.common_name.as_ref());
        match Denied::unless_scheduler(&self.scheduler, name) {
            Ok(()) => self.service.answer(request, since).await,
            Err(denied) => self.callers.deny("extender", &request, &denied),
        }
    }
}
