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
use windlass_kit::client::{Address, Ask, ask_over};
use windlass_protocol::informant::{DownscaleResult, Empty, InformantDesc, PORT, Unregistered};
use windlass_protocol::{InformantVersion, Peer};

const LIMIT: usize = 2048;

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
    let (status, body) = match input.below(4) {
        0 => (200, input.chunk().to_vec()),
        1 => (input.short(), input.chunk().to_vec()),
        _ => (200, well_said(action, input)),
    };
    let event = match wire::from_informant(action, status, &body) {
        Ok(event) => {
            assert_eq!(status, 200, "{status} is taken for an answer");
            answers(action, &event);
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

/// An answer of the right form, in which anything may stand.
fn well_said(action: Action, input: &mut Input<'_>) -> Vec<u8> {
    match action {
        Action::Register(_) => {
            let version = match input.byte() {
                0..=127 => InformantVersion::SPOKEN.max,
                other => InformantVersion::from_number(u32::from(other - 128)),
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
fn answers(action: Action, event: &Event) {
    let fits = matches!(
        (action, event),
        (Action::Register(_), Event::Registered { .. })
            | (Action::CheckHealth(_), Event::Healthy)
            | (Action::Downscale(..), Event::Agreed { .. } | Event::Declined { .. })
            | (Action::Upscale(..), Event::Upscaled)
            | (Action::Unregister(_), Event::Unregistered)
    );
    assert!(fits, "{event:?} upon {action:?}");
}
