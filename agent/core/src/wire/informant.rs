//! What an agent says to a guest's informant: one request per action.

use super::WireError;
use crate::event::{Action, Event};
use windlass_protocol::informant::{
    AgentDesc, DOWNSCALE, DownscaleResult, Empty, Endpoint, HEALTH_CHECK, HealthCheck,
    InformantDesc, REGISTER, ResourceMessage, UNREGISTER, UPSCALE, Unregistered, v1_2,
};
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::{AgentId, Resources, Sequence};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its method and path.
    pub endpoint: Endpoint,
    /// Its body.
    pub body: Vec<u8>,
}

/// What an agent offers.
pub type Offered = Versions<InformantVersion>;

/// The request of this action; `None` if it does not go to the informant. `serve_addr` is
/// where the agent is called back, as `ip:port`; `offered`, the versions that it speaks.
pub fn to_informant(action: Action, serve_addr: &str, offered: Offered) -> Option<Said> {
    let (endpoint, body) = match action {
        Action::Look | Action::Resize(_) | Action::Measure | Action::AskPlugin(_) => return None,
        Action::Register(id) => (REGISTER, describe(id, serve_addr, offered)),
        Action::CheckHealth(id) => (HEALTH_CHECK, HealthCheck(id).encode()),
        Action::Downscale(id, number, to) => (DOWNSCALE, size(id, number, to)),
        Action::Upscale(id, number, to) => (UPSCALE, size(id, number, to)),
        Action::Unregister(id) => (UNREGISTER, describe(id, serve_addr, offered)),
    };
    Some(Said { endpoint, body })
}

/// What the answer to the request of this action says; `offered` is what the request said.
///
/// # Errors
/// If it is a refusal, or not an answer to that request.
pub fn from_informant(
    action: Action,
    offered: Offered,
    status: u16,
    body: &[u8],
) -> Result<Event, WireError> {
    match status {
        200 => decode(action, offered, body),
        400.. => Err(WireError::Refused(status)),
        _ => Err(WireError::Odd(status)),
    }
}

fn decode(action: Action, offered: Offered, body: &[u8]) -> Result<Event, WireError> {
    match action {
        Action::Look | Action::Resize(_) | Action::Measure | Action::AskPlugin(_) => {
            Err(WireError::Unasked)
        }
        Action::Register(_) => registered(offered, InformantDesc::decode_reply(body)?),
        Action::CheckHealth(_) => Ok(Empty::decode_reply(body).map(|Empty| Event::Healthy)?),
        Action::Downscale(..) => {
            let DownscaleResult { ok, status } = DownscaleResult::decode_reply(body)?;
            Ok(if ok { Event::Agreed { status } } else { Event::Declined { status } })
        }
        Action::Upscale(..) => Ok(Empty::decode_reply(body).map(|Empty| Event::Upscaled)?),
        Action::Unregister(_) => Ok(Unregistered::decode_reply(body).map(|_| Event::Unregistered)?),
    }
}

fn registered(offered: Offered, desc: InformantDesc) -> Result<Event, WireError> {
    if !offered.contains(desc.version) {
        return Err(WireError::NotOffered { chosen: desc.version, offered });
    }
    let metrics_port = desc.metrics_port.ok_or(WireError::NoMetricsPort)?;
    Ok(Event::Registered { version: desc.version, metrics_port })
}

fn describe(id: AgentId, serve_addr: &str, versions: Offered) -> Vec<u8> {
    let serve_addr = serve_addr.to_owned();
    AgentDesc { agent_id: id, serve_addr, versions }.encode()
}

/// Without a number it is a size of before v2.0.
fn size(id: AgentId, sequence: Sequence, resources: Resources) -> Vec<u8> {
    let message = ResourceMessage { resources, id, sequence };
    if sequence == Sequence::ZERO { v1_2::Size::from(message).encode() } else { message.encode() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Failure;
    use windlass_protocol::{Bytes, MilliCpu};

    const ID: AgentId = AgentId::from_u128(7);
    const NUMBER: Sequence = Sequence::from_number(3);
    const SIZE: Resources = Resources { cpu: MilliCpu::from_milli(1500), mem: Bytes::from_gib(2) };

    const OURS: Offered = InformantVersion::SPOKEN;

    const SPOKEN: [Action; 5] = [
        Action::Register(ID),
        Action::CheckHealth(ID),
        Action::Downscale(ID, NUMBER, SIZE),
        Action::Upscale(ID, NUMBER, SIZE),
        Action::Unregister(ID),
    ];

    #[test]
    fn the_informant_reads_what_the_action_says() {
        let said = SPOKEN.map(|action| to_informant(action, "10.0.0.1:9", OURS).unwrap());
        let endpoints = [REGISTER, HEALTH_CHECK, DOWNSCALE, UPSCALE, UNREGISTER];
        assert_eq!(said.clone().map(|said| said.endpoint), endpoints);
        let [register, check, downscale, upscale, unregister] = said.map(|said| said.body);
        let desc = AgentDesc {
            agent_id: ID,
            serve_addr: "10.0.0.1:9".into(),
            versions: InformantVersion::SPOKEN,
        };
        assert_eq!(AgentDesc::decode(&register).as_ref(), Ok(&desc));
        assert_eq!(AgentDesc::decode(&unregister), Ok(desc));
        assert_eq!(HealthCheck::decode(&check), Ok(HealthCheck(ID)));
        let message = ResourceMessage { resources: SIZE, id: ID, sequence: NUMBER };
        assert_eq!(ResourceMessage::decode_any(&downscale), Ok(message));
        assert_eq!(ResourceMessage::decode_any(&upscale), Ok(message));
        for action in [Action::Look, Action::Measure] {
            assert_eq!(to_informant(action, "", OURS), None);
            assert_eq!(from_informant(action, OURS, 200, b"{}"), Err(WireError::Unasked));
        }
    }

    #[test]
    fn a_size_without_a_number_is_that_of_before_v2_0() {
        for action in
            [Action::Downscale(ID, Sequence::ZERO, SIZE), Action::Upscale(ID, Sequence::ZERO, SIZE)]
        {
            let body = to_informant(action, "", OURS).unwrap().body;
            assert_eq!(String::from_utf8(body).unwrap(), r#"{"cpu":"1500m","memory":"2Gi"}"#);
        }
    }

    #[test]
    fn an_answer_is_the_event_of_its_action() {
        let desc = InformantDesc { version: InformantVersion::V2_0, metrics_port: Some(9100) };
        let result = |ok| DownscaleResult { ok, status: "why".into() }.encode();
        let [register, check, downscale, upscale, unregister] = SPOKEN;
        let why = || String::from("why");
        for (action, body, event) in [
            (
                register,
                desc.encode(),
                Event::Registered { version: desc.version, metrics_port: 9100 },
            ),
            (check, Empty.encode(), Event::Healthy),
            (downscale, result(true), Event::Agreed { status: why() }),
            (downscale, result(false), Event::Declined { status: why() }),
            (upscale, Empty.encode(), Event::Upscaled),
            (unregister, Unregistered { was_active: true }.encode(), Event::Unregistered),
        ] {
            assert_eq!(from_informant(action, OURS, 200, &body), Ok(event));
        }
    }

    #[test]
    fn a_refusal_is_known_and_all_else_is_open() {
        for action in SPOKEN {
            for (status, body, failure) in [
                (400, "bad JSON", Failure::Refused(400)),
                (404, "{}", Failure::Refused(404)),
                (503, "", Failure::Refused(503)),
                (0, "{}", Failure::NoAnswer),
                (204, "", Failure::NoAnswer),
                (302, "{}", Failure::NoAnswer),
                (200, "", Failure::NoAnswer),
                (200, "{", Failure::NoAnswer),
                (200, "[]", Failure::NoAnswer),
                (200, "{}{}", Failure::NoAnswer),
                (200, "\u{feff}{}", Failure::NoAnswer),
            ] {
                let heard = from_informant(action, OURS, status, body.as_bytes());
                assert_eq!(heard.unwrap_err().failure(), failure, "{action:?} {status} {body}");
            }
        }
    }

    #[test]
    fn a_registration_names_what_it_lacks() {
        let offered = Versions { min: InformantVersion::V1_1, max: InformantVersion::V1_2 };
        let answer = |number, metrics_port| {
            let version = InformantVersion::from_number(number);
            let body = InformantDesc { version, metrics_port }.encode();
            from_informant(Action::Register(ID), offered, 200, &body).unwrap_err()
        };
        for (error, text) in [
            (answer(4, Some(9100)), "protoVersion: v2.0 is not v1.1 to v1.2"),
            (answer(1, Some(9100)), "protoVersion: v1.0 is not v1.1 to v1.2"),
            (answer(9, None), "protoVersion: <unknown = v2.0 + 5> is not v1.1 to v1.2"),
            (answer(3, None), "metricsMethod.prometheus.port: is missing"),
        ] {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.failure(), Failure::NoAnswer);
        }
    }
}
