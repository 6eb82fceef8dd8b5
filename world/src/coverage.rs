//! What happened to whom, and in which state it was then.

use crate::group::Group;
use std::fmt::Write;
use windlass_agent_core::{Call, Event, Failure, Scaler};
use windlass_informant_core as informant;
use windlass_plugin_core::Books;
use windlass_protocol::status::SessionState;
use windlass_protocol::{Peer, Resize, Resources};

const AGENT_EVENTS: [&str; 29] = [
    "told",
    "ordered",
    "attached",
    "sent",
    "seen",
    "resized",
    "measured",
    "permitted",
    "must stay",
    "registered",
    "healthy",
    "agreed",
    "declined",
    "upscaled",
    "unregistered",
    "refused",
    "version refused",
    "moving refused",
    "plugin silent",
    "informant silent",
    "hypervisor silent",
    "metrics silent",
    "reset",
    "changed",
    "host memory",
    "call: id",
    "call: resume",
    "call: suspend",
    "call: more",
];
const AGENT_STATES: [&str; 8] = [
    "absent",
    "registered",
    "active",
    "suspended",
    "absent, open",
    "registered, open",
    "active, open",
    "suspended, open",
];
const INFORMANT_EVENTS: [&str; 18] = [
    "sampled",
    "stalled",
    "stirred",
    "sent",
    "answered",
    "call silent",
    "call refused",
    "looked",
    "done",
    "not done",
    "register",
    "health check",
    "agrees",
    "declines",
    "upscale",
    "unregister",
    "again or stale",
    "refuses",
];
const INFORMANT_STATES: [&str; 6] =
    ["nobody", "one joins", "one waits", "one counts", "several wait", "one of several counts"];
const BOOKS_EVENTS: [&str; 7] =
    ["witness", "count", "leave", "permit in full", "permit in part", "report", "refused"];
const BOOKS_STATES: [&str; 3] = ["room left", "full", "over"];
const LIMIT_EVENTS: [&str; 8] = [
    "first set",
    "set again",
    "raised",
    "lowered",
    "lifted",
    "set refused",
    "somebody sets or lifts",
    "moves",
];
const LIMIT_STATES: [&str; 4] = ["no limit", "ours", "reset", "found"];

/// How often each event met each state.
///
/// An agent's state is that of its session, and whether a resize is open; an informant's, who is
/// registered and whether one of them counts; that of books, whether there is room; that
/// of a host's limit, whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    agent: Table<29, 8>,
    informant: Table<18, 6>,
    books: Table<7, 3>,
    limit: Table<8, 4>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table<const E: usize, const S: usize> {
    who: &'static str,
    events: [&'static str; E],
    states: [&'static str; S],
    counts: [[u64; S]; E],
}

// === impl Coverage ===

impl Coverage {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self {
            agent: Table::new("agent", AGENT_EVENTS, AGENT_STATES),
            informant: Table::new("informant", INFORMANT_EVENTS, INFORMANT_STATES),
            books: Table::new("books", BOOKS_EVENTS, BOOKS_STATES),
            limit: Table::new("limit", LIMIT_EVENTS, LIMIT_STATES),
        }
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.agent.add(&other.agent);
        self.informant.add(&other.informant);
        self.books.add(&other.books);
        self.limit.add(&other.limit);
    }

    /// The tables.
    pub fn text(&self) -> String {
        let (agent, informant) = (self.agent.text(), self.informant.text());
        [agent, informant, self.books.text(), self.limit.text()].join("\n")
    }

    /// What never was: whose table, an event and a state.
    pub fn gaps(&self) -> Vec<[&'static str; 3]> {
        let (agent, informant) = (self.agent.gaps(), self.informant.gaps());
        let (books, limit) = (self.books.gaps(), self.limit.gaps());
        agent.into_iter().chain(informant).chain(books).chain(limit).collect()
    }

    pub(crate) fn agent_hears(&mut self, scaler: &Scaler, event: &Event) {
        self.agent.count(heard_by_agent(event), agent_state(scaler));
    }

    pub(crate) fn agent_is_called(&mut self, scaler: &Scaler, call: Call) {
        let event = match call {
            Call::Id => "call: id",
            Call::Resume(_) => "call: resume",
            Call::Suspend(_) => "call: suspend",
            Call::MoreResources { .. } => "call: more",
        };
        self.agent.count(event, agent_state(scaler));
    }

    pub(crate) fn informant_hears(
        &mut self,
        core: &informant::Informant,
        event: &informant::Event,
    ) {
        let event = match event {
            informant::Event::Sampled(_) => "sampled",
            informant::Event::Stalled => "stalled",
            informant::Event::Stirred => "stirred",
            informant::Event::Sent(_) => "sent",
            informant::Event::Answered { .. } => "answered",
            informant::Event::Failed(_, informant::Failure::NoAnswer) => "call silent",
            informant::Event::Failed(_, informant::Failure::Refused(_)) => "call refused",
            informant::Event::Seen(_) => "looked",
            informant::Event::Done(true) => "done",
            informant::Event::Done(false) => "not done",
        };
        self.informant.count(event, informant_state(core));
    }

    /// A driver was asked for a limit of a group, which was and is so.
    pub(crate) fn limit_set(
        &mut self,
        resize: Resize,
        was: Option<Group>,
        is: Option<Group>,
        done: bool,
    ) {
        let (Resize::Limit(asked), Some(was), Some(is)) = (resize, was, is) else { return };
        let event = match (done, asked, was.limit()) {
            (false, ..) => "set refused",
            (true, None, _) => "lifted",
            (true, Some(_), None) if was.state() == "reset" => "set again",
            (true, Some(_), None) => "first set",
            (true, Some(_), before @ Some(_)) if is.limit() > before => "raised",
            (true, Some(_), Some(_)) => "lowered",
        };
        self.limit.count(event, was.state());
    }

    /// `event` and `state` are of the table.
    pub(crate) fn group_changes(&mut self, state: &'static str, event: &'static str) {
        self.limit.count(event, state);
    }

    /// `event` and `state` are of the table.
    pub(crate) fn informant_is_asked(&mut self, state: &'static str, event: &'static str) {
        self.informant.count(event, state);
    }

    /// `event` is one of the table's.
    pub(crate) fn books_hear(&mut self, books: &Books, event: &'static str) {
        self.books_heard((books.room(), books.reserved()), event);
    }

    /// `event` is one of the table's; it met books of so much room, of which so much was reserved.
    pub(crate) fn books_heard(
        &mut self,
        (room, reserved): (Resources, Resources),
        event: &'static str,
    ) {
        let full = room.cpu == reserved.cpu || room.mem == reserved.mem;
        let state = match (room.covers(reserved), full) {
            (false, _) => "over",
            (true, true) => "full",
            (true, false) => "room left",
        };
        self.books.count(event, state);
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

const fn heard_by_agent(event: &Event) -> &'static str {
    match event {
        Event::Told(_) | Event::FiguresMoved { .. } | Event::InformantMoved => "told",
        Event::Ordered(_) => "ordered",
        Event::Attached(_) => "attached",
        Event::Sent(_) => "sent",
        Event::Seen(_) => "seen",
        Event::Resized => "resized",
        Event::Measured(_) => "measured",
        Event::Permitted(_) => "permitted",
        Event::MustStay(_) => "must stay",
        Event::Registered { .. } => "registered",
        Event::Healthy => "healthy",
        Event::Agreed { .. } => "agreed",
        Event::Declined { .. } => "declined",
        Event::Upscaled => "upscaled",
        Event::Unregistered => "unregistered",
        Event::Failed(_, Failure::Refused(_)) => "refused",
        Event::Failed(_, Failure::Version) => "version refused",
        Event::Failed(_, Failure::Moving) => "moving refused",
        Event::Failed(Peer::Plugin, Failure::NoAnswer) => "plugin silent",
        Event::Failed(Peer::Informant, Failure::NoAnswer) => "informant silent",
        Event::Failed(Peer::Hypervisor, Failure::NoAnswer) => "hypervisor silent",
        Event::Failed(Peer::Metrics, Failure::NoAnswer) => "metrics silent",
        Event::Reset => "reset",
        Event::Changed => "changed",
        Event::HostMemory(_) => "host memory",
    }
}

fn agent_state(scaler: &Scaler) -> &'static str {
    match (scaler.session(), scaler.is_settled()) {
        (SessionState::Absent, true) => "absent",
        (SessionState::Registered, true) => "registered",
        (SessionState::Active, true) => "active",
        (SessionState::Suspended, true) => "suspended",
        (SessionState::Absent, false) => "absent, open",
        (SessionState::Registered, false) => "registered, open",
        (SessionState::Active, false) => "active, open",
        (SessionState::Suspended, false) => "suspended, open",
    }
}

pub(crate) fn informant_state(core: &informant::Informant) -> &'static str {
    match (core.agents(), core.joining(), core.current()) {
        (0, 0, _) => "nobody",
        (0, _, _) => "one joins",
        (1, _, None) => "one waits",
        (1, _, Some(_)) => "one counts",
        (_, _, None) => "several wait",
        (_, _, Some(_)) => "one of several counts",
    }
}

// === impl Table ===

impl<const E: usize, const S: usize> Table<E, S> {
    const fn new(who: &'static str, events: [&'static str; E], states: [&'static str; S]) -> Self {
        Self { who, events, states, counts: [[0; S]; E] }
    }

    fn count(&mut self, event: &str, state: &str) {
        let row = self.events.iter().position(|name| *name == event);
        let column = self.states.iter().position(|name| *name == state);
        debug_assert!(row.is_some() && column.is_some(), "{event} and {state} have no cell");
        if let (Some(row), Some(column)) = (row, column) {
            self.counts[row][column] += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        for (row, more) in self.counts.iter_mut().zip(&other.counts) {
            for (count, more) in row.iter_mut().zip(more) {
                *count += more;
            }
        }
    }

    fn gaps(&self) -> Vec<[&'static str; 3]> {
        let rows = self.events.iter().zip(&self.counts);
        let cells = rows.flat_map(|(event, row)| {
            self.states.iter().zip(row).map(move |(state, count)| (*event, *state, *count))
        });
        let never = cells.filter(|(.., count)| *count == 0);
        never.map(|(event, state, _)| [self.who, event, state]).collect()
    }

    fn text(&self) -> String {
        let mut text = format!("{:<18}", self.who);
        // Writing to a string does not fail.
        for state in &self.states {
            let _ = write!(text, " {state:>16}");
        }
        for (event, row) in self.events.iter().zip(&self.counts) {
            let _ = write!(text, "\n{event:<18}");
            for (count, state) in row.iter().zip(&self.states) {
                let wide = state.len().max(16);
                match count {
                    0 => text.push_str(&format!(" {:>wide$}", "-")),
                    count => text.push_str(&format!(" {count:>wide$}")),
                }
            }
        }
        text.push('\n');
        text
    }
}
