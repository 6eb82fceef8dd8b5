//! What the VM may have, as a range.
//!
//! Law 4, the world and not the wish: the figures come from the hypervisor's answers and the
//! guest's reports. From the moment a resize is sent until the hypervisor was looked at after it,
//! both the old and the new size are possible, so the range covers both. A look settles it, also
//! where the answer was lost, if it began when the driver [promises](windlass_protocol::Promises) that
//! what was asked for shows or never comes.
//!
//! CPU has three figures: *plugged*, of the hypervisor, *online*, of the guest, and the *limit* of the host.
//! What the books must cover is never more than the limit; below that it is what is plugged, or, where the
//! host trusts its guests, what they use. Without a report, every
//! plugged vCPU counts; after a reboot too, until the informant has registered and reported.
//! What the guest agreed to park counts until a report, asked for after that, says it is parked.

use windlass_protocol::timing::BLIND_AFTER;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resize, Resources, RunState, Seen};

/// No limit, as a limit.
const UNLIMITED: MilliCpu = MilliCpu::from_milli(u64::MAX);

/// The least and the most that one VM may have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SizeRange {
    seen: Option<(Seen, Moment)>,
    /// The largest sizes that were sent since the hypervisor was last looked at.
    plugging: Option<MilliCpu>,
    memory: Option<Bytes>,
    limiting: Option<MilliCpu>,
    /// The last limit of ours that was seen in force.
    ours: Option<MilliCpu>,
    /// vCPUs that the guest reports.
    online: Option<MilliCpu>,
    /// The most vCPUs that the guest may use without hearing from us again.
    allowed: Allowed,
    /// The guest restarted and was not heard since: a report may be of before that.
    is_rebooting: bool,
    /// When `size` last moved while memory was being given back.
    unplug_progress: Option<(Bytes, Moment)>,
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
    /// It agreed to use no more than `to`, and does so at its own pace: until it reports what it
    /// uses, `from` counts.
    Parking { from: MilliCpu, to: MilliCpu },
}

// === impl SizeRange ===

impl SizeRange {
    /// The most that the VM may have: what the books must cover.
    pub(crate) fn upper(&self, trust_guest_parking: bool) -> Option<Resources> {
        let cpu = if trust_guest_parking { self.vcpus()? } else { self.plugged_high()? };
        Some(Resources { cpu: self.limited(cpu), mem: self.memory_high()? })
    }

    /// The CPU that the guest has for the vCPUs that it uses or may use without hearing from us: parked
    /// ones do not count.
    pub(crate) fn usable(&self) -> Option<MilliCpu> {
        Some(self.limited(self.vcpus()?))
    }

    /// vCPUs that the guest uses or may use without hearing from us, whatever CPU it has for them.
    pub(crate) fn vcpus(&self) -> Option<MilliCpu> {
        let plugged = self.plugged_high()?;
        let (Some(online), Some(allowed)) = (self.online, self.allowed.count()) else {
            return Some(plugged);
        };
        Some(online.max(allowed).min(plugged))
    }

    /// What the hypervisor last said.
    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen.map(|(seen, _)| seen)
    }

    /// Of which moment that is.
    pub(crate) fn seen_at(&self) -> Option<Moment> {
        self.seen.map(|(_, at)| at)
    }

    /// Until when the agent cannot have missed a restart of the guest, as far as is known now.
    pub(crate) fn sees_until(&self) -> Option<Moment> {
        Some(self.seen_at()?.after(BLIND_AFTER))
    }

    /// What the hypervisor last said of the VM; before it was seen, that it runs.
    pub(crate) fn run_state(&self) -> RunState {
        self.seen().map_or(RunState::Running, |seen| seen.state)
    }

    /// vCPUs that the guest reports online, never above plugged.
    pub(crate) fn online(&self) -> Option<MilliCpu> {
        Some(self.online?.min(self.seen()?.plugged))
    }

    /// The most memory that the guest is asked to have, boot memory included.
    pub(crate) fn requested(&self) -> Option<Bytes> {
        let memory = self.seen()?.memory;
        let requested = memory.boot.saturating_add(memory.requested);
        Some(self.memory.map_or(requested, |sent| requested.max(sent)))
    }

    /// The most CPU that the host's limit leaves the VM; `None` if nothing limits it.
    pub(crate) fn limit(&self) -> Option<MilliCpu> {
        let limit = self.seen()?.limit?;
        Some(self.limiting.map_or(limit, |sent| limit.max(sent)))
    }

    /// As much of this as the host's limit leaves the VM.
    pub(crate) fn limited(&self, cpu: MilliCpu) -> MilliCpu {
        self.limit().map_or(cpu, |limit| limit.min(cpu))
    }

    /// Whether the limit in force is ours.
    pub(crate) fn is_limited_by_us(&self) -> bool {
        self.seen().is_some_and(|seen| seen.limit.is_some() && seen.limit != seen.found_limit)
    }

    /// What the VM has once its limit is put back as it was found.
    pub(crate) fn unlimited(&self) -> Option<MilliCpu> {
        let (plugged, found) = (self.plugged_high()?, self.seen()?.found_limit);
        Some(found.map_or(plugged, |found| found.min(plugged)))
    }

    /// The last limit of ours that was seen in force.
    pub(crate) fn ours(&self) -> Option<MilliCpu> {
        self.ours
    }

    /// Whether the outcome of a resize is unknown: the hypervisor was not looked at since it was sent.
    pub(crate) fn is_open(&self) -> bool {
        self.plugging.is_some() || self.memory.is_some() || self.limiting.is_some()
    }

    pub(crate) fn is_plugging_open(&self) -> bool {
        self.plugging.is_some()
    }

    /// The most vCPUs that are on their way in; none if no resize is open.
    pub(crate) fn plugging(&self) -> MilliCpu {
        self.plugging.unwrap_or(MilliCpu::ZERO)
    }

    /// Whether this is all that the open resize asked for, so that nothing more comes of it.
    pub(crate) fn is_shown_in(&self, seen: Seen) -> bool {
        let requested = seen.memory.boot.saturating_add(seen.memory.requested);
        self.plugging.is_none_or(|sent| sent == seen.plugged)
            && self.memory.is_none_or(|sent| sent == requested)
            && self.limiting.is_none_or(|sent| Some(sent) == seen.limit)
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

    /// Whether memory is on its way out, or may be.
    pub(crate) fn is_giving(&self) -> bool {
        self.seen().is_some_and(|seen| {
            let asked_back = self.memory.is_some_and(|sent| sent < seen.memory.present());
            asked_back || !seen.memory.unplugging().is_zero()
        })
    }

    /// Whether the guest restarted and was not heard since.
    pub(crate) fn is_rebooting(&self) -> bool {
        self.is_rebooting
    }

    pub(crate) fn sent(&mut self, resize: Resize) {
        match resize {
            Resize::Cpu(count) => {
                self.plugging = self.plugging.max(Some(count));
                // A guest that has not reported its vCPUs brings a new one online by itself. Where
                // vCPUs go late, a resize that was to take some out may have to put some in.
                self.allow(count);
            }
            Resize::Memory(total) => self.memory = self.memory.max(Some(total)),
            Resize::Limit(limit) => {
                let lifted = || self.seen().and_then(|seen| seen.found_limit).unwrap_or(UNLIMITED);
                self.limiting = self.limiting.max(Some(limit.unwrap_or_else(lifted)));
            }
        }
    }

    /// The hypervisor says what there was at `at`. `settled`: whatever was sent before this was asked
    /// is in it, or never comes.
    pub(crate) fn see(&mut self, at: Moment, seen: Seen, settled: bool) {
        let same = |(size, _): &(Bytes, Moment)| *size == seen.memory.size;
        let progress = self.unplug_progress.filter(same).unwrap_or((seen.memory.size, at));
        // The time for which the size stood before any of it was asked back does not count.
        self.unplug_progress = (!seen.memory.unplugging().is_zero()).then_some(progress);
        if settled {
            (self.plugging, self.memory, self.limiting) = (None, None, None);
        }
        if seen.limit.is_some() {
            self.ours = seen.limit.filter(|_| seen.limit != seen.found_limit);
        }
        self.seen = Some((seen, at));
    }

    /// The guest says how many vCPUs it uses.
    pub(crate) fn report(&mut self, online: Option<MilliCpu>) {
        let Some(online) = online else { return };
        // Until a session has begun, a report may be older than the last reboot.
        if self.is_rebooting {
            return;
        }
        self.online = Some(online);
        self.allowed = match self.allowed {
            Allowed::NextReport { told } => Allowed::Count(online.max(told)),
            Allowed::Parking { to, .. } => Allowed::Count(to),
            Allowed::Plugged | Allowed::Count(_) => self.allowed,
        };
    }

    /// A session has begun: the guest has read what it had parked, and reports it next.
    pub(crate) fn registered(&mut self) {
        self.is_rebooting = false;
        if self.allowed == Allowed::Plugged {
            // What is still on its way in will be used too.
            self.allowed = Allowed::NextReport { told: self.plugging() };
            self.online = None;
        }
    }

    /// Another agent may tell the guest what it may use: all that is plugged, for all we know.
    pub(crate) fn unattended(&mut self) {
        self.allowed = Allowed::Plugged;
        self.online = None;
    }

    /// The guest is told that it may use this many vCPUs.
    pub(crate) fn allow(&mut self, count: MilliCpu) {
        self.allowed = match self.allowed {
            Allowed::Plugged => Allowed::Plugged,
            Allowed::NextReport { told } => Allowed::NextReport { told: told.max(count) },
            Allowed::Count(allowed) => Allowed::Count(allowed.max(count)),
            Allowed::Parking { from, to } => {
                Allowed::Parking { from: from.max(count), to: to.max(count) }
            }
        };
    }

    /// The guest agreed to use no more than this. Returns whether it is to report before that
    /// counts: a report that was asked for earlier says nothing of it.
    pub(crate) fn agreed(&mut self, count: MilliCpu) -> bool {
        let Some(from) = self.allowed.count() else { return false };
        let parks = count < from;
        self.allowed = match parks {
            true => Allowed::Parking { from, to: count },
            false => Allowed::Count(count),
        };
        parks
    }

    /// The guest restarted: it uses every vCPU again, and its memory comes back by itself. Both are in
    /// what the hypervisor says; a VM that was exchanged for another has what that one has.
    pub(crate) fn rebooted(&mut self) {
        self.unattended();
        self.is_rebooting = true;
        self.ours = None;
    }

    /// The most vCPUs that the hypervisor may have plugged.
    pub(crate) fn plugged_high(&self) -> Option<MilliCpu> {
        let plugged = self.seen()?.plugged;
        Some(self.plugging.map_or(plugged, |sent| plugged.max(sent)))
    }

    fn memory_high(&self) -> Option<Bytes> {
        let upper = self.seen()?.memory.upper();
        Some(self.memory.map_or(upper, |sent| upper.max(sent)))
    }
}

// === impl Allowed ===

impl Allowed {
    /// How many vCPUs that is, if it is a number yet.
    const fn count(self) -> Option<MilliCpu> {
        match self {
            Self::Plugged | Self::NextReport { .. } => None,
            Self::Count(count) | Self::Parking { from: count, .. } => Some(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::MemorySeen;

    #[test]
    fn vcpus_that_are_to_stay_count() {
        let now = Moment::from_millis(1_000);
        let vcpus = MilliCpu::from_cores;
        let seen = |count| Seen {
            plugged: vcpus(count),
            limit: None,
            found_limit: None,
            memory: MemorySeen::default(),
            state: RunState::Running,
        };
        let upper = |range: &SizeRange| range.upper(true).map(|size| size.cpu);
        let mut range = SizeRange::default();
        range.see(now, seen(4), true);
        range.registered();
        range.report(Some(vcpus(1)));
        assert_eq!(upper(&range), Some(vcpus(1)));
        // An earlier removal may come late, and then this one puts two in.
        range.sent(Resize::Cpu(vcpus(3)));
        assert_eq!(upper(&range), Some(vcpus(3)));
        range.see(now, seen(3), true);
        assert_eq!(upper(&range), Some(vcpus(3)), "and nobody has said that they are parked");
        assert!(range.agreed(vcpus(1)));
        assert_eq!(upper(&range), Some(vcpus(3)), "to agree is not yet to park");
        range.report(Some(vcpus(1)));
        assert_eq!(upper(&range), Some(vcpus(1)));
    }
}
