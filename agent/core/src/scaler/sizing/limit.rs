//! The host's limit on CPU: raised before a vCPU comes, lowered when memory is back and vCPUs are parked.
//!
//! The limit is what makes a parked vCPU count as given back, whatever the guest says, and what gives a VM a
//! part of a vCPU. It is never lowered without a session, nor while the VM is to keep its size.

use super::Sizing;
use windlass_protocol::{MilliCpu, Resize, ShrinkCpu};

// === impl Sizing ===

impl Sizing<'_> {
    /// The limit to raise, as far as it is permitted.
    pub(super) fn raised_limit(&self) -> Option<Resize> {
        let limit = self.vm.size.limit()?;
        let cpu = self.within_found(self.permitted()?.cpu);
        (cpu > limit).then_some(Resize::Limit(Some(cpu)))
    }

    /// The limit to set where none is in force: the one that somebody took away, if it leaves the guest CPU for
    /// the vCPUs that it uses and for those of which it is about to be told; or else as much as they are.
    pub(super) fn first_limit(&self) -> Option<Resize> {
        let vm = self.vm;
        let missing = vm.hypervisor.sets_limits() && vm.size.limit().is_none();
        if !missing || !self.may_lower() {
            return None;
        }
        let vcpus = self.permitted().map_or(self.vcpus, |size| self.vcpus.max(size.cpu));
        let ours = vm.size.ours().filter(|ours| vcpus <= self.whole(*ours));
        Some(Resize::Limit(Some(self.within_found(ours.unwrap_or(vcpus)))))
    }

    /// The limit to lower to the next size on the way down, once the guest makes do with its vCPUs and gives
    /// no memory back: a guest that does needs its CPU for that. Not below what is permitted for the goal: a guest
    /// that does not use its vCPUs yet is about to be told of them.
    pub(super) fn lowered_limit(&self) -> Option<Resize> {
        let limit = self.vm.size.limit().filter(|_| self.may_lower())?;
        let next = self.next_below().unwrap_or(self.has);
        let gives = next.mem < self.has.mem || self.vm.size.is_giving();
        let to = next.cpu.max(self.permitted().map_or(self.goal.cpu, |size| size.cpu));
        let to = self.within_found(to);
        let lowers = !gives && to < limit && self.makes_do_with(self.whole(to));
        lowers.then_some(Resize::Limit(Some(to)))
    }

    /// Whether the guest makes do with so many vCPUs: it reports no more, or it has agreed to no more and its hypervisor takes
    /// the others out.
    fn makes_do_with(&self, vcpus: MilliCpu) -> bool {
        let vm = self.vm;
        let agreed = || vm.guest.consent(self.now).is_some_and(|agreed| agreed.cpu <= vcpus);
        let by_limit = self.can.shrink_cpu == ShrinkCpu::ByLimit && vm.size.online().is_none();
        self.vcpus <= vcpus || by_limit && agreed()
    }

    /// The least CPU with which the guest needs all the vCPUs that it may use now.
    pub(super) fn least_for_vcpus(&self) -> MilliCpu {
        self.vcpus.saturating_sub(self.can.cpu_step).saturating_add(self.can.cpu_grain())
    }

    /// No more than what somebody else has set, also where that is not in force.
    fn within_found(&self, limit: MilliCpu) -> MilliCpu {
        let found = self.vm.size.seen().and_then(|seen| seen.found_limit);
        found.map_or(limit, |found| limit.min(found))
    }

    fn may_lower(&self) -> bool {
        let vm = self.vm;
        vm.informant.session.is_active()
            && !vm.is_held(self.now)
            && !vm.orders.releases_as_it_is()
            && !vm.lets_go()
            && !vm.size.is_open()
    }
}
