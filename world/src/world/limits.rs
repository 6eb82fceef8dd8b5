//! The host's limit on a VM: what its agent may do with it, and what somebody else does.

use super::World;
use crate::group::{Group, Grouping};
use crate::laws::Law;
use crate::vm::{CORE, Vm};
use crate::vms::Id;
use std::time::Duration;
use windlass_agent_core::{Action, Order};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{MilliCpu, Mode, Moment, Resize, Resources, VmName, Waiting};

/// A limit is set where there is none within this, if nothing is in the way: a look, and the longest back-off
/// from one that was refused.
const SET_AGAIN_WITHIN: Duration = Duration::from_secs(80);

// === impl Vm ===

impl Vm {
    /// How an action breaks a law of the host's limit, if it does.
    pub(crate) fn misused_limit(&self, now: Moment, action: Action) -> Option<(Law, String)> {
        let Action::Resize(Resize::Limit(limit)) = action else { return None };
        let clock = self.front.process.clock(now);
        let status = self.front.agent.as_ref()?.scaler.status(clock);
        let seen = status.seen?;
        let Some(limit) = limit else {
            let lets_go = self.front.heard.mode == Mode::Observe
                || matches!(self.front.order, Order::Release(_));
            let what = "lifts the limit of a VM that it keeps".to_owned();
            return (!lets_go).then_some((Law::PermitBeforeGrowth, what));
        };
        if let Some(found) = seen.found_limit.filter(|found| limit > *found) {
            let what = format!("asks for a limit of {limit}, and somebody has set {found}");
            return Some((Law::PermitBeforeGrowth, what));
        }
        let lowers = limit < seen.upper().cpu;
        let why = self.keeps_its_limit(clock, &status).filter(|_| lowers)?;
        Some((Law::ConsentBeforeShrinkage, format!("lowers its limit to {limit}, {why}")))
    }

    /// Why its limit is not to be lowered, as far as its agent knows.
    fn keeps_its_limit(&self, clock: Moment, status: &VmStatus) -> Option<&'static str> {
        let paused = self.front.heard.paused_until.is_some_and(|until| clock < until);
        if status.session != SessionState::Active {
            Some("without a session")
        } else if self.front.heard.mode == Mode::Observe {
            Some("though it is only to be watched")
        } else if paused {
            Some("though it is paused")
        } else {
            match self.front.order {
                Order::Freeze => Some("though it is frozen"),
                Order::Release(None) | Order::Leave => Some("though it is let go as it is"),
                Order::Follow | Order::Release(Some(_)) => None,
            }
        }
    }

    /// Whether its agent is to set a limit where none is in force.
    fn should_be_limited(&self, now: Moment) -> bool {
        let missing = |group: &Group| group.limit().is_none() && !group.refuses;
        let clock = self.front.process.clock(now);
        self.guest.group.as_ref().is_some_and(missing)
            && self.front.agent.as_ref().is_some_and(|agent| {
                let status = agent.scaler.status(clock);
                let moves = status.waiting.contains(&Waiting::Move);
                agent.scaler.acts(clock)
                    && self.keeps_its_limit(clock, &status).is_none()
                    && self.front.order == Order::Follow
                    && !moves
            })
    }

    /// Its hypervisor's process is in a new group, which has no limit.
    pub(crate) fn group_anew(&mut self, now: Moment) {
        if let Some(group) = &mut self.guest.group {
            group.moves();
            (self.loose_since, self.loosened_at) = (Some(now), now);
        }
    }

    /// It may have this much. Without a limit it has whole vCPUs.
    pub(crate) fn may_have(&mut self, size: Resources) {
        let cpu = if self.guest.group.is_some() { size.cpu.round_up(CORE) } else { size.cpu };
        self.most = self.most.max(Resources { cpu, ..size });
    }
}

// === impl World ===

impl World {
    /// Something is done to the group of a hypervisor's process, or goes wrong with it.
    pub(crate) fn group(&mut self, who: Id, grouping: Grouping) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(group) = &mut vm.guest.group else { return };
        let (state, before) = (group.state(), group.limit());
        match grouping {
            Grouping::Limit(limit) => group.set_by_somebody(limit),
            Grouping::Moves => vm.group_anew(now),
            Grouping::Refuses(refuses) => group.refuses = refuses,
        }
        // A vCPU that is on its way in may come only now.
        let after = vm.guest.seen().limit;
        if before.is_some_and(|before| after.is_none_or(|after| after > before)) {
            (vm.loose_since, vm.loosened_at) = (Some(now), now);
        }
        match grouping {
            Grouping::Limit(_) => self.met.group_changes(state, "somebody sets or lifts"),
            // Its driver finds it at the next connection.
            Grouping::Moves => {
                self.met.group_changes(state, "moves");
                self.for_each_agent(who, Self::reconnect);
            }
            Grouping::Refuses(_) => {}
        }
    }

    /// A limit that is missing is set soon.
    pub(crate) fn watch_limit(&mut self, who: Id) {
        let (now, calm) = (self.now, self.is_calm(who));
        let Some(vm) = self.vms.get_mut(who) else { return };
        let missing = vm.should_be_limited(now) && calm;
        vm.unlimited_since = missing.then(|| vm.unlimited_since.unwrap_or(now));
        let long = vm.unlimited_since.map(|since| now.since(since));
        let long = long.filter(|long| *long > SET_AGAIN_WITHIN);
        if self.violations.is_empty() {
            let what = long.map(|long| format!("nothing limits its CPU for {long:?}"));
            self.broken(Law::AKindWorldGetsItsGoal, Some(who), what);
        }
    }

    /// Whether a VM is let go as its hypervisor was found: nothing of ours limits it.
    pub fn is_let_go(&self, vm: &VmName) -> bool {
        let Some(vm) = self.vms.of(vm) else { return false };
        let as_found = vm.guest.group.is_none_or(|group| group.is_as_found());
        let clock = vm.front.process.clock(self.now);
        as_found && vm.front.agent.as_ref().is_some_and(|agent| agent.scaler.is_released(clock))
    }

    /// The host's limit on a VM's CPU.
    pub fn limit(&self, vm: &VmName) -> Option<MilliCpu> {
        self.vms.of(vm)?.guest.seen().limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{info, spec, units, vm};
    use crate::{GuestSpec, Setup, Step};
    use windlass_protocol::ComputeUnit;

    /// A node with one idle VM that can be limited.
    fn world() -> World {
        let unit = ComputeUnit::try_from(units(1)).unwrap();
        let mut world = World::new(Setup {
            nodes: 1,
            room: units(4),
            unit,
            trust_guest_parking: false,
            listed: false,
            seed: 7,
        });
        world.add(info(0), GuestSpec { limits: true, ..spec(0) });
        world.run(Duration::from_secs(20));
        world
    }

    #[test]
    fn a_limit_that_somebody_takes_away_is_set_again_soon() {
        let mut world = world();
        let one = units(1).cpu;
        assert_eq!(world.limit(&vm(0)), Some(one));
        world.step(Step::Group(vm(0), Grouping::Limit(None)));
        assert!(world.run_until(Duration::from_secs(10), |world| world.limit(&vm(0)) == Some(one)));
        assert_eq!(world.violations(), []);
    }

    #[test]
    fn a_vm_that_is_let_go_has_back_what_was_found() {
        let mut world = world();
        let found = Some(MilliCpu::from_milli(620));
        world.step(Step::Group(vm(0), Grouping::Limit(found)));
        world.run(Duration::from_secs(10));
        assert_eq!(world.limit(&vm(0)), Some(MilliCpu::from_milli(600)));
        world.step(Step::Ordered(vm(0), Order::Release(None)));
        assert!(world.run_until(Duration::from_secs(20), |world| world.is_let_go(&vm(0))));
        assert_eq!((world.limit(&vm(0)), world.violations()), (found, [].as_slice()));
    }
}
