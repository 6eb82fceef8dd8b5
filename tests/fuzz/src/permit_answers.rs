//! The agent as the plugin's client: permits, and what is done upon them.
//!
//! An input is a VM and what happens to it: what the plugin answers, in any status and bytes, and
//! what the rest of the world does meanwhile. What the agent asks, a plugin understands.

use crate::input::Input;
use crate::vm::Vm;
use crate::words;
use windlass_agent_core::{Action, Event, Failure, wire};
use windlass_protocol::plugin::PermitResponse;
use windlass_protocol::{Bytes, Moment, Peer, Resources};
use windlass_scaling::{Loads, Sample};

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let mut vm = Vm::new(&mut input);
    while !input.is_empty() {
        vm.follow();
        match input.below(8) {
            0..=3 => answer(&mut vm, &mut input),
            4 => vm.kind(Peer::Plugin, true),
            5 | 6 => vm.kind(Peer::Informant, input.byte() < 220),
            _ => vm.world(&mut input),
        }
    }
}

/// The plugin answers what it was asked.
fn answer(vm: &mut Vm, input: &mut Input<'_>) {
    let Some(action) = vm.take(Peer::Plugin) else { return };
    let Action::AskPlugin(asked) = action else { unreachable!("a plugin is asked for permits") };
    asks(vm, asked, input);
    let slot = vm.info.memory_slot;
    let (status, body) = match input.below(4) {
        0 => (200, input.chunk().to_vec()),
        1 => (input.short(), input.chunk().to_vec()),
        _ => (200, well_said(slot, asked, input)),
    };
    let event = match wire::from_plugin(&vm.info, status, &body) {
        Ok(event) => {
            assert_eq!(status, 200, "{status} is taken for an answer");
            let Event::Permitted(permit) = event else { unreachable!("{event:?} upon a request") };
            comes_back(slot, permit);
            event
        }
        Err(unheard) => {
            words::is_short_and_harmless(&unheard);
            let failure = unheard.failure();
            assert_eq!(failure == Failure::Refused(status), status != 200, "{status}: {failure:?}");
            Event::Failed(Peer::Plugin, failure)
        }
    };
    vm.heard(action, event);
}

/// What is asked says no less than the VM has, whatever its load is.
fn asks(vm: &Vm, asked: Resources, input: &mut Input<'_>) {
    let load = |input: &mut Input<'_>| match input.below(4) {
        0 => None,
        1 => Some(f64::from_bits(input.number().rotate_right(8))),
        _ => Some(f64::from(input.byte()) / 16.0),
    };
    let loads = Loads { one_minute: load(input), five_minutes: load(input), ..Loads::default() };
    let sample = Sample {
        at: Moment::default(),
        loads,
        total: None,
        available: None,
        online: None,
        reach: None,
    };
    let body = match wire::to_plugin(&vm.info, asked, Some(&sample)) {
        Ok(body) => body,
        Err(over) => return words::is_short_and_harmless(&over),
    };
    let read = windlass_plugin_core::wire::read(&body).expect("a plugin reads what an agent asks");
    let read = read.resources(vm.info.memory_slot);
    assert!(read.covers(asked), "{asked} is read as {read}");
}

/// An answer of the right form: near what was asked, or anything.
fn well_said(slot: Bytes, asked: Resources, input: &mut Input<'_>) -> Vec<u8> {
    let permit = if input.is() { input.size() } else { asked.min(input.size()) };
    let response = PermitResponse { permit, migrate: input.is(), unit: input.size() };
    let body = response.encode(slot);
    if let Ok(body) = &body {
        let read = PermitResponse::decode(body, slot).expect("what is written is read");
        assert!(permit.covers(read.permit), "{permit} is read as {}", read.permit);
        assert_eq!(read.migrate, response.migrate);
    }
    body.unwrap_or_default()
}

/// A permit that was read is written and read as the same.
fn comes_back(slot: Bytes, permit: Resources) {
    let response = PermitResponse { permit, migrate: false, unit: permit };
    let body = response.encode(slot).expect("what was read fits");
    let read = PermitResponse::decode(&body, slot).expect("what is written is read");
    assert_eq!(read, response);
}
