//! The plugin's listener.
//!
//! An input is the bytes of one connection, or a history of a node: requests for permits, in any
//! bytes or well said, and VMs that come, go, and are seen to have something.

use crate::input::Input;
use crate::{talk, words};
use std::time::Duration;
use windlass_kit::clock::Clock;
use windlass_plugin::{Endpoint, Shared};
use windlass_plugin_core::wire;
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::plugin::{Metrics, PermitRequest, PermitResponse, RawRequest};
use windlass_protocol::{
    Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, Versions, VmName,
};

const VMS: usize = 4;

/// The books of a node, and what time it is there.
struct Node {
    books: Books,
    now: Moment,
    unit: ComputeUnit,
    versions: Versions<PluginVersion>,
}

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).expect("no zero");
    let connected = input.is();
    let known: Vec<_> = PluginVersion::known().collect();
    // A connection is of a shell, which speaks them all.
    let versions = if connected { PluginVersion::SPOKEN } else { input.versions(&known) };
    let mut node = Node {
        books: Books::new(Resources::new(MilliCpu::from_cores(8), Bytes::from_gib(8))),
        now: Moment::from_millis(1_000_000),
        unit,
        versions,
    };
    if connected {
        node.books.enter(name(0), VmRecord::default(), Resources::ZERO);
        return node.converse(input.rest());
    }
    while !input.is_empty() {
        node.step(&mut input);
    }
}

// === impl Node ===

impl Node {
    fn converse(self, said: &[u8]) {
        let heard = talk::run(async {
            let clock = Clock::starting_at(self.now);
            talk::heard_of(Endpoint(Shared::new(self.books, self.unit, clock)), said).await
        });
        for (status, body) in talk::answers(said, &heard) {
            if status != 200 && !body.is_empty() {
                words::is_refusal(status, &body);
            }
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(10) {
            0 => self.request(input.chunk()),
            1..=4 => {
                if let Some(body) = self.well_said(input) {
                    self.request(&body);
                }
            }
            5 => self.now = self.now.after(Duration::from_millis(input.wait())),
            6 => {
                let record = record(input);
                self.books.enter(name(input.below(VMS)), record, input.size());
            }
            7 => self.books.witness(&name(input.below(VMS)), input.size()),
            8 => match input.below(4) {
                0 => self.books.leave(&name(input.below(VMS))),
                1 => self.books.count(&name(input.below(VMS)), input.size()),
                2 => self.books.set_moving(&name(input.below(VMS)), input.is()),
                _ => self.books.update(&name(input.below(VMS)), record(input)),
            },
            _ => self.books.set_room(input.size()),
        }
    }

    /// A request in a version that is known, most often, for a VM that is known, most often.
    fn well_said(&self, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let known: Vec<_> = PluginVersion::known().collect();
        let version = match input.byte() {
            other @ 240.. => PluginVersion::from_number(u32::from(other - 240)),
            said => known[usize::from(said) % known.len()],
        };
        let vm = match input.below(8) {
            7 => VmName { namespace: input.text(), name: input.text() },
            known => name(known % VMS),
        };
        let features = version.features();
        let metrics = input.is().then(|| Metrics {
            load_1m: f32::from_bits(u32::from(input.short()) << 16),
            load_5m: Some(f32::from(input.byte())),
            memory_usage: features.memory_usage.then(|| f32::from(input.byte()) * 1e8),
        });
        let slot = self.books.record(&vm).map_or(Bytes::from_mib(1), |record| record.memory_slot);
        let resources = input.size();
        let last_permit = (features.last_permit && input.is()).then(|| input.size());
        let unit = match features.agent_sends_unit.then(|| input.byte()) {
            Some(0..=199) => Some(self.unit.into()),
            Some(200..=247) => Some(input.size()),
            Some(248..) | None => None,
        };
        let request =
            PermitRequest { version, vm, unit, resources, last_permit, metrics, told: None };
        match request.encode(slot) {
            Ok(body) => {
                understood(&request, slot, &body);
                Some(body)
            }
            Err(over) => {
                words::is_short_and_harmless(&over);
                None
            }
        }
    }

    /// Law 2, books within the node, over one request; and what the agent reads of the answer.
    fn request(&mut self, body: &[u8]) {
        let (before, books) = (self.books.reserved(), self.books.clone());
        let read = wire::read(body, self.versions);
        match read.and_then(|said| wire::grant(&mut self.books, self.now, self.unit, said)) {
            Ok(permitted) => {
                let version = permitted.version;
                assert!(self.versions.contains(version), "{version} is not spoken here");
                let (room, after) = (self.books.room(), self.books.reserved());
                assert!(room.max(before).covers(after), "{before} to {after} of {room}");
                let permit = permitted.granted.permit;
                assert!(permitted.asked.covers(permit), "{permit} of {}", permitted.asked);
                let whole = permitted.granted.short.is_empty();
                assert_eq!(whole, permit == permitted.asked, "{:?}", permitted.granted.short);
                permitted.granted.short.iter().for_each(words::is_short_and_harmless);
                let slot = self.books.record(&permitted.vm).expect("it was there").memory_slot;
                let answer = permitted.encode().expect("what was asked in this version fits");
                let read = PermitResponse::decode(version, &answer, slot);
                let migrate = permitted.granted.moving;
                assert_eq!(read, Ok(PermitResponse { permit, migrate }), "the agent reads another");
            }
            Err(refusal) => {
                words::is_refusal(refusal.status(), refusal.to_string().as_bytes());
                assert_eq!(self.books.reserved(), books.reserved(), "a refusal with an effect");
            }
        }
    }
}

/// What is written is read as it was meant, as far as the version can say it.
fn understood(said: &PermitRequest, slot: Bytes, body: &[u8]) {
    let raw = RawRequest::decode(body).expect("what is written is read");
    assert_eq!((raw.version(), raw.vm()), (said.version, &said.vm));
    let features = said.version.features();
    match raw.with_slot(slot) {
        Ok(read) => {
            assert!(read.resources.covers(said.resources), "{said:?} is read as {read:?}");
            let last = said.last_permit.unwrap_or_default();
            assert_eq!(read.last_permit.is_some(), said.last_permit.is_some(), "{read:?}");
            assert!(last.covers(read.last_permit.unwrap_or_default()), "{last} as {read:?}");
            assert_eq!(read.unit, said.unit);
            if features.memory_in_bytes {
                assert_eq!(read.resources, said.resources, "{} is exact", said.version);
            }
        }
        Err(unfit) => {
            words::is_short_and_harmless(&unfit);
            assert!(features.agent_sends_unit, "{said:?}: {unfit}");
        }
    }
}

fn record(input: &mut Input<'_>) -> VmRecord {
    let slots = [Bytes::from_mib(128), Bytes::from_mib(1), Bytes::from_gib(1), Bytes::from_gib(64)];
    VmRecord {
        priority: i32::from(input.byte() % 3),
        grain: input.one_of(&[
            Resources::ZERO,
            Resources::new(MilliCpu::from_cores(1), Bytes::from_gib(1)),
            Resources::new(MilliCpu::from_milli(250), Bytes::from_mib(2)),
        ]),
        memory_slot: input.one_of(&slots),
        min: Resources::ZERO,
    }
}

fn name(index: usize) -> VmName {
    VmName::on_host(["db1", "db2", "web", "x"][index])
}
