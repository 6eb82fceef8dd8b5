//! How a VM's CPU is limited: as its file says, or else the agent's configuration.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, agreed, capabilities, cu, info, seen, settings};
use windlass_agent_core::{Action, Asking, Event, Failure, Settings};
use windlass_protocol::timing::INFORMANT_GONE;
use windlass_protocol::{
    Bytes, Capabilities, ComputeUnit, CpuLimit, InformantVersion, MilliCpu, Peer, PluginVersion,
    Resize, Resources, Seen, ShrinkCpu, VmInfo,
};
use windlass_scaling::{Loads, Sample};

const SAID: [Option<CpuLimit>; 4] =
    [None, Some(CpuLimit::Cgroup), Some(CpuLimit::Trust), Some(CpuLimit::None)];

#[test]
fn a_vm_wins_over_the_configuration_and_only_trust_trusts() {
    for of_all in SAID {
        let mut vm = Vm::told(Settings { cpu_limit: of_all, ..settings() }, 3);
        vm.registers();
        for of_vm in SAID.into_iter().chain(SAID) {
            vm.tell(told(of_vm));
            let holds = of_vm.or(of_all);
            assert_eq!(vm.scaler.cpu_limit(), holds, "{of_vm:?} over {of_all:?}");
            let trusts = holds == Some(CpuLimit::Trust);
            assert_eq!(vm.scaler.trusts_parking(), trusts, "{of_vm:?} over {of_all:?}");
        }
    }
}

#[test]
fn parked_vcpus_count_again_once_the_vm_ends_the_trust() {
    let mut vm = Vm::with_session(3);
    vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(3) }), agreed());
    vm.wait(1_000);
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    for (said, counts) in [
        (None, 1),
        (Some(CpuLimit::None), 3),
        (Some(CpuLimit::Trust), 1),
        (Some(CpuLimit::Cgroup), 3),
        (None, 1),
    ] {
        vm.tell(told(said));
        assert_eq!(vm.upper().cpu, cu(counts).cpu, "{said:?}");
    }
}

#[test]
fn a_session_that_numbers_no_sizes_is_not_trusted_whatever_the_vm_says() {
    let mut vm = Vm::seen_with(3);
    vm.tell(told(Some(CpuLimit::Trust)));
    vm.registered_in(InformantVersion::V1_2);
    assert!(!vm.scaler.trusts_parking());
}

#[test]
fn a_limit_that_was_sent_counts_until_it_is_seen() {
    let mut vm = with_limit(Some(500));
    let half = Seen { limit: Some(milli(500)), ..seen(2) };
    for (sent, counts) in [(Some(1500), 1500), (Some(250), 500), (None, 2000)] {
        let resize = Resize::Limit(sent.map(milli));
        vm.answered(Action::Resize(resize), Event::Failed(Peer::Hypervisor, Failure::NoAnswer));
        assert_eq!(vm.upper().cpu, milli(counts), "{resize:?}");
        vm.answered(Action::Look, Event::Seen(half));
        assert_eq!(vm.upper().cpu, milli(500), "{resize:?} is seen to have had no effect");
    }
}

#[test]
fn no_limit_is_set_without_a_session() {
    let mut vm = with_limit(None);
    vm.tell(Event::FiguresMoved { elsewhere: true });
    vm.now = vm.now.after(INFORMANT_GONE);
    vm.looks();
    assert!(vm.scaler.acts(vm.now), "it has no informant, and its figures come from elsewhere");
    let actions = vm.scaler.plan(vm.now).actions;
    assert!(!actions.iter().any(|action| matches!(action, Action::Resize(_))), "{actions:?}");
}

#[test]
fn no_vcpu_comes_under_a_limit_that_is_above_the_permit() {
    let has = Seen { plugged: cu(1).cpu, limit: Some(milli(1750)), ..seen(2) };
    let mut vm = with(has);
    vm.registers();
    vm.answered(Action::Look, Event::Seen(has));
    let loads = Loads { fifteen_seconds: Some(1.9), ..Loads::default() };
    vm.answered(Action::Measure, Event::Measured(Sample { loads, ..vm.report(1) }));
    let permit = Resources { cpu: milli(1250), ..cu(2) };
    vm.answered(asks(cu(2)), Event::Permitted(permit));
    let actions = vm.scaler.plan(vm.now).actions;
    let lowers = Action::Resize(Resize::Limit(Some(permit.cpu)));
    assert!(actions.contains(&lowers), "with the vCPU it would have 1.75: {actions:?}");
}

/// The guest of a host that trusts it has parked a vCPU, and its limit was not lowered yet.
#[test]
fn what_the_limit_leaves_the_vcpus_for_a_goal_is_asked_for() {
    let unit = ComputeUnit::new(milli(250), Bytes::from_mib(256)).unwrap().into();
    let has = Seen { limit: Some(milli(1750)), ..seen(2) };
    let mut vm = Vm::that_can(limits(), Settings { unit, ..settings() }, info(), has);
    vm.registers();
    vm.answered(Action::Look, Event::Seen(has));
    vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(2) }), agreed());
    vm.wait(1_000);
    vm.answered(Action::Measure, Event::Measured(vm.report(1)));
    assert_eq!(vm.upper().cpu, cu(1).cpu);
    vm.answered(asks(vm.upper()), Event::Permitted(vm.upper()));
    vm.wait(1_000);
    let loads = Loads { fifteen_seconds: Some(1.2), ..Loads::default() };
    vm.answered(Action::Measure, Event::Measured(Sample { loads, ..vm.report(1) }));
    assert_eq!(asked(&vm), Some(milli(1750)));
}

#[test]
fn a_vm_without_a_limit_in_force_moves_in_whole_vcpus() {
    let unit = ComputeUnit::new(milli(250), Bytes::from_mib(256)).unwrap().into();
    for (limit, cpu) in [(None, 2000), (Some(cu(1).cpu), 1250)] {
        let has = Seen { limit, ..seen(1) };
        let mut vm = Vm::that_can(limits(), Settings { unit, ..settings() }, info(), has);
        vm.registers();
        vm.answered(Action::Look, Event::Seen(has));
        vm.answered(asks(cu(1)), Event::Permitted(cu(1)));
        vm.wait(1_000);
        let loads = Loads { fifteen_seconds: Some(1.2), ..Loads::default() };
        vm.answered(Action::Measure, Event::Measured(Sample { loads, ..vm.report(1) }));
        assert_eq!(asked(&vm), Some(milli(cpu)), "{limit:?}");
    }
}

/// As NeonVM does it, with an informant of the reference: all vCPUs count as plugged, and the limit decides.
#[test]
fn consent_is_enough_where_the_hypervisor_unplugs_by_itself() {
    for (shrink_cpu, lowers) in [(ShrinkCpu::ByLimit, true), (ShrinkCpu::Parking, false)] {
        let can = Capabilities { shrink_cpu, shrink_memory: false, ..limits() };
        let has = Seen { plugged: cu(4).cpu, limit: Some(cu(2).cpu), ..seen(2) };
        let mut vm = Vm::that_can(can, Settings { cpu_limit: None, ..settings() }, info(), has);
        vm.registers();
        vm.answered(Action::Look, Event::Seen(has));
        vm.answered(asks(cu(2)), Event::Permitted(cu(2)));
        vm.wait(1_000);
        let idle = Sample { online: None, ..vm.report(1) };
        vm.answered(Action::Measure, Event::Measured(idle));
        let less = Resources { cpu: cu(1).cpu, ..cu(2) };
        let is_asked =
            |action: &Action| matches!(action, Action::Downscale(_, _, size) if *size == less);
        let actions = vm.scaler.plan(vm.now).actions;
        assert_eq!(actions.iter().any(is_asked), lowers, "{shrink_cpu:?}: {actions:?}");
        if lowers {
            vm.answered(vm.downscale(less), agreed());
            let limit = Action::Resize(Resize::Limit(Some(less.cpu)));
            let actions = vm.scaler.plan(vm.now).actions;
            assert!(actions.contains(&limit), "{actions:?}");
        }
    }
}

/// Two vCPUs, in a group whose limit this is and can be set.
fn with_limit(limit: Option<u64>) -> Vm {
    with(Seen { limit: limit.map(milli), ..seen(2) })
}

fn with(has: Seen) -> Vm {
    Vm::that_can(limits(), Settings { cpu_limit: None, ..settings() }, info(), has)
}

fn limits() -> Capabilities {
    Capabilities { limit_step: Some(milli(50)), ..capabilities(ShrinkCpu::Parking) }
}

/// What it asks the plugin for now, if it does.
fn asked(vm: &Vm) -> Option<MilliCpu> {
    vm.scaler.plan(vm.now).actions.into_iter().find_map(|action| {
        let Action::AskPlugin(asking) = action else { return None };
        Some(asking.resources.cpu)
    })
}

fn asks(resources: Resources) -> Action {
    let unit = ComputeUnit::new(cu(1).cpu, cu(1).mem).unwrap();
    Action::AskPlugin(Asking { version: PluginVersion::V5_0, resources, last_permit: None, unit })
}

fn milli(cpu: u64) -> MilliCpu {
    MilliCpu::from_milli(cpu)
}

fn told(cpu_limit: Option<CpuLimit>) -> Event {
    Event::Told(VmInfo { cpu_limit, ..info() }.into())
}
