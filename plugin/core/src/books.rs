//! The ledger of one node.
//!
//! Law 2, books within the node: a grant never raises the sum of what is reserved above the
//! room. While more is reserved (a node shrank, a VM was attached above the room, a guest took
//! more by itself), the books grant no VM more on that axis.
//!
//! A request says what a VM has or should get. A request for less than is reserved is the news that
//! the VM gave the rest back, and frees it at once. A request for more is a want, granted from what
//! is free and remembered as a claim for [`CLAIM_LASTS`](windlass_protocol::timing::CLAIM_LASTS). While claims
//! compete, what is free is divided by `scaling::arbitrate`: a VM gets its share, and the shares of the
//! others wait for them.
//!
//! *Granted* is what an agent may use: its permit. *Reserved* for a VM is the larger of its permit and
//! of what its hypervisor was seen to have: news that something was given back frees it when the
//! hypervisor shows that it is gone. Memory counts in whole slots, rounded up, as it does on the wire.
//!
//! Law 9, rebuild equals live: nothing is stored. A VM enters with the most that may have been
//! reserved for it, and its agent's next request sets that right. If the request names the last
//! permit, the books reserve what of it is still free before they grant anything else.
//! `tests/laws.rs` looks for counterexamples of both.
//!
//! While growth is held, no VM gets more on that axis than is reserved for it.
//!
//! A VM that is about to be moved gets no more; once its agent was told so, its size must stay.
//!
//! Where [ceilings](crate::ceilings) are recorded, [`Books::propose`] reserves what it would grant and has its
//! answer wait until the ceiling covers it; [`Books::request`] answers at once, with no more than is covered.

mod entering;
mod reading;
mod recording;
mod resizing;
pub mod telling;

use crate::ask::{Ask, Granted, Proposed};
use crate::by_name::ByName;
use crate::entry::{Above, Basis, Entry, Moving};
use crate::hold::Hold;
use crate::offer::Offer;
use crate::tally::Tally;
use std::sync::Arc;
use thiserror::Error;
use windlass_protocol::{Axis, Bytes, MilliCpu, Moment, Resources, VmName, VmRecord};

/// The books of one node.
#[derive(Clone, Debug)]
pub struct Books {
    room: Resources,
    hold: Hold,
    vms: ByName<VmName, Entry>,
    tally: Tally,
    /// No claim ends before this.
    claims_end: Option<Moment>,
}

/// Why a request could not be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BooksError {
    /// The books have no VM of this name.
    #[error("pod not found: no vm {0} in the books of this node")]
    UnknownVm(VmName),
    /// The VM is about to be moved, and its agent was told so.
    #[error("cannot change resources: vm {vm} is about to be moved: {wanted} is not its {permit}")]
    Moving {
        /// The VM.
        vm: VmName,
        /// What its agent wants.
        wanted: Resources,
        /// The permit that it has to stay with.
        permit: Resources,
    },
}

// === impl Books ===

impl Books {
    /// The books of an empty node with this much room.
    pub fn new(room: Resources) -> Self {
        let (hold, vms, tally) = Default::default();
        Self { room, hold, vms, tally, claims_end: None }
    }

    /// The most that may be reserved.
    pub const fn room(&self) -> Resources {
        self.room
    }

    /// The node has this much room from here on.
    pub fn set_room(&mut self, room: Resources) {
        self.room = room;
    }

    /// This keeps the VMs of the node from growing from here on.
    pub fn set_hold(&mut self, hold: Hold) {
        self.hold = hold;
    }

    /// What keeps the VMs of the node from growing.
    pub const fn hold(&self) -> Hold {
        self.hold
    }

    /// An agent says what its VM has or should get. The answer is no more than was promised or a recorded ceiling
    /// covers, where ceilings are recorded.
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
        let ((), granted) = self.request_by(now, vm, |_| Ok::<_, BooksError>(((), ask.into())))?;
        Ok(granted)
    }

    /// The same, where what an agent says is read by what is known of its VM, with whatever else is read
    /// then. The VM is looked up once.
    ///
    /// # Errors
    /// Those of [`Books::request`], and that it cannot be read.
    pub fn request_by<T, E: From<BooksError>>(
        &mut self,
        now: Moment,
        vm: &VmName,
        read: impl FnOnce(&VmRecord) -> Result<(T, Ask), E>,
    ) -> Result<(T, Granted), E> {
        let (read, (granted, _)) = self.answer(now, vm, Above::IsCut, read)?;
        Ok((read, granted))
    }

    /// An agent says what its VM has or should get. An answer above the recorded ceiling has to wait: what it would
    /// grant is reserved, and [`Books::ceiling_due`] has the ceiling. The same request is then said once more, to
    /// [`Books::request`].
    ///
    /// # Errors
    /// Those of [`Books::request`].
    pub fn propose(
        &mut self,
        now: Moment,
        vm: &VmName,
        ask: impl Into<Ask>,
    ) -> Result<Proposed, BooksError> {
        let ((), proposed) = self.propose_by(now, vm, |_| Ok::<_, BooksError>(((), ask.into())))?;
        Ok(proposed)
    }

    /// The same, as [`Books::request_by`] reads it.
    ///
    /// # Errors
    /// Those of [`Books::request_by`].
    pub fn propose_by<T, E: From<BooksError>>(
        &mut self,
        now: Moment,
        vm: &VmName,
        read: impl FnOnce(&VmRecord) -> Result<(T, Ask), E>,
    ) -> Result<(T, Proposed), E> {
        let (read, (granted, waits)) = self.answer(now, vm, Above::Waits, read)?;
        Ok((read, if waits { Proposed::Waits } else { Proposed::Granted(granted) }))
    }

    /// The answer, and whether it has to wait for a ceiling.
    fn answer<T, E: From<BooksError>>(
        &mut self,
        now: Moment,
        vm: &VmName,
        above: Above,
        read: impl FnOnce(&VmRecord) -> Result<(T, Ask), E>,
    ) -> Result<(T, (Granted, bool)), E> {
        self.forget_old_claims(now);
        let free = self.free();
        let unknown = || BooksError::UnknownVm(vm.clone());
        let entry = self.vms.get_mut(vm).ok_or_else(unknown)?;
        let (read, ask) = read(&entry.record)?;
        let wanted = ask.wanted;
        let moving = match entry.moving {
            Moving::No | Moving::Held => false,
            Moving::Due => true,
            Moving::Told(permit) if wanted == permit => {
                return Ok((read, (Granted::all(permit, true), false)));
            }
            Moving::Told(permit) => {
                return Err(BooksError::Moving { vm: vm.clone(), wanted, permit }.into());
            }
        };
        let before = entry.part();
        if entry.may_be_of_another(now, &ask) {
            let granted = entry.answer_either(now, &ask);
            self.tally.change(&entry.name, Some(before), Some(entry.part()));
            return Ok((read, (granted, false)));
        }
        if let Some(first) = entry.first_word(&ask) {
            // Until it is covered, no word of its agent lowers what it may have been promised.
            let granted = Granted::all(first, moving);
            let (granted, waits) = entry.above_its_ceiling(now, granted, &ask, above);
            self.tally.change(&entry.name, Some(before), Some(entry.part()));
            return Ok((read, (granted, waits)));
        }
        entry.speak(now, &ask, free);
        let spoken = entry.part();
        let has = entry.surely_has(&ask, self.tally.over(self.room, &before, &spoken));
        let cpu = wanted.cpu.milli();
        let is_sayable = ask.sayable(Axis::Cpu, cpu) == cpu;
        let opened = self.hold.opens(self.room);
        let is_sure = has.covers(wanted.min(spoken.reserved));
        if is_sayable && is_sure && self.tally.meets(opened, vm, wanted, &before, &spoken) {
            let granted = entry.settle(now, Granted::all(wanted, moving), &ask, above);
            self.tally.change(&entry.name, Some(before), Some(entry.part()));
            return Ok((read, granted));
        }
        self.tally.change(&entry.name, Some(before), Some(spoken));
        let claim = entry.claim.map(|claim| claim.until);
        self.claims_end = self.claims_end.into_iter().chain(claim).min();

        let offers = [Axis::Cpu, Axis::Memory]
            .map(|axis| (axis, self.hold.on(axis)))
            .map(|on| Offer::of(on, &mut self.tally, self.room, vm, &ask, has));
        let short = offers.iter().filter(|offer| offer.is_short());
        let entry = if short.clone().all(|offer| self.tally.names_known(offer.axis, offer.free)) {
            entry
        } else {
            for offer in short.clone() {
                Self::name_others(&mut self.tally, &self.vms, offer.axis, offer.free);
            }
            self.vms.get_mut(vm).ok_or_else(unknown)?
        };
        let short: Vec<_> = short
            .map(|offer| offer.shortage(self.room, self.tally.named(offer.axis, vm)))
            .collect();
        let [cpu, mem] = offers.map(|offer| offer.permitted);
        let permit = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        let granted = Granted { short, ..Granted::all(permit, moving) };
        let granted = entry.settle(now, granted, &ask, above);
        self.tally.change(&entry.name, Some(spoken), Some(entry.part()));
        Ok((read, granted))
    }

    /// Finds out which VMs a shortage names: those for which free room is kept, in the order in which
    /// they go; then those that have most.
    fn name_others(tally: &mut Tally, vms: &ByName<VmName, Entry>, axis: Axis, free: u64) {
        // Claims were tidied before this: those that are left are fresh.
        let booked = |name: &VmName| Some(vms.get(name)?.booked(Moment::default()));
        let all = || vms.values().map(|entry| (&entry.name, axis.of(entry.reserved())));
        tally.name(axis, free, all, booked);
    }

    /// A VM of this name is in the books.
    fn have(&mut self, vm: &Arc<VmName>, record: VmRecord, basis: Basis) {
        if self.vms.get(vm).is_none() {
            let entry = Entry::new(Arc::clone(vm), record, basis);
            self.tally.change(&entry.name, None, Some(entry.part()));
            self.vms.insert(Arc::clone(&entry.name), entry);
        }
    }

    /// Changes what is known of a VM, and what the books come to. Unknown VMs are passed over.
    fn change(&mut self, vm: &VmName, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.vms.get_mut(vm) {
            let before = entry.part();
            change(entry);
            self.tally.change(&entry.name, Some(before), Some(entry.part()));
        }
    }

    /// Claims are looked through once one of them may have ended.
    fn forget_old_claims(&mut self, now: Moment) {
        if self.claims_end.is_none_or(|end| now < end) {
            return;
        }
        for vm in self.tally.claimants().clone() {
            self.change(&vm, |entry| entry.claim = entry.claim.filter(|claim| now < claim.until));
        }
        let claims = self.tally.claimants().iter().filter_map(|vm| self.vms.get(vm)?.claim);
        self.claims_end = claims.map(|claim| claim.until).min();
    }
}

/// What the books come to follows from what is in them.
impl PartialEq for Books {
    fn eq(&self, other: &Self) -> bool {
        (self.room, self.hold) == (other.room, other.hold) && self.vms == other.vms
    }
}

#[cfg(test)]
mod tests;
