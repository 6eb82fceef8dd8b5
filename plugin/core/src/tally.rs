//! What the books of a node come to: sums, and which VMs have or want most, kept with each change.
//!
//! A request costs about the same however many VMs a node has. A VM that waits alone gets what is
//! free without a division. Only a change of what VMs wait for, or of what is free while they
//! wait, divides the free room anew, and not while there is less of it than any of them can use.

use crate::largest::Largest;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_protocol::shortage::MOST_NAMED;
use windlass_protocol::status::Booked;
use windlass_protocol::{Axis, Bytes, MilliCpu, Resources, VmName};
use windlass_scaling::arbitrate::{Claim, divide};

/// What one VM adds to the figures of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) reserved: Resources,
    pub(crate) min: Resources,
    pub(crate) priority: i32,
    /// What it claims to have in all.
    pub(crate) claim: Option<Resources>,
    /// What it waits for, of CPU and of memory.
    pub(crate) wants: [Option<Want>; 2],
}

/// What a VM waits for on one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) priority: i32,
    pub(crate) missing: u64,
    /// It can use whole multiples of this, or all that is missing.
    pub(crate) grain: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    reserved: Sum,
    /// The minima of all VMs.
    min: Sum,
    /// The VMs with a claim.
    claimants: BTreeSet<Arc<VmName>>,
    axes: [Ranks; 2],
}

/// Sums of CPU and of memory that no amounts overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum([u128; 2]);

/// Which VMs have and want how much, on one axis.
#[derive(Clone, Debug, Default)]
struct Ranks {
    largest: Largest,
    /// With what is reserved.
    wants: BTreeMap<Arc<VmName>, (Want, u64)>,
    /// The least that each want can use, and how many wants can use as little.
    steps: BTreeMap<u64, usize>,
    /// As long as nothing changes of what it was made from.
    division: Option<Division>,
    /// As long as no VM is resized, none of these changes, and no room is kept for any.
    first: Option<First>,
}

/// The VMs that a shortage names.
#[derive(Clone, Debug)]
struct First {
    /// At most [`MOST_NAMED`].
    named: Arc<[Booked]>,
    /// In place of one that is itself short.
    next: Option<Booked>,
    /// Free room is kept for the first of them.
    ahead: bool,
}

/// Which VM gets what of the room that is free, on one axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Division {
    free: u64,
    /// Shares above zero.
    shares: BTreeMap<Arc<VmName>, u64>,
    /// All of them together.
    total: u64,
}

// === impl Tally ===

impl Tally {
    pub(crate) fn reserved(&self) -> Resources {
        self.reserved.resources()
    }

    pub(crate) fn min(&self) -> Resources {
        self.min.resources()
    }

    /// What all VMs wait for.
    pub(crate) fn missing(&self) -> Resources {
        let missing = |ranks: &Ranks| {
            let wants = ranks.wants.values().map(|(want, _)| want.missing);
            wants.fold(0, u64::saturating_add)
        };
        let [cpu, mem] = self.axes.each_ref().map(missing);
        Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) }
    }

    pub(crate) const fn claimants(&self) -> &BTreeSet<Arc<VmName>> {
        &self.claimants
    }

    /// Whether a VM that `spoke` gets all that it wants without a division: it is reserved already,
    /// or no other VM waits and enough is free.
    pub(crate) fn meets(
        &self,
        room: Resources,
        vm: &VmName,
        wanted: Resources,
        before: &Part,
        spoke: &Part,
    ) -> bool {
        if spoke.claim != Some(wanted) {
            return spoke.reserved.covers(wanted);
        }
        let free = room.saturating_sub(self.reserved_now(before, spoke));
        [Axis::Cpu, Axis::Memory].into_iter().all(|axis| {
            let mut waiting = self.axes[axis.index()].wants.keys();
            let want = spoke.wants[axis.index()];
            want.is_none_or(|want| want.missing <= axis.of(free))
                && (want.is_none() || waiting.all(|other| **other == *vm))
        })
    }

    /// By how much what is reserved exceeds the room, now that a VM `spoke`.
    pub(crate) fn over(&self, room: Resources, before: &Part, spoke: &Part) -> Resources {
        self.reserved_now(before, spoke).saturating_sub(room)
    }

    /// What is reserved in all, now that a VM `spoke`.
    fn reserved_now(&self, before: &Part, spoke: &Part) -> Resources {
        let mut reserved = self.reserved;
        reserved.change(before.reserved, spoke.reserved);
        reserved.resources()
    }

    /// A VM came, changed or left.
    pub(crate) fn change(&mut self, vm: &Arc<VmName>, before: Option<Part>, after: Option<Part>) {
        if before == after {
            return;
        }
        let part = |part: Option<Part>| part.unwrap_or_default();
        self.reserved.change(part(before).reserved, part(after).reserved);
        self.min.change(part(before).min, part(after).min);
        let claims = |part: Option<Part>| part.is_some_and(|part| part.claim.is_some());
        match (claims(before), claims(after)) {
            (false, true) => drop(self.claimants.insert(Arc::clone(vm))),
            (true, false) => drop(self.claimants.remove(vm)),
            (true, true) | (false, false) => {}
        }
        for (axis, ranks) in [Axis::Cpu, Axis::Memory].into_iter().zip(&mut self.axes) {
            let resized = before.map(|p| p.reserved) != after.map(|p| p.reserved);
            ranks.first.take_if(|first| resized || first.names(vm));
            ranks.change(axis, vm, before, after);
        }
    }

    pub(crate) fn divided(&mut self, axis: Axis, free: u64) -> &Division {
        self.axes[axis.index()].divided(free)
    }

    /// Whether the VMs that a shortage names on this axis are known.
    pub(crate) fn names_known(&mut self, axis: Axis, free: u64) -> bool {
        let ranks = &mut self.axes[axis.index()];
        ranks.divided(free);
        ranks.first.is_some()
    }

    /// Finds out which VMs a shortage names on this axis: those for which free room is kept, in the
    /// order in which they go, then those that have most of `all`.
    pub(crate) fn name<'a, V: Iterator<Item = (&'a Arc<VmName>, u64)>>(
        &mut self,
        axis: Axis,
        free: u64,
        all: impl FnOnce() -> V,
        booked: impl Fn(&VmName) -> Option<Booked>,
    ) {
        let ranks = &mut self.axes[axis.index()];
        let ahead = !ranks.divided(free).shares.is_empty();
        if ranks.first.is_none() {
            let named = ranks.ranked(all);
            let mut named: Vec<Booked> = named.iter().filter_map(|name| booked(name)).collect();
            let next = (named.len() > MOST_NAMED).then(|| named.pop()).flatten();
            ranks.first = Some(First { named: named.into(), next, ahead });
        }
    }

    /// The VMs that a shortage of this VM names on this axis, as far as they are known.
    pub(crate) fn named(&self, axis: Axis, vm: &VmName) -> Arc<[Booked]> {
        self.axes[axis.index()].first.as_ref().map(|first| first.but(vm)).unwrap_or_default()
    }
}

// === impl First ===

impl First {
    fn names(&self, vm: &VmName) -> bool {
        self.named.iter().chain(&self.next).any(|booked| booked.name == *vm)
    }

    /// Without the VM that is short.
    fn but(&self, vm: &VmName) -> Arc<[Booked]> {
        if self.named.iter().all(|other| other.name != *vm) {
            return Arc::clone(&self.named);
        }
        let others = self.named.iter().chain(&self.next).filter(|other| other.name != *vm);
        others.cloned().collect()
    }
}

// === impl Want ===

impl Want {
    /// The least that it can use.
    fn step(self) -> u64 {
        self.grain.max(1).min(self.missing)
    }
}

// === impl Sum ===

impl Sum {
    pub(crate) fn change(&mut self, less: Resources, more: Resources) {
        for (axis, sum) in [Axis::Cpu, Axis::Memory].into_iter().zip(&mut self.0) {
            *sum = (*sum + u128::from(axis.of(more))).saturating_sub(axis.of(less).into());
        }
    }

    /// At most the largest amount.
    pub(crate) fn resources(self) -> Resources {
        let [cpu, mem] = self.0.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) }
    }
}

// === impl Ranks ===

impl Ranks {
    fn change(&mut self, axis: Axis, vm: &Arc<VmName>, before: Option<Part>, after: Option<Part>) {
        let reserved = |part: Part| axis.of(part.reserved);
        self.largest.change(vm, before.map(reserved), after.map(reserved));
        let want = |part: Part| Some((part.wants[axis.index()]?, reserved(part)));
        let (before, after) = (before.and_then(want), after.and_then(want));
        if before == after {
            return;
        }
        if let Some((want, _)) = before {
            self.wants.remove(vm);
            let step = want.step();
            let many = self.steps.get_mut(&step).map(|many| {
                *many -= 1;
                *many
            });
            if many == Some(0) {
                self.steps.remove(&step);
            }
        }
        if let Some((want, reserved)) = after {
            self.wants.insert(Arc::clone(vm), (want, reserved));
            *self.steps.entry(want.step()).or_default() += 1;
        }
        self.division = None;
    }

    fn divided(&mut self, free: u64) -> &Division {
        if self.division.as_ref().is_none_or(|division| division.free != free) {
            let division = self.divide(free);
            let ahead = !division.shares.is_empty();
            self.first.take_if(|first| ahead || first.ahead);
            self.division = Some(division);
        }
        self.division.get_or_insert_default()
    }

    /// The VMs that come first, one more than a shortage names: those for which free room is kept, in
    /// the order in which they go, then those that have most.
    fn ranked<'a, V: Iterator<Item = (&'a Arc<VmName>, u64)>>(
        &mut self,
        all: impl FnOnce() -> V,
    ) -> Vec<Arc<VmName>> {
        let Self { division, wants, largest, .. } = self;
        let shares = division.as_ref().map(|division| &division.shares);
        let mut ahead: Vec<_> = shares
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter_map(|name| {
                let (want, reserved) = wants.get(name)?;
                Some((Reverse(want.priority), Reverse(*reserved), name))
            })
            .collect();
        ahead.sort_unstable();
        ahead.truncate(MOST_NAMED + 1);
        let mut named: Vec<_> = ahead.into_iter().map(|(.., name)| Arc::clone(name)).collect();
        if named.len() <= MOST_NAMED {
            let rest = largest.of(all).filter(|name| !named.contains(name));
            let rest: Vec<_> = rest.take(MOST_NAMED + 1 - named.len()).cloned().collect();
            named.extend(rest);
        }
        named
    }

    fn divide(&self, free: u64) -> Division {
        if self.steps.keys().next().is_none_or(|least| free < *least) {
            return Division { free, ..Division::default() };
        }
        let claim = |(key, (want, _)): (&Arc<VmName>, &(Want, u64))| {
            let Want { priority, missing, grain } = *want;
            Claim { key: Arc::clone(key), priority, missing, grain }
        };
        let claims: Vec<Claim<Arc<VmName>>> = self.wants.iter().map(claim).collect();
        let shares = divide(free, &claims);
        let shares = claims.into_iter().map(|claim| claim.key).zip(shares);
        let shares: BTreeMap<_, u64> = shares.filter(|(_, share)| *share > 0).collect();
        let total = shares.values().copied().fold(0, u64::saturating_add);
        Division { free, total, shares }
    }
}

// === impl Division ===

impl Division {
    pub(crate) fn of(&self, vm: &VmName) -> u64 {
        self.shares.get(vm).copied().unwrap_or_default()
    }

    /// What is kept for other VMs than this one.
    pub(crate) fn kept(&self, vm: &VmName) -> u64 {
        self.total.saturating_sub(self.of(vm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found out again when it is asked for makes no difference.
    impl PartialEq for Tally {
        fn eq(&self, other: &Self) -> bool {
            let axis = |one: &Ranks, other: &Ranks| {
                (&one.wants, &one.steps) == (&other.wants, &other.steps)
            };
            self.reserved == other.reserved
                && self.min == other.min
                && self.claimants == other.claimants
                && self.axes.iter().zip(&other.axes).all(|(one, other)| axis(one, other))
        }
    }
}
