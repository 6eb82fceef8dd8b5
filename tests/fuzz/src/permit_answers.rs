//! The agent as the plugin's client: permits, and what is done upon them.
//!
//! An input is a VM and what happens to it: what the plugin answers, in any status and bytes, and
//! what the rest of the world does meanwhile. What the agent asks, a plugin understands.

use crate::input::Input;
use crate::vm::{Vm, unit};
use crate::words;
use windlass_agent_core::{Action, Asking, Event, Failure, wire};
use windlass_protocol::plugin::{PermitRequest, PermitResponse};
use windlass_protocol::{
    Bytes, ComputeUnit, MilliCpu, Moment, Peer, PluginVersion, Resources, Versions,
};
use windlass_scaling::{Loads, Sample};

/// Refusals that say more than their status: of a version, and of a VM that is to be moved.
const REFUSALS: [&str; 4] = [
    "Protocol version mismatch: Need v1.0 to v2.0 but got v5.0",
    "Invalid protocol version",
    "bad JSON",
    "cannot change resources: agent has already been informed that pod is migrating",
];

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
    let Action::AskPlugin(asking) = action else { unreachable!("a plugin is asked for permits") };
    asks(vm, &asking, input);
    let slot = vm.info.memory_slot;
    let (status, body) = match input.byte() {
        240.. => (400, input.one_of(&REFUSALS).as_bytes().to_vec()),
        kind => match kind % 4 {
            0 => (200, input.chunk().to_vec()),
            1 => (input.short(), input.chunk().to_vec()),
            _ => (200, well_said(slot, &asking, input)),
        },
    };
    let event = match wire::from_plugin(&vm.info, &asking, status, &body) {
        Ok(event) => {
            assert_eq!(status, 200, "{status} is taken for an answer");
            let (permit, migrate) = if let Event::Permitted(permit) = event {
                (permit, false)
            } else if let Event::MustStay(permit) = event {
                (permit, true)
            } else {
                unreachable!("{event:?} upon a request")
            };
            comes_back(asking.version, slot, PermitResponse { permit, migrate });
            event
        }
        Err(unheard) => {
            words::is_short_and_harmless(&unheard);
            let failure = unheard.failure();
            fails(failure, status, &body);
            Event::Failed(Peer::Plugin, failure)
        }
    };
    vm.heard(action, event);
}

/// A failure is what its status says, or, where that leaves it open, its words.
fn fails(failure: Failure, status: u16, body: &[u8]) {
    let words = String::from_utf8_lossy(body).to_ascii_lowercase();
    match failure {
        Failure::NoAnswer => assert_eq!(status, 200, "a refusal is taken for silence"),
        Failure::Refused(refused) => {
            assert_eq!(refused, status);
            assert_ne!(status, 200, "a broken answer is taken for a refusal");
        }
        Failure::Version => {
            let says = words.starts_with("bad json") || words.contains("protocol version");
            assert!(status == 400 && says, "{status} says nothing of versions: {words}");
        }
        Failure::Moving => {
            let says = words.starts_with("cannot change resources");
            assert!(status == 400 && says, "{status} says nothing of a move: {words}");
        }
    }
}

/// What is asked says no less than the VM has, whatever its load is and in every version.
fn asks(vm: &Vm, asking: &Asking, input: &mut Input<'_>) {
    let load = |input: &mut Input<'_>| match input.below(4) {
        0 => None,
        1 => Some(f64::from_bits(input.number().rotate_right(8))),
        _ => Some(f64::from(input.byte()) / 16.0),
    };
    let loads = Loads { one_minute: load(input), five_minutes: load(input), ..Loads::default() };
    let memory = vm.memory();
    for (total, available) in [(None, None), (Some(memory), Some(Bytes::ZERO))] {
        let sample = Sample { loads, total, available, ..Sample::empty(Moment::default()) };
        for version in PluginVersion::known() {
            let asking = Asking { version, ..*asking };
            match wire::to_plugin(&vm.info, &asking, Some(&sample)) {
                Ok(body) => understood(vm, &asking, &sample, &body),
                Err(over) => words::is_short_and_harmless(&over),
            }
        }
    }
}

/// What the plugin reads is what was meant, as far as the version can say it.
fn understood(vm: &Vm, asking: &Asking, sample: &Sample, body: &[u8]) {
    let Asking { version, resources, last_permit, .. } = *asking;
    let (features, slot) = (version.features(), vm.info.memory_slot);
    let only = Versions::only(version);
    let raw = windlass_plugin_core::wire::read(body, only).expect("a plugin reads what is asked");
    let read: PermitRequest = raw.with_slot(slot).expect("it keeps to its version");
    assert_eq!((read.version, &read.vm), (version, &vm.info.name));
    assert!(read.resources.covers(resources), "{resources} is read as {}", read.resources);
    if features.memory_in_bytes {
        assert_eq!(read.resources, resources, "{version} is exact");
    }
    assert_eq!(read.unit.is_some(), features.agent_sends_unit, "{version}");
    let last = last_permit.filter(|_| features.last_permit);
    assert_eq!(read.last_permit.is_some(), last.is_some(), "{version}");
    if let Some((last, read)) = last.zip(read.last_permit) {
        assert!(last.covers(read), "a permit of {last} is read as {read}");
    }
    // Missing is not zero: of what is not known nothing is said.
    if let Some(metrics) = read.metrics.filter(|_| features.metrics_may_be_missing) {
        assert!(sample.loads.one_minute.is_some(), "{metrics:?} of {sample:?}");
        assert!(sample.loads.five_minutes.is_some() || !features.five_minutes, "{metrics:?}");
        assert!(sample.total.is_some() || !features.memory_usage, "{metrics:?}");
    }
}

/// An answer of the right form: near what was asked, or anything.
fn well_said(slot: Bytes, asking: &Asking, input: &mut Input<'_>) -> Vec<u8> {
    let (version, asked) = (asking.version, asking.resources);
    let permit = if input.is() { input.size() } else { asked.min(input.size()) };
    let response = PermitResponse { permit, migrate: input.is() };
    let told = ComputeUnit::try_from(input.size()).unwrap_or(unit());
    let body = response.encode(version, slot, told);
    if let Ok(body) = &body {
        let read = PermitResponse::decode(version, body, slot).expect("what is written is read");
        assert!(permit.covers(read.permit), "{permit} is read as {}", read.permit);
        assert_eq!(read.migrate, response.migrate);
        if version.features().memory_in_bytes {
            assert_eq!(read, response, "{version} is exact");
        }
    }
    body.unwrap_or_default()
}

/// A permit that was read is written and read as the same, where the version has words for it.
fn comes_back(version: PluginVersion, slot: Bytes, heard: PermitResponse) {
    let body = heard.encode(version, slot, unit()).expect("what was read fits");
    let read = PermitResponse::decode(version, &body, slot).expect("what is written is read");
    let permit = match version.features().fractional_cpu {
        true => heard.permit,
        // Another than ours may permit parts of a vCPU all the same.
        false => {
            Resources { cpu: heard.permit.cpu.round_down(MilliCpu::from_cores(1)), ..heard.permit }
        }
    };
    assert_eq!(read, PermitResponse { permit, ..heard });
}
