//! What people want of the VM: how it is described, and what was ordered.
//!
//! An order outranks load. It passes by every wait, and never by a permit or a consent.

use crate::event::Order;
use std::sync::Arc;
use windlass_protocol::{Capabilities, LoadWindow, Mode, Moment, Resources, VmInfo};
use windlass_scaling::goal;

/// What people want of one VM.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// As it was told.
    told: Arc<VmInfo>,
    /// The same, with a window over which its guest has load.
    info: Arc<VmInfo>,
    by_minutes: bool,
    order: Order,
}

// === impl Orders ===

impl Orders {
    pub(super) fn new(info: Arc<VmInfo>) -> Self {
        Self { told: Arc::clone(&info), info, by_minutes: false, order: Order::Follow }
    }

    pub(super) fn info(&self) -> &VmInfo {
        &self.info
    }

    pub(super) fn told(&mut self, info: Arc<VmInfo>) {
        self.told = info;
        self.choose_window();
    }

    /// The guest has load by the minute alone, or also over less.
    pub(super) fn measured(&mut self, by_minutes: bool) {
        if self.by_minutes != by_minutes {
            self.by_minutes = by_minutes;
            self.choose_window();
        }
    }

    fn choose_window(&mut self) {
        self.info = Arc::clone(&self.told);
        if self.by_minutes && self.info.load_window != LoadWindow::OneMinute {
            Arc::make_mut(&mut self.info).load_window = LoadWindow::OneMinute;
        }
    }

    pub(super) fn ordered(&mut self, order: Order) {
        self.order = order;
    }

    pub(super) fn observes(&self) -> bool {
        self.info.mode == Mode::Observe
    }

    pub(super) fn follows_load(&self) -> bool {
        self.order == Order::Follow
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.order == Order::Freeze
    }

    /// Until when the VM is paused, if it is.
    pub(super) fn paused_until(&self, now: Moment) -> Option<Moment> {
        self.info.paused_until.filter(|until| now < *until)
    }

    /// Whether the VM is to be released, at this or another size.
    pub(super) fn releases(&self) -> bool {
        matches!(self.order, Order::Release(_) | Order::Leave)
    }

    /// Whether the host's limit is to be put back as it was found: nobody is to move the VM any more.
    pub(super) fn lift_the_limit(&self) -> bool {
        self.observes() || matches!(self.order, Order::Release(_))
    }

    /// Whether nothing may be taken from the VM: it is released as it is.
    pub(super) fn releases_as_it_is(&self) -> bool {
        matches!(self.order, Order::Release(None) | Order::Leave)
    }

    /// The size that was ordered for a VM that has this.
    pub(super) fn size(&self, has: Resources, can: &Capabilities) -> Option<Resources> {
        match self.order {
            Order::Release(Some(size)) => Some(self.release_size(size, can)),
            Order::Release(None) | Order::Leave | Order::Freeze => Some(has),
            Order::Follow => None,
        }
    }

    /// Whether the VM has the size with which it is to be released.
    pub(super) fn is_reached(&self, has: Option<Resources>, can: Option<&Capabilities>) -> bool {
        match (self.order, can, has) {
            (Order::Release(None) | Order::Leave, ..) => true,
            // An agent that only watches does not move it.
            (Order::Release(Some(_)), ..) if self.observes() => true,
            (Order::Release(Some(size)), Some(can), Some(has)) => {
                self.release_size(size, can) == has
            }
            (Order::Release(Some(_)) | Order::Follow | Order::Freeze, ..) => false,
        }
    }

    /// In whole vCPUs: no limit is left behind.
    fn release_size(&self, size: Resources, can: &Capabilities) -> Resources {
        let can = &can.without_limit();
        let size = size.max(can.min).min(can.max);
        goal::in_grain(size, can, self.info.memory_slot, can.max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{capabilities, info, size};
    use super::*;

    #[test]
    fn a_release_is_reached_at_its_size_within_what_the_driver_can_do() {
        let mut orders = Orders::new(info(Mode::Act).into());
        let can = capabilities();
        assert_eq!(orders.size(size(2), &can), None, "the load is followed");
        orders.ordered(Order::Release(Some(size(9))));
        assert_eq!(orders.size(size(2), &can), Some(can.max));
        assert!(!orders.is_reached(Some(size(2)), Some(&can)));
        assert!(orders.is_reached(Some(can.max), Some(&can)));
        orders.told(info(Mode::Observe).into());
        assert!(orders.is_reached(Some(size(2)), Some(&can)), "it is not moved there");
        orders.told(info(Mode::Act).into());
        orders.ordered(Order::Release(None));
        assert!(orders.releases_as_it_is() && orders.is_reached(None, None));
    }
}
