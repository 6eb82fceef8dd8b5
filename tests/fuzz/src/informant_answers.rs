//! The agent as the informant's client: answers, and what is done upon them.
//!
//! An input is the bytes of one connection on which an answer comes, or a VM and what happens
//! to it: what its informant answers, in any status and bytes, and what the rest of the world
//! does meanwhile.

use crate::input::Input;
use crate::vm::Vm;
use crate::{talk, words};
use http::Method;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::AsyncWriteExt;
use windlass_agent_core::{Action, Event, Failure, wire};
use windlass_informant_core::wire::Request;
use windlass_kit::client::{Address, Ask, ask_over};
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, InformantDesc, PORT, ResourceMessage, Unregistered,
};
use windlass_protocol::{AgentId, InformantVersion, Peer, Sequence, Versions};

const LIMIT: usize = 2048;

/// Where agents say that they are called back.
const SERVE_ADDR: &str = "10.0.2.2:10310";

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    if input.byte() == u8::MAX {
        return converse(input.rest());
    }
    let mut vm = Vm::new(&mut input);
    while !input.is_empty() {
        vm.follow();
        match input.below(8) {
            0..=2 => answer(&mut vm, &mut input),
            3 => vm.kind(Peer::Informant, true),
            4 => {
                let id = vm.session();
                vm.call(match input.is() {
                    true => windlass_agent_core::Call::Resume(id),
                    false => windlass_agent_core::Call::Suspend(id),
                });
            }
            5 | 6 => vm.kind(Peer::Plugin, input.byte() < 200),
            _ => vm.world(&mut input),
        }
    }
}

/// What comes of the bytes of an answer, whole or not.
fn converse(said: &[u8]) {
    let to = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    let request = Ask::new(Method::PUT, "/health-check", "{}").at_most(LIMIT);
    let answered = talk::run(async {
        let (mut ours, theirs) = talk::pipe();
        ours.write_all(said).await.expect("there is room for all of it");
        let asked = ask_over(theirs, &to, request);
        // Who waits for more waits until its deadline, which is not the connection's.
        tokio::time::timeout(std::time::Duration::from_secs(2), asked).await
    });
    match answered {
        Ok(Ok(answer)) => {
            assert!(answer.body.len() <= LIMIT, "{} bytes of an answer", answer.body.len());
            assert!(answer.text().len() <= words::LONGEST);
        }
        Ok(Err(error)) => words::is_short_and_harmless(&error),
        Err(_) => {}
    }
}

/// The informant answers what it was asked.
fn answer(vm: &mut Vm, input: &mut Input<'_>) {
    let Some(action) = vm.take(Peer::Informant) else { return };
    let offered = vm.offered;
    asks(action, offered);
    let (status, body) = match input.below(4) {
        0 => (200, input.chunk().to_vec()),
        1 => (input.short(), input.chunk().to_vec()),
        _ => (200, well_said(action, offered, input)),
    };
    let event = match wire::from_informant(action, offered, status, &body) {
        Ok(event) => {
            assert_eq!(status, 200, "{status} is taken for an answer");
            answers(action, offered, &event);
            event
        }
        Err(unheard) => {
            words::is_short_and_harmless(&unheard);
            let failure = unheard.failure();
            assert_eq!(failure == Failure::Refused(status), status >= 400, "{status}: {failure:?}");
            Event::Failed(Peer::Informant, failure)
        }
    };
    vm.heard(action, event);
}

/// What is asked, the informant reads as it was meant, in whichever version it is said.
fn asks(action: Action, offered: Versions<InformantVersion>) {
    let said = wire::to_informant(action, SERVE_ADDR, offered).expect("it is the informant's");
    let read = Request::decode(said.endpoint, &said.body).expect("an informant reads it");
    let desc =
        |agent_id| AgentDesc { agent_id, serve_addr: SERVE_ADDR.to_owned(), versions: offered };
    let size = |id, sequence, resources| {
        // Without a number nobody is named either.
        let id = if sequence == Sequence::ZERO { AgentId::default() } else { id };
        ResourceMessage { resources, id, sequence }
    };
    let meant = match action {
        Action::Register(id) => Request::Register(desc(id)),
        Action::CheckHealth(id) => Request::HealthCheck(id),
        Action::Downscale(id, number, to) => Request::Downscale(size(id, number, to)),
        Action::Upscale(id, number, to) => Request::Upscale(size(id, number, to)),
        Action::Unregister(id) => Request::Unregister(desc(id)),
        Action::Look | Action::Resize(_) | Action::Measure | Action::AskPlugin(_) => {
            unreachable!("{action:?} is no informant's")
        }
    };
    assert_eq!(read, meant);
}

/// An answer of the right form, in which anything may stand.
fn well_said(
    action: Action,
    offered: Versions<InformantVersion>,
    input: &mut Input<'_>,
) -> Vec<u8> {
    match action {
        Action::Register(_) => {
            let version = match input.byte() {
                0..=127 => offered.max,
                known @ 128..=191 => {
                    InformantVersion::KNOWN[usize::from(known) % InformantVersion::KNOWN.len()]
                }
                other @ 192..=255 => InformantVersion::from_number(u32::from(other - 192)),
            };
            let metrics_port = (input.byte() < 240).then(|| input.short());
            InformantDesc { version, metrics_port }.encode()
        }
        Action::Downscale(..) => DownscaleResult { ok: input.is(), status: input.text() }.encode(),
        Action::Unregister(_) => Unregistered { was_active: input.is() }.encode(),
        Action::CheckHealth(_)
        | Action::Upscale(..)
        | Action::Look
        | Action::Resize(_)
        | Action::Measure
        | Action::AskPlugin(_) => Empty.encode(),
    }
}

/// An answer answers what was asked.
fn answers(action: Action, offered: Versions<InformantVersion>, event: &Event) {
    let fits = matches!(
        (action, event),
        (Action::Register(_), Event::Registered { .. })
            | (Action::CheckHealth(_), Event::Healthy)
            | (Action::Downscale(..), Event::Agreed { .. } | Event::Declined { .. })
            | (Action::Upscale(..), Event::Upscaled)
            | (Action::Unregister(_), Event::Unregistered)
    );
    assert!(fits, "{event:?} upon {action:?}");
    if let Event::Registered { version, .. } = event {
        assert!(offered.contains(*version), "{version} of {offered}");
    }
}
