//! What its kubelet has allocated to the pod of one VM, as the cap of what the VM may be promised.
//!
//! The cap is what the API server's object says for sure: the smaller of what the spec asks for and of what the kubelet has
//! allocated. It falls before a smaller spec is sent, whether or not that takes effect, and rises when the watch shows
//! what the kubelet has allocated, and in no other way. So an allocation covers at any time what was promised, and nothing is
//! recorded beside it: a plugin that starts finds it in the pod.
//!
//! What a VM was permitted before its pod was resized no allocation may ever cover: its pod cannot be resized, or its node has no
//! room. A ceiling covers that for a later plugin, and is recorded again should somebody remove it.
//!
//! A *proposal* is a permit above the cap: the pod is to be resized for it. It ends when the kubelet refuses, when its
//! agent wants less, or after [`CLAIM_LASTS`] without a word of the agent. After a refusal none is made for a while.

use crate::backoff::rest;
use crate::ceilings;
use std::time::Duration;
use windlass_protocol::pod::{Ceiling, Pending};
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Moment, Resources, VmName};

/// After the first refusal in a row; each that follows doubles it.
const FIRST_REST: Duration = Duration::from_secs(1);

/// The longest time without a proposal.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A kubelet that has allocated a resize raises the container's limits within this, or the resize is taken back. Each refusal in
/// a row doubles it, up to [`LONGEST_REST`]: a slow kubelet gets there in the end.
const LIMITS_WITHIN: Duration = Duration::from_secs(10);

/// What a pod's object says of what is allocated to its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allotted {
    /// What the VM has for sure.
    pub sure: Resources,
    /// Whether the plugin may resize the pod.
    pub resizable: Resizable,
    /// What the VM has by an object that is not its pod; else zero.
    pub has: Resources,
    /// A ceiling that was recorded where no pod was resized: the VM may have been permitted as much.
    pub recorded: Option<Ceiling>,
}

/// Whether the plugin may resize the pod of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resizable {
    /// It may.
    Yes,
    /// The pod cannot be resized, or is being deleted.
    No,
    /// The pod belongs to another object, which may have given the VM more than the pod requests.
    OfAnother,
}

/// What a VM's pod is to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// What the VM may have, and what waits for its kubelet.
    pub size: Resources,
    /// The least that the VM is to have.
    pub least: Resources,
    /// Whether the pod may be asked to grow at this moment.
    pub may_grow: bool,
}

/// Why a pod was not resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Its kubelet says so.
    ByKubelet(Pending),
    /// It is allocated, and the limits in force stay below it.
    ByLimits,
    /// The API server refuses the write.
    ByApiServer,
}

/// What the books know of the allocation of one VM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allotment {
    cap: Resources,
    /// What an agent was told before any word of it counts: the VM may have it.
    pub(crate) told_early: Resources,
    /// What the VM has by its object, whatever its agent says.
    pub(crate) has: Resources,
    /// What it may have been permitted before its pod was resized.
    before: Resources,
    /// The ceiling that is recorded, as far as is known, and the highest number of one so far.
    ceiling: (Option<Ceiling>, u64),
    resizable: Resizable,
    /// What is granted, and until when it is reserved.
    proposal: Option<(Resources, Moment)>,
    /// Refusals since the last growth.
    refusals: u32,
    /// The last of them, and until when no proposal is made.
    denied: Option<(Denied, Moment)>,
    /// Since when the limits in force are below what is allocated and needed.
    limited_since: Option<Moment>,
}

// === impl Denied ===

impl Denied {
    /// As it is counted and shown.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ByKubelet(Pending::Deferred) => "deferred",
            Self::ByKubelet(Pending::Infeasible) => "infeasible",
            Self::ByKubelet(Pending::Other) => "pending",
            Self::ByLimits => "limits",
            Self::ByApiServer => "refused",
        }
    }
}

// === impl Allotment ===

impl Allotment {
    /// No ceiling of the VM had a higher number than this.
    pub(crate) fn new(allotted: Allotted, told_early: Resources, number: u64) -> Self {
        let Allotted { sure, resizable, has, recorded } = allotted;
        let (proposal, denied, limited_since) = (None, None, None);
        let mut new = Self {
            cap: sure,
            told_early,
            has,
            before: Resources::ZERO,
            ceiling: (None, number),
            resizable,
            proposal,
            refusals: 0,
            denied,
            limited_since,
        };
        new.ceiling_is(recorded);
        new
    }

    /// What its VM may have been permitted before its pod was resized: as much besides.
    pub(crate) fn had(&mut self, most: Resources) {
        self.before = self.before.max(most);
    }

    /// The same, by all that is known.
    pub(crate) const fn before(&self) -> Resources {
        self.before
    }

    /// The watch shows the pod.
    pub(crate) fn shown(&mut self, allotted: Allotted) {
        (self.cap, self.resizable, self.has) = (allotted.sure, allotted.resizable, allotted.has);
        self.ceiling_is(allotted.recorded);
        let is_met = |(size, _)| allotted.sure.covers(size);
        if self.proposal.is_some_and(is_met) {
            // It stays reserved until its agent was told.
            (self.refusals, self.denied) = (0, None);
        }
    }

    /// The ceiling that is recorded is this.
    pub(crate) fn ceiling_is(&mut self, recorded: Option<Ceiling>) {
        let (known, number) = &mut self.ceiling;
        *known = recorded;
        if let Some(recorded) = recorded {
            *number = recorded.write.max(*number);
            self.had(recorded.size);
        }
    }

    /// Whether a later plugin would count its VM with less than the VM may have, which is `in_use`, and the VM with `least` at any rate.
    pub(crate) fn is_unrecorded(&self, in_use: Resources, least: Resources) -> bool {
        let (known, _) = self.ceiling;
        let recorded = known.map(|known| known.size).unwrap_or_default();
        !self.is_of_another() && !self.cap.max(least).max(recorded).covers(in_use)
    }

    /// What is known of the ceiling, and one of this size with a number that none had.
    pub(crate) fn next_ceiling(
        &mut self,
        epoch: u64,
        size: Resources,
    ) -> (Option<Ceiling>, Ceiling) {
        let (known, number) = &mut self.ceiling;
        let next = ceilings::next(*known, *number, epoch, size);
        *number = next.write;
        (*known, next)
    }

    pub(crate) const fn cap(&self) -> Resources {
        self.cap
    }

    pub(crate) fn proposal(&self) -> Resources {
        self.proposal.map(|(size, _)| size).unwrap_or_default()
    }

    /// A permit above the cap waits. `false`: the pod is not resized for now.
    pub(crate) fn propose(&mut self, now: Moment, size: Resources) -> bool {
        let may = self.resizable == Resizable::Yes && !self.rests(now);
        if may {
            self.proposal = Some((self.proposal().max(size), now.after(CLAIM_LASTS)));
        }
        may
    }

    /// The agent wants no more than this, and was promised `promised` of it.
    pub(crate) fn wants(&mut self, wanted: Resources, promised: Resources) {
        let proposal = self.proposal.map(|(size, until)| (size.min(wanted), until));
        self.proposal = proposal.filter(|(size, _)| !promised.covers(*size));
    }

    /// A proposal whose agent is silent ends.
    pub(crate) fn forget(&mut self, now: Moment) {
        self.proposal = self.proposal.filter(|(_, until)| now < *until);
    }

    /// The pod asks for this much from here on, whether or not that takes effect. `false`: what of `promised` the
    /// allocation covers is more.
    pub(crate) fn falls(&mut self, to: Resources, promised: Resources) -> bool {
        let is_free = to.covers(promised.min(self.cap));
        if is_free {
            self.cap = self.cap.min(to);
        }
        is_free
    }

    /// The pod is not resized. What was proposed is free, and nothing is proposed for a while.
    pub(crate) fn refuse(&mut self, now: Moment, vm: &VmName, why: Denied) {
        (self.proposal, self.refusals) = (None, self.refusals.saturating_add(1));
        // VMs of one node do not try again in step.
        let bytes = vm.name.bytes();
        let seed = bytes.fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let rest = rest(FIRST_REST, LONGEST_REST, self.refusals, seed);
        self.denied = Some((why, now.after(rest)));
    }

    /// Whether the limits in force have been below what is allocated (`are_low`) for too long, while the VM needs more.
    pub(crate) fn is_limited(&mut self, now: Moment, are_low: bool, needed: Resources) -> bool {
        let begins = self.limited_since.is_none() && !self.cap.covers(needed);
        let since = self.limited_since.or(begins.then_some(now)).filter(|_| are_low);
        self.limited_since = since;
        let within = doubled(LIMITS_WITHIN, self.refusals);
        since.is_some_and(|since| now >= since.after(within))
    }

    /// Whether no proposal is made at this moment.
    pub(crate) fn rests(&self, now: Moment) -> bool {
        self.denied.is_some_and(|(_, until)| now < until)
    }

    pub(crate) const fn denied(&self) -> Option<(Denied, Moment)> {
        self.denied
    }

    /// Whether the plugin may resize the pod.
    pub(crate) fn is_resizable(&self) -> bool {
        self.resizable == Resizable::Yes
    }

    /// Whether no allocation covers what the VM may have: the pod belongs to another object.
    pub(crate) fn is_of_another(&self) -> bool {
        self.resizable == Resizable::OfAnother
    }

    /// Whether a permit waits for the kubelet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.cap.covers(self.proposal())
    }
}

/// So many times twice as long, up to the longest rest.
fn doubled(time: Duration, times: u32) -> Duration {
    time.saturating_mul(1 << times.min(6)).min(LONGEST_REST)
}
