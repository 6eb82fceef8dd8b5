//! The plugin's listener.
//!
//! An input is the bytes of one connection, or a history of a node: requests for permits, in any
//! bytes or well said, and VMs that come, go, and are seen to have something.

use crate::input::Input;
use crate::{talk, words};
use std::time::Duration;
use windlass_kit::clock::Clock;
use windlass_plugin::{Shared, router};
use windlass_plugin_core::{Books, VmRecord, wire};
use windlass_protocol::plugin::{LoadMetrics, PermitRequest, PermitResponse};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, VmName};

const VMS: usize = 4;

/// The books of a node, and what time it is there.
struct Node {
    books: Books,
    now: Moment,
    unit: ComputeUnit,
}

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).expect("no zero");
    let mut node = Node {
        books: Books::new(Resources::new(MilliCpu::from_cores(8), Bytes::from_gib(8))),
        now: Moment::from_millis(1_000_000),
        unit,
    };
    if input.is() {
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
            talk::heard_of(router(Shared::new(self.books, self.unit, clock)), said).await
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
            8 => match input.below(3) {
                0 => self.books.leave(&name(input.below(VMS))),
                1 => self.books.count(&name(input.below(VMS)), input.size()),
                _ => self.books.update(&name(input.below(VMS)), record(input)),
            },
            _ => self.books.set_room(input.size()),
        }
    }

    /// A request in a version that is spoken, most often, for a VM that is known, most often.
    fn well_said(&self, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let (min, max) = (PluginVersion::SPOKEN.min.number(), PluginVersion::SPOKEN.max.number());
        let version = match input.byte() {
            other @ 240.. => u32::from(other - 240),
            spoken => min + u32::from(spoken) % (max - min + 1),
        };
        let vm = match input.below(8) {
            7 => VmName { namespace: input.text(), name: input.text() },
            known => name(known % VMS),
        };
        let metrics = input.is().then(|| LoadMetrics {
            load_1m: f32::from_bits(u32::from(input.short()) << 16),
            load_5m: f32::from(input.byte()),
        });
        let slot = self.books.record(&vm).map_or(Bytes::from_mib(1), |record| record.memory_slot);
        let version = PluginVersion::from_number(version);
        let request = PermitRequest { version, vm, resources: input.size(), metrics };
        request.encode(slot).map_err(|over| words::is_short_and_harmless(&over)).ok()
    }

    /// Law 2, books within the node, over one request; and what the agent reads of the answer.
    fn request(&mut self, body: &[u8]) {
        let (before, books) = (self.books.reserved(), self.books.clone());
        match wire::permit(&mut self.books, self.now, self.unit, body) {
            Ok(permitted) => {
                let (room, after) = (self.books.room(), self.books.reserved());
                assert!(room.max(before).covers(after), "{before} to {after} of {room}");
                let permit = permitted.granted.permit;
                assert!(permitted.asked.covers(permit), "{permit} of {}", permitted.asked);
                let whole = permitted.granted.short.is_empty();
                assert_eq!(whole, permit == permitted.asked, "{:?}", permitted.granted.short);
                permitted.granted.short.iter().for_each(words::is_short_and_harmless);
                let slot = self.books.record(&permitted.vm).expect("it was there").memory_slot;
                let answer = permitted.encode().expect("what was asked in this version fits");
                let read = PermitResponse::decode(&answer, slot).expect("the agent reads it");
                assert_eq!(read.permit, permit, "the agent reads another permit");
            }
            Err(refusal) => {
                words::is_refusal(refusal.status(), refusal.to_string().as_bytes());
                assert_eq!(self.books.reserved(), books.reserved(), "a refusal with an effect");
            }
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
