//! Processes with clocks of their own, an API server that compares revisions, and a network that loses, delays and repeats.
//!
//! It is a simulation in true time; each process reads its own clock, which runs a little fast or slow.

use std::collections::BTreeMap;
use windlass_plugin_core::lease::{Act, Event, Lease, Record, Write};
use windlass_protocol::Moment;

/// A process gives a request up after this long by its clock.
const GIVES_UP: u64 = 2_000;

/// What the network does to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    /// Milliseconds to the API server; `None`: it is lost.
    pub(crate) there: Option<u64>,
    /// The same for the answer.
    pub(crate) back: Option<u64>,
    /// The request arrives once more, so many milliseconds later.
    pub(crate) again: Option<u64>,
}

pub(crate) struct World {
    pub(crate) now: u64,
    /// What passes at once.
    pub(crate) step: u64,
    pub(crate) record: Option<Record>,
    pub(crate) was_deleted: bool,
    pub(crate) processes: Vec<Process>,
    /// By true time, and in the order in which they were made.
    due: BTreeMap<(u64, u64), Due>,
    made: u64,
    revisions: u64,
}

pub(crate) struct Process {
    pub(crate) lease: Lease,
    identity: String,
    /// Its clock is at `offset` at the start, and shows `rate` milliseconds for a thousand.
    offset: u64,
    rate: u64,
    /// It does nothing until then.
    pub(crate) paused_until: u64,
    asked: Option<Asked>,
    inbox: Vec<(u64, Answer)>,
    pub(crate) has_ended: bool,
}

#[derive(Clone, Copy)]
struct Asked {
    request: u64,
    at: Moment,
}

enum Due {
    Arrives { process: usize, request: u64, what: Option<Write>, back: Option<u64> },
    Answers { process: usize, request: u64, answer: Answer },
}

#[derive(Clone)]
enum Answer {
    Read(Option<Record>),
    Written(Record),
    Refused,
}

// === impl Fate ===

impl Fate {
    pub(crate) const KIND: Self = Self { there: Some(5), back: Some(5), again: None };
}

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        let (processes, due) = (Vec::new(), BTreeMap::new());
        Self {
            now: 0,
            step: 1,
            record: None,
            was_deleted: false,
            processes,
            due,
            made: 0,
            revisions: 0,
        }
    }

    /// A process starts, with a clock that shows `rate` milliseconds for a thousand.
    pub(crate) fn start(&mut self, rate: u64) -> usize {
        let nth = self.processes.len();
        let identity = format!("p{nth}");
        self.processes.push(Process {
            lease: Lease::new(identity.clone()),
            identity,
            offset: 1_000_000 * (nth as u64 + 1),
            rate,
            paused_until: 0,
            asked: None,
            inbox: Vec::new(),
            has_ended: false,
        });
        nth
    }

    /// A step passes; what the processes send, a read or a write, meets these fates.
    pub(crate) fn pass(&mut self, mut fate: impl FnMut(Option<&Write>) -> Fate) {
        self.now += self.step;
        while let Some(first) = self.due.first_entry().filter(|due| due.key().0 <= self.now) {
            match first.remove() {
                Due::Arrives { process, request, what, back } => {
                    let answer = self.serve(what);
                    if let Some(back) = back {
                        let due = Due::Answers { process, request, answer };
                        self.put(self.now + back, due);
                    }
                }
                Due::Answers { process, request, answer } => {
                    self.processes[process].inbox.push((request, answer));
                }
            }
        }
        for nth in 0..self.processes.len() {
            self.turn(nth, &mut fate);
        }
    }

    /// The processes that would answer now.
    pub(crate) fn answer(&self) -> Vec<(usize, u32)> {
        let answers = |(nth, process): (usize, &Process)| Some((nth, process.answers(self.now)?));
        self.processes.iter().enumerate().filter_map(answers).collect()
    }

    /// An operator makes a lease that nobody has held.
    pub(crate) fn make_lease(&mut self) {
        self.serve(Some(Write { holder: String::new(), transitions: 0, over: None }));
    }

    /// An operator deletes it.
    pub(crate) fn delete(&mut self) {
        (self.record, self.was_deleted) = (None, true);
    }

    /// A process is told to end: it stops answering, and releases what it holds.
    pub(crate) fn leave(&mut self, nth: usize) {
        let process = &mut self.processes[nth];
        if !process.has_ended {
            process.lease.observe(process.clock(self.now), Event::Leaves);
        }
    }

    /// A process is killed.
    pub(crate) fn kill(&mut self, nth: usize) {
        self.processes[nth].has_ended = true;
    }

    fn turn(&mut self, nth: usize, fate: &mut impl FnMut(Option<&Write>) -> Fate) {
        let process = &mut self.processes[nth];
        if process.has_ended || process.paused_until > self.now {
            return;
        }
        let clock = process.clock(self.now);
        if let Some(Asked { request, at }) = process.asked {
            let answer = process.inbox.iter().find(|(to, _)| *to == request);
            let event = match answer.map(|(_, answer)| answer.clone()) {
                Some(Answer::Read(record)) => Event::Read(record),
                Some(Answer::Written(record)) => Event::Written(record),
                Some(Answer::Refused) => Event::Failed,
                None if clock.since(at).as_millis() >= GIVES_UP.into() => Event::Failed,
                None => return,
            };
            process.asked = None;
            process.lease.observe(clock, event);
        }
        process.inbox.clear();
        let act = process.lease.plan(clock);
        assert_eq!(act, process.lease.plan(clock), "a plan depends on nothing else");
        let what = match act {
            Act::Wait(until) => return assert!(until > clock, "{until:?}"),
            Act::Lost(_) | Act::Left => return process.has_ended = true,
            Act::Read => None,
            Act::Write(write) => {
                process.lease.observe(clock, Event::Sent(write.clone()));
                Some(write)
            }
        };
        self.made += 1;
        let request = self.made;
        self.processes[nth].asked = Some(Asked { request, at: clock });
        let Fate { there, back, again } = fate(what.as_ref());
        let Some(there) = there else { return };
        let arrives = |back| Due::Arrives { process: nth, request, what: what.clone(), back };
        self.put(self.now + there, arrives(back));
        if let Some(again) = again {
            self.put(self.now + there + again, arrives(None));
        }
    }

    fn put(&mut self, at: u64, due: Due) {
        self.made += 1;
        self.due.insert((at, self.made), due);
    }

    /// The API server.
    fn serve(&mut self, what: Option<Write>) -> Answer {
        let Some(Write { holder, transitions, over }) = what else {
            return Answer::Read(self.record.clone());
        };
        if self.record.as_ref().map(|it| &it.revision) != over.as_ref().map(|it| &it.revision) {
            return Answer::Refused;
        }
        self.revisions += 1;
        let revision = self.revisions.to_string();
        let uid = over.map_or_else(|| format!("object {revision}"), |over| over.uid);
        // A stopped wall clock: what is written as time says nothing.
        let record = Record { holder, transitions, renewed: String::new(), uid, revision };
        self.record = Some(record.clone());
        Answer::Written(record)
    }
}

// === impl Process ===

impl Process {
    fn clock(&self, now: u64) -> Moment {
        Moment::from_millis(self.offset + now * self.rate / 1_000)
    }

    fn answers(&self, now: u64) -> Option<u32> {
        let (epoch, until) = self.lease.term().filter(|_| !self.has_ended)?;
        // A process that is paused answers nothing; it looks at its clock first when it goes on.
        (self.clock(now) < until).then_some(epoch)
    }

    /// Whether a request of it is under way.
    pub(crate) const fn asks(&self) -> bool {
        self.asked.is_some()
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }
}
