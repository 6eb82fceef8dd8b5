//! What the pods of a node take of it, in sums, and the room that this leaves for its VMs.
//!
//! On a dedicated node the room for VMs is what the node can allocate without the requests of all others. On
//! a node with headroom it is what VMs request for themselves and what the headroom pods hold: of both only
//! what the kubelet has allocated and the spec still asks for. No scheduler and no kubelet gives that to
//! another pod, so growth within it needs no word of theirs. There, too, VMs never have more than others leave. Where
//! VMs' pods are resized, the room is as on a dedicated node; the kubelet decides on growth within it.

use crate::pods::pools::Mode;
use crate::pods::share::Share;
use crate::summary::Summary;
use crate::tally::Sum;
use windlass_protocol::Resources;

/// Sums over the pods of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The requests of pods that are neither VMs nor headroom.
    others: Sum,
    /// The requests of headroom pods, as the scheduler counts them.
    headroom: Sum,
    /// The requests of VM pods, as the scheduler counts them.
    vms: Sum,
    /// What headroom and VM pods have for sure.
    sure: Sum,
    /// What VM pods alone have for sure.
    vms_sure: Sum,
    /// The most that VMs may grow to, and no less than they request.
    most: Sum,
    /// What VM pods request beside what their VMs' own containers do.
    beside: Sum,
}

// === impl Taken ===

impl Taken {
    /// A pod takes another share, or came or left.
    pub(crate) fn change(&mut self, before: Option<Share>, after: Option<Share>) {
        for (share, is_more) in [(after, true), (before, false)] {
            let Some(share) = share else { continue };
            let add = |sum: &mut Sum, amount: Resources| {
                let (less, more) = (Resources::ZERO, amount);
                let (less, more) = if is_more { (less, more) } else { (more, less) };
                sum.change(less, more);
            };
            match share {
                Share::Other(requests) => add(&mut self.others, requests),
                Share::Headroom { requests, sure } => {
                    add(&mut self.headroom, requests);
                    add(&mut self.sure, sure);
                }
                Share::Vm { requests, sure, most, own, .. } => {
                    add(&mut self.beside, requests.saturating_sub(own.requests));
                    add(&mut self.vms, requests);
                    add(&mut self.sure, sure);
                    add(&mut self.vms_sure, sure);
                    add(&mut self.most, most);
                }
            }
        }
    }

    /// The room for VMs of a node that can allocate this much.
    pub(crate) fn room(&self, mode: Mode, allocatable: Resources) -> Resources {
        let left = allocatable.saturating_sub(self.others());
        match mode {
            Mode::Dedicated => left.saturating_sub(self.headroom()),
            Mode::Headroom(_) => left.min(self.sure.resources()),
            Mode::Resize => left.saturating_sub(self.headroom()).saturating_sub(self.beside()),
        }
    }

    /// What its VMs and headroom pods hold, whatever others request: a kubelet gives those nothing of it.
    pub(crate) fn held(&self, mode: Mode, allocatable: Resources) -> Resources {
        match mode {
            Mode::Headroom(_) => self.sure.resources(),
            Mode::Dedicated | Mode::Resize => self.room(mode, allocatable),
        }
    }

    /// What pods that are to be placed find, where the books have this room and this reserved. Other
    /// schedulers count requests alone, so what VMs have not grown into is taken by the headroom pod.
    pub(crate) fn open(&self, mode: Mode, allocatable: Resources, books: Summary) -> Summary {
        match mode {
            Mode::Dedicated | Mode::Resize => books,
            Mode::Headroom(_) => Summary {
                room: allocatable.saturating_sub(self.others()),
                reserved: self.headroom().saturating_add(self.vms()).max(books.reserved),
            },
        }
    }

    /// What no pod requests of a node that can allocate this much.
    pub(crate) fn unrequested(&self, allocatable: Resources) -> Resources {
        let mut all = self.others;
        all.change(Resources::ZERO, self.headroom());
        all.change(Resources::ZERO, self.vms());
        allocatable.saturating_sub(all.resources())
    }

    /// What VMs for which this much is reserved have grown into, beyond their own requests.
    pub(crate) fn grown(&self, reserved: Resources) -> Resources {
        reserved.saturating_sub(self.vms_sure.resources())
    }

    /// What VMs may grow into in all, beyond their own requests.
    pub(crate) fn growth(&self) -> Resources {
        self.most.resources().saturating_sub(self.vms_sure.resources())
    }

    /// By how much others, and VMs for which this much is reserved, exceed what the node can allocate. Where VMs' pods are
    /// resized, what they request beside their VMs is reserved for none.
    pub(crate) fn over(
        &self,
        mode: Mode,
        allocatable: Resources,
        reserved: Resources,
    ) -> Resources {
        let mut all = self.others;
        all.change(Resources::ZERO, reserved);
        match mode {
            Mode::Dedicated | Mode::Headroom(_) => {}
            Mode::Resize => all.change(Resources::ZERO, self.beside()),
        }
        all.resources().saturating_sub(allocatable)
    }

    pub(crate) fn others(&self) -> Resources {
        self.others.resources()
    }

    pub(crate) fn headroom(&self) -> Resources {
        self.headroom.resources()
    }

    fn beside(&self) -> Resources {
        self.beside.resources()
    }

    fn vms(&self) -> Resources {
        self.vms.resources()
    }
}
