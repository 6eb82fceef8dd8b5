//! How a VM's CPU is limited: as its file says, or else the agent's configuration.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, agreed, cu, info, settings};
use windlass_agent_core::{Event, Settings};
use windlass_protocol::{CpuLimit, InformantVersion, Resources, VmInfo};

const SAID: [Option<CpuLimit>; 4] =
    [None, Some(CpuLimit::Cgroup), Some(CpuLimit::Trust), Some(CpuLimit::None)];

#[test]
fn a_vm_file_wins_over_the_configuration_and_only_trust_trusts() {
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
fn parked_vcpus_count_again_once_the_vm_file_ends_the_trust() {
    let mut vm = Vm::with_session(3);
    vm.answered(vm.downscale(Resources { cpu: cu(1).cpu, ..cu(3) }), agreed());
    vm.wait(1_000);
    vm.answered(windlass_agent_core::Action::Measure, Event::Measured(vm.report(1)));
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
fn a_session_that_numbers_no_sizes_is_not_trusted_whatever_the_vm_file_says() {
    let mut vm = Vm::seen_with(3);
    vm.tell(told(Some(CpuLimit::Trust)));
    vm.registered_in(InformantVersion::V1_2);
    assert!(!vm.scaler.trusts_parking());
}

fn told(cpu_limit: Option<CpuLimit>) -> Event {
    Event::Told(VmInfo { cpu_limit, ..info() }.into())
}
