//! What the VM may have, as a range.
//!
//! Law 4, the world and not the wish: the figures come from the hypervisor's answers and the
//! guest's reports. From the moment a resize is sent until its effect is seen, both the old and
//! the new size are possible, so the range covers both.
//!
//! CPU has two figures: *plugged*, of the hypervisor, and *online*, of the guest. Which of them
//! the books must cover is the host's choice (`trust_guest_parking`). Without a report, every
//! plugged vCPU counts; after a reboot too, until the informant has registered and reported.

use windlass_protocol::{Bytes, MilliCpu, Moment, Resize, Resources, Seen};

/// The holding of one VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Holding {
    seen: Option<(Seen, Moment)>,
    /// Sent and not yet seen to have taken effect.
    plugging: Open<MilliCpu>,
    memory: Open<Bytes>,
    /// vCPUs that the guest reports.
    online: Option<MilliCpu>,
    /// The most vCPUs that the guest may use without hearing from us again.
    allowed: Allowed,
    /// What was held when the guest restarted; nothing is given back before it is heard again.
    before_reboot: Option<Resources>,
    /// When `size` last moved while memory was being given back.
    unplug_progress: Option<(Bytes, Moment)>,
}

/// Sizes of one axis that may still take effect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Open<T> {
    /// The largest of them.
    high: Option<T>,
    /// The last one sent; repeating it settles what happened.
    last: Option<T>,
    answered: bool,
}

/// The most vCPUs that the guest may use without hearing from us again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Allowed {
    /// All that are plugged.
    #[default]
    Plugged,
    /// What the next report says, or more if we said so meanwhile: a session has begun.
    NextReport { told: MilliCpu },
    /// This many.
    Count(MilliCpu),
}

// === impl Holding ===

impl Holding {
    /// The most that the VM may have: what the books must cover.
    pub(crate) fn upper(&self, trust_guest_parking: bool) -> Option<Resources> {
        let cpu = if trust_guest_parking { self.usable()? } else { self.plugged_high()? };
        let size = Resources { cpu, mem: self.memory_high()? };
        Some(self.before_reboot.map_or(size, |before| size.max(before)))
    }

    /// vCPUs that the guest uses or may use without hearing from us: parked ones do not count.
    pub(crate) fn usable(&self) -> Option<MilliCpu> {
        let plugged = self.plugged_high()?;
        let (Some(online), Allowed::Count(allowed)) = (self.online, self.allowed) else {
            return Some(plugged);
        };
        Some(online.max(allowed).min(plugged))
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen.map(|(seen, _)| seen)
    }

    pub(crate) fn seen_at(&self) -> Option<Moment> {
        self.seen.map(|(_, at)| at)
    }

    /// vCPUs that the guest reports online, never above plugged.
    pub(crate) fn online(&self) -> Option<MilliCpu> {
        Some(self.online?.min(self.seen()?.plugged))
    }

    /// The most memory that the guest is asked to have, boot memory included.
    pub(crate) fn requested(&self) -> Option<Bytes> {
        let memory = self.seen()?.memory;
        let requested = memory.boot.saturating_add(memory.requested);
        Some(self.memory.high.map_or(requested, |high| requested.max(high)))
    }

    /// Whether a resize was sent whose effect was not seen.
    pub(crate) fn is_open(&self) -> bool {
        self.plugging.high.is_some() || self.memory.high.is_some()
    }

    pub(crate) fn is_memory_open(&self) -> bool {
        self.memory.high.is_some()
    }

    pub(crate) fn is_plugging_open(&self) -> bool {
        self.plugging.high.is_some()
    }

    /// The most vCPUs that are on their way in; none if no resize is open.
    pub(crate) fn plugging(&self) -> MilliCpu {
        self.plugging.high.unwrap_or(MilliCpu::ZERO)
    }

    /// The number of vCPUs that was last asked for, if its effect was not seen.
    pub(crate) fn last_plugging(&self) -> Option<MilliCpu> {
        self.plugging.high.and(self.plugging.last)
    }

    /// Whether the hypervisor's figures still move.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_open() || self.seen().is_some_and(|seen| seen.memory.requested != seen.memory.size)
    }

    /// Memory left to give back, and since when it has not moved.
    pub(crate) fn unplugging(&self) -> Option<(Bytes, Moment)> {
        let left = self.seen()?.memory.unplugging();
        (!left.is_zero()).then_some((left, self.unplug_progress?.1))
    }

    /// Whether the guest restarted and was not heard since.
    pub(crate) fn is_rebooting(&self) -> bool {
        self.before_reboot.is_some()
    }

    pub(crate) fn sent(&mut self, resize: Resize) {
        match resize {
            Resize::Cpu(count) => {
                self.plugging.sent(count);
                // The guest brings a new vCPU online by itself; one that is taken out allows nothing.
                if self.seen().is_none_or(|seen| count > seen.plugged) {
                    self.allow(count);
                }
            }
            Resize::Memory(total) => self.memory.sent(total),
        }
    }

    pub(crate) fn answered(&mut self, resize: Resize) {
        match resize {
            Resize::Cpu(_) => self.plugging.answered = true,
            Resize::Memory(_) => self.memory.answered = true,
        }
    }

    /// The hypervisor says what there is. Whatever was answered before this was asked is in it.
    pub(crate) fn see(&mut self, now: Moment, seen: Seen) {
        self.unplug_progress = match self.unplug_progress {
            Some((size, since)) if size == seen.memory.size => Some((size, since)),
            Some(_) | None => Some((seen.memory.size, now)),
        };
        self.plugging.see(seen.plugged);
        self.memory.see(seen.memory.boot.saturating_add(seen.memory.requested));
        self.seen = Some((seen, now));
    }

    /// The guest says how many vCPUs it uses.
    pub(crate) fn report(&mut self, online: Option<MilliCpu>) {
        let Some(online) = online else { return };
        // Until a session has begun, a report may be older than the last reboot.
        if self.before_reboot.is_some() {
            return;
        }
        self.online = Some(online);
        if let Allowed::NextReport { told } = self.allowed {
            self.allowed = Allowed::Count(online.max(told));
        }
    }

    /// A session has begun: the guest has read what it had parked, and reports it next.
    pub(crate) fn registered(&mut self) {
        self.before_reboot = None;
        if self.allowed == Allowed::Plugged {
            // What is still on its way in will be used too.
            self.allowed = Allowed::NextReport { told: self.plugging() };
            self.online = None;
        }
    }

    /// The guest is told that it may use this many vCPUs.
    pub(crate) fn allow(&mut self, count: MilliCpu) {
        self.allowed = match self.allowed {
            Allowed::Plugged => Allowed::Plugged,
            Allowed::NextReport { told } => Allowed::NextReport { told: told.max(count) },
            Allowed::Count(allowed) => Allowed::Count(allowed.max(count)),
        };
    }

    /// The guest agreed to use no more than this.
    pub(crate) fn agreed(&mut self, count: MilliCpu) {
        if matches!(self.allowed, Allowed::Count(_)) {
            self.allowed = Allowed::Count(count);
        }
    }

    /// The guest restarted: it uses every vCPU again, and its memory comes back by itself.
    pub(crate) fn rebooted(&mut self, trust_guest_parking: bool) {
        self.online = None;
        self.allowed = Allowed::Plugged;
        self.before_reboot = self.upper(trust_guest_parking);
    }

    /// The most vCPUs that the hypervisor may have plugged.
    pub(crate) fn plugged_high(&self) -> Option<MilliCpu> {
        let plugged = self.seen()?.plugged;
        Some(self.plugging.high.map_or(plugged, |high| plugged.max(high)))
    }

    fn memory_high(&self) -> Option<Bytes> {
        let upper = self.seen()?.memory.upper();
        Some(self.memory.high.map_or(upper, |high| upper.max(high)))
    }
}

// === impl Open ===

impl<T: Copy + Ord> Open<T> {
    fn sent(&mut self, value: T) {
        self.high = self.high.max(Some(value));
        self.last = Some(value);
        self.answered = false;
    }

    fn see(&mut self, value: T) {
        // Without an answer, the old value says nothing: the request may still arrive.
        if self.answered || self.last == Some(value) {
            *self = Self { high: None, last: None, answered: false };
        }
    }
}
