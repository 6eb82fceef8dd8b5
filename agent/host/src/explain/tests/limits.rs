//! What an operator reads of the host's limit on a VM's CPU.

use super::*;
use crate::explain::room::holders;
use windlass_protocol::LimitCounts;

const HALF: MilliCpu = MilliCpu::from_milli(500);

#[test]
fn a_page_says_what_the_host_leaves_a_vm_whose_limit_it_is_and_how_often_it_was_used_up() {
    let counts = |throttled| LimitCounts {
        periods: 1_200,
        throttled,
        waited: Duration::from_millis(12_345),
        resets: 1,
    };
    let said: Vec<String> = [
        (None, None, None),
        (Some(HALF), None, None),
        (Some(HALF), None, Some(LimitCounts::default())),
        (Some(HALF), None, Some(counts(300))),
        (Some(HALF), Some(MilliCpu::from_cores(2)), Some(counts(0))),
        (Some(HALF), Some(HALF), None),
    ]
    .into_iter()
    .map(|(limit, found, counts)| {
        let page = page(&explained(VmStatus { limit_counts: counts, ..limited(limit, found) }));
        let lines = page.lines().filter(|line| line.contains("The host limits"));
        format!("{}\n", lines.collect::<String>())
    })
    .collect();
    expect![[r#"

        - The host limits its CPU to 0.5.
        - The host limits its CPU to 0.5.
        - The host limits its CPU to 0.5. It used that up in 300 of 1200 periods of 100 ms, and its threads waited 12.3s for the next one.
        - The host limits its CPU to 0.5; 2 stood there before, and Windlass goes no higher. It used that up in 0 of 1200 periods of 100 ms, and its threads waited 12.3s for the next one.
        - The host limits its CPU to 0.5; Windlass did not set that, and never raises it.
    "#]].assert_eq(&said.concat());
}

#[test]
fn a_vm_has_no_more_than_its_limit_leaves_and_the_page_says_what_else_keeps_it_there() {
    let held = |cpu| Some(Reason { signal: Signal::Load, cpu: Some(cpu), mem: None });
    let half = Resources { cpu: HALF, mem: Bytes::from_mib(512) };
    let ceiling = VmStatus {
        reason: held(Clip::DriverMaximum),
        goal: Some(half),
        ..limited(Some(HALF), Some(MilliCpu::from_milli(520)))
    };
    let part = Bounds { min: half, max: size(4, 1024) };
    let whole = VmStatus {
        reason: held(Clip::DriverMinimum),
        goal: Some(size(1, 512)),
        bounds: part,
        online: Some(MilliCpu::from_cores(1)),
        upper: Some(size(1, 512)),
        ..limited(None, None)
    };
    let started = VmStatus { bounds: Bounds { min: size(1, 256), ..part }, ..whole.clone() };
    let said = [ceiling, whole, started].map(|vm| {
        let text = summary(&explained(vm));
        text.lines().take(5).map(|line| format!("{line}\n")).collect::<String>() + "\n"
    });
    expect![[r#"
        2026-11-21T10:00:35Z db1 has 0.5 vCPU / 512MiB (and 1 more vCPU parked), which is its goal.

        Why not more: CPU is held to 0.5 vCPU by a limit on this host that Windlass did not set.

        Why not less: Load unknown calls for more than 0.5 vCPU.

        2026-11-21T10:00:35Z db1 has 1 vCPU / 512MiB (and 2 more vCPU parked), which is its goal.

        Why not more: Nothing calls for more: load unknown, memory in use unknown.

        Why not less: Load unknown calls for 1 vCPU; CPU is at 1 vCPU: the host does not limit it, and a part of a vCPU takes that (see `windlass vm check`).

        2026-11-21T10:00:35Z db1 has 1 vCPU / 512MiB (and 2 more vCPU parked), which is its goal.

        Why not more: Nothing calls for more: load unknown, memory in use unknown.

        Why not less: Load unknown calls for 1 vCPU; CPU is at 1 vCPU, with which QEMU was started, and which cannot be taken.

    "#]].assert_eq(&said.concat());
}

#[test]
fn a_decision_tells_of_the_limit_that_was_set_and_put_back() {
    let changes =
        vec![Change::Limit(Some(HALF)), Change::Plug(MilliCpu::from_cores(2)), Change::Limit(None)];
    check(
        &Decision { changes, ..grows() },
        expect![
            "2026-11-21T10:00:05Z db1: load decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU), so it should grow from 1 vCPU / 256MiB to 3 vCPU / 768MiB; the host's limit was set to 0.5 CPU, plugged vCPUs were set to 2 and the host's limit was put back as it was found; it is under way."
        ],
    );
}

#[test]
fn cpu_of_a_vm_that_the_host_limits_comes_back_to_others_whatever_the_host_trusts() {
    let keeps = |name: &str, limit| VmStatus {
        name: vm(name),
        waiting: vec![Waiting::Holding { goal: size(1, 512), until: Some(later(75_000)) }],
        upper: Some(size(3, 512)),
        goal: Some(size(1, 512)),
        online: Some(MilliCpu::from_cores(1)),
        ..limited(limit, None)
    };
    let vms = [keeps("free", None), keeps("limited", Some(MilliCpu::from_cores(3)))];
    let explained = Explained {
        parked: parked_by_others(&vm("db1"), &vms),
        returning: returned_by_others(&vm("db1"), &vms),
        ..explained(status())
    };
    let said = holders(&explained, size(3, 512), size(2, 512));
    expect![[r#"
        Of the node's 4 vCPU, 4 vCPU are reserved: web (priority 10) has 2 vCPU.
        free has parked 2 vCPU: they stay reserved until the VM ends, because the host does not limit its CPU; `windlass vm check` of that VM says why. `cpu_limit = "trust"` in its VM file or in host.toml frees them for others, and trusts the guest not to use what it has parked.
        If their load stays as it is, limited returns 2 vCPU from 10:01:20Z on.
    "#]].assert_eq(&(said.join("\n") + "\n"));
}

/// Two vCPUs of three are online.
fn limited(limit: Option<MilliCpu>, found_limit: Option<MilliCpu>) -> VmStatus {
    let seen = status().seen.map(|seen| Seen { limit, found_limit, ..seen });
    let upper = seen.map(|seen| seen.upper());
    VmStatus { seen, upper, waiting: vec![Waiting::AtGoal], ..status() }
}

fn explained(vm: VmStatus) -> Explained {
    Explained {
        at: later(30_000),
        vm: vm.name.clone(),
        decisions: Vec::new(),
        open: None,
        notes: Vec::new(),
        ordered: Vec::new(),
        status: Some(vm),
        state: Some(VmState::Managed),
        monitor: Some("/run/db1.sock".into()),
        node: Some(node()),
        problems: Vec::new(),
        parked: Vec::new(),
        returning: Vec::new(),
        cpu_limit: None,
    }
}
