//! One VM at one moment: what its parts say together. Nothing here changes anything.

use super::Scaler;
use super::target::Target;
use crate::resize_outcomes::Aim;
use std::time::Duration;
use windlass_protocol::timing::INFORMANT_GONE;
use windlass_protocol::{
    ComputeUnit, CpuLimit, MilliCpu, Moment, Reason, Resize, Resources, Signal,
};
use windlass_scaling::Inputs;
use windlass_scaling::stabilization::Flapping;

/// How long a VM that is let go waits for room for what it has without its limit.
const LIFTED_WITHIN: Duration = Duration::from_secs(20);

// === impl Scaler ===

impl Scaler {
    /// Whether the agent may ask for permits and sizes: no other agent does.
    pub fn acts(&self, now: Moment) -> bool {
        let sees = self.size.sees_until().is_some_and(|until| now < until);
        sees && self.informant.session.is_leased(now) || self.acts_alone(now)
    }

    /// Whether the agent acts without a session: it never had one, no informant has answered at the
    /// address for so long that there is none, and the guest's figures come from elsewhere. An agent
    /// that had a session cannot tell a dead informant from a partition, in which the informant lets
    /// another agent act.
    fn acts_alone(&self, now: Moment) -> bool {
        !self.informant.session.has_been() && self.is_unheard(now) && self.signals.are_elsewhere()
    }

    /// Whether the informant has said nothing for so long that there may be none.
    pub(super) fn is_unheard(&self, now: Moment) -> bool {
        now.since(self.informant.session.heard_at()) >= INFORMANT_GONE
    }

    /// Whether the VM keeps its size, by a person's order, for a move to another node, or because the
    /// hypervisor does not run it.
    pub(super) fn is_held(&self, now: Moment) -> bool {
        !self.size.run_state().may_resize()
            || self.orders.is_frozen()
            || self.orders.paused_until(now).is_some()
            || self.permit.stays_until(now).is_some()
    }

    /// Whether nothing that was asked of plugin, hypervisor or guest may still take effect: what the
    /// answer to `/suspend`, and that there is no such session, wait for.
    pub fn is_quiet(&self) -> bool {
        !self.permit.is_busy()
            && !self.hypervisor.is_busy()
            && !self.informant.is_told_a_size()
            && !self.size.is_open()
    }

    /// Whether a vCPU that the guest has parked counts as given back.
    ///
    /// A size without a number may come late, and un-park what was parked since: where sizes
    /// have none (below v2.0), every plugged vCPU counts.
    pub fn trusts_parking(&self) -> bool {
        self.cpu_limit() == Some(CpuLimit::Trust) && self.informant.session.numbers_sizes()
    }

    /// How the VM's CPU is to be limited: as the VM says, or else the agent's configuration.
    pub fn cpu_limit(&self) -> Option<CpuLimit> {
        self.orders.info().cpu_limit.or(self.settings.cpu_limit)
    }

    /// The most that the VM may have: what the books must cover. `None` before it was seen.
    pub fn upper(&self) -> Option<Resources> {
        self.size.upper(self.trusts_parking())
    }

    /// What the VM uses now: vCPUs without the parked ones, and the memory it may have.
    pub(super) fn using(&self) -> Option<Resources> {
        let upper = self.upper()?;
        Some(Resources { cpu: self.size.usable()?, mem: upper.mem })
    }

    /// The step that this VM moves in.
    pub fn unit(&self) -> ComputeUnit {
        self.settings.unit.of(self.orders.info(), self.hypervisor.can())
    }

    /// The same, in whole steps of what the VM's CPU can be set to: what the plugin is told.
    pub(super) fn unit_in_grain(&self) -> ComputeUnit {
        let (unit, can) = (self.unit(), self.hypervisor.can());
        let grain = can.map(|can| can.cpu_grain()).unwrap_or_default();
        ComputeUnit::new(unit.cpu().round_up(grain), unit.mem()).unwrap_or(unit)
    }

    /// Whether the guest works to return memory. Memory that is stuck makes no work.
    pub(super) fn memory_leaves(&self, now: Moment) -> bool {
        let moves = self.size.unplugging().is_none_or(|(_, since)| !self.is_stuck(now, since));
        self.size.is_giving() && (self.size.is_open() || moves)
    }

    /// Whether memory that has not moved since then, though the guest agreed to give it back, is stuck.
    pub(super) fn is_stuck(&self, now: Moment, since: Moment) -> bool {
        let can = self.hypervisor.can();
        can.is_some_and(|can| now.since(since) >= can.promises.stuck_after)
    }

    /// What a goal is computed from.
    pub(super) fn inputs(&self, now: Moment) -> Option<Inputs<'_>> {
        Some(Inputs {
            info: self.orders.info(),
            unit: self.unit(),
            can: self.hypervisor.can()?,
            sample: self.signals.fresh(now),
            has: self.using()?,
            urgency: self.guest.urgency(now),
        })
    }

    /// What the VM should have: what the signals call for after a rest, or what a person ordered.
    pub(super) fn target(&self, now: Moment) -> Target {
        let inputs = self.inputs(now);
        let stabilized =
            inputs.map(|inputs| self.stabilizer.stabilized(now, &inputs, self.permit.known()));
        let mut goal = stabilized.map(|stabilized| stabilized.goal);
        if let (Some(goal), Some(size)) =
            (&mut goal, inputs.and_then(|i| self.ordered_size(now, &i)))
        {
            goal.size = size;
            let runs = self.size.run_state().may_resize();
            let signal = if runs { Signal::Order } else { Signal::Stopped };
            goal.reason = Reason { signal, cpu: None, mem: None };
        }
        let ends = [
            self.signals.stale_at(),
            self.orders.paused_until(now),
            self.permit.stays_until(now),
            self.guest.urgency_ends(),
        ];
        let deadlines = self.stabilizer.deadlines(now, self.orders.info());
        let until = deadlines.chain(ends.into_iter().flatten()).filter(|at| *at > now).min();
        Target { stabilized, goal, from: now, until }
    }

    /// The axis that grows and shrinks again and again, if there is one.
    pub(super) fn flapping(&self, now: Moment) -> Option<Flapping> {
        self.stabilizer.flapping(now, self.orders.info().scale_down)
    }

    fn ordered_size(&self, now: Moment, inputs: &Inputs<'_>) -> Option<Resources> {
        if self.is_held(now) { Some(inputs.has) } else { self.orders.size(inputs.has, inputs.can) }
    }

    /// What the books should cover: what the VM may have, and what it should get. The first word
    /// to books that permitted nothing yet is what there is: they may not know of this VM, or have
    /// restarted, and take what is said without a last permit for what was promised.
    pub(super) fn ceiling(&self, now: Moment, target: &Target) -> Option<Resources> {
        let mut ceiling = self.upper()?;
        let permit = self.permit.stays_until(now).and(self.permit.known());
        if let Some(permit) = permit.filter(|permit| permit.covers(ceiling)) {
            // Anything else is refused. A VM that got more meanwhile does not say that it has less.
            return Some(permit);
        }
        if let Some(cpu) =
            self.permit.known().and(self.size.unlimited()).filter(|_| self.is_lifting(now))
        {
            ceiling.cpu = ceiling.cpu.max(cpu);
        }
        if let Some(goal) = self.permit.known().and(target.goal) {
            ceiling = ceiling.max(goal.size);
            // A guest that is told of the vCPUs for it has all of them that the host's limit leaves it.
            let step = self.hypervisor.can().map_or(MilliCpu::ZERO, |can| can.cpu_step);
            let vcpus = goal.size.cpu.round_up(step);
            ceiling.cpu =
                ceiling.cpu.max(self.size.limit().map_or(MilliCpu::ZERO, |limit| limit.min(vcpus)));
        }
        ceiling.mem = ceiling.mem.round_up(self.orders.info().memory_slot);
        Some(ceiling)
    }

    /// Calls off a shrink of memory to which the guest no longer agrees.
    pub(super) fn calling_off(&self, now: Moment) -> Option<Resize> {
        let present = self.size.seen()?.memory.present();
        // What was asked for since then counts, whether or not it has been seen.
        let requested = self.size.requested()?;
        let consent = self.guest.consent(now).filter(|_| !self.orders.observes());
        let agreed = consent.is_some_and(|size| size.mem <= requested);
        (requested < present && !agreed).then_some(Resize::Memory(present))
    }

    /// What a resize is for.
    pub(super) fn aim(&self, now: Moment, resize: Resize) -> Aim {
        if self.calling_off(now) == Some(resize) {
            return Aim::CallOff;
        }
        let shrinks = match resize {
            Resize::Cpu(count) => self.size.plugged_high().is_some_and(|has| count < has),
            Resize::Memory(total) => self.size.requested().is_some_and(|has| total < has),
            Resize::Limit(to) => to.is_some_and(|to| self.size.limit().is_none_or(|has| to < has)),
        };
        if shrinks { Aim::Shrink } else { Aim::Grow }
    }

    /// Puts the host's limit back as it was found, once the books hold what the VM then has. A VM that is to
    /// be moved keeps its size.
    pub(super) fn lift(&self, now: Moment) -> Option<Resize> {
        let held = self.permit.known()?.cpu;
        let stays = self.permit.stays_until(now).is_some();
        let lifts =
            !stays && self.is_lifting(now) && self.acts(now) && self.size.unlimited()? <= held;
        lifts.then_some(Resize::Limit(None))
    }

    /// Whether a limit of ours is about to be put back as it was found. A limit that cannot be, for want of
    /// room, of a session or of the host's consent, stays.
    pub fn is_lifting(&self, now: Moment) -> bool {
        self.should_lift() && self.lifts_until().is_none_or(|until| now < until)
    }

    /// Until when a limit of ours may be put back, if the VM does not wait for that longer.
    pub(super) fn lifts_until(&self) -> Option<Moment> {
        self.lifting_since.map(|since| since.after(LIFTED_WITHIN))
    }

    /// Whether a limit of ours is to be put back as it was found: the VM is observed, is about to be let go, or
    /// is no longer to be limited.
    fn should_lift(&self) -> bool {
        let limits = self.hypervisor.sets_limits();
        self.size.is_limited_by_us() && (self.lets_go() || !limits && self.orders.follows_load())
    }

    /// Whether nobody is to move the VM from here on.
    pub(super) fn lets_go(&self) -> bool {
        let moved = self.orders.observes() || self.is_where_released();
        self.orders.lift_the_limit() && moved
    }

    /// Whether the VM is let go, or about to be, with a limit that nobody will raise.
    pub fn leaves_a_limit(&self, now: Moment) -> bool {
        self.lets_go() && self.size.is_limited_by_us() && !self.is_lifting(now)
    }

    /// Whether the VM has the size with which it is to be released.
    pub(super) fn is_where_released(&self) -> bool {
        self.orders.is_reached(self.using(), self.hypervisor.can())
    }

    /// Whether a person let the VM go, and the shell may do so now.
    pub fn is_released(&self, now: Moment) -> bool {
        self.orders.releases()
            && self.calling_off(now).is_none()
            && self.informant.session.is_absent()
            && !self.size.is_open()
            && self.is_where_released()
            && !self.is_lifting(now)
    }
}
