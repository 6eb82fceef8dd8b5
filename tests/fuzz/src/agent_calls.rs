//! The agent's call-back server: what an informant asks a session.
//!
//! An input is a VM and what happens to it: calls in any bytes, calls that are well said, and
//! what the rest of the world does meanwhile.

use crate::input::Input;
use crate::vm::Vm;
use crate::words;
use windlass_agent_core::{Call, CallAnswer, wire};
use windlass_protocol::informant::{
    Empty, Endpoint, Expected, ID, Identified, MoreResources, RESUME, SUSPEND, TRY_UPSCALE,
};
use windlass_protocol::{AgentId, Peer};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "post", ""];
const PATHS: [&str; 6] = ["/id", "/resume", "/suspend", "/try-upscale", "/register", "/id/"];

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let mut vm = Vm::new(&mut input);
    while !input.is_empty() {
        vm.follow();
        match input.below(8) {
            0 => {
                let (method, path) = (input.one_of(&METHODS), input.one_of(&PATHS));
                called(&mut vm, method, path, input.chunk());
            }
            1 => {
                let method = input.text();
                let path = input.text();
                called(&mut vm, &method, &path, input.chunk());
            }
            2 | 3 => {
                let (endpoint, body) = said(&vm, &mut input);
                called(&mut vm, endpoint.method, endpoint.path, &body);
            }
            4 => vm.kind(Peer::Plugin, input.byte() < 200),
            5 | 6 => vm.kind(Peer::Informant, input.byte() < 200),
            _ => vm.world(&mut input),
        }
    }
}

/// A call that is well said, mostly to the session that is open.
fn said(vm: &Vm, input: &mut Input<'_>) -> (Endpoint, Vec<u8>) {
    let id = match input.below(4) {
        0 => AgentId::from_u128(u128::from(input.number())),
        _ => vm.session(),
    };
    match input.below(4) {
        0 => (ID, Empty.encode()),
        1 => (RESUME, Expected(id).encode()),
        2 => (SUSPEND, Expected(id).encode()),
        _ => {
            let (cpu, memory) = (input.is(), input.is());
            (TRY_UPSCALE, MoreResources { expected: id, cpu, memory }.encode())
        }
    }
}

fn called(vm: &mut Vm, method: &str, path: &str, body: &[u8]) {
    let call = match wire::called(method, path, body) {
        Ok(call) => call,
        Err(uncalled) => {
            assert!(matches!(uncalled.status(), 400 | 404 | 405), "{uncalled:?}");
            return words::is_refusal(uncalled.status(), &uncalled.body());
        }
    };
    let (endpoint, again) = encoded(call);
    assert_eq!((endpoint.method, endpoint.path), (method, path));
    assert_eq!(wire::called(method, path, &again), Ok(call), "said again, it is another call");
    let answer = vm.call(call);
    let meant = match call {
        Call::Id => None,
        Call::Resume(meant)
        | Call::Suspend(meant)
        | Call::MoreResources { expected: meant, .. } => Some(meant),
    };
    match answer {
        CallAnswer::Ours(id, sequence) => {
            let (_, body) = wire::call_answer(answer);
            assert_eq!(Identified::decode_reply(&body), Ok(Identified { id, sequence }));
            assert_eq!(meant.unwrap_or(id), id, "an answer to a call for another session");
        }
        CallAnswer::Other(id) => {
            assert_eq!(meant, Some(id), "a refusal of a session that was not meant");
            assert_ne!(id, vm.session(), "a refusal of the session that is open");
        }
        CallAnswer::NotNow(_) => {
            assert_eq!(meant, Some(vm.session()), "another session is told to wait");
        }
        CallAnswer::Unknown => {}
    }
}

fn encoded(call: Call) -> (Endpoint, Vec<u8>) {
    match call {
        Call::Id => (ID, Empty.encode()),
        Call::Resume(id) => (RESUME, Expected(id).encode()),
        Call::Suspend(id) => (SUSPEND, Expected(id).encode()),
        Call::MoreResources { expected, cpu, memory } => {
            (TRY_UPSCALE, MoreResources { expected, cpu, memory }.encode())
        }
    }
}
