//! What an agent asks, and what it is answered.
//!
//! The reference's order of checks: unknown path 404, wrong method 405, a body that is missing or is not
//! the message 400, then the request itself. An answer is JSON with
//! status 200; everything else is plain text.

use crate::refusal::Refusal;
use thiserror::Error;
use windlass_protocol::AgentId;
use windlass_protocol::BadBody;
use windlass_protocol::informant::{
    AgentDesc, DOWNSCALE, DownscaleResult, Empty, Endpoint, HEALTH_CHECK, HealthCheck,
    InformantDesc, REGISTER, ResourceMessage, UNREGISTER, UPSCALE, Unregistered,
};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An agent introduces itself.
    Register(AgentDesc),
    /// It asks whether its session stands.
    HealthCheck(AgentId),
    /// It asks the guest to be content with this.
    Downscale(ResourceMessage),
    /// It tells the guest that it has this.
    Upscale(ResourceMessage),
    /// It takes its leave.
    Unregister(AgentDesc),
}

/// What is said to a request that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Request::Register`].
    Registered(InformantDesc),
    /// To [`Request::HealthCheck`].
    Healthy,
    /// To [`Request::Downscale`], whether or not the guest agrees.
    Downscaled(DownscaleResult),
    /// To [`Request::Upscale`].
    Upscaled,
    /// To [`Request::Unregister`].
    Unregistered(Unregistered),
}

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unanswered {
    /// None of the reference's endpoints is at that path. Go's own answer, which ends its line.
    #[error("404 page not found\n")]
    Path,
    /// The path wants this method.
    #[error("request method must be {0}")]
    Method(&'static str),
    /// Its body is not the message.
    #[error("bad JSON: {0}")]
    Body(BadBody),
    /// It was understood.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

type Decode = fn(&[u8]) -> Result<Request, BadBody>;

/// What can be asked, and what its body says.
const REQUESTS: [(Endpoint, Decode); 5] = [
    (REGISTER, |body| AgentDesc::decode(body).map(Request::Register)),
    (HEALTH_CHECK, |body| {
        HealthCheck::decode(body).map(|HealthCheck(id)| Request::HealthCheck(id))
    }),
    (DOWNSCALE, |body| ResourceMessage::decode_any(body).map(Request::Downscale)),
    (UPSCALE, |body| ResourceMessage::decode_any(body).map(Request::Upscale)),
    (UNREGISTER, |body| AgentDesc::decode(body).map(Request::Unregister)),
];

/// Whom a request is for. Its body is read after this.
///
/// # Errors
/// If it is for none of the reference's endpoints.
pub fn endpoint(method: &str, path: &str) -> Result<Endpoint, Unanswered> {
    let mut endpoints = REQUESTS.into_iter().map(|(endpoint, _)| endpoint);
    let found = endpoints.find(|endpoint| endpoint.path == path).ok_or(Unanswered::Path)?;
    if found.method == method { Ok(found) } else { Err(Unanswered::Method(found.method)) }
}

// === impl Request ===

impl Request {
    /// Reads the body of a request for this endpoint.
    ///
    /// # Errors
    /// If it is not the message of that endpoint, or the endpoint is not an informant's.
    pub fn decode(endpoint: Endpoint, body: &[u8]) -> Result<Self, BadBody> {
        match REQUESTS.into_iter().find(|(known, _)| *known == endpoint) {
            Some((_, decode)) => decode(body),
            None => Err(BadBody::field("path", endpoint.path, "an informant's")),
        }
    }
}

// === impl Answer ===

impl Answer {
    /// Its body; its status is 200.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Registered(desc) => desc.encode(),
            Self::Healthy | Self::Upscaled => Empty.encode(),
            Self::Downscaled(result) => result.encode(),
            Self::Unregistered(unregistered) => unregistered.encode(),
        }
    }
}

// === impl Unanswered ===

impl Unanswered {
    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Path => 404,
            Self::Method(_) => 405,
            Self::Body(_) => 400,
            Self::Refused(refusal) => refusal.status(),
        }
    }

    /// The body that goes with it: plain text.
    pub fn encode(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl From<BadBody> for Unanswered {
    fn from(error: BadBody) -> Self {
        Self::Body(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::informant::ID;
    use windlass_protocol::version::InformantVersion;
    use windlass_protocol::{Bytes, MilliCpu, Resources, Sequence};

    const AGENT: AgentId = AgentId::from_u128(7);

    #[test]
    fn a_request_is_read_as_it_was_meant() {
        let desc = AgentDesc {
            agent_id: AGENT,
            serve_addr: "10.0.0.1:9".into(),
            versions: InformantVersion::SPOKEN,
        };
        let resources = Resources { cpu: MilliCpu::from_milli(1500), mem: Bytes::from_gib(2) };
        let size = ResourceMessage { resources, id: AGENT, sequence: Sequence::from_number(3) };
        for (method, path, body, request) in [
            ("POST", "/register", desc.encode(), Request::Register(desc.clone())),
            ("PUT", "/health-check", HealthCheck(AGENT).encode(), Request::HealthCheck(AGENT)),
            ("PUT", "/downscale", size.encode(), Request::Downscale(size)),
            ("PUT", "/upscale", size.encode(), Request::Upscale(size)),
            ("DELETE", "/unregister", desc.encode(), Request::Unregister(desc.clone())),
        ] {
            let endpoint = endpoint(method, path).unwrap();
            assert_eq!(Request::decode(endpoint, &body), Ok(request));
        }
    }

    #[test]
    fn path_then_method_then_body_is_checked() {
        for (method, path, body, status, text) in [
            ("BREW", "/", "", 404, "404 page not found\n"),
            ("GET", "/id", "", 404, "404 page not found\n"),
            ("PUT", "/upscale/", "", 404, "404 page not found\n"),
            ("GET", "/register", "", 405, "request method must be POST"),
            ("put", "/health-check", "{}", 405, "request method must be PUT"),
            ("POST", "/downscale", "{}", 405, "request method must be PUT"),
            ("POST", "/unregister", "{}", 405, "request method must be DELETE"),
            ("POST", "/register", "", 400, "bad JSON: byte 0: the body ends"),
            ("PUT", "/health-check", "[]", 400, "bad JSON: body: a list is not an object"),
            ("PUT", "/downscale", "{}", 400, "bad JSON: data.cpu: is missing"),
            ("PUT", "/upscale", r#"{"data":{"cpu":1}}"#, 400, "bad JSON: data.memory: is missing"),
            ("DELETE", "/unregister", r#"{"agentID":7}"#, 400, "bad JSON: agentID: 7 is not "),
        ] {
            let unanswered = read(method, path, body).unwrap_err();
            assert_eq!(unanswered.status(), status, "{method} {path} {body}");
            let found = String::from_utf8(unanswered.encode()).unwrap();
            assert!(found.starts_with(text), "{method} {path} {body}: {found}");
            assert_eq!(found.ends_with('\n'), status == 404, "{method} {path} {body}: {found}");
        }
    }

    #[test]
    fn an_endpoint_of_the_agents_has_no_request() {
        let error = Request::decode(ID, b"{}").unwrap_err();
        assert_eq!(error.to_string(), "path: /id is not an informant's");
    }

    #[test]
    fn a_refusal_keeps_its_status_and_words() {
        let unanswered = Unanswered::from(Refusal::Unknown(AGENT));
        assert_eq!(unanswered.status(), 404);
        let said = format!("No Agent with ID {AGENT} registered");
        assert_eq!(unanswered.encode(), said.as_bytes());
    }

    #[test]
    fn an_agent_reads_the_answer() {
        let desc = InformantDesc { version: InformantVersion::V2_0, metrics_port: Some(9100) };
        let body = Answer::Registered(desc).encode();
        assert_eq!(InformantDesc::decode_reply(&body), Ok(desc));
        for ok in [true, false] {
            let result = DownscaleResult { ok, status: "why".into() };
            let body = Answer::Downscaled(result.clone()).encode();
            assert_eq!(DownscaleResult::decode_reply(&body), Ok(result));
            let unregistered = Unregistered { was_active: ok };
            let body = Answer::Unregistered(unregistered).encode();
            assert_eq!(Unregistered::decode_reply(&body), Ok(unregistered));
        }
        for answer in [Answer::Healthy, Answer::Upscaled] {
            assert_eq!(Empty::decode_reply(&answer.encode()), Ok(Empty));
        }
    }

    fn read(method: &str, path: &str, body: &str) -> Result<Request, Unanswered> {
        Ok(Request::decode(endpoint(method, path)?, body.as_bytes())?)
    }
}
