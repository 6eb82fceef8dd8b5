//! Whether a world has converged: which VMs have what their load calls for, and how long the others may take.

use super::World;
use crate::vm::{CORE, Vm};
use std::time::Duration;
use windlass_agent_core::metrics_text;
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName, VmRecord, Waiting};
use windlass_scaling::{Inputs, goal};

// === impl World ===

impl World {
    /// Whether a VM uses what its load calls for, by the truth and by its agent, and the books have
    /// for it what it has.
    pub fn is_at_goal(&self, vm: &VmName) -> bool {
        let (Some(status), Some(there)) = (self.status(vm), self.vms.of(vm)) else { return false };
        let uses = self.uses(vm);
        let Some(booked) = self.nodes[there.node].booked(vm) else { return false };
        let rests = status.waiting.iter().all(|wait| {
            let near = matches!(wait, Waiting::Holding { until: None, .. });
            near || matches!(wait, Waiting::AtGoal | Waiting::Flapping { .. })
        });
        status.goal == Some(uses)
            && there.counts_session()
            && rests
            && booked == self.to_book(there, &status)
            && !there.guest.has_idle_vcpus(booked)
            && there.guest.is_limited_as_it_uses()
            && self.calls_for(there, uses)
    }

    /// What the books should have for a VM: what it has, and where it keeps a part of a slot that
    /// nothing calls for, the whole slot.
    fn to_book(&self, vm: &Vm, status: &VmStatus) -> Resources {
        let counts = vm.counts(self.setup.trust_guest_parking);
        let keeps = status.waiting.iter().any(|wait| matches!(wait, Waiting::Holding { .. }));
        let slot = if keeps { vm.info.memory_slot } else { Bytes::ZERO };
        let cpu = counts.cpu.round_up(cpu_said(vm));
        Resources { cpu, mem: counts.mem.round_up(slot) }
    }

    /// The step in which the CPU of a VM moves.
    fn step_of(&self, vm: &Vm) -> MilliCpu {
        let grain = vm.guest.capabilities().with(vm.guest.seen()).cpu_grain();
        let granted = VmRecord::of(&vm.info).grain.cpu;
        self.setup.unit.cpu().max(grain).max(granted).max(cpu_said(vm))
    }

    /// Whether all agents say to the books which parts of a vCPU they want.
    pub fn speaks_in_parts(&self) -> bool {
        self.vms.iter().all(|(_, vm)| cpu_said(vm).is_zero())
    }

    /// Whether a VM has an agent that counts.
    pub fn has_session(&self, vm: &VmName) -> bool {
        self.vms.of(vm).is_some_and(Vm::counts_session)
    }

    /// Whether a VM is said to be about to move, and is left alone until it did or did not.
    pub fn is_about_to_move(&self, vm: &VmName) -> bool {
        self.status(vm).is_some_and(|status| status.waiting.contains(&Waiting::Move))
    }

    /// Whether a VM uses at least what its load calls for, by the truth, and what its agent means
    /// it to have.
    pub fn has_grown(&self, vm: &VmName) -> bool {
        let (Some(there), uses) = (self.vms.of(vm), self.uses(vm)) else { return false };
        let goal = self.status(vm).and_then(|status| status.goal);
        goal.is_some_and(|goal| uses.covers(goal)) && uses.covers(self.called_for(there, uses))
    }

    /// The longest time for which a VM keeps what its signals no longer call for.
    pub fn longest_hold(&self) -> Duration {
        let holds = self.names().filter_map(|vm| {
            let flaps = self.status(vm)?.waiting.into_iter().find_map(|wait| {
                let Waiting::Flapping { hold, .. } = wait else { return None };
                Some(hold)
            });
            let waits = self.vms.of(vm)?.info.scale_down;
            Some(flaps.unwrap_or(waits.cpu.max(waits.memory)))
        });
        holds.max().unwrap_or_default()
    }

    /// Whether the guest's load calls for what it uses, by the truth; with a rest, load within its
    /// margin may keep a unit more.
    fn calls_for(&self, vm: &Vm, uses: Resources) -> bool {
        let called_for = self.called_for(vm, uses);
        let rests = !vm.info.scale_down.cpu.is_zero();
        let unit = Resources::from(self.setup.unit);
        let unit = Resources { cpu: unit.cpu.max(self.step_of(vm)), ..unit };
        let margin = if rests { unit } else { Resources::ZERO };
        uses.covers(called_for) && called_for.saturating_add(margin).covers(uses)
    }

    /// Whether every VM is at its goal, or short of it because its node has no unit left.
    pub fn is_shared_out(&self) -> bool {
        self.names().all(|vm| self.has_its_share(vm))
    }

    /// Whether some books keep more for a VM than its agent said last: room that comes free before long.
    pub fn keeps_what_was_given_back(&self) -> bool {
        self.vms.iter().any(|(_, vm)| self.nodes[vm.node].doubts(&vm.info.name))
    }

    /// Whether a VM is at its goal, or short of it because its node has no unit left.
    pub fn has_its_share(&self, name: &VmName) -> bool {
        let unit = Resources::from(self.setup.unit);
        self.vms.of(name).is_some_and(|vm| {
            let free = self.nodes[vm.node].free();
            let Some(status) = self.status(name) else { return false };
            let Some(goal) = status.goal.filter(|_| vm.counts_session()) else { return false };
            // A VM that is about to move keeps its size, and comes to its goal once it stays after all.
            let later = |wait: &Waiting| {
                matches!(wait, Waiting::Holding { until: Some(_), .. } | Waiting::Move)
            };
            if status.waiting.iter().any(later) {
                return false;
            }
            let (uses, step) = (self.uses(name), self.step_of(vm));
            let cpu = uses.cpu == goal.cpu || uses.cpu < goal.cpu && free.cpu < step;
            let mem = uses.mem == goal.mem || uses.mem < goal.mem && free.mem < unit.mem;
            let Some(booked) = self.nodes[vm.node].booked(name) else { return false };
            let counts = self.to_book(vm, &status);
            // Who does not see what hypervisors have promises nothing for vCPUs that a guest got
            // back, where nothing is free.
            let came_back = self.setup.listed && booked.cpu < counts.cpu && free.cpu < step;
            // What is granted in any amount may be a part of a step, which its agent cannot use; and where
            // nothing is free, a part of a vCPU of which the books cannot be told is not reserved.
            let least = vm.counts(self.setup.trust_guest_parking).cpu;
            let part = uses.cpu < goal.cpu && booked.cpu.saturating_sub(least) < step;
            let same = booked.cpu == counts.cpu
                || booked.cpu >= least && (part || booked.cpu < counts.cpu && free.cpu < step);
            // What an agent gave back is kept until a second word of it.
            let kept = self.nodes[vm.node].doubts(name) && booked.covers(counts);
            let known = kept || booked.mem == counts.mem && (same || came_back);
            // Who wants more vCPUs keeps those that are idle.
            let permit = status.permit.map_or(booked, |permit| permit.min(booked));
            let idle = vm.guest.has_idle_vcpus(permit) && uses.cpu == goal.cpu;
            cpu && mem && known && !idle && vm.guest.is_limited_as_it_uses()
        })
    }

    /// Whether a VM waits before it gives vCPUs back, and its averages have not come down to its load yet.
    pub fn average_calls_for_less(&self, vm: &VmName) -> bool {
        self.vms.of(vm).is_some_and(|vm| {
            let uses = self.uses(&vm.info.name);
            let held = |wait: &Waiting| {
                matches!(wait, Waiting::Holding { until: Some(_), goal } if goal.cpu < uses.cpu)
            };
            let waits =
                self.status(&vm.info.name).is_some_and(|status| status.waiting.iter().any(held));
            waits && vm.guest.averages_are_high(self.now)
        })
    }

    /// What the guest's load calls for, by the truth.
    fn called_for(&self, vm: &Vm, uses: Resources) -> Resources {
        let mut guest = vm.guest.clone();
        let averages = guest.true_averages(self.now);
        let figures = guest.figures(self.now, averages);
        let text = figures.map(|figures| figures.page().text()).unwrap_or_default();
        let inputs = Inputs {
            info: &vm.info,
            unit: self.setup.unit,
            can: &vm.guest.capabilities().with(vm.guest.seen()),
            sample: Some(&metrics_text::parse(&text, self.now)),
            has: uses,
            urgency: None,
        };
        goal::goal(&inputs).size
    }
}

/// The step in which the agent of a VM can say to the books how much CPU it wants.
fn cpu_said(vm: &Vm) -> MilliCpu {
    if vm.spoken.features().fractional_cpu { MilliCpu::ZERO } else { CORE }
}
