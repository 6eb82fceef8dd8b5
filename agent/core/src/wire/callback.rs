//! What an informant asks the call-back server of its agent.
//!
//! Order of checks, status codes and texts are the reference's: an unknown path is 404, a
//! wrong method 405, a body that is not understood 400, and only then does the scaler decide.

use crate::event::{Call, CallAnswer};
use thiserror::Error;
use windlass_protocol::BadBody;
use windlass_protocol::informant::{
    Empty, Endpoint, Expected, ID, Identified, MoreResources, RESUME, SUSPEND, TRY_UPSCALE,
};

/// A request that is no call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Uncalled {
    /// Nothing is at that path.
    #[error("404 page not found")]
    Path,
    /// The path wants this method.
    #[error("request method must be {0}")]
    Method(&'static str),
    /// The body is not the message.
    #[error("bad JSON: {0}")]
    Body(BadBody),
}

type Decode = fn(&[u8]) -> Result<Call, BadBody>;

/// What can be called, and what its body says.
const CALLS: [(Endpoint, Decode); 4] = [
    (ID, |body| Empty::decode(body).map(|Empty| Call::Id)),
    (RESUME, |body| Expected::decode(body).map(|Expected(id)| Call::Resume(id))),
    (SUSPEND, |body| Expected::decode(body).map(|Expected(id)| Call::Suspend(id))),
    (TRY_UPSCALE, more_resources),
];

/// What a request calls for.
///
/// # Errors
/// If the reference has no such call.
pub fn called(method: &str, path: &str, body: &[u8]) -> Result<Call, Uncalled> {
    let found = CALLS.into_iter().find(|(endpoint, _)| endpoint.path == path);
    let (endpoint, decode) = found.ok_or(Uncalled::Path)?;
    if method != endpoint.method {
        return Err(Uncalled::Method(endpoint.method));
    }
    decode(body).map_err(Uncalled::Body)
}

/// Status and body of an answer: JSON with status 200, plain text with any other.
pub fn call_answer(answer: CallAnswer) -> (u16, Vec<u8>) {
    match answer {
        CallAnswer::Ours(id, sequence) => (200, Identified { id, sequence }.encode()),
        CallAnswer::Unknown => (404, b"Server has already exited".to_vec()),
        CallAnswer::Other(id) => (404, format!("AgentID \"{id}\" not found").into()),
        CallAnswer::NotNow(why) => (400, why.to_string().into()),
    }
}

fn more_resources(body: &[u8]) -> Result<Call, BadBody> {
    let MoreResources { expected, cpu, memory } = MoreResources::decode(body)?;
    Ok(Call::MoreResources { expected, cpu, memory })
}

// === impl Uncalled ===

impl Uncalled {
    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Path => 404,
            Self::Method(_) => 405,
            Self::Body(_) => 400,
        }
    }

    /// The body that goes with it: plain text.
    pub fn body(&self) -> Vec<u8> {
        match self {
            // Go's own answer, which ends its line.
            Self::Path => format!("{self}\n").into(),
            Self::Method(_) | Self::Body(_) => self.to_string().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::NotNow;
    use windlass_protocol::{AgentId, InformantVersion, Sequence};

    const AGENT: AgentId = AgentId::from_u128(7);

    #[test]
    fn a_call_is_read_as_it_was_meant() {
        let expected = Expected(AGENT).encode();
        let more = |cpu, memory| {
            let body = MoreResources { expected: AGENT, cpu, memory }.encode();
            (TRY_UPSCALE, body, Call::MoreResources { expected: AGENT, cpu, memory })
        };
        for (endpoint, body, call) in [
            (ID, Empty.encode(), Call::Id),
            (RESUME, expected.clone(), Call::Resume(AGENT)),
            (SUSPEND, expected, Call::Suspend(AGENT)),
            more(false, true),
            more(true, false),
        ] {
            assert_eq!(called(endpoint.method, endpoint.path, &body), Ok(call));
        }
    }

    #[test]
    fn path_then_method_then_body_is_checked() {
        for (method, path, body, status, text) in [
            ("BREW", "/", "", 404, "404 page not found\n"),
            ("POST", "/resume/", "", 404, "404 page not found\n"),
            ("GET", "/register", "{}", 404, "404 page not found\n"),
            ("POST", "/id", "", 405, "request method must be GET"),
            ("get", "/id", "{}", 405, "request method must be GET"),
            ("GET", "/resume", "", 405, "request method must be POST"),
            ("PUT", "/suspend", "{}", 405, "request method must be POST"),
            ("GET", "/try-upscale", "{}", 405, "request method must be POST"),
            ("GET", "/id", "", 400, "bad JSON: byte 0: the body ends"),
            ("POST", "/resume", "{", 400, "bad JSON: byte 1: "),
            ("POST", "/suspend", "7", 400, "bad JSON: body: 7 is not an object"),
            ("POST", "/try-upscale", r#"{"cpu":1}"#, 400, "bad JSON: cpu: 1 is not "),
        ] {
            let uncalled = called(method, path, body.as_bytes()).unwrap_err();
            assert_eq!(uncalled.status(), status, "{method} {path} {body}");
            let found = String::from_utf8(uncalled.body()).unwrap();
            assert!(found.starts_with(text), "{method} {path} {body}: {found}");
        }
    }

    #[test]
    fn an_answer_says_who_answers_or_why_not() {
        let sequence = Sequence::from_number(3);
        let (status, body) = call_answer(CallAnswer::Ours(AGENT, sequence));
        assert_eq!(status, 200);
        assert_eq!(Identified::decode_reply(&body), Ok(Identified { id: AGENT, sequence }));
        let v1_0 = InformantVersion::V1_0;
        for (answer, status, text) in [
            (CallAnswer::Unknown, 404, "Server has already exited".to_owned()),
            (CallAnswer::Other(AGENT), 404, format!("AgentID \"{AGENT}\" not found")),
            (
                CallAnswer::NotNow(NotNow::SuspendsUnregistered),
                400,
                "Cannot suspend agent that is not yet registered".to_owned(),
            ),
            (
                CallAnswer::NotNow(NotNow::MoreUnconfirmed),
                400,
                "Cannot process upscale while unconfirmed".to_owned(),
            ),
            (
                CallAnswer::NotNow(NotNow::MoreSuspended),
                400,
                "Cannot process upscale while suspended".to_owned(),
            ),
            (
                CallAnswer::NotNow(NotNow::MoreUnknown(v1_0)),
                400,
                "/try-upscale not supported for protocol version v1.0".to_owned(),
            ),
        ] {
            assert_eq!(call_answer(answer), (status, text.into_bytes()));
        }
    }
}
