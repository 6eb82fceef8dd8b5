//! vCPUs and memory blocks of the guest: what is brought online, what is parked.
//!
//! Nothing is touched before the first agent registers. From then on what is added to the
//! machine is brought online, memory to the movable zone, from which it can be taken again. An
//! agreed `/downscale` to fewer vCPUs parks the highest of them, never vCPU 0; an `/upscale`
//! un-parks. A vCPU that turns up once an agent has counted waits for its word: the books may have
//! been lowered. What is parked is remembered before it is done, if it can be stored, so that a
//! restart of the informant does not mistake a parked vCPU for an added one.
//!
//! Parking ends when it is reached: a vCPU that somebody else brings online afterwards stays
//! online, and is reported with the others.

use crate::event::{Action, Change, MachineSeen, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_protocol::{MilliCpu, Moment};

/// The machine is looked at this often, should a notice of the kernel have been lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What failed is tried again after this long.
const RETRY: Duration = Duration::from_secs(1);

/// What is known of the machine, and what is to become of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// Whether an agent has registered.
    awake: bool,
    seen: Option<MachineSeen>,
    /// When the machine is to be looked at again; `None`: at once.
    look_at: Option<Moment>,
    /// Whether the policy for added memory was set, or could not be.
    policy: bool,
    /// vCPUs that we took offline, or did not bring online because no agent has allowed it.
    parked: BTreeSet<u32>,
    /// What was last stored of it.
    stored: BTreeSet<u32>,
    /// For how long an agent that registers may act without hearing of us, and what was stored of
    /// that.
    note: Duration,
    noted: Duration,
    /// It could not be stored, and is not tried again before this.
    store_at: Option<Moment>,
    wish: Option<Wish>,
    /// How many vCPUs the agent that counts knows of, or allowed; before the first: all.
    limit: Option<usize>,
    busy: Option<Action>,
    /// Something happened since the look under way began: it is looked again.
    look_again: bool,
    /// What failed, and when it may be tried again; bounded by what is there.
    resting: BTreeMap<Change, Moment>,
}

/// How many vCPUs are to be online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    AtMost(usize),
    AtLeast(usize),
}

impl Machine {
    /// A machine on which these vCPUs were parked before.
    pub(crate) fn new(parked: BTreeSet<u32>) -> Self {
        Self { stored: parked.clone(), parked, ..Self::default() }
    }

    /// An agent registers: from here on the machine is looked after. Each agent starts from what
    /// is online then, so what was added and may come is brought online first.
    pub(crate) fn wake(&mut self) {
        self.awake = true;
        self.must_look();
    }

    /// The last agent has taken its leave: what is added from here on is nobody's to count.
    pub(crate) fn left_alone(&mut self) {
        self.limit = None;
    }

    /// An agent registers that may act for so long without hearing of us: an informant that comes
    /// after this one has to know.
    pub(crate) fn note(&mut self, lease: Duration) {
        self.note = self.note.max(lease);
    }

    /// Something changed.
    pub(crate) fn stirred(&mut self) {
        self.must_look();
    }

    /// The guest may use no more than this. It takes away, and never allows more than before. A
    /// request without CPU says nothing about it.
    pub(crate) fn allow_at_most(&mut self, cpu: MilliCpu) {
        let Some(count) = count(cpu) else { return };
        self.limit = Some(self.limit.map_or(count, |limit| limit.min(count)));
        self.wish_for(Wish::AtMost(count));
    }

    /// The guest may use this much.
    pub(crate) fn allow(&mut self, cpu: MilliCpu) {
        let Some(count) = count(cpu) else { return };
        self.limit = Some(count);
        self.wish_for(Wish::AtLeast(count));
    }

    pub(crate) fn sent(&mut self, action: Action) {
        self.busy = Some(action);
        self.look_again = false;
    }

    /// The machine was looked at.
    pub(crate) fn seen(&mut self, now: Moment, seen: Option<MachineSeen>) {
        self.busy = None;
        self.look_at = (!self.look_again).then(|| now.after(LOOK_EVERY));
        let Some(mut seen) = seen else {
            self.look_at = Some(now.after(RETRY));
            return;
        };
        seen.online.retain(|cpu| seen.present.contains(cpu));
        // A parked vCPU that is online, or gone, is not parked any more.
        self.parked.retain(|cpu| seen.present.contains(cpu) && !seen.online.contains(cpu));
        self.resting.retain(|change, _| match change {
            Change::OnlineMemory(block) => seen.offline_blocks.contains(block),
            Change::OnlineCpu(cpu) | Change::OfflineCpu(cpu) => seen.present.contains(cpu),
            Change::AddedIsMovable | Change::Remember(_) | Change::Note(_) => false,
        });
        self.seen = Some(seen);
        self.hold_back();
        self.fulfilled();
    }

    /// What was allowed holds for vCPUs, too, that turn up later, or could not be brought online
    /// yet: what goes beyond it counts as parked.
    fn hold_back(&mut self) {
        let (Some(limit), Some(seen)) = (self.limit, &self.seen) else { return };
        let added = self.added(seen).len();
        let coming = limit.max(1).saturating_sub(seen.online.len()).min(added);
        // The lowest come: the highest are the first to be taken out.
        let idle = seen.present.difference(&seen.online).copied();
        self.parked = idle.skip(coming).collect();
    }

    /// A new agent counts with the vCPUs that are online when it has registered: those that were
    /// not by then wait for its word, whatever an earlier one allowed.
    pub(crate) fn hold_back_rest(&mut self) {
        let Some(online) = self.seen.as_ref().map(|seen| seen.online.len()) else { return };
        let agreed = match self.wish {
            Some(Wish::AtMost(count)) => Some(count),
            Some(Wish::AtLeast(_)) | None => None,
        };
        self.wish = agreed.map(Wish::AtMost);
        self.limit = Some(agreed.map_or(online, |count| count.min(online)));
        self.hold_back();
    }

    /// vCPUs that are to come online by themselves, lowest first.
    fn added(&self, seen: &MachineSeen) -> Vec<u32> {
        let idle = seen.present.difference(&seen.online);
        idle.filter(|cpu| !self.parked.contains(cpu)).copied().collect()
    }

    /// A change was made, or could not be.
    pub(crate) fn done(&mut self, now: Moment, done: bool) {
        let Some(Action::Do(change)) = self.busy.take() else { return };
        match &change {
            // It is tried once: without it the rest still helps.
            Change::AddedIsMovable => self.policy = true,
            Change::Remember(_) | Change::Note(_) if !done => {
                self.store_at = Some(now.after(RETRY));
            }
            Change::Note(lease) => {
                self.store_at = None;
                self.noted = *lease;
            }
            Change::Remember(set) => {
                self.store_at = None;
                self.stored.clone_from(set);
            }
            Change::OnlineMemory(_) | Change::OnlineCpu(_) | Change::OfflineCpu(_) if !done => {
                self.resting.insert(change, now.after(RETRY));
            }
            Change::OnlineMemory(block) => self.correct(|seen| {
                seen.offline_blocks.remove(block);
            }),
            Change::OnlineCpu(cpu) => {
                self.parked.remove(cpu);
                self.correct(|seen| {
                    seen.online.insert(*cpu);
                });
            }
            Change::OfflineCpu(cpu) => {
                self.parked.insert(*cpu);
                self.correct(|seen| {
                    seen.online.remove(cpu);
                });
            }
        }
        self.fulfilled();
    }

    /// Whether everything that should be done was done, or tried.
    pub(crate) fn settled(&self, now: Moment) -> bool {
        let mut plan = Plan::default();
        self.plan(now, &mut plan);
        self.awake && self.busy.is_none() && plan.actions.is_empty()
    }

    /// The vCPU that is being brought online.
    pub(crate) fn coming_online(&self) -> Option<u32> {
        match self.busy {
            Some(Action::Do(Change::OnlineCpu(cpu))) => Some(cpu),
            Some(_) | None => None,
        }
    }

    /// vCPUs that we took offline.
    pub(crate) fn parked(&self) -> &BTreeSet<u32> {
        &self.parked
    }

    pub(crate) fn plan(&self, now: Moment, plan: &mut Plan) {
        if !self.awake || self.busy.is_some() {
            return;
        }
        if !self.policy {
            plan.actions.push(Action::Do(Change::AddedIsMovable));
            return;
        }
        match self.look_at {
            Some(at) if at > now => plan.wake(at),
            Some(_) | None => {
                plan.actions.push(Action::Look);
                return;
            }
        }
        let stores = self.store_at.is_none_or(|at| at <= now);
        let changes = self.changes(stores);
        let ready = |change: &Change| self.resting.get(change).is_none_or(|until| *until <= now);
        if let Some(change) = changes.iter().find(|change| ready(change)) {
            plan.actions.push(Action::Do(change.clone()));
            return;
        }
        if let Some(at) = self.store_at.filter(|_| !stores) {
            plan.wake(at);
        }
        if let Some(until) = changes.iter().filter_map(|change| self.resting.get(change)).min() {
            plan.wake(*until);
        }
    }

    /// What is to be done, most important first. While nothing can be stored, the rest goes on.
    fn changes(&self, stores: bool) -> Vec<Change> {
        let Some(seen) = &self.seen else { return Vec::new() };
        if stores && self.note > self.noted {
            return vec![Change::Note(self.note)];
        }
        // Whatever else cannot be done: an informant that comes after this one has to know.
        if stores && !self.parked.is_subset(&self.stored) {
            return vec![Change::Remember(self.parked.clone())];
        }
        let mut changes: Vec<Change> =
            seen.offline_blocks.iter().map(|block| Change::OnlineMemory(*block)).collect();
        let added = self.added(seen);
        let (coming, none_comes) = (seen.online.len() + added.len(), added.is_empty());
        changes.extend(added.into_iter().map(Change::OnlineCpu));
        match self.wish {
            // What comes by itself is as good as what is un-parked, and both may be too many.
            Some(Wish::AtLeast(count)) if coming < count => {
                changes.extend(self.parked.iter().map(|cpu| Change::OnlineCpu(*cpu)));
            }
            Some(Wish::AtMost(count)) if none_comes => {
                let surplus = seen.online.len().saturating_sub(count.max(1));
                let park: Vec<u32> =
                    seen.online.iter().rev().filter(|cpu| **cpu != 0).copied().collect();
                let first = park.iter().take(surplus);
                let after: BTreeSet<u32> = self.parked.iter().chain(first).copied().collect();
                if stores && self.stored != after {
                    return vec![Change::Remember(after)];
                }
                // All of them are offered: where the highest will not go, a lower one may.
                changes.extend(park.into_iter().map(Change::OfflineCpu));
            }
            Some(Wish::AtMost(_) | Wish::AtLeast(_)) => {}
            None if stores && none_comes && self.stored != self.parked => {
                changes.push(Change::Remember(self.parked.clone()));
            }
            None => {}
        }
        changes
    }

    /// A wish is measured against the machine as it is then, so there is a look first.
    fn wish_for(&mut self, wish: Wish) {
        self.wish = Some(wish);
        self.must_look();
    }

    /// What was seen before this is old: a look that is under way says nothing of it.
    fn must_look(&mut self) {
        (self.look_at, self.look_again) = (None, true);
    }

    /// Drops a wish that is fulfilled, by a look that came after it.
    fn fulfilled(&mut self) {
        if self.look_at.is_none() {
            return;
        }
        let Some(seen) = &self.seen else { return };
        let reached = match self.wish {
            Some(Wish::AtMost(count)) => seen.online.len() <= count.max(1),
            Some(Wish::AtLeast(count)) => {
                seen.online.len() + self.added(seen).len() >= count
                    || !self.parked.iter().any(|cpu| seen.present.contains(cpu))
            }
            None => false,
        };
        if reached {
            self.wish = None;
        }
    }

    fn correct(&mut self, change: impl FnOnce(&mut MachineSeen)) {
        if let Some(seen) = &mut self.seen {
            change(seen);
        }
    }
}

/// CPU in whole vCPUs, rounded up; nothing if it is zero.
fn count(cpu: MilliCpu) -> Option<usize> {
    (!cpu.is_zero()).then(|| usize::try_from(cpu.cores_up()).unwrap_or(usize::MAX))
}
