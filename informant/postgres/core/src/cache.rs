//! The cache as one value: how large it is, is to be, and may turn out to be.
//!
//! Without an agent's word it is as large as the guest's memory asks for. A consent to less
//! begins with [`FileCache::propose`], which touches nothing. Then comes an attempt:
//!
//! ```text
//!  propose ──fits──► begin ──► made smaller, and read ──► outcome: done ──► agreed
//!     │                │                    │                               (the new size stays)
//!     └──refused       └──late, dropped     └──failed ──► taken back
//!                                                         (the old size returns)
//! ```
//!
//! An attempt that no request comes back to ends by itself. What was set and not seen to be in effect
//! may be in effect later: until a size was set and then read, the cache counts with the larger.

use crate::backoff::Backoff;
use crate::event::{Action, Event, JOB_LIMIT, Plan, Problem, Seen};
use crate::size::size;
use std::time::Duration;
use windlass_informant_core::Memory;
use windlass_informant_core::memory::{OVERHEAD, margin};
use windlass_protocol::timing::ROOM_MADE_WITHIN;
use windlass_protocol::{Bytes, Moment};

/// How often PostgreSQL is looked at: a person may have changed the size, and the content is part of
/// every decision on memory.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// While a consent waits for the content to go.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// So long after it was read, what the content occupies counts for nothing.
const MEASURED: Duration = Duration::from_secs(3);

/// A sample of memory older than this says nothing.
const FRESH: Duration = Duration::from_secs(1);

/// Each size is a reload of PostgreSQL's configuration; but for a consent, no more of them.
const SET_EVERY: Duration = Duration::from_secs(2);

/// Growth by less is not worth a reload: the kernel's share of memory moves by a little.
const STEP: Bytes = Bytes::from_mib(8);

/// PostgreSQL's file cache in one guest.
#[derive(Clone, Debug)]
pub struct FileCache {
    /// Where the spread of waits comes from.
    seed: u64,
    /// The least size of the VM that was agreed to since the last `/upscale`, or the size of that;
    /// `None`: no agent has said a size.
    allowed: Option<Bytes>,
    memory: Option<(Moment, Memory)>,
    seen: Option<(Moment, Seen)>,
    /// The largest size that was set and not seen to be in effect; `None`: the last was seen.
    /// At the start it is unknown what an earlier informant left behind.
    doubt: Option<Bytes>,
    set_at: Option<Moment>,
    attempt: Option<Attempt>,
    busy: Option<(Moment, Action)>,
    looks: Backoff,
    sets: Backoff,
}

/// What a consent to less memory needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Nothing is taken that the cache could miss.
    Untouched,
    /// The cache can be made small enough.
    Shrink {
        /// How large it may be.
        target: Bytes,
        /// What was asked, less the part of it that the cache keeps: what is left for the rest.
        rest: Bytes,
    },
}

/// A consent under way.
#[derive(Clone, Debug)]
struct Attempt {
    asked: Bytes,
    target: Bytes,
    began: Moment,
    until: Moment,
    /// PostgreSQL said, since it began, that the cache is no larger than the target.
    there: bool,
    failed: Option<Problem>,
}

impl FileCache {
    /// A cache of which nothing is known. `allowed` is the size of the VM that an earlier
    /// informant agreed to or was told, since the guest booted.
    pub fn new(seed: u64, allowed: Option<Bytes>) -> Self {
        Self {
            seed,
            allowed,
            memory: None,
            seen: None,
            doubt: Some(Bytes::ZERO),
            set_at: None,
            attempt: None,
            busy: None,
            looks: Backoff::default(),
            sets: Backoff::default(),
        }
    }

    /// Whether the guest can live with `asked`, if the cache follows. Touches nothing.
    pub fn propose(&self, now: Moment, asked: Bytes) -> Result<Proposal, Problem> {
        // Without a sample the informant refuses by itself.
        let Some(memory) = self.memory(now) else { return Ok(Proposal::Untouched) };
        if asked >= has(&memory) {
            return Ok(Proposal::Untouched);
        }
        let Some(most) = self.most() else {
            return Err(self.looks.problem().cloned().unwrap_or(Problem::Unread));
        };
        let holds = self.least(asked).saturating_sub(overhead(&memory));
        let target = self.capped(size(holds)).min(most);
        // A size that failed is in doubt, and has to be set again.
        for rest in [&self.looks, &self.sets] {
            if let Some(problem) = rest.until(now).and_then(|_| rest.problem()) {
                return Err(problem.clone());
            }
        }
        let kept = self.measured(now).map_or(Bytes::ZERO, |_| target);
        self.fits(now, asked, kept)?;
        Ok(Proposal::Shrink { target, rest: asked.saturating_sub(kept) })
    }

    /// Begins to make the cache small enough for a consent to `asked`.
    pub fn begin(&mut self, now: Moment, asked: Bytes, target: Bytes) {
        let until = now.after(ROOM_MADE_WITHIN);
        self.attempt =
            Some(Attempt { asked, target, began: now, until, there: false, failed: None });
    }

    /// What has become of it; nothing yet is `None`.
    pub fn outcome(&self, now: Moment) -> Option<Result<(), Problem>> {
        let Some(attempt) = &self.attempt else { return Some(Err(Problem::Overtaken)) };
        if let Some(problem) = &attempt.failed {
            return Some(Err(problem.clone()));
        }
        let fits = attempt.there.then(|| {
            let content = self.measured(now);
            let kept = content.map_or(Bytes::ZERO, |content| content.max(attempt.target));
            self.fits(now, attempt.asked, kept)
        });
        match fits {
            Some(Ok(())) if now < attempt.until => Some(Ok(())),
            Some(Err(problem)) if now >= attempt.until => Some(Err(problem)),
            Some(_) | None if now < attempt.until => None,
            Some(_) | None => Some(Err(Problem::Late(attempt.target))),
        }
    }

    /// The guest agrees to what the attempt was for: the cache stays small. `false` if it must
    /// not, because the attempt is not done, or over.
    pub fn agreed(&mut self, now: Moment) -> bool {
        let done = self.outcome(now) == Some(Ok(()));
        if let Some(attempt) = self.attempt.take().filter(|_| done) {
            self.allowed = Some(self.least(attempt.asked));
        }
        done
    }

    /// What holds once `asked` is agreed to: an agreement takes away, and never allows more than
    /// one before it did.
    pub fn least(&self, asked: Bytes) -> Bytes {
        self.allowed.map_or(asked, |allowed| allowed.min(asked))
    }

    /// The guest has not agreed: the cache returns to its size.
    pub fn taken_back(&mut self) {
        self.attempt = None;
    }

    /// The VM has this, and the cache may fill its part of it once it is there.
    pub fn told(&mut self, size: Bytes) {
        (self.attempt, self.allowed) = (None, Some(size));
    }

    /// Takes note of what happened.
    pub fn observe(&mut self, now: Moment, event: Event) {
        match event {
            Event::Sampled(memory) => self.memory = Some((now, memory)),
            Event::Sent(action) => self.sent(now, action),
            Event::Seen(seen) => self.seen(now, seen),
            Event::Failed(problem) => {
                if let Some((_, action)) = self.busy.take() {
                    self.failed(now, action, problem);
                }
            }
        }
    }

    /// What to do now.
    pub fn plan(&self, now: Moment) -> Plan {
        let mut plan = Plan::default();
        let open = self.open(now);
        if let Some(attempt) = open {
            plan.wake(attempt.until);
        }
        if self.busy.is_some() {
            return plan;
        }
        if let Some(until) = self.looks.until(now) {
            plan.wake(until);
            return plan;
        }
        let Some((looked, seen)) = self.seen else { return plan.with(Action::Look) };
        let goal = self.goal(now).filter(|goal| self.doubt.is_some() || *goal != seen.limit);
        let pause = self.set_at.filter(|_| open.is_none()).map(|at| at.after(SET_EVERY));
        if let Some(goal) = goal {
            let waits = [self.sets.until(now), pause.filter(|pause| *pause > now)];
            match waits.into_iter().flatten().max() {
                None => return plan.with(Action::Set(goal)),
                Some(until) => plan.wake(until),
            }
        }
        let waiting = open.is_some() && self.outcome(now).is_none();
        let again = open.is_some_and(|attempt| looked < attempt.began);
        let look_at = match (waiting, again) {
            (true, true) => now,
            (true, false) => looked.after(LOOK_AGAIN),
            (false, _) => looked.after(LOOK_EVERY),
        };
        if look_at <= now {
            return plan.with(Action::Look);
        }
        plan.wake(look_at);
        plan
    }

    /// What of this memory is not the cache's: the cache may come to occupy all that it is
    /// allowed, and whether the guest has enough is a question about the rest. Where its content
    /// is not known, or not in memory, all of it is the rest.
    pub fn workload(&self, now: Moment, memory: Memory) -> Memory {
        let (Some(content), Some(most)) = (self.measured(now), self.most()) else { return memory };
        // A cache that may be larger than the guest leaves next to nothing.
        let total = memory.total.saturating_sub(most).max(Bytes::from_mib(1));
        let available = total.saturating_sub(beside(&memory, content));
        Memory { total, available, free: memory.free.min(total), ..memory }
    }

    /// What of this memory could be had: the cache's content can, at need.
    pub fn shown(&self, now: Moment, memory: Memory) -> Memory {
        let content = self.measured(now).unwrap_or(Bytes::ZERO);
        let available = memory.available.saturating_add(content).min(memory.total);
        Memory { available, ..memory }
    }

    /// The least size of the VM that was agreed to since it was told one, or that.
    pub fn allowed(&self) -> Option<Bytes> {
        self.allowed
    }

    /// What PostgreSQL said last.
    pub fn last_seen(&self) -> Option<Seen> {
        self.seen.map(|(_, seen)| seen)
    }

    /// How large the cache is to be, without a consent under way; `None` if memory is not known.
    pub fn wanted(&self, now: Moment) -> Option<Bytes> {
        let memory = self.memory(now)?;
        let has = has(&memory);
        let size_of_vm = self.allowed.map_or(has, |allowed| allowed.min(has));
        Some(self.capped(size(size_of_vm.saturating_sub(overhead(&memory)))))
    }

    /// What is wrong, if anything is.
    pub fn problem(&self) -> Option<&Problem> {
        self.looks.problem().or(self.sets.problem())
    }

    /// The largest that the cache may be or come to be.
    fn most(&self) -> Option<Bytes> {
        let (_, seen) = self.seen?;
        Some(seen.limit.max(self.doubt.unwrap_or(Bytes::ZERO)))
    }

    fn sent(&mut self, now: Moment, action: Action) {
        self.busy = Some((now, action));
        if let Action::Set(size) = action {
            self.doubt = Some(self.doubt.unwrap_or(Bytes::ZERO).max(size));
            self.set_at = Some(now);
        }
    }

    fn seen(&mut self, now: Moment, seen: Seen) {
        let Some((sent, action)) = self.busy.take() else { return };
        self.seen = Some((now, seen));
        self.looks.succeeded();
        match action {
            Action::Look => {}
            Action::Set(set) if set == seen.limit => {
                self.doubt = None;
                self.sets.succeeded();
            }
            Action::Set(set) => {
                let problem = Problem::NotInEffect { set, found: seen.limit };
                return self.failed(now, action, problem);
            }
        }
        let sure = self.doubt.is_none();
        if let Some(attempt) = &mut self.attempt
            && sent >= attempt.began
        {
            attempt.there = sure && seen.limit <= attempt.target;
        }
    }

    fn failed(&mut self, now: Moment, action: Action, problem: Problem) {
        if let Some(attempt) = &mut self.attempt {
            attempt.failed = Some(problem.clone());
        }
        let spread = self.spread();
        match action {
            Action::Look => self.looks.failed(now, problem, spread),
            Action::Set(_) => self.sets.failed(now, problem, spread),
        }
    }

    /// The attempt that is still going on.
    fn open(&self, now: Moment) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.failed.is_none() && now < attempt.until)
    }

    fn goal(&self, now: Moment) -> Option<Bytes> {
        if let Some(attempt) = self.open(now) {
            return Some(attempt.target);
        }
        let (wanted, (_, seen)) = (self.wanted(now)?, self.seen?);
        let little = wanted > seen.limit && wanted < seen.limit.saturating_add(STEP);
        Some(if little && self.doubt.is_none() { seen.limit } else { wanted })
    }

    /// Whether what else is in use fits beside a cache that keeps so much.
    fn fits(&self, now: Moment, asked: Bytes, kept: Bytes) -> Result<(), Problem> {
        let Some(memory) = self.memory(now) else { return Ok(()) };
        let used = beside(&memory, self.measured(now).unwrap_or(Bytes::ZERO));
        let usable = asked.saturating_sub(overhead(&memory));
        let room = usable.saturating_sub(kept);
        let margin = margin(room);
        if used.saturating_add(margin) <= room {
            return Ok(());
        }
        Err(Problem::DoesNotFit { used, cache: kept, margin, usable })
    }

    fn memory(&self, now: Moment) -> Option<Memory> {
        self.memory.filter(|(at, _)| now.since(*at) <= FRESH).map(|(_, memory)| memory)
    }

    /// What the cache's content occupies.
    fn measured(&self, now: Moment) -> Option<Bytes> {
        let (at, seen) = self.seen?;
        seen.used.filter(|_| now.since(at) <= MEASURED)
    }

    fn capped(&self, size: Bytes) -> Bytes {
        let most = self.seen.and_then(|(_, seen)| seen.most);
        most.map_or(size, |most| size.min(most.round_down(Bytes::from_mib(1))))
    }

    /// The next number of a sequence without pattern: a step of SplitMix64, mixed once.
    fn spread(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }
}

fn overhead(memory: &Memory) -> Bytes {
    memory.overhead.unwrap_or(OVERHEAD)
}

/// What the VM has.
fn has(memory: &Memory) -> Bytes {
    memory.total.saturating_add(overhead(memory))
}

/// In use, less the content of the cache.
fn beside(memory: &Memory, content: Bytes) -> Bytes {
    memory.total.saturating_sub(memory.available).saturating_sub(content)
}

// The first action may have been sent before the attempt began.
const _: () = assert!(JOB_LIMIT.as_millis() < ROOM_MADE_WITHIN.as_millis());
