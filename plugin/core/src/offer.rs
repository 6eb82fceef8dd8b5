//! What the books can give to one VM on one axis.

use crate::ask::Ask;
use crate::tally::Tally;
use std::sync::Arc;
use windlass_protocol::status::Booked;
use windlass_protocol::{Axis, Held, Resources, Shortage, VmName};

/// What a VM may have on one axis, and of how much that is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) axis: Axis,
    pub(crate) permitted: u64,
    /// What is reserved for no VM; nothing while growth is held.
    pub(crate) free: u64,
    asked: u64,
    /// What is reserved above the room.
    over: u64,
    /// What is free and kept for other VMs.
    kept: u64,
    held: Option<Held>,
}

// === impl Offer ===

impl Offer {
    /// The share of the VM, for which `has` is reserved, in what is free on a node with this room; nothing where growth on the
    /// axis is held.
    pub(crate) fn of(
        (axis, held): (Axis, Option<Held>),
        tally: &mut Tally,
        room: Resources,
        vm: &VmName,
        ask: &Ask,
        has: Resources,
    ) -> Self {
        let (room, reserved) = (axis.of(room), axis.of(tally.reserved()));
        let (asked, has) = (axis.of(ask.wanted), axis.of(has));
        let (free, over) = (room.saturating_sub(reserved), reserved.saturating_sub(room));
        let free = if held.is_some() { 0 } else { free };
        if asked <= has {
            return Self { axis, permitted: asked, free, asked, over, kept: 0, held };
        }
        let division = tally.divided(axis, free);
        let (mine, kept) = (division.of(vm).min(asked - has), division.kept(vm));
        let permitted = ask.sayable(axis, has.saturating_add(mine));
        Self { axis, permitted, free, asked, over, kept, held }
    }

    /// Whether it is less than what was asked for.
    pub(crate) const fn is_short(&self) -> bool {
        self.permitted < self.asked
    }

    /// Why it is short, on a node with this room.
    pub(crate) fn shortage(&self, room: Resources, others: Arc<[Booked]>) -> Shortage {
        let Self { axis, permitted, free, asked, over, kept, held } = *self;
        Shortage { axis, asked, permitted, room: axis.of(room), free, over, kept, others, held }
    }
}
