//! What an operator reads in ten situations. Each is to be understood at the first reading: what
//! happened, and what is to be done.

mod calls;
mod room;

use super::*;

#[test]
fn at_goal() {
    let vm = VmStatus { waiting: vec![Waiting::AtGoal], ..idle() };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB, which is its goal.

            Why not more: Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU),
              40MiB of 218MiB used (aim: 75%).

            Why not less: It is at its minimum of 1 vCPU / 256MiB (`min`).

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn growing() {
    let vm =
        VmStatus { waiting: vec![Waiting::Hypervisor], permit: Some(size(3, 768)), ..loaded() };
    let under_way = |page: &mut Explained| page.open = Some(grows());
    read(
        vm,
        under_way,
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB and its goal is 3 vCPU / 768MiB:
              QEMU is resizing.

            Why not more: QEMU was told the new size, and is not there yet.

            Why not less: Load 2.70 over 15s (aim: 0.9 per vCPU) calls for 3 vCPU; memory
              goes along to 768MiB, because sizes move in whole compute units of 1 vCPU /
              256MiB.

            Last changes:
              10:00:05Z going 1 vCPU / 256MiB -> 3 vCPU / 768MiB for 30s: load 2.70 over
                15s, 110MiB of 221MiB used

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn guest_declined() {
    let vm = VmStatus {
        waiting: vec![Waiting::Refused { until: later(34_000) }],
        upper: Some(size(1, 512)),
        goal: Some(size(1, 256)),
        ..idle()
    };
    let asked = |page: &mut Explained| {
        page.open = Some(Decision {
            from: size(1, 512),
            goal: size(1, 256),
            reason: Reason { signal: Signal::Idle, cpu: None, mem: None },
            consent: Some(Consented {
                asked: size(1, 256),
                agreed: false,
                status: "152MiB in use and 96MiB to spare do not fit in 218MiB".to_owned(),
            }),
            ..grows()
        });
    };
    read(
        vm,
        asked,
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 512MiB and its goal is 1 vCPU / 256MiB:
              guest declined to shrink; retry in 4s.

            Why not more: Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU),
              40MiB of 218MiB used (aim: 75%).

            Why not less: The guest declined to shrink, which is normal: what it uses would
              not fit with a margin. Retry in 4s, at 10:00:39Z. Its words: “152MiB in use
              and 96MiB to spare do not fit in 218MiB”.

            Last changes:
              10:00:05Z going 512MiB -> 256MiB for 30s: nothing calls for more (load 2.70
                over 15s, 110MiB of 221MiB used)

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn memory_that_does_not_come_back() {
    let vm = VmStatus {
        waiting: vec![Waiting::StuckUnplug { left: Bytes::from_mib(128) }],
        upper: Some(size(1, 512)),
        goal: Some(size(1, 256)),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 512MiB and its goal is 1 vCPU / 256MiB:
              returning memory is stuck, 128MiB to go.

            Why not more: Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU),
              40MiB of 218MiB used (aim: 75%).

            Why not less: The guest agreed to return memory and does not: 128MiB to go,
              which stay reserved. Something in the guest holds pages that cannot move. It
              goes on when the guest lets go of them; a restart of the guest frees them for
              certain.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn qemu_is_silent() {
    let vm = VmStatus {
        waiting: vec![Waiting::HypervisorLost],
        silent_since: Some(later(18_000)),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 had 1 vCPU / 256MiB when it was last seen: QEMU not
              answering for 12s.

            Why it does not change: QEMU not answering for 12s: nothing moves, and what the
              VM may have stays reserved. Is its process stopped or hung? `windlass vm check
              db1` says what is seen of its monitor.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn no_metrics() {
    let vm = VmStatus {
        waiting: vec![Waiting::Signals { since: Some(later(10_000)) }],
        signals: Signals::default(),
        upper: Some(size(2, 512)),
        goal: Some(size(2, 512)),
        online: None,
        seen: Some(seen(2, 512)),
        reason: Some(Reason {
            signal: Signal::Missing,
            cpu: Some(Clip::Missing),
            mem: Some(Clip::Missing),
        }),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 2 vCPU / 512MiB: no metrics from the guest for 20s.

            Why it does not change: No metrics from the guest for 20s: what is not known
              never shrinks a VM. If it stays so, look in the guest: `systemctl status
              windlass-informant`; and here: can the host reach the address in the VM's
              file?

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn frozen() {
    let vm = VmStatus { waiting: vec![Waiting::Frozen], ..ordered() };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB: frozen.

            Why it does not change: The host is frozen: no VM changes its size until
              `windlass thaw`.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn paused() {
    let vm = VmStatus { waiting: vec![Waiting::Paused { until: later(7_200_000) }], ..ordered() };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB: paused until 12:00:05Z.

            Why it does not change: It is paused: it keeps its size until
              2026-11-21T12:00:05Z, or until `windlass resume db1`.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn observed() {
    let vm = VmStatus {
        mode: Mode::Observe,
        waiting: vec![Waiting::Observing],
        session: SessionState::Absent,
        permit: None,
        ..loaded()
    };
    let watched = |page: &mut Explained| {
        page.decisions = vec![Decision { outcome: Outcome::Observed, ..grows() }];
    };
    read(
        vm,
        watched,
        expect![[r#"
        2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB and its goal is 3 vCPU / 768MiB:
          observing.

        Why it does not change: Its mode is `observe`: goals are computed and recorded,
          and nothing is changed. `mode = "act"` in its file lets it follow its load.

        Last changes:
          10:00:05Z would go 1 vCPU / 256MiB -> 3 vCPU / 768MiB (only observed): load
            2.70 over 15s, 110MiB of 221MiB used

        `windlass explain db1 --verbose` tells each decision in full.
    "#]],
    );
}

#[test]
fn another_agent_took_over() {
    let vm =
        VmStatus { waiting: vec![Waiting::AtGoal], session: SessionState::Suspended, ..idle() };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB: now controlled by another agent.

            Why it does not change: The VM is now controlled by another agent, so this one
              changes nothing. The log of the informant in the guest names the other.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

/// The README's own VM, where a unit is larger than its minimum.
#[test]
fn memory_that_is_there_because_of_the_unit() {
    let vm = VmStatus {
        waiting: vec![Waiting::AtGoal],
        bounds: Bounds { min: size(1, 512), max: size(4, 4096) },
        seen: Some(seen(1, 1024)),
        upper: Some(size(1, 1024)),
        goal: Some(size(1, 1024)),
        permit: Some(size(1, 1024)),
        reason: Some(Reason { signal: Signal::Memory, cpu: None, mem: Some(Clip::Unit) }),
        unit: ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 1GiB, which is its goal.

            Why not more: Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU),
              40MiB of 218MiB used (aim: 75%).

            Why not less: Memory is rounded up to 1GiB, because sizes move in whole compute
              units of 1 vCPU / 1GiB.

            Last changes: none.

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

/// Load has fallen, and may come back.
#[test]
fn holding() {
    let vm = VmStatus {
        waiting: vec![Waiting::Holding { goal: size(1, 256), until: Some(later(75_000)) }],
        seen: Some(seen(2, 512)),
        online: Some(MilliCpu::from_cores(2)),
        upper: Some(size(2, 512)),
        goal: Some(size(2, 512)),
        reason: Some(Reason { signal: Signal::Idle, cpu: Some(Clip::Held), mem: Some(Clip::Held) }),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
        2026-11-21T10:00:35Z db1 has 2 vCPU / 512MiB: could shrink to 1 vCPU / 256MiB;
          waits until 10:01:20Z.

        Why not more: Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU),
          40MiB of 218MiB used (aim: 75%).

        Why not less: It could shrink to 1 vCPU / 256MiB, and waits until 10:01:20Z
          (45s) in case load comes back: `[scale_down]` of its file says how long.

        Last changes: none.

        `windlass explain db1 --verbose` tells each decision in full.
    "#]],
    );
}

/// Returning memory makes load, and load calls for a vCPU.
#[test]
fn settling() {
    let vm = VmStatus {
        waiting: vec![
            Waiting::Unplug { left: Bytes::from_mib(128) },
            Waiting::Settling { until: None },
        ],
        signals: Signals { load: Some(1.9), ..idle().signals },
        upper: Some(size(1, 512)),
        ..idle()
    };
    read(
        vm,
        |_| {},
        expect![[r#"
        2026-11-21T10:00:35Z db1 has 1 vCPU / 512MiB and its goal is 1 vCPU / 256MiB:
          returning memory, 128MiB to go; returning memory makes load; CPU waits for its
          end.

        Why not more: Its load calls for more, but returning memory makes load of its
          own: CPU does not grow on that load while memory leaves, and for a load window
          after.

        Why not less: The guest is returning memory, 128MiB to go.

        Last changes: none.

        `windlass explain db1 --verbose` tells each decision in full.
    "#]],
    );
}

/// On a terminal of eighty columns.
fn read(vm: VmStatus, change: impl FnOnce(&mut Explained), words: Expect) {
    let mut page = page(vm);
    change(&mut page);
    words.assert_eq(&wrap(&summary(&page), 80));
}

fn page(vm: VmStatus) -> Explained {
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
        node: Some(NodeStatus { room: size(4, 1280), reserved: size(4, 512), vms: Vec::new() }),
        problems: Vec::new(),
        parked: Vec::new(),
        returning: Vec::new(),
        cpu_limit: None,
    }
}

/// It has its minimum, and nothing calls for more.
fn idle() -> VmStatus {
    VmStatus {
        seen: Some(seen(1, 256)),
        online: Some(MilliCpu::from_cores(1)),
        upper: Some(size(1, 256)),
        signals: Signals {
            load: Some(0.03),
            over: None,
            used: Some(Bytes::from_mib(40)),
            total: Some(Bytes::from_mib(218)),
        },
        goal: Some(size(1, 256)),
        reason: Some(Reason { signal: Signal::Idle, cpu: None, mem: None }),
        permit: Some(size(1, 256)),
        waiting: vec![Waiting::AtGoal],
        ..status()
    }
}

/// Load calls for three vCPUs.
fn loaded() -> VmStatus {
    VmStatus {
        signals: grows().signals,
        goal: Some(size(3, 768)),
        reason: Some(Reason { signal: Signal::Load, cpu: None, mem: Some(Clip::Unit) }),
        ..idle()
    }
}

/// An order holds it where it is.
fn ordered() -> VmStatus {
    let reason = Reason { signal: Signal::Order, cpu: None, mem: None };
    VmStatus { reason: Some(reason), ..idle() }
}

fn vm_name(name: &str) -> VmName {
    VmName::on_host(name)
}

fn seen(cpus: u64, mib: u64) -> Seen {
    Seen {
        plugged: MilliCpu::from_cores(cpus),
        limit: None,
        found_limit: None,
        memory: MemorySeen {
            boot: Bytes::from_mib(256),
            requested: Bytes::from_mib(mib - 256),
            size: Bytes::from_mib(mib - 256),
        },
        state: RunState::Running,
    }
}
