//! The books of one node behind a lock, for everybody in the process who needs them.
//!
//! The lock is held for as long as one question takes, and never across an `.await`.

use crate::http::Permits;
use crate::metrics::{NodeFigures, Requests, register_nodes};
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tracing::debug;
use windlass_kit::clock::Clock;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::wire::{self, Answer, Permitted, Refusal, Waiting};
use windlass_plugin_core::{Books, Note, Summary};
use windlass_protocol::plugin::RawRequest;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, Resources};

/// The books of a node and what goes with them. Clones share them.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    node: Mutex<Held>,
    published: Published,
    clock: Clock,
    requests: Requests,
}

/// The figures of the books after their last change, for readers that take no lock.
#[derive(Debug, Default)]
struct Published([AtomicU64; 4]);

#[derive(Debug)]
struct Held {
    books: Books,
    /// Told to agents that have no compute unit of their own.
    unit: ComputeUnit,
}

/// What the books say where an answer may have to wait until a ceiling is recorded.
#[derive(Debug)]
pub enum Proposed {
    /// The body of the answer.
    Said(Vec<u8>),
    /// The request, which is to be said [again](Shared::again) once a ceiling is recorded.
    Waits(Waiting),
}

/// Everything that the books hold, for a person who looks for a fault. Fields are only added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dump {
    /// When this was true.
    pub at: Moment,
    /// What there is, and who has it.
    pub node: NodeStatus,
    /// By how much the minima of all VMs exceed the room, if they do.
    pub minima_over: Option<Resources>,
    /// When and why a VM got less than it asked for, by the VM's name.
    pub notes: BTreeMap<String, Vec<Note>>,
}

// === impl Shared ===

impl Shared {
    /// Shares these books; `unit` is told to agents that have none of their own.
    pub fn new(books: Books, unit: ComputeUnit, clock: Clock) -> Self {
        Self::counting(books, unit, clock, Requests::default())
    }

    /// The same, of one node among several: its requests are counted in `requests` with those of
    /// the others.
    pub fn counting(books: Books, unit: ComputeUnit, clock: Clock, requests: Requests) -> Self {
        let published = Published::default();
        published.publish(books.summary());
        let node = Mutex::new(Held { books, unit });
        Self(Arc::new(Inner { node, published, clock, requests }))
    }

    /// Looks into the books, or changes them.
    pub fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        let mut held = self.lock();
        let answer = ask(&mut held.books);
        self.0.published.publish(held.books.summary());
        answer
    }

    /// Agents are told this compute unit from here on.
    pub fn set_unit(&self, unit: ComputeUnit) {
        self.lock().unit = unit;
    }

    /// Adds what is counted, and the gauges of the only node, to what a process exports.
    pub fn register(&self, registry: &mut Registry) {
        self.0.requests.register(registry);
        let shared = self.clone();
        register_nodes(registry, move || {
            vec![shared.with_books(|books| NodeFigures::of(None, books))]
        });
    }

    /// The books as a person debugging reads them.
    pub fn dump(&self) -> Dump {
        let at = self.0.clock.now();
        self.with_books(|books| {
            let node = books.status(at);
            let notes = node.vms.iter().map(|vm| (vm.name.to_string(), books.notes(&vm.name)));
            let notes = notes.filter(|(_, notes)| !notes.is_empty()).collect();
            Dump { at, minima_over: books.minima_over(), notes, node }
        })
    }

    /// Asks the books at this moment, with the compute unit that agents are told.
    fn ask<T>(&self, ask: impl FnOnce(&mut Books, Moment, ComputeUnit) -> T) -> T {
        let now = self.0.clock.now();
        let Held { books, unit } = &mut *self.lock();
        let answer = ask(books, now, *unit);
        self.0.published.publish(books.summary());
        answer
    }

    /// The body of the answer, or the request that waits until a ceiling is recorded.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn propose(&self, request: RawRequest) -> Result<Proposed, Refusal> {
        match self.ask(|books, now, unit| wire::propose(books, now, unit, request)) {
            Ok(Answer::Waits(waiting)) => Ok(Proposed::Waits(waiting)),
            Ok(Answer::Permitted(permitted)) => self.counted(Ok(permitted)).map(Proposed::Said),
            Err(refusal) => self.counted(Err(refusal)).map(Proposed::Said),
        }
    }

    /// The body of the answer to a request, or to one that was refused while it was read. No answer waits.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn grant(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal> {
        let began = Instant::now();
        let answer = self.counted(request.and_then(|request| {
            self.ask(|books, now, unit| wire::grant(books, now, unit, request))
        }));
        self.0.requests.took(began.elapsed());
        answer
    }

    /// The body of the answer to a request that has waited.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn again(&self, waiting: Waiting) -> Result<Vec<u8>, Refusal> {
        self.counted(self.ask(|books, now, unit| waiting.again(books, now, unit)))
    }

    /// The body of an answer, which is counted.
    fn counted(&self, permitted: Result<Permitted, Refusal>) -> Result<Vec<u8>, Refusal> {
        let answered = permitted.and_then(|permitted| {
            let Permitted { vm, version, asked, granted, .. } = &permitted;
            debug!(%vm, %version, %asked, permit = %granted.permit, "permitted");
            Ok((permitted.encode()?, permitted.granted))
        });
        self.0.requests.count(answered.as_ref().map(|(_, granted)| granted));
        answered.map(|(body, _)| body)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.node.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node for Shared {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        Self::with_books(self, ask)
    }

    fn summary(&self) -> Summary {
        self.0.published.summary()
    }
}

// === impl Published ===

impl Published {
    /// The writer has the lock of the books, so the figures are of one moment once it is free again.
    fn publish(&self, summary: Summary) {
        let Summary { room, reserved } = summary;
        let figures =
            [room.cpu.milli(), room.mem.bytes(), reserved.cpu.milli(), reserved.mem.bytes()];
        for (place, figure) in self.0.iter().zip(figures) {
            place.store(figure, Ordering::Relaxed);
        }
    }

    fn summary(&self) -> Summary {
        let [room_cpu, room_mem, cpu, mem] =
            self.0.each_ref().map(|figure| figure.load(Ordering::Relaxed));
        let size = |cpu, mem| Resources::new(MilliCpu::from_milli(cpu), Bytes::from_bytes(mem));
        Summary { room: size(room_cpu, room_mem), reserved: size(cpu, mem) }
    }
}

impl Permits for Shared {
    /// Nothing is recorded of these VMs: no answer waits.
    async fn answer(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal> {
        self.grant(request)
    }
}
