//! The client of a guest's informant: one request per action of the scaler.
//!
//! An answer by status is a refusal: it did not happen. Everything else that is no whole
//! answer, in time and in bounds, leaves that open.

use crate::config::{ANSWER_SIZE, HEALTH_TIME, REGISTER_TIME, SIZE_TIME, UNREGISTER_TIME};
use bytes::Bytes;
use http::Method;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::{debug, warn};
use windlass_agent_core::{Event, Failure};
use windlass_kit::client::{Address, Ask, ask};
use windlass_protocol::informant::{
    AgentDesc, DOWNSCALE, DownscaleResult, Empty, Endpoint, HEALTH_CHECK, HealthCheck,
    InformantDesc, REGISTER, ResourceMessage, UNREGISTER, UPSCALE, Unregistered,
};
use windlass_protocol::version::InformantVersion;
use windlass_protocol::{AgentId, BadBody, Peer, Resources, Sequence};

/// The informant of one guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Informant {
    /// Where it listens.
    pub(crate) at: SocketAddr,
    /// Where it calls back.
    pub(crate) callback: Option<SocketAddr>,
}

// === impl Informant ===

impl Informant {
    pub(crate) async fn register(self, id: AgentId) -> Event {
        let Some(desc) = self.describe(id) else { return failed(Failure::NoAnswer) };
        let answer = self.send(REGISTER, desc.encode(), REGISTER_TIME).await;
        outcome(answer, InformantDesc::decode_reply, |desc| {
            if !InformantVersion::SPOKEN.contains(desc.version) {
                warn!(version = %desc.version, "informant chose a version that was not offered");
                return failed(Failure::NoAnswer);
            }
            match desc.metrics_port {
                Some(metrics_port) => Event::Registered { metrics_port },
                None => {
                    warn!("informant does not say where metrics are read");
                    failed(Failure::NoAnswer)
                }
            }
        })
    }

    pub(crate) async fn check_health(self, id: AgentId) -> Event {
        let answer = self.send(HEALTH_CHECK, HealthCheck(id).encode(), HEALTH_TIME).await;
        outcome(answer, Empty::decode_reply, |Empty| Event::Healthy)
    }

    pub(crate) async fn downscale(self, id: AgentId, number: Sequence, to: Resources) -> Event {
        let message = ResourceMessage { resources: to, id, sequence: number };
        let answer = self.send(DOWNSCALE, message.encode(), SIZE_TIME).await;
        outcome(answer, DownscaleResult::decode_reply, |result| {
            let status = result.status;
            if result.ok { Event::Agreed { status } } else { Event::Declined { status } }
        })
    }

    pub(crate) async fn upscale(self, id: AgentId, number: Sequence, to: Resources) -> Event {
        let message = ResourceMessage { resources: to, id, sequence: number };
        let answer = self.send(UPSCALE, message.encode(), SIZE_TIME).await;
        outcome(answer, Empty::decode_reply, |Empty| Event::Upscaled)
    }

    pub(crate) async fn unregister(self, id: AgentId) -> Event {
        let Some(desc) = self.describe(id) else { return failed(Failure::NoAnswer) };
        let answer = self.send(UNREGISTER, desc.encode(), UNREGISTER_TIME).await;
        outcome(answer, Unregistered::decode_reply, |_| Event::Unregistered)
    }

    /// `None` where there is no address to be called back at, so that no session can be.
    fn describe(self, id: AgentId) -> Option<AgentDesc> {
        let serve_addr = self.callback?.to_string();
        Some(AgentDesc { agent_id: id, serve_addr, versions: InformantVersion::SPOKEN })
    }

    async fn send(
        self,
        endpoint: Endpoint,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<Bytes, Failure> {
        // The methods of the protocol are constants, and valid.
        let method = Method::from_bytes(endpoint.method.as_bytes()).unwrap_or(Method::POST);
        let request = Ask::new(method, endpoint.path, body).within(deadline).at_most(ANSWER_SIZE);
        match ask(&Address::Tcp(self.at), request).await {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) if answer.status >= 400 => {
                let words = answer.text();
                debug!(path = endpoint.path, status = answer.status, words, "informant refused");
                Err(Failure::Refused(answer.status))
            }
            Ok(answer) => {
                debug!(path = endpoint.path, status = answer.status, "informant's answer is odd");
                Err(Failure::NoAnswer)
            }
            Err(error) => {
                debug!(path = endpoint.path, %error, "informant not reached");
                Err(Failure::NoAnswer)
            }
        }
    }
}

fn outcome<T>(
    answer: Result<Bytes, Failure>,
    decode: impl FnOnce(&[u8]) -> Result<T, BadBody>,
    event: impl FnOnce(T) -> Event,
) -> Event {
    match answer.map(|body| decode(&body)) {
        Ok(Ok(reply)) => event(reply),
        Ok(Err(error)) => {
            warn!(%error, "informant's answer is broken");
            failed(Failure::NoAnswer)
        }
        Err(failure) => failed(failure),
    }
}

fn failed(failure: Failure) -> Event {
    Event::Failed(Peer::Informant, failure)
}
