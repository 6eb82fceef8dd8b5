//! Which VMs move away from nodes that are too full or are emptied.
//!
//! The *watermark* of a node is a share of what it can allocate; above it VMs should move away. The *pressure* on a node is
//! by how much what is taken and what its VMs ask for and do not get is above that, less what moves away already; on an
//! axis on which no more than the watermark is taken there is none. A VM that no agent has spoken for counts here with
//! what its pod requests: a plugin that has just started moves nobody for what VMs may have been promised.
//!
//! Of a VM that has just moved, or did not, the pod that its object does not control is about to go.
//!
//! A VM is chosen if its object lets it be moved, its agent has spoken, and another node has room for it below its own
//! watermark. The order is [`Preference`]. Few move at a time, and one whose migration ended rests.
//!
//! Where cordoned nodes are *emptied* all VMs leave them that may be moved and fit elsewhere, and before any other. One that no agent
//! has spoken for leaves too, and counts on both nodes with all that it may have been promised. Whoever was tried lately goes after
//! the others: one that finds no place keeps nobody else. No VM leaves a node whose kubelet is silent: its migration would not end.

use crate::books::Books;
use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::held::{HeldNode, SeenNode};
use crate::pods::known::Known;
use crate::pods::migration::{Migrations, Move, Step};
use crate::pods::rooms::Rooms;
use crate::stays::Stays;
use std::cmp::Reverse;
use std::ops::Deref;
use std::time::Duration;
use windlass_protocol::pod::PodVm;
use windlass_protocol::{Axis, Bytes, MilliCpu, Moment, Resources, VmName};

/// The whole of a node.
const WHOLE: u64 = 1000;

/// A VM whose migration ended moves on after this where its node is emptied.
const RESTS_WHERE_EMPTIED: Duration = Duration::from_secs(60);

/// Which VM moves first: the least.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    /// One that was not tried lately, then the one that was tried first.
    tried: Option<Moment>,
    /// The one that goes last where room is short.
    priority: i32,
    relief: Relief,
    pod: VmName,
}

/// What it helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relief {
    /// There is no pressure without it. The least memory is copied soonest.
    All(Bytes),
    /// There is less, of CPU and of memory; the more the better.
    Part(Reverse<(u64, u64)>),
}

/// A node that VMs are to leave.
struct Full {
    is_emptied: bool,
    pressure: Resources,
    leaving: usize,
    candidates: Vec<Candidate>,
}

/// The VMs of a node, as far as moves are concerned.
#[derive(Default)]
struct Movers {
    /// How many move, and what they have.
    leaving: usize,
    leaves: Resources,
    /// Those that may move.
    candidates: Vec<Candidate>,
    /// What those that no agent has spoken for have beyond the requests of their pods.
    unsure: Resources,
}

struct Candidate {
    size: Resources,
    priority: i32,
    is_spoken_for: bool,
    tried: Option<Moment>,
    goes: Move,
}

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// What is to be done, the fullest node first; nothing before the migrations were listed.
    pub fn migration_plan(&self, now: Moment) -> Vec<Step> {
        let Migrations { is_listed, known, asked, .. } = &self.migrations;
        if !is_listed {
            return Vec::new();
        }
        let terms = self.pools.migration;
        let ours = known.values().filter(|(migration, _)| migration.is_ours);
        let ends = ours.filter_map(|(migration, since)| {
            let is_late = now >= since.after(terms.placed_within);
            let is_given_up = !migration.is_over && is_late && !self.has_two_places(&migration.vm);
            let (name, uid) = (migration.name.clone(), migration.uid.clone());
            (migration.is_over || is_given_up).then_some(Step::Delete { name, uid, is_given_up })
        });
        let mut steps: Vec<Step> = ends.collect();
        steps.extend(asked.values().cloned().map(Step::Begin));
        let mut left = terms.in_all.saturating_sub(self.moving());
        if left > 0 {
            let mut full = self.full(now);
            full.sort_by_cached_key(|(name, full)| {
                (Reverse(full.is_emptied), Reverse(self.grade(name, full.pressure)), *name)
            });
            let mut rooms = if full.is_empty() { Rooms::default() } else { self.rooms() };
            for (_, full) in full {
                let most = left.min(terms.per_node.saturating_sub(full.leaving));
                let chosen = full.choose(most, &mut rooms);
                left -= chosen.len();
                steps.extend(chosen.into_iter().map(Step::Begin));
            }
        }
        steps
    }

    /// The nodes that have a watermark, by name: as much as may be taken of each, and the pressure on it.
    pub fn watermarks(&self, now: Moment) -> impl Iterator<Item = (&str, Resources, Resources)> {
        self.nodes.in_order().into_iter().filter_map(move |(name, held)| {
            let limit = held.there()?.limit()?;
            let full = self.pressure(name, held, now);
            Some((&**name, limit, full.map(|full| full.pressure).unwrap_or_default()))
        })
    }

    /// What the VM of this pod has on another node: the pod is the one that it moves to, and it comes with that, and with its
    /// ceiling once its object names this pod. No word of its migration may have come yet.
    pub(super) fn arrives_with(&self, pod: &VmName, vm: Option<&PodVm>) -> Resources {
        let pods = vm.and_then(|vm| self.objects.pods.get(&vm.object));
        let others = pods.into_iter().flatten().filter(|name| ***name != *pod);
        let sizes = others
            .filter_map(|name| self.books_of(name)?.with_books(|books| books.counted_later(name)));
        sizes.fold(Resources::ZERO, Resources::max)
    }

    /// A VM's pods that are on nodes are two, one of which it moves to.
    fn has_two_places(&self, vm: &VmName) -> bool {
        let pods = self.migrations.pods.get(vm).into_iter().flatten();
        pods.filter(|pod| self.pods.get(pod).and_then(Known::place).is_some()).count() > 1
    }

    /// How far a node is above its watermark, in thousandths of what it can allocate.
    fn grade(&self, node: &str, pressure: Resources) -> u64 {
        let seen = self.nodes.get(node).and_then(HeldNode::there);
        let allocatable = seen.map(|seen| seen.allocatable).unwrap_or_default();
        let on = |axis: Axis| {
            let part = u128::from(axis.of(pressure)) * u128::from(WHOLE);
            let part = part / u128::from(axis.of(allocatable).max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        on(Axis::Cpu).max(on(Axis::Memory))
    }

    /// The nodes that VMs are to leave.
    fn full(&self, now: Moment) -> Vec<(&str, Full)> {
        let full = |name, held| {
            let may_leave = if self.is_emptied(held) { Self::emptied } else { Self::pressure };
            may_leave(self, name, held, now)
        };
        let nodes = self.nodes.in_order().into_iter().map(|(name, held)| (&**name, held));
        nodes.filter_map(|(name, held)| Some((name, full(name, held)?))).collect()
    }

    /// Whether all VMs are to leave a node.
    fn is_emptied(&self, held: &HeldNode<N>) -> bool {
        self.pools.empties_cordoned && held.there().is_some_and(|seen| seen.hold.is_cordoned)
    }

    /// Who may leave a node that is emptied; `None`: nobody.
    fn emptied(&self, name: &str, held: &HeldNode<N>, now: Moment) -> Option<Full> {
        let seen = held.there().filter(|seen| !seen.is_silent)?;
        let movers = |books: &mut Books| self.movers(name, held, books, (now, RESTS_WHERE_EMPTIED));
        let Movers { leaving, candidates, .. } = seen.held.with_books(movers);
        let sizes = candidates.iter().map(|candidate| candidate.size);
        let pressure = sizes.fold(Resources::ZERO, Resources::saturating_add);
        (!candidates.is_empty()).then_some(Full { is_emptied: true, pressure, leaving, candidates })
    }

    /// The pressure on a node, and who may leave it; `None`: there is none.
    fn pressure(&self, name: &str, held: &HeldNode<N>, now: Moment) -> Option<Full> {
        let seen = held.there()?;
        let limit = seen.limit()?;
        let others = held.taken.others();
        if limit.covers(others.saturating_add(seen.held.summary().reserved)) {
            return None;
        }
        seen.held.with_books(|books| {
            let Movers { leaving, leaves, mut candidates, unsure } =
                self.movers(name, held, books, (now, self.pools.migration.rests));
            candidates.retain(|candidate| candidate.is_spoken_for);
            let taken = others.saturating_add(books.reserved().saturating_sub(unsure));
            let missing = books.missing(now);
            let on = |axis: Axis| match axis.of(taken).saturating_sub(axis.of(limit)) {
                0 => 0,
                over => over.saturating_add(axis.of(missing)).saturating_sub(axis.of(leaves)),
            };
            let pressure = Resources {
                cpu: MilliCpu::from_milli(on(Axis::Cpu)),
                mem: Bytes::from_bytes(on(Axis::Memory)),
            };
            let full = Full { is_emptied: false, pressure, leaving, candidates };
            (pressure != Resources::ZERO).then_some(full)
        })
    }

    /// Which VMs of a node move, and which may now if those that were tried rest for this long.
    fn movers(
        &self,
        name: &str,
        held: &HeldNode<N>,
        books: &Books,
        (now, rests): (Moment, Duration),
    ) -> Movers {
        let mut movers = Movers::default();
        let sooner = now.after(self.pools.migration.rests.saturating_sub(rests));
        for pod in &held.pods {
            let Some((known, vm)) = self.pods.get(pod).and_then(|it| Some((it, it.vm()?))) else {
                continue;
            };
            let size = books.reserved_for(pod).unwrap_or_default();
            let is_spoken_for = books.is_spoken_for(pod);
            if !is_spoken_for {
                let unsure = size.saturating_sub(known.share().asked());
                movers.unsure = movers.unsure.saturating_add(unsure);
            }
            let Some(object) = &vm.controller else {
                // What a migration leaves behind is about to go.
                if self.migrations.rest.contains_key(&vm.object) {
                    movers.leaves = movers.leaves.saturating_add(size);
                }
                continue;
            };
            if self.migrations.is_moving(&vm.object) {
                movers.leaves = movers.leaves.saturating_add(size);
                movers.leaving += 1;
            } else if vm.may_move && !known.is_terminating() {
                let rested = self.migrations.rest.get(&vm.object);
                if rested.is_some_and(|until| sooner < *until) {
                    continue;
                }
                let tried = rested.filter(|until| now < **until).copied();
                let (vm, node) = (vm.object.clone(), name.to_owned());
                let goes = Move { vm, object: object.to_string(), pod: (**pod).clone(), node };
                let priority = books.record(pod).map_or(0, |record| record.priority);
                movers.candidates.push(Candidate { size, priority, is_spoken_for, tried, goes });
            }
        }
        movers
    }

    /// Why a VM stays on a node that is emptied, unless it moves or may do so soon.
    pub(super) fn stays<'a>(
        &self,
        (known, vm): (&Known, &PodVm),
        (name, held): (&str, &HeldNode<N>),
        size: Resources,
        rooms: &impl Deref<Target = Rooms<'a>>,
    ) -> Option<Stays> {
        if !self.is_emptied(held) || self.migrations.is_moving(&vm.object) {
            return None;
        }
        if known.other_object().is_none() {
            return Some(Stays::IsItsPod);
        }
        if !vm.may_move {
            return Some(Stays::MayNotMove);
        }
        if held.there().is_some_and(|seen| seen.is_silent) {
            return Some(Stays::NodeSilent);
        }
        (vm.controller.is_some() && !rooms.have(name, size)).then_some(Stays::NoRoom(size))
    }
}

// === impl Full ===

impl Full {
    /// At most so many of the VMs, until there is no pressure.
    fn choose(self, most: usize, rooms: &mut Rooms<'_>) -> Vec<Move> {
        let Self { mut pressure, mut candidates, .. } = self;
        let mut chosen = Vec::new();
        while chosen.len() < most && pressure != Resources::ZERO && !candidates.is_empty() {
            let first = candidates.iter().enumerate().min_by_key(|(_, it)| it.preference(pressure));
            let Some((at, _)) = first else { break };
            let Candidate { size, goes, .. } = candidates.swap_remove(at);
            if rooms.take(&goes.node, size) {
                pressure = pressure.saturating_sub(size);
                chosen.push(goes);
            }
        }
        chosen
    }
}

// === impl SeenNode ===

impl<N> SeenNode<N> {
    /// As much of it may be taken before VMs leave it; `None`: none leaves.
    pub(crate) fn limit(&self) -> Option<Resources> {
        Some(share(self.allocatable, self.watermark?))
    }
}

// === impl Candidate ===

impl Candidate {
    fn preference(&self, pressure: Resources) -> Preference {
        let Self { size, priority, tried, goes, .. } = self;
        let helps = size.min(pressure);
        let relief = if size.covers(pressure) {
            Relief::All(size.mem)
        } else {
            Relief::Part(Reverse((helps.cpu.milli(), helps.mem.bytes())))
        };
        Preference { tried: *tried, priority: *priority, relief, pod: goes.pod.clone() }
    }
}

/// So many thousandths of what a node can allocate.
fn share(allocatable: Resources, thousandths: u64) -> Resources {
    let part = |amount: u64| {
        let part = u128::from(amount) * u128::from(thousandths.min(WHOLE)) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(amount)
    };
    Resources {
        cpu: MilliCpu::from_milli(part(allocatable.cpu.milli())),
        mem: Bytes::from_bytes(part(allocatable.mem.bytes())),
    }
}
