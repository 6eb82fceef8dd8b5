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
//! What is promised to a VM is the larger of what its agent asked for and was granted, and of
//! what its hypervisor was seen to have: news that something was given back frees it when it
//! is seen to be gone. Memory counts in whole slots, rounded up, as it does on the wire.
//!
//! Law 9, rebuild equals live: nothing is stored. A VM enters with the most that it may have
//! been promised, and its agent's next request sets it right: where that names the last permit,
//! what of it is still free is promised again before anything else is granted. `tests/laws.rs`
//! looks for counterexamples of both.
//!
//! A VM that is about to be moved gets no more; once its agent was told so, its size must stay.

use crate::ask::Ask;
use crate::journal::{Journal, Note};
use crate::record::VmRecord;
use crate::shortage::{Axis, MOST_NAMED, Shortage};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;
use windlass_protocol::status::{Booked, NodeStatus};
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};
use windlass_scaling::arbitrate::{self, divide};

/// The books of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Books {
    room: Resources,
    vms: BTreeMap<VmName, Entry>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// What the VM may have.
    pub permit: Resources,
    /// Why that is less than it asked for; empty if it is not.
    pub short: Vec<Shortage>,
    /// It is about to be moved, and keeps its size until then.
    pub moving: bool,
}

/// Why a request could not be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BooksError {
    /// Nobody told the books of this VM.
    #[error("pod not found: no vm {0} in the books of this node")]
    UnknownVm(VmName),
    /// Its agent was told that it is about to be moved.
    #[error("cannot change resources: vm {vm} is about to be moved: {wanted} is not its {permit}")]
    Moving {
        /// The VM.
        vm: VmName,
        /// What its agent wants.
        wanted: Resources,
        /// What it has to stay with.
        permit: Resources,
    },
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    record: VmRecord,
    standing: Standing,
    claim: Option<Claim>,
    moving: Moving,
    journal: Journal,
}

/// Whether a VM is about to be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moving {
    /// It stays.
    No,
    /// Its agent is to be told.
    Due,
    /// Its agent was told, while it was permitted this.
    Told(Resources),
}

/// On whose word a VM is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    /// No agent has spoken for it, and nobody has seen it: it counts with the most that it may have
    /// been promised.
    Presumed(Resources),
    /// No agent has spoken for it: it counts with the most that it may have been promised, or
    /// with what it was seen to have since.
    Silent(Resources),
    /// An agent speaks for it.
    Spoken {
        /// What its agent may use.
        permit: Resources,
        /// What it was last seen to have.
        has: Resources,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Claim {
    wanted: Resources,
    until: Moment,
    /// It is granted in multiples of this; zero means any amount.
    grain: Resources,
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
        let entry = self.vms.entry(vm).or_insert_with(|| Entry::new(record));
        entry.record = record;
        entry.standing = match entry.standing {
            Standing::Presumed(most) | Standing::Silent(most) => {
                Standing::Silent(most.max(ceiling))
            }
            Standing::Spoken { permit, has } => Standing::Spoken { permit, has: has.max(ceiling) },
        };
    }

    /// A VM is on this node, and nobody sees what it has: it counts with `ceiling` until its agent
    /// speaks. An agent that names the last permit is believed; one that does not may have been
    /// promised all that it asks for. One that an agent speaks for is only [updated](Self::update).
    pub fn presume(&mut self, vm: VmName, record: VmRecord, ceiling: Resources) {
        let entry = self.vms.entry(vm).or_insert_with(|| Entry {
            standing: Standing::Presumed(ceiling),
            ..Entry::new(record)
        });
        entry.record = record;
        if let Standing::Presumed(most) = &mut entry.standing {
            *most = most.max(ceiling);
        }
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

    /// No agent speaks for this VM, or none does any more: it counts with exactly this, until
    /// it is seen to have something else.
    pub fn count(&mut self, vm: &VmName, has: Resources) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.standing = Standing::Silent(has);
            entry.claim = None;
        }
    }

    /// A VM was seen to have this much. More than was promised is a fact, and is counted; for
    /// a VM that no agent speaks for, less is one too.
    pub fn witness(&mut self, vm: &VmName, has: Resources) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.standing = match entry.standing {
                Standing::Presumed(_) | Standing::Silent(_) => Standing::Silent(has),
                Standing::Spoken { permit, has: _ } => Standing::Spoken { permit, has },
            };
        }
    }

    /// A VM is about to be moved to another node, or stays after all. Unknown VMs are passed
    /// over.
    pub fn set_moving(&mut self, vm: &VmName, moving: bool) {
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.moving = match (entry.moving, moving) {
                (_, false) => Moving::No,
                (Moving::No, true) => Moving::Due,
                (told @ (Moving::Due | Moving::Told(_)), true) => told,
            };
        }
    }

    /// An agent says what its VM has or should get.
    ///
    /// # Errors
    /// [`BooksError::UnknownVm`] if the VM never entered, [`BooksError::Moving`] if its agent was
    /// told that it keeps its size.
    pub fn request(
        &mut self,
        now: Moment,
        vm: &VmName,
        ask: impl Into<Ask>,
    ) -> Result<Granted, BooksError> {
        let ask: Ask = ask.into();
        let wanted = ask.wanted;
        self.forget_old_claims(now);
        let free = self.free();
        let entry = self.vms.get_mut(vm).ok_or_else(|| BooksError::UnknownVm(vm.clone()))?;
        if let Moving::Told(permit) = entry.moving {
            if wanted == permit {
                return Ok(Granted { permit, short: Vec::new(), moving: true });
            }
            return Err(BooksError::Moving { vm: vm.clone(), wanted, permit });
        }
        let moving = entry.moving == Moving::Due;
        entry.speak(now, &ask, free);

        let reserved = self.reserved();
        let (cpu, cpu_short) = self.grant(Axis::Cpu, vm, &ask, reserved);
        let (mem, mem_short) = self.grant(Axis::Memory, vm, &ask, reserved);
        let permit = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        let short: Vec<_> = cpu_short.into_iter().chain(mem_short).collect();
        if let Some(entry) = self.vms.get_mut(vm) {
            entry.permit(permit);
            entry.claim = entry.claim.filter(|_| !short.is_empty());
            if moving {
                entry.moving = Moving::Told(permit);
            }
            if !short.is_empty() {
                entry.journal.write(now, wanted, permit, &short);
            }
        }
        Ok(Granted { permit, short, moving })
    }

    /// What is known of a VM, if it entered.
    pub fn record(&self, vm: &VmName) -> Option<&VmRecord> {
        self.vms.get(vm).map(|entry| &entry.record)
    }

    /// Whether an agent speaks for this VM. One that none speaks for counts with the most that it
    /// may have been promised, or with what it was seen to have.
    pub fn is_spoken_for(&self, vm: &VmName) -> bool {
        let spoken = |entry: &Entry| matches!(entry.standing, Standing::Spoken { .. });
        self.vms.get(vm).is_some_and(spoken)
    }

    /// When and why a VM lately got less than it asked for, the oldest first.
    pub fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.vms.get(vm).map(|entry| entry.journal.notes()).unwrap_or_default()
    }

    /// By how much the minima of all VMs exceed the room, if they do: then somebody never gets
    /// his minimum, whatever the others give back.
    pub fn minima_over(&self) -> Option<Resources> {
        let minima = self.vms.values().map(|entry| entry.record.min);
        let minima = minima.fold(Resources::ZERO, Resources::saturating_add);
        (!self.room.covers(minima)).then(|| minima.saturating_sub(self.room))
    }

    /// What is promised in all.
    pub fn reserved(&self) -> Resources {
        let all = self.vms.values().map(Entry::reserved);
        all.fold(Resources::ZERO, Resources::saturating_add)
    }

    /// What is promised to a VM, if it entered.
    pub fn reserved_for(&self, vm: &VmName) -> Option<Resources> {
        self.vms.get(vm).map(Entry::reserved)
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

    /// What is promised to nobody.
    fn free(&self) -> Resources {
        self.room.saturating_sub(self.reserved())
    }

    /// What `vm` may have on one axis, of which `reserved` is promised in all, and why it is
    /// short, if it is.
    fn grant(
        &self,
        axis: Axis,
        vm: &VmName,
        ask: &Ask,
        reserved: Resources,
    ) -> (u64, Option<Shortage>) {
        let asked = axis.of(ask.wanted);
        let has = self.vms.get(vm).map_or(0, |entry| axis.of(entry.reserved()));
        if asked <= has {
            return (asked, None);
        }
        let (room, reserved) = (axis.of(self.room), axis.of(reserved));
        let free = room.saturating_sub(reserved);
        let claims: Vec<_> =
            self.vms.iter().filter_map(|(name, entry)| entry.claim_on(axis, name)).collect();
        let shares = divide(free, &claims);
        let (mut mine, mut ahead) = (0, BTreeMap::new());
        for (claim, share) in claims.iter().zip(shares) {
            if claim.key == vm {
                mine = share.min(asked - has);
            } else if share > 0 {
                ahead.insert(claim.key, share);
            }
        }
        let permitted = ask.sayable(axis, has.saturating_add(mine));
        let short = (permitted < asked).then(|| Shortage {
            axis,
            asked,
            permitted,
            room,
            free,
            over: reserved.saturating_sub(room),
            kept: ahead.values().copied().fold(0, u64::saturating_add),
            others: self.others(axis, vm, &ahead),
        });
        (permitted, short)
    }

    /// Those for whom free room is kept, in the order in which they go; then those who have
    /// most.
    fn others(&self, axis: Axis, vm: &VmName, ahead: &BTreeMap<&VmName, u64>) -> Vec<Booked> {
        let others = self.vms.iter().filter(|(name, _)| *name != vm);
        // Claims were tidied before this: those that are left are fresh.
        let mut others: Vec<Booked> =
            others.map(|(name, entry)| entry.booked(name, Moment::default())).collect();
        others.sort_by_key(|booked| {
            let waits = ahead.contains_key(&booked.name);
            let priority = if waits { booked.priority } else { i32::MIN };
            (Reverse(waits), Reverse(priority), Reverse(axis.of(booked.reserved)))
        });
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
    fn new(record: VmRecord) -> Self {
        let standing = Standing::Silent(Resources::ZERO);
        Self { record, standing, claim: None, moving: Moving::No, journal: Journal::default() }
    }

    /// What is promised to it.
    fn reserved(&self) -> Resources {
        let most = self.standing.most();
        Resources { cpu: most.cpu, mem: most.mem.round_up(self.record.memory_slot) }
    }

    /// Its agent speaks: what it no longer wants is given back, what it wants beyond is claimed.
    fn speak(&mut self, now: Moment, ask: &Ask, free: Resources) {
        self.standing = match self.standing {
            Standing::Presumed(most) => {
                // Who was promised less than the ceiling and says so gets no more unasked.
                let least = if ask.last_permit.is_some() { Resources::ZERO } else { most };
                let promised = self.promised_again(least, ask, free);
                Standing::Spoken { permit: promised.min(ask.wanted), has: Resources::ZERO }
            }
            // The ceiling was there for want of an agent's word.
            Standing::Silent(most) => {
                let promised = self.promised_again(most, ask, free);
                Standing::Spoken { permit: promised.min(ask.wanted), has: Resources::ZERO }
            }
            Standing::Spoken { permit, has } => {
                Standing::Spoken { permit: permit.min(ask.wanted), has }
            }
        };
        let enough = self.reserved().covers(ask.wanted);
        let stays = self.moving != Moving::No;
        self.claim = (!enough && !stays).then(|| Claim {
            wanted: ask.wanted,
            until: now.after(CLAIM_LASTS),
            grain: ask.grain(&self.record),
        });
    }

    /// What earlier books had promised beyond what these know, as far as it is still free.
    fn promised_again(&self, most: Resources, ask: &Ask, free: Resources) -> Resources {
        let Some(last) = ask.last_permit else { return most };
        let known = self.reserved();
        let most_now = known.saturating_add(free);
        let slot = self.record.memory_slot;
        let last = last.min(Resources { mem: most_now.mem.round_down(slot), ..most_now });
        most.max(last)
    }

    fn permit(&mut self, granted: Resources) {
        self.standing = match self.standing {
            Standing::Presumed(has)
            | Standing::Silent(has)
            | Standing::Spoken { permit: _, has } => Standing::Spoken { permit: granted, has },
        };
    }

    fn booked(&self, name: &VmName, now: Moment) -> Booked {
        Booked {
            name: name.clone(),
            priority: self.record.priority,
            reserved: self.reserved(),
            claim: self.claim.filter(|claim| now < claim.until).map(|claim| claim.wanted),
        }
    }

    fn claim_on<'a>(&self, axis: Axis, name: &'a VmName) -> Option<arbitrate::Claim<&'a VmName>> {
        let Claim { wanted, grain, .. } = self.claim?;
        let missing = axis.of(wanted).saturating_sub(axis.of(self.reserved()));
        let VmRecord { priority, memory_slot, .. } = self.record;
        // A permit is written in whole slots.
        let grain = match axis {
            Axis::Cpu => grain.cpu.milli(),
            Axis::Memory => grain.mem.max(memory_slot).round_up(memory_slot).bytes(),
        };
        // What is said in bytes takes the whole of its last slot.
        let missing = match axis {
            Axis::Cpu => missing,
            Axis::Memory => Bytes::from_bytes(missing).round_up(memory_slot).bytes(),
        };
        (missing > 0).then_some(arbitrate::Claim { key: name, priority, missing, grain })
    }
}

// === impl Standing ===

impl Standing {
    fn most(self) -> Resources {
        match self {
            Self::Presumed(most) | Self::Silent(most) => most,
            Self::Spoken { permit, has } => permit.max(has),
        }
    }
}
