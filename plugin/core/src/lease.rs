//! Which of several plugins answers: the one that holds a Lease of the API server.
//!
//! Law 2 holds for books of one process, so no two processes answer at the same moment, and each later leader has a higher
//! epoch. `tests/lease/laws.rs` looks for counterexamples.
//!
//! A [`Lease`] is told of what was read and written, at moments of a monotonic clock of its own machine, and plans the next
//! request. The API server writes a record only over the very revision that the writer names. So:
//!
//! - A holder answers until [`LEADER_ANSWERS`] after it *began* the last renewal that succeeded.
//! - Another process takes the lease once it has watched one record, unchanged, for [`LEADER_LEASE`] since it first
//!   saw it. It compares whole records, and no time that another machine wrote. While it could not look, it has not
//!   watched: after an outage of the API server the holder renews first.
//! - A holder that ends answers no more, and releases the lease [`LONGEST_ACT`] later: an agent uses no older answer.
//! - It takes a released lease at once: no answer of the releaser is used any more. A record that is gone is like any other
//!   record, since its holder may not know yet, and so is one of an epoch before one that was seen.
//!
//! ```text
//!            took it over              after LEADER_ANSWERS without a renewal
//!   Standby ─────────────► Leads ◄───────────────────────► Leads, and does not answer
//!      │                     │ a read shows another record               │
//!      │                     ▼                                           │
//!      │                    Lost ◄───────────────────────────────────────┘
//!      │  told to leave      │
//!      └───────────────────► Leaves: releases what it holds
//! ```
//!
//! A process that has lost its lease does not stand by again: its books hold what agents said to it, and another leader
//! may have promised more since. It ends, and starts anew.

use std::time::Duration;
use windlass_protocol::Moment;
use windlass_protocol::timing::{LEADER_ANSWERS, LEADER_LEASE, LEADER_RENEWS, LONGEST_ACT};

/// A standby looks at the lease this often: a lease that is released is taken within a second.
const STANDBY_LOOKS: Duration = Duration::from_secs(1);

/// Between two looks that are one watch, at most.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// After a request that failed.
const TRIES_AGAIN: Duration = Duration::from_millis(500);

// A lease outlives a renewal that was lost: it is read, and written again.
const _: () = assert!(
    LEADER_RENEWS.as_millis() + 3 * LONGEST_ACT.as_millis() + TRIES_AGAIN.as_millis()
        < LEADER_ANSWERS.as_millis()
);

/// What a Lease of the API server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The process that holds it; empty: it is released.
    pub holder: String,
    /// `leaseTransitions`: the epoch of the holder.
    pub transitions: u32,
    /// `renewTime`, as it is written: compared, and never taken for a time.
    pub renewed: String,
    /// The object: one that is made anew has another.
    pub uid: String,
    /// The revision of the object.
    pub revision: String,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The next holder; empty: the lease is released.
    pub holder: String,
    /// The next `leaseTransitions`.
    pub transitions: u32,
    /// The write replaces this very revision of this object; `None`: it makes an object where there is none.
    pub over: Option<Record>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The lease was read; `None`: there is none.
    Read(Option<Record>),
    /// This write is sent at this moment: from here on it may take effect.
    Sent(Write),
    /// The write took effect, and this is its record.
    Written(Record),
    /// A read failed, a write was refused, or the outcome is not known.
    Failed,
    /// The process ends, and has stopped answering at this moment.
    Leaves,
}

/// What to do at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Read the lease.
    Read,
    /// Write it.
    Write(Write),
    /// Wait until this moment.
    Wait(Moment),
    /// End: the lease is another's, or gone, with this in place of the process's own.
    Lost(Option<Record>),
    /// End: nothing is held any more.
    Left,
}

/// One process's part in who leads.
#[derive(Clone, Debug)]
pub struct Lease {
    identity: String,
    /// What was read or written last, and since when it is the same; `None` before the first read.
    seen: Option<Seen>,
    /// Whether a write may have changed the record since.
    is_stale: bool,
    /// When the write that is under way was sent.
    sent: Option<Moment>,
    /// The object that was written last. A record of one that was made is not known to come from the latest request: the request
    /// may be an early one, which came late.
    claimed: Option<String>,
    /// The highest epoch that was seen.
    highest: u32,
    part: Part,
    /// No request is made before this moment.
    next: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    record: Option<Record>,
    since: Moment,
    /// The last look.
    looked: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Standby,
    Leads { epoch: u32, until: Moment },
    Lost,
    Leaves,
}

// === impl Lease ===

impl Lease {
    /// Of a process whose identity no other process has or had.
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            seen: None,
            is_stale: true,
            sent: None,
            claimed: None,
            highest: 0,
            part: Part::Standby,
            next: Moment::default(),
        }
    }

    /// The epoch, and until when the process may answer in it; `None`: it may not.
    pub const fn term(&self) -> Option<(u32, Moment)> {
        match self.part {
            Part::Leads { epoch, until } => Some((epoch, until)),
            Part::Standby | Part::Lost | Part::Leaves => None,
        }
    }

    /// Something happened.
    pub fn observe(&mut self, now: Moment, event: Event) {
        match event {
            Event::Read(record) => {
                (self.is_stale, self.sent) = (false, None);
                self.see(now, record);
                self.rest_until(now.after(self.rests()));
            }
            Event::Sent(write) => {
                (self.sent, self.is_stale) = (Some(now), true);
                self.claimed = write.over.map(|record| record.uid);
            }
            Event::Written(record) => {
                let began = self.sent.take().unwrap_or_default();
                self.is_stale = false;
                if record.holder == self.identity && self.part != Part::Leaves {
                    self.claimed = Some(record.uid.clone());
                    let until = began.after(LEADER_ANSWERS);
                    self.part = Part::Leads { epoch: record.transitions, until };
                }
                self.see(now, Some(record));
                self.rest_until(began.after(LEADER_RENEWS).max(now));
            }
            Event::Failed => {
                self.sent = None;
                self.rest_until(now.after(TRIES_AGAIN));
            }
            Event::Leaves => (self.part, self.next) = (Part::Leaves, now.after(LONGEST_ACT)),
        }
    }

    /// What to do at this moment. Two calls give the same.
    pub fn plan(&self, now: Moment) -> Act {
        let seen = self.seen.as_ref().filter(|_| !self.is_stale);
        let record = seen.and_then(|seen| seen.record.as_ref());
        match self.part {
            Part::Lost => return Act::Lost(record.cloned()),
            Part::Leaves => {
                let is_unsure = self.is_stale && self.seen.is_some();
                return match record.filter(|record| self.is_own(record)) {
                    None if !is_unsure => Act::Left,
                    Some(_) | None if now < self.next => Act::Wait(self.next),
                    Some(record) => Act::Write(Self::over(record, String::new())),
                    None => Act::Read,
                };
            }
            Part::Standby | Part::Leads { .. } => {}
        }
        let act = match (seen, record) {
            (None, _) => Act::Read,
            // So is one that this process took without hearing of it: it counts from its renewal.
            (Some(_), Some(record)) if self.is_own(record) => {
                Act::Write(Self::over(record, self.identity.clone()))
            }
            (Some(seen), record) => {
                let is_free = self.is_released(record) || seen.was_watched(now);
                match self.take(record).filter(|_| is_free) {
                    Some(write) => return Act::Write(write),
                    None => Act::Read,
                }
            }
        };
        if now < self.next { Act::Wait(self.next) } else { act }
    }

    fn see(&mut self, now: Moment, record: Option<Record>) {
        let epoch = record.as_ref().map_or(0, |record| record.transitions);
        self.highest = self.highest.max(epoch);
        if let Part::Leads { epoch: own, .. } = self.part {
            let is_own = |record: &Record| self.is_own(record) && epoch == own;
            if !record.as_ref().is_some_and(is_own) {
                self.part = Part::Lost;
            }
        }
        let since = match &self.seen {
            Some(seen) if seen.record == record && seen.is_watched(now) => seen.since,
            Some(_) | None => now,
        };
        self.seen = Some(Seen { record, since, looked: now });
    }

    /// No request is made before this; a process that ends waits for what it answered last.
    fn rest_until(&mut self, next: Moment) {
        self.next = if self.part == Part::Leaves { self.next.max(next) } else { next };
    }

    /// How long to wait after a read.
    fn rests(&self) -> Duration {
        let holder = self.seen.as_ref().and_then(|seen| seen.record.as_ref());
        if holder.is_some_and(|record| self.is_own(record)) {
            Duration::ZERO
        } else {
            STANDBY_LOOKS
        }
    }

    /// Whether this process holds the lease, in the object that it wrote.
    fn is_own(&self, record: &Record) -> bool {
        record.holder == self.identity && self.claimed.as_ref() == Some(&record.uid)
    }

    /// Whether the holder has said that it answers no more.
    fn is_released(&self, record: Option<&Record>) -> bool {
        record.is_some_and(|record| record.holder.is_empty() && record.transitions >= self.highest)
    }

    /// What makes this process the holder; `None`: there is no higher epoch.
    fn take(&self, record: Option<&Record>) -> Option<Write> {
        // The field is a signed number of 32 bits.
        let transitions =
            self.highest.checked_add(1).filter(|next| i32::try_from(*next).is_ok())?;
        Some(Write { holder: self.identity.clone(), transitions, over: record.cloned() })
    }

    fn over(record: &Record, holder: String) -> Write {
        Write { holder, transitions: record.transitions, over: Some(record.clone()) }
    }
}

// === impl Seen ===

impl Seen {
    /// Whether a look at this moment goes on with the watch.
    fn is_watched(&self, now: Moment) -> bool {
        now.since(self.looked) <= LONGEST_GAP
    }

    /// Whether the record was watched for so long that its holder has stopped answering.
    fn was_watched(&self, now: Moment) -> bool {
        self.is_watched(now) && self.looked.since(self.since) >= LEADER_LEASE
    }
}
