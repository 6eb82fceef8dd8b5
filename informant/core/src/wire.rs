//! Between what an informant hears and says, and the bytes that agents write and read.
//!
//! Pure functions, so that a simulation carries the same bytes as a shell does. A shell
//! decides how long it waits for a body, and serves what is for people.
//!
//! What an agent asks is in [`request`], what it is asked is here, and what it reads of
//! `/metrics` is in [`figures`].

pub mod figures;
pub mod request;

pub use figures::Figures;
pub use request::{Answer, Request, Unanswered, endpoint};

use crate::event::{Ask, Event, Failure};
use windlass_protocol::AgentId;
use windlass_protocol::informant::{
    Empty, Endpoint, Expected, ID, Identified, MoreResources, RESUME, SUSPEND, TRY_UPSCALE,
};

/// What is sent for this question.
pub fn to_agent(agent: AgentId, ask: Ask) -> (Endpoint, Vec<u8>) {
    match ask {
        Ask::Id => (ID, Empty.encode()),
        Ask::Suspend => (SUSPEND, Expected(agent).encode()),
        Ask::Resume => (RESUME, Expected(agent).encode()),
        Ask::MoreMemory => {
            let more = MoreResources { expected: agent, cpu: false, memory: true };
            (TRY_UPSCALE, more.encode())
        }
    }
}

/// What the answer says. Of one that is a refusal the body does not matter.
pub fn from_agent(agent: AgentId, status: u16, body: &[u8]) -> Event {
    if status != 200 {
        return Event::Failed(agent, Failure::Refused(status));
    }
    match Identified::decode_reply(body) {
        Ok(Identified { id, sequence }) => Event::Answered { agent, by: id, sequence },
        // The agent may or may not have acted.
        Err(_) => Event::Failed(agent, Failure::NoAnswer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::Sequence;

    const AGENT: AgentId = AgentId::from_u128(7);

    #[test]
    fn the_agent_reads_what_it_is_asked() {
        assert_eq!(to_agent(AGENT, Ask::Id), (ID, b"{}".to_vec()));
        for (ask, endpoint) in [(Ask::Suspend, SUSPEND), (Ask::Resume, RESUME)] {
            let (found, body) = to_agent(AGENT, ask);
            assert_eq!((found, Expected::decode(&body)), (endpoint, Ok(Expected(AGENT))));
        }
        let (endpoint, body) = to_agent(AGENT, Ask::MoreMemory);
        let more = MoreResources { expected: AGENT, cpu: false, memory: true };
        assert_eq!((endpoint, MoreResources::decode(&body)), (TRY_UPSCALE, Ok(more)));
    }

    #[test]
    fn an_answer_is_who_answered_and_all_else_a_failure() {
        let (by, sequence) = (AgentId::from_u128(8), Sequence::from_number(3));
        let body = Identified { id: by, sequence }.encode();
        let answered = Event::Answered { agent: AGENT, by, sequence };
        assert_eq!(from_agent(AGENT, 200, &body), answered);
        for status in [0, 204, 302, 400, 404, 500] {
            let refused = Event::Failed(AGENT, Failure::Refused(status));
            assert_eq!(from_agent(AGENT, status, &body), refused);
        }
        for body in ["", "{", "[]", "{}{}", r#"{"sequenceNumber":-1}"#, r#"{"data":7}"#] {
            let lost = Event::Failed(AGENT, Failure::NoAnswer);
            assert_eq!(from_agent(AGENT, 200, body.as_bytes()), lost, "{body}");
        }
    }
}
