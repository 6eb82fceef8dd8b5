//! One plugin: the shell of its core, as `windlass-plugin-cluster` is, in virtual time.
//!
//! It decides nothing of its own: the books are [`Pods`], who leads is a [`Lease`], how far the books are rebuilt a
//! [`Rebuild`]. What is here is what a shell does: it asks the API server, waits for answers no longer than it should,
//! and looks at its clock before it promises anything.

mod ceilings;
mod following;
mod headroom;
mod moving;
mod permits;
mod placing;
mod resizing;
mod tasks;

use crate::cluster::call::{Answer, Call, Kind, Told};
use crate::cluster::met::Met;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use tasks::{CeilingTask, Task, Writing};
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::lease::{Act, Event, Lease, Write};
use windlass_plugin_core::mending::Mending;
use windlass_plugin_core::pods::audit::Audit;
use windlass_plugin_core::pods::{Pacing, Pools, Step};
use windlass_plugin_core::rebuild::NotYet;
use windlass_plugin_core::settling::Settling;
use windlass_plugin_core::writes::Writes;
use windlass_plugin_core::{Ask, Books, Pods, Rebuild};
use windlass_protocol::NoSuccess;
use windlass_protocol::timing::{API_SERVER_ANSWERS, LONGEST_ACT};
use windlass_protocol::{Moment, Resources, VmName};

/// What was read within this after a stop may have waited.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// A plugin that is told to end gives up on its last requests after this.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// The books of a node, for one thread.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    name: Rc<str>,
    books: RefCell<Books>,
}

/// A clock that is at `offset` when time begins, and shows `rate` milliseconds for a thousand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) offset: u64,
    pub(crate) rate: u64,
}

/// A request of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Asks {
    /// The uid of the agent's pod.
    pub(crate) uid: String,
    pub(crate) vm: VmName,
    /// The node that its token names.
    pub(crate) node: String,
    pub(crate) number: u64,
    pub(crate) ask: Ask,
    /// How often the process had begun to lead when its connection was opened.
    pub(crate) begun: u64,
}

/// What a plugin sends.
#[derive(Debug)]
pub(crate) enum Out {
    Call {
        id: u64,
        call: Call,
    },
    /// A watch goes on: what came meanwhile is told.
    CatchUp(Kind),
    /// An answer; `None`: it refuses in passing.
    Answers {
        to: Asks,
        permit: Option<Resources>,
    },
    /// The process ends.
    Ends,
}

/// What a plugin does things with.
pub(crate) struct Turn<'a> {
    /// By the plugin's clock.
    pub(crate) now: Moment,
    pub(crate) out: &'a mut Vec<Out>,
    pub(crate) met: &'a mut Met,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Plugin {
    lease: Lease,
    is_leasing: bool,
    has_begun: bool,
    /// Since when it ends, and whether it has said so of its lease.
    leaves: Option<(Moment, bool)>,
    pub(crate) books: Pods<Held>,
    pub(crate) rebuild: Rebuild,
    streams: [Stream; 4],
    /// What it follows.
    kinds: &'static [Kind],
    audit: Audit<VmName>,
    audit_of_nodes: Audit<String>,
    audit_of_objects: Audit<VmName>,
    next_audit: Moment,
    asked: BTreeMap<u64, Asked>,
    next: u64,
    /// The last turn by its clock, and until when requests may have waited.
    looked: Option<Moment>,
    passes_until: Moment,
    /// Pods for which a binding is being made, or a lost one settled.
    busy: BTreeSet<VmName>,
    settling: Settling,
    next_settling: Moment,
    /// The writes of ceilings, and the requests that wait for them, by number.
    proposals: Writes<u64>,
    mending: Mending,
    /// The requests that wait, by number.
    waiting: BTreeMap<u64, Waiting>,
    requests: u64,
    headroom_pacing: Pacing,
    resizes: Writes<u64>,
    next_resizes: Moment,
    next_moves: Moment,
    /// Steps of moves that are to be taken.
    moves: VecDeque<Step>,
}

/// One watch.
#[derive(Debug)]
struct Stream {
    state: StreamState,
    wants_list: bool,
    at: u64,
    highest: u64,
    /// A list that began before does not count.
    number: u64,
    failures: u32,
    told: VecDeque<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// Nothing is asked before this moment.
    Rests(Moment),
    Asks,
    Follows,
}

#[derive(Debug)]
struct Asked {
    task: Task,
    until: Moment,
}

/// A request of an agent that waits.
#[derive(Debug)]
struct Waiting {
    asks: Asks,
    until: Moment,
}

// === impl Held ===

impl Held {
    /// Of a node of this name, without VMs.
    pub(crate) fn empty(name: &str) -> Self {
        Self { name: name.into(), books: RefCell::new(Books::new(Resources::ZERO)) }
    }
}

impl Node for Held {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        ask(&mut self.books.borrow_mut())
    }
}

// === impl Clock ===

impl Clock {
    pub(crate) fn at(self, now: Moment) -> Moment {
        Moment::from_millis(self.offset + now.millis() * self.rate / 1000)
    }
}

// === impl Plugin ===

impl Plugin {
    /// It starts, with an identity that no other process has or had.
    pub(crate) fn start(identity: String, pools: Pools) -> Self {
        let seed = identity.bytes().map(u64::from).sum();
        let mut rebuild = Rebuild::default();
        let kinds = if pools.follows_objects {
            rebuild.follow_objects();
            &Kind::ALL[..]
        } else {
            &Kind::ALL[..2]
        };
        Self {
            lease: Lease::new(identity),
            is_leasing: false,
            has_begun: false,
            leaves: None,
            books: Pods::of(pools),
            rebuild,
            streams: Kind::ALL.map(|_| Stream::new()),
            kinds,
            audit: Audit::default(),
            audit_of_objects: Audit::default(),
            audit_of_nodes: Audit::default(),
            next_audit: Moment::default(),
            asked: BTreeMap::new(),
            next: 0,
            looked: None,
            passes_until: Moment::default(),
            busy: BTreeSet::new(),
            settling: Settling::default(),
            next_settling: Moment::default(),
            proposals: Writes::new(seed),
            mending: Mending::new(Moment::default()),
            waiting: BTreeMap::new(),
            requests: 0,
            headroom_pacing: Pacing::new(seed),
            resizes: Writes::new(seed),
            next_resizes: Moment::default(),
            next_moves: Moment::default(),
            moves: VecDeque::new(),
        }
    }

    /// The epoch in which it may answer when its clock shows this.
    pub(crate) fn epoch(&self, clock: Moment) -> Option<u32> {
        let (epoch, until) = self.lease.term().filter(|_| self.leaves.is_none())?;
        (clock < until).then_some(epoch)
    }

    /// The same, from books that are rebuilt.
    pub(crate) fn serves(&self, clock: Moment) -> Result<u32, NotYet> {
        let epoch = self.epoch(clock).ok_or(NotYet::NotLeading)?;
        self.rebuild.serves().map(|()| epoch)
    }

    /// It is told to end.
    pub(crate) fn leave(&mut self, clock: Moment) {
        self.leaves.get_or_insert((clock, false));
    }

    /// It looks at what is to be done.
    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        let stopped = self.looked.replace(turn.now).map(|looked| turn.now.since(looked));
        if stopped.is_some_and(|stopped| stopped > LONGEST_ACT) {
            turn.met.note("stops that were noticed");
            self.passes_until = turn.now.after(READ_WITHIN);
        }
        let late = self.asked.iter().filter(|(_, asked)| asked.until <= turn.now);
        for id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(Asked { task, .. }) = self.asked.remove(&id) {
                self.come(turn, task, Err(NoSuccess::Unknown));
            }
        }
        self.elect(turn);
        self.follow(turn);
        self.end_waits(turn);
        self.take_over(turn);
        self.settle_all(turn);
        self.record(turn);
        self.hold(turn);
        self.resize(turn);
        self.migrate(turn);
    }

    /// The API server answers. An answer that nobody waits for any more is passed over.
    pub(crate) fn answered(&mut self, turn: &mut Turn<'_>, id: u64, answer: Answer) {
        let Some(Asked { task, until }) = self.asked.remove(&id) else { return };
        let answer = match &answer {
            _ if until <= turn.now => Err(NoSuccess::Unknown),
            Answer::Status(410) => {
                turn.met.note("410: a watch that cannot go on");
                Err(NoSuccess::Gone)
            }
            Answer::Status(status) => {
                turn.met.note_if("409 and 422: conflicts", [409, 422].contains(status));
                turn.met.note_if("429: throttled", *status == 429);
                Err(NoSuccess::of(*status))
            }
            Answer::Lease(_)
            | Answer::LeaseWritten(_)
            | Answer::Pod(_)
            | Answer::Done
            | Answer::Pods(..)
            | Answer::Nodes(..)
            | Answer::Object(_)
            | Answer::Objects(..)
            | Answer::Migrations(..)
            | Answer::Migration(_) => Ok(answer),
        };
        self.come(turn, task, answer);
    }

    /// Whether what was read a moment ago may have waited while the process was stopped.
    fn passes_over(&self, clock: Moment) -> bool {
        clock < self.passes_until
            || self.looked.is_some_and(|looked| clock.since(looked) > LONGEST_ACT)
    }

    fn come(&mut self, turn: &mut Turn<'_>, task: Task, answer: Result<Answer, NoSuccess>) {
        match task {
            Task::Lease => self.leased(turn, answer),
            Task::List { kind, epoch, number } => self.listed(turn, (kind, epoch, number), answer),
            Task::Watch { kind, number } => self.watches(turn, kind, number, answer),
            Task::Audit(kind) => self.audited(turn, kind, answer),
            Task::BindRead { pod, uid, node } => self.bind_read(turn, (pod, uid, node), answer),
            Task::Bind { placement, first } => self.bound(&placement, first, answer),
            Task::SettleRead { pod, uid } => self.settle_read(turn, (pod, uid), answer),
            Task::SettleTouch { pod } => drop(self.busy.remove(&pod)),
            Task::TakeOver(pod) => self.taken_over(&pod, answer),
            Task::Ceiling(writing, CeilingTask::Replaces { on, write }) => {
                self.replaced(turn, writing, (on, &write), answer);
            }
            Task::Ceiling(writing, CeilingTask::Reads { on }) => {
                self.found(turn, writing, &on, answer);
            }
            Task::FitRead { pod, on } => self.fit(turn, &pod, on, answer),
            Task::Fit => turn.met.note_if("ceilings lowered for pods that waited", answer.is_ok()),
            Task::Headroom(change) => self.written(turn, &change, answer),
            Task::Resize(resize) => self.resized(turn, &resize, &answer),
            Task::Begin(goes) => self.begun(turn, goes, answer),
            Task::BeginRead(goes) => self.begin_read(turn, &goes, answer),
            Task::EndMigration => {}
        }
    }

    fn elect(&mut self, turn: &mut Turn<'_>) {
        if let Some((since, has_said)) = self.leaves {
            if turn.now.since(since) > LEAVES_WITHIN {
                return turn.out.push(Out::Ends);
            }
            if !has_said {
                if self.asked.values().any(|asked| asked.task.is_act()) {
                    return;
                }
                self.leaves = Some((since, true));
                self.lease.observe(since, Event::Leaves);
            }
        }
        if self.is_leasing {
            return;
        }
        match self.lease.plan(turn.now) {
            Act::Wait(_) => {}
            Act::Lost(_) => {
                turn.met.note("leases that were lost");
                turn.out.push(Out::Ends);
            }
            Act::Left => turn.out.push(Out::Ends),
            Act::Read => self.lease_by(turn, None),
            Act::Write(write) => self.lease_by(turn, Some(write)),
        }
    }

    fn lease_by(&mut self, turn: &mut Turn<'_>, write: Option<Write>) {
        self.is_leasing = true;
        let call = match write {
            None => Call::LeaseRead,
            Some(write) => {
                self.lease.observe(turn.now, Event::Sent(write.clone()));
                Call::LeaseWrite(write)
            }
        };
        self.ask_within(turn, LONGEST_ACT, call, Task::Lease);
    }

    fn leased(&mut self, turn: &mut Turn<'_>, answer: Result<Answer, NoSuccess>) {
        self.is_leasing = false;
        let event = match answer {
            Ok(Answer::Lease(record)) => Event::Read(record),
            Ok(Answer::LeaseWritten(record)) => Event::Written(record),
            Ok(_) | Err(_) => Event::Failed,
        };
        self.lease.observe(turn.now, event);
        if self.lease.term().is_some() && !std::mem::replace(&mut self.has_begun, true) {
            self.rebuild.begin();
            for kind in [Kind::Nodes, Kind::Pods, Kind::Objects] {
                self.list_again(turn.now, kind);
            }
        }
    }

    fn ask(&mut self, turn: &mut Turn<'_>, call: Call, task: Task) {
        self.ask_within(turn, API_SERVER_ANSWERS, call, task);
    }

    fn ask_within(&mut self, turn: &mut Turn<'_>, within: Duration, call: Call, task: Task) {
        self.next += 1;
        self.asked.insert(self.next, Asked { task, until: turn.now.after(within) });
        turn.out.push(Out::Call { id: self.next, call });
    }
}

// === impl Stream ===

impl Stream {
    const fn new() -> Self {
        Self {
            state: StreamState::Rests(Moment::from_millis(0)),
            wants_list: true,
            at: 0,
            highest: 0,
            number: 0,
            failures: 0,
            told: VecDeque::new(),
        }
    }
}

/// What an answer that has a pod shows; anything else tells nothing.
fn pod_of(
    answer: Result<Answer, NoSuccess>,
) -> Result<Option<Rc<windlass_protocol::pod::Pod>>, NoSuccess> {
    match answer {
        Ok(Answer::Pod(pod)) => Ok(pod),
        Ok(_) => Err(NoSuccess::Unknown),
        Err(why) => Err(why),
    }
}
