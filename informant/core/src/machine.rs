//! vCPUs and memory blocks of the guest: bringing them online, and parking vCPUs.
//!
//! The informant changes nothing before the first agent registers. From then on it brings added hardware
//! online, memory in the movable zone, so that the hypervisor can take it back. An agreed `/downscale` to
//! fewer vCPUs parks the highest vCPUs, but never vCPU 0; an `/upscale` un-parks them. A vCPU that appears
//! once an agent is current stays offline until the agent allows it: the books may have been lowered. The
//! set of parked vCPUs is stored before the parking, if possible, so that a restarted informant does not
//! mistake a parked vCPU for an added one.
//!
//! Parking ends when it is complete: a vCPU that the guest itself brings online later stays online, and the
//! informant reports it with the others.

use crate::event::{Action, Change, MachineSeen, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_protocol::{MilliCpu, Moment};

/// The period of looks at the machine, in case an event of the kernel was lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The wait before a failed change is retried.
const RETRY: Duration = Duration::from_secs(1);

/// The known and the desired state of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// Whether an agent has registered.
    awake: bool,
    seen: Option<MachineSeen>,
    /// When the next look is due; `None`: at once.
    look_at: Option<Moment>,
    /// Whether setting the policy for added memory was tried.
    policy: bool,
    /// vCPUs that the informant keeps offline because no agent has allowed them.
    parked: BTreeSet<u32>,
    /// The last stored set of parked vCPUs.
    stored: BTreeSet<u32>,
    /// The longest lease of registered agents, and its stored value.
    note: Duration,
    noted: Duration,
    /// The earliest retry after a failed store.
    store_at: Option<Moment>,
    wish: Option<Wish>,
    /// How many vCPUs the current agent knows of or has allowed; all, before the first agent.
    limit: Option<usize>,
    busy: Option<Action>,
    /// An event came after the start of the look in progress: another look must follow.
    look_again: bool,
    /// Failed changes, and when to retry them; bounded by the hardware.
    resting: BTreeMap<Change, Moment>,
}

/// The desired number of online vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    AtMost(usize),
    AtLeast(usize),
}

impl Machine {
    /// A machine on which an earlier informant parked these vCPUs.
    pub(crate) fn new(parked: BTreeSet<u32>) -> Self {
        Self { stored: parked.clone(), parked, ..Self::default() }
    }

    /// An agent registers: from here on the informant manages the machine. The agent starts from the online
    /// hardware, so added hardware that may come online does so first. The machine notes the agent's `lease`
    /// for the next informant.
    pub(crate) fn wake(&mut self, lease: Duration) {
        self.awake = true;
        self.note = self.note.max(lease);
        self.must_look();
    }

    /// The last agent has unregistered: no agent accounts for hardware that is added later.
    pub(crate) fn left_alone(&mut self) {
        self.limit = None;
    }

    /// The hardware or the wish may have changed: earlier looks are stale, also one in progress.
    pub(crate) fn must_look(&mut self) {
        (self.look_at, self.look_again) = (None, true);
    }

    /// Lowers the limit of vCPUs; never raises it. A request without CPU changes nothing.
    pub(crate) fn allow_at_most(&mut self, cpu: MilliCpu) {
        let Some(count) = count(cpu) else { return };
        self.limit = Some(self.limit.map_or(count, |limit| limit.min(count)));
        self.wish_for(Wish::AtMost(count));
    }

    /// Sets the limit of vCPUs.
    pub(crate) fn allow(&mut self, cpu: MilliCpu) {
        let Some(count) = count(cpu) else { return };
        self.limit = Some(count);
        self.wish_for(Wish::AtLeast(count));
    }

    pub(crate) fn sent(&mut self, action: Action) {
        self.busy = Some(action);
        self.look_again = false;
    }

    /// The result of a look.
    pub(crate) fn seen(&mut self, now: Moment, seen: Option<MachineSeen>) {
        self.busy = None;
        self.look_at = (!self.look_again).then(|| now.after(LOOK_EVERY));
        let Some(mut seen) = seen else {
            self.look_at = Some(now.after(RETRY));
            return;
        };
        seen.online.retain(|cpu| seen.present.contains(cpu));
        // A parked vCPU that is online or unplugged is no longer parked.
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

    /// Counts vCPUs beyond the limit as parked, also those that appear later or could not come online yet.
    fn hold_back(&mut self) {
        let (Some(limit), Some(seen)) = (self.limit, &self.seen) else { return };
        let added = self.added(seen).len();
        let coming = limit.max(1).saturating_sub(seen.online.len()).min(added);
        // The lowest come online: the hypervisor unplugs the highest first.
        let idle = seen.present.difference(&seen.online).copied();
        self.parked = idle.skip(coming).collect();
    }

    /// A new agent starts with the vCPUs that are online at its registration: the others wait for it, even if
    /// an earlier agent allowed them.
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

    /// vCPUs that may come online, lowest first.
    fn added(&self, seen: &MachineSeen) -> Vec<u32> {
        let idle = seen.present.difference(&seen.online);
        idle.filter(|cpu| !self.parked.contains(cpu)).copied().collect()
    }

    /// The result of a change.
    pub(crate) fn done(&mut self, now: Moment, done: bool) {
        let Some(Action::Do(change)) = self.busy.take() else { return };
        match &change {
            // Tried once only: the rest works without it.
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
            Change::OnlineMemory(block) => {
                if let Some(seen) = &mut self.seen {
                    seen.offline_blocks.remove(block);
                }
            }
            Change::OnlineCpu(cpu) => {
                self.parked.remove(cpu);
                if let Some(seen) = &mut self.seen {
                    seen.online.insert(*cpu);
                }
            }
            Change::OfflineCpu(cpu) => {
                self.parked.insert(*cpu);
                if let Some(seen) = &mut self.seen {
                    seen.online.remove(cpu);
                }
            }
        }
        self.fulfilled();
    }

    pub(crate) fn settled(&self, now: Moment) -> bool {
        let mut plan = Plan::default();
        self.plan(now, &mut plan);
        self.awake && self.busy.is_none() && plan.actions.is_empty()
    }

    pub(crate) fn coming_online(&self) -> Option<u32> {
        match self.busy {
            Some(Action::Do(Change::OnlineCpu(cpu))) => Some(cpu),
            Some(_) | None => None,
        }
    }

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

    /// The due changes, most important first. While storing fails, the other changes continue.
    fn changes(&self, stores: bool) -> Vec<Change> {
        let Some(seen) = &self.seen else { return Vec::new() };
        if stores && self.note > self.noted {
            return vec![Change::Note(self.note)];
        }
        // First of all, because the next informant must know.
        if stores && !self.parked.is_subset(&self.stored) {
            return vec![Change::Remember(self.parked.clone())];
        }
        let mut changes: Vec<Change> =
            seen.offline_blocks.iter().map(|block| Change::OnlineMemory(*block)).collect();
        let added = self.added(seen);
        let (coming, none_comes) = (seen.online.len() + added.len(), added.is_empty());
        changes.extend(added.into_iter().map(Change::OnlineCpu));
        match self.wish {
            // vCPUs that come anyway count too; together with un-parked ones they might exceed the limit.
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
                // All are candidates: if the highest refuses, a lower one may not.
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

    /// A new wish needs a fresh look at the machine.
    fn wish_for(&mut self, wish: Wish) {
        self.wish = Some(wish);
        self.must_look();
    }

    /// Drops a wish that a later look shows as fulfilled.
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
}

/// CPU in whole vCPUs, rounded up; `None` if it is zero.
fn count(cpu: MilliCpu) -> Option<usize> {
    (!cpu.is_zero()).then(|| usize::try_from(cpu.cores_up()).unwrap_or(usize::MAX))
}
