//! The ledger of one node.
//!
//! Law 2, books within the node: a grant never raises the sum of what is promised above the
//! room. Where the world is already over (a node shrank, a VM was attached above the room, a
//! guest took more by itself), nobody is granted more on that axis until it is under again.
//!
//! A request says what a VM has or should get. Less than is promised is the news that it was
//! given back, and is taken back at once; more is a want, granted from what is free and
//! remembered as a claim for [`CLAIM_LASTS`]. While claims compete, what is free is divided by
//! `scaling::arbitrate`: a VM gets its share, and the shares of the others wait for them.
//!
//! Law 9, rebuild equals live: nothing is stored. A VM enters with the most that it may have
//! been promised, and its agent's next request sets it right.

use crate::shortage::{Axis, MOST_NAMED, Shortage};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;
use windlass_protocol::status::{Booked, NodeStatus};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};
use windlass_scaling::arbitrate::{self, divide};

/// A want is remembered for this long: two of the agent's periods.
pub const CLAIM_LASTS: Duration = Duration::from_secs(10);

/// The books of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Books {
    room: Resources,
    vms: BTreeMap<VmName, Entry>,
}

/// What the books know of a VM besides what is promised to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmRecord {
    /// Higher goes first.
    pub priority: i32,
    /// It can use more in multiples of this; zero means any amount.
    pub grain: Resources,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// What the VM may have.
    pub permit: Resources,
    /// Why that is less than it asked for; empty if it is not.
    pub short: Vec<Shortage>,
}

/// Why a request could not be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BooksError {
    /// Nobody told the books of this VM.
    #[error("pod not found: no vm {0} in the books of this node")]
    UnknownVm(VmName),
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    record: VmRecord,
    reserved: Resources,
    /// An agent has spoken for it: what is promised follows its requests.
    spoken_for: bool,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Claim {
    wanted: Resources,
    until: Moment,
}

// === impl Books ===

impl Books {
    /// The books of an empty node that may promise this much.
    pub const fn new(room: Resources) -> Self {
        Self { room, vms: BTreeMap::new() }
    }

    /// What may be promised.
    pub const fn room(&self) -> Resources {
        self.room
    }

    /// The node may promise this much from here on.
    pub fn set_room(&mut self, room: Resources) {
        self.room = room;
    }

    /// A VM is on this node and may have been promised `ceiling`. Entering again changes its
    /// record, and never lowers what is promised.
    pub fn enter(&mut self, vm: VmName, record: VmRecord, ceiling: Resources) {
        let entry = self.vms.entry(vm).or_insert(Entry {
            record,
            reserved: Resources::ZERO,
            spoken_for: false,
            claim: None,
        });
        entry.record = record;
        entry.reserved = entry.reserved.max(ceiling);
    }

    /// What is known of a VM changed. Unknown VMs are passed over.
    pub fn update(&mut self, vm: &VmName, record: VmRecord) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.record = record;
        }
    }

    /// A VM left the node, and everything promised to it is free.
    pub fn leave(&mut self, vm: &VmName) {
        self.vms.remove(vm);
    }

    /// No agent speaks for this VM any more: it is counted with what it is seen to have.
    pub fn silence(&mut self, vm: &VmName) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.spoken_for = false;
            entry.claim = None;
        }
    }

    /// A VM was seen to have this much. More than was promised is a fact, and is counted; for
    /// a VM that no agent speaks for, less is one too.
    pub fn witness(&mut self, vm: &VmName, has: Resources) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.reserved = if entry.spoken_for { entry.reserved.max(has) } else { has };
        }
    }

    /// An agent says what its VM has or should get.
    ///
    /// # Errors
    /// [`BooksError::UnknownVm`] if the VM never entered.
    pub fn request(
        &mut self,
        now: Moment,
        vm: &VmName,
        wanted: Resources,
    ) -> Result<Granted, BooksError> {
        let entry = self.vms.get_mut(vm).ok_or_else(|| BooksError::UnknownVm(vm.clone()))?;
        entry.spoken_for = true;
        entry.reserved = entry.reserved.min(wanted);
        entry.claim =
            (entry.reserved != wanted).then(|| Claim { wanted, until: now.after(CLAIM_LASTS) });
        self.forget_old_claims(now);

        let (cpu, cpu_short) = self.grant(Axis::Cpu, vm, wanted);
        let (mem, mem_short) = self.grant(Axis::Memory, vm, wanted);
        let permit = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.reserved = permit;
            entry.claim = entry.claim.filter(|claim| permit != claim.wanted);
        }
        Ok(Granted { permit, short: cpu_short.into_iter().chain(mem_short).collect() })
    }

    /// What is promised in all.
    pub fn reserved(&self) -> Resources {
        let all = self.vms.values().map(|entry| entry.reserved);
        all.fold(Resources::ZERO, Resources::saturating_add)
    }

    /// Whether more is promised than the node has.
    pub fn is_over(&self) -> bool {
        !self.room.covers(self.reserved())
    }

    /// The books at this moment, VMs by name.
    pub fn status(&self, now: Moment) -> NodeStatus {
        let booked = |(name, entry): (&VmName, &Entry)| entry.booked(name, now);
        NodeStatus {
            room: self.room,
            reserved: self.reserved(),
            vms: self.vms.iter().map(booked).collect(),
        }
    }

    /// What `vm` may have on one axis, and why it is short, if it is.
    fn grant(&self, axis: Axis, vm: &VmName, wanted: Resources) -> (u64, Option<Shortage>) {
        let asked = axis.of(wanted);
        let has = self.vms.get(vm).map_or(0, |entry| axis.of(entry.reserved));
        let room = axis.of(self.room);
        let free = room.saturating_sub(axis.of(self.reserved()));
        if asked <= has {
            return (asked, None);
        }
        let claims: Vec<_> =
            self.vms.iter().filter_map(|(name, entry)| entry.claim_on(axis, name)).collect();
        let shares = divide(free, &claims);
        let mine = claims.iter().zip(shares).find(|(claim, _)| claim.key == vm);
        let permitted = has.saturating_add(mine.map_or(0, |(_, share)| share));
        let short = (permitted < asked).then(|| Shortage {
            axis,
            asked,
            permitted,
            room,
            free,
            others: self.others(axis, vm),
        });
        (permitted, short)
    }

    fn others(&self, axis: Axis, vm: &VmName) -> Vec<Booked> {
        // Claims were tidied before this: those that are left are fresh.
        let others = self.vms.iter().filter(|(name, _)| *name != vm);
        let mut others: Vec<Booked> =
            others.map(|(name, entry)| entry.booked(name, Moment::default())).collect();
        others.sort_by_key(|booked| Reverse(axis.of(booked.reserved)));
        others.truncate(MOST_NAMED);
        others
    }

    fn forget_old_claims(&mut self, now: Moment) {
        for entry in self.vms.values_mut() {
            entry.claim = entry.claim.filter(|claim| now < claim.until);
        }
    }
}

// === impl Entry ===

impl Entry {
    fn booked(&self, name: &VmName, now: Moment) -> Booked {
        Booked {
            name: name.clone(),
            priority: self.record.priority,
            reserved: self.reserved,
            claim: self.claim.filter(|claim| now < claim.until).map(|claim| claim.wanted),
        }
    }

    fn claim_on<'a>(&self, axis: Axis, name: &'a VmName) -> Option<arbitrate::Claim<&'a VmName>> {
        let missing = axis.of(self.claim?.wanted).saturating_sub(axis.of(self.reserved));
        (missing > 0).then(|| arbitrate::Claim {
            key: name,
            priority: self.record.priority,
            missing,
            grain: axis.of(self.record.grain),
        })
    }
}

// === impl Axis ===

impl Axis {
    const fn of(self, resources: Resources) -> u64 {
        match self {
            Self::Cpu => resources.cpu.milli(),
            Self::Memory => resources.mem.bytes(),
        }
    }
}
