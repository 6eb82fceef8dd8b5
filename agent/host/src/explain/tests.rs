//! Decisions of every kind, and the words for them.

mod absent;
mod changes;
mod limits;
mod outputs;

use super::*;
use crate::api::VmState;
use expect_test::{Expect, expect};
use std::time::Duration;
use windlass_protocol::decision::{Answered, Consented};
use windlass_protocol::status::{Booked, NodeStatus, SessionState, VmStatus};
use windlass_protocol::{
    Axis, Bounds, Bytes, Change, Clip, ComputeUnit, Decision, LoadWindow, MemorySeen, MilliCpu,
    Mode, Moment, Note, Outcome, Reason, Resources, RunState, Seen, Shortage, Signal, Signals,
    Target, VmName, Waiting,
};

const START: Moment = Moment::from_millis(1_795_255_205_000);

#[test]
fn growth_with_room_for_all_of_it() {
    check(
        &Decision {
            permit: Some(Answered { asked: size(3, 768), permit: size(3, 768) }),
            changes: vec![
                Change::Plug(MilliCpu::from_cores(3)),
                Change::Memory(Bytes::from_mib(768)),
            ],
            outcome: Outcome::Reached { at: later(1_340) },
            ..grows()
        },
        expect![
            "2026-11-21T10:00:05Z db1: load decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU), so it should grow from 1 vCPU / 256MiB to 3 vCPU / 768MiB; the books granted 3 vCPU / 768MiB, all that was asked for; plugged vCPUs were set to 3 and memory was set to 768MiB; it was there after 1.3s."
        ],
    );
}

#[test]
fn growth_with_less_room_than_was_wanted() {
    check(
        &Decision {
            reason: Reason { signal: Signal::Load, cpu: Some(Clip::Maximum), mem: None },
            permit: Some(Answered { asked: size(3, 768), permit: size(2, 768) }),
            changes: vec![Change::Plug(MilliCpu::from_cores(2))],
            outcome: Outcome::Replaced { at: later(31_000), has: size(2, 768) },
            ..grows()
        },
        expect![
            "2026-11-21T10:00:05Z db1: load decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU), so it should grow from 1 vCPU / 256MiB to 3 vCPU / 768MiB; CPU was held to the VM's maximum of 3; the books were asked for 3 vCPU / 768MiB and granted 2 vCPU / 768MiB, less CPU than it wanted, for want of room; plugged vCPUs were set to 2; it was superseded after 31.0s, and the VM had 2 vCPU / 768MiB by then."
        ],
    );
}

#[test]
fn memory_that_stays_because_the_guest_refused() {
    check(
        &Decision {
            from: size(3, 768),
            goal: size(1, 256),
            reason: Reason {
                signal: Signal::Idle,
                cpu: Some(Clip::Minimum),
                mem: Some(Clip::DriverMinimum),
            },
            consent: Some(Consented {
                asked: size(2, 512),
                agreed: false,
                status: "610MiB in use".to_owned(),
            }),
            outcome: Outcome::Open,
            ..grows()
        },
        expect![
            "2026-11-21T10:00:05Z db1: nothing calls for more than the minimum (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU, 75% of memory in use), so it should shrink from 3 vCPU / 768MiB to 1 vCPU / 256MiB; CPU was raised to the VM's minimum of 1 and memory was raised to 256MiB, the least that QEMU can go down to; the guest declined to go down to 2 vCPU / 512MiB (“610MiB in use”), so memory stays at 768MiB; it is under way."
        ],
    );
}

#[test]
fn shrinkage_with_consent() {
    check(
        &Decision {
            from: size(3, 768),
            goal: size(2, 512),
            consent: Some(Consented { asked: size(2, 512), agreed: true, status: String::new() }),
            changes: vec![
                Change::Park(MilliCpu::from_cores(2)),
                Change::Memory(Bytes::from_mib(512)),
                Change::CallOff(Bytes::from_mib(640)),
                Change::Unpark(MilliCpu::from_cores(3)),
            ],
            outcome: Outcome::Interrupted { at: later(4_000) },
            ..grows()
        },
        expect![
            "2026-11-21T10:00:05Z db1: load decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU), so it should shrink from 3 vCPU / 768MiB to 2 vCPU / 512MiB; the guest agreed to 2 vCPU / 512MiB; vCPUs were parked down to 2, memory was set to 512MiB, the shrink of memory was called off at 640MiB and vCPUs were un-parked up to 3; after 4.0s the guest restarted or the VM went away."
        ],
    );
}

#[test]
fn other_signals_have_their_words() {
    for (signal, goal, words) in [
        (
            Signal::Memory,
            size(1, 512),
            expect![
                "2026-11-21T10:00:05Z db1: memory decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: 75% in use), so its memory should grow from 256MiB to 512MiB, and CPU stay at 1; memory was kept at 512MiB, because a signal is missing; nothing was done, because its mode is `observe`."
            ],
        ),
        (
            Signal::Urgent,
            size(2, 128),
            expect![
                "2026-11-21T10:00:05Z db1: the guest asked for more at once (load 2.70 over 15s, 110MiB of 221MiB used), so its CPU should grow from 1 to 2, and memory shrink from 256MiB to 128MiB; memory was kept at 128MiB, because a signal is missing; nothing was done, because its mode is `observe`."
            ],
        ),
        (
            Signal::Missing,
            size(1, 256),
            expect![
                "2026-11-21T10:00:05Z db1: signals are missing, which never shrinks a VM (load 2.70 over 15s, 110MiB of 221MiB used), so it should stay at 1 vCPU / 256MiB; memory was kept at 256MiB, because a signal is missing; nothing was done, because its mode is `observe`."
            ],
        ),
        (
            Signal::Order,
            size(2, 256),
            expect![
                "2026-11-21T10:00:05Z db1: a person ordered it (load 2.70 over 15s, 110MiB of 221MiB used), so its CPU should grow from 1 to 2, and memory stay at 256MiB; memory was kept at 256MiB, because a signal is missing; nothing was done, because its mode is `observe`."
            ],
        ),
    ] {
        let reason = Reason { signal, cpu: None, mem: Some(Clip::Missing) };
        let outcome = Outcome::Observed;
        check(&Decision { goal, reason, outcome, ..grows() }, words);
    }
}

#[test]
fn a_vm_that_was_not_seen_yet_is_not_said_to_be_resized() {
    let vm = VmStatus { seen: None, waiting: vec![Waiting::Hypervisor], ..status() };
    assert_eq!(state(&vm, START), "asking QEMU what it has");
    assert_eq!(waiting(&Waiting::Hypervisor, &vm, START), "QEMU is asked what the VM has.");
}

#[test]
fn every_wait_has_a_sentence() {
    let left = Bytes::from_mib(64);
    let sentences: Vec<String> = [
        Waiting::AtGoal,
        Waiting::FirstSignals,
        Waiting::Signals { since: Some(START) },
        Waiting::Signals { since: None },
        Waiting::Session,
        Waiting::Plugin,
        Waiting::Room { wanted: size(3, 768), permit: size(2, 512) },
        Waiting::HostMemory { available: left },
        Waiting::Informant,
        Waiting::Refused { until: later(24_000) },
        Waiting::Holding { goal: size(1, 256), until: Some(later(80_000)) },
        Waiting::Holding { goal: size(1, 256), until: None },
        Waiting::Settling { until: Some(later(35_000)) },
        Waiting::Settling { until: None },
        Waiting::Flapping { reversals: 8, hold: Duration::from_secs(240) },
        Waiting::Consent,
        Waiting::Hypervisor,
        Waiting::NoEffect { until: later(24_000) },
        Waiting::HypervisorLost,
        Waiting::Unplug { left },
        Waiting::StuckUnplug { left },
        Waiting::Guest,
        Waiting::Frozen,
        Waiting::Move,
        Waiting::Paused { until: later(3_600_000) },
        Waiting::Observing,
        Waiting::Reboot,
        Waiting::Stopped { state: RunState::Saving },
        Waiting::Window { over: Some(LoadWindow::FiveSeconds) },
        Waiting::Window { over: None },
    ]
    .iter()
    .map(|why| format!("{}\n  {}\n", brief(why), waiting(why, &status(), later(20_000))))
    .collect();
    expect![[r#"
        at goal
          It has its goal, and waits for nothing.
        no metrics from the guest yet
          No metrics from the guest yet: what is not known never shrinks a VM. If it stays so, look in the guest: `systemctl status windlass-informant`; and here: can the host reach the address in the VM's file?
        no metrics from the guest for 20s
          No metrics from the guest for 20s: what is not known never shrinks a VM. If it stays so, look in the guest: `systemctl status windlass-informant`; and here: can the host reach the address in the VM's file?
        no metrics from the guest yet
          No metrics from the guest yet: what is not known never shrinks a VM. If it stays so, look in the guest: `systemctl status windlass-informant`; and here: can the host reach the address in the VM's file?
        informant has not confirmed this agent
          The informant has not said that this agent counts: it does not grow until then.
        no new permit from the plugin
          No new permit from the plugin: it does not answer, or refuses the request. The VM grows no further than the permit that it holds.
        waiting for room, 1 vCPU / 256MiB more
          It waits for room on the node: it wants 3 vCPU / 768MiB and is granted 2 vCPU / 512MiB. It gets what others give back, by priority and need.
        host short of memory, 64MiB available
          Its memory does not grow: the host itself has only 64MiB available, whatever the books say. Either `node` in host.toml allows more than there is, or something else on the host takes it.
        informant has not confirmed this agent
          The informant has not said that this agent counts: its memory does not shrink until then.
        guest declined to shrink; retry in 4s
          The guest declined to shrink, which is normal: what it uses would not fit with a margin. Retry in 4s, at 10:00:29Z.
        could shrink to 1 vCPU / 256MiB; waits until 10:01:25Z
          It could shrink to 1 vCPU / 256MiB, and waits until 10:01:25Z (1m 0s) in case load comes back: `[scale_down]` of its file says how long.
        could shrink to 1 vCPU / 256MiB once load falls further
          It could shrink to 1 vCPU / 256MiB, but its load is so near to calling for more that it has to fall further first.
        returning memory makes load; CPU waits until 10:00:40Z
          Its load calls for more, but returning memory makes load of its own: CPU does not grow on that load before 10:00:40Z.
        returning memory makes load; CPU waits for its end
          Its load calls for more, but returning memory makes load of its own: CPU does not grow on that load while memory leaves, and for a load window after.
        flapping, 8 reversals in an hour; shrinking waits 4m 0s
          It is flapping: 8 times in the last hour it grew soon after it had shrunk. So it now waits 4m 0s before it shrinks. A longer `load_window` or `[scale_down]` in its file is calmer.
        asking the guest to shrink
          The guest is being asked whether it can do with less.
        QEMU is resizing
          QEMU was told the new size, and is not there yet.
        resize had no effect; retry in 4s
          The last resize had no effect: QEMU refused it, and its words are in the log, or the guest did not follow. Retry in 4s, at 10:00:29Z.
        QEMU not answering
          QEMU not answering: nothing moves, and what the VM may have stays reserved. Is its process stopped or hung? `windlass vm check db1` says what is seen of its monitor.
        returning memory, 64MiB to go
          The guest is returning memory, 64MiB to go.
        returning memory is stuck, 64MiB to go
          The guest agreed to return memory and does not: 64MiB to go, which stay reserved. Something in the guest holds pages that cannot move. It goes on when the guest lets go of them; a restart of the guest frees them for certain.
        guest is adding vCPUs
          QEMU has the vCPUs, and the guest does not use them yet. If it stays so, look in the guest: does the informant run, and what does /sys/devices/system/cpu/online say?
        frozen
          The host is frozen: no VM changes its size until `windlass thaw`.
        about to move to another node
          The VM is about to move to another node, says the plugin: nothing changes before that.
        paused until 11:00:05Z
          It is paused: it keeps its size until 2026-11-21T11:00:05Z, or until `windlass resume db1`.
        observing
          Its mode is `observe`: goals are computed and recorded, and nothing is changed. `mode = "act"` in its file lets it follow its load.
        guest restarted; no informant yet
          The guest restarted: all that it may use counts, and it gives nothing back until its informant has registered.
        QEMU is saving or migrating the VM
          QEMU is saving or migrating the VM: nothing is resized meanwhile.
        filling the load window; only load over 5s counts yet
          Its load window is not filled yet, so it does not shrink. Until then load over 5s may make it grow.
        filling the load window
          Its load window is not filled yet, so it does not shrink: there are less than five seconds of samples.
    "#]].assert_eq(&sentences.concat());
}

#[test]
fn a_page_answers_who_got_the_room_and_what_is_waited_for() {
    let open = Decision {
        permit: Some(Answered { asked: size(3, 768), permit: size(2, 512) }),
        changes: vec![Change::Plug(MilliCpu::from_cores(2))],
        ..grows()
    };
    let note = Note {
        first: later(900),
        last: later(12_000),
        times: 6,
        asked: size(3, 768),
        permit: size(2, 512),
        short: vec![
            Shortage {
                axis: Axis::Cpu,
                asked: 3_000,
                permitted: 2_000,
                room: 4_000,
                free: 0,
                over: 0,
                kept: 0,
                others: others().into(),
                held: None,
            },
            Shortage {
                axis: Axis::Memory,
                asked: 768 << 20,
                permitted: 512 << 20,
                room: 1_280 << 20,
                free: 256 << 20,
                over: 0,
                kept: 256 << 20,
                others: others().into(),
                held: None,
            },
        ],
    };
    let explained = Explained {
        at: later(30_000),
        vm: vm("db1"),
        decisions: Vec::new(),
        open: Some(open),
        notes: vec![note],
        ordered: Vec::new(),
        status: Some(status()),
        state: Some(VmState::Managed),
        monitor: Some("/run/db1.sock".into()),
        node: Some(node()),
        problems: vec!["/vms.d/db1.toml: max.cpu = 0: must be 0.05 to 512".to_owned()],
        parked: Vec::new(),
        returning: Vec::new(),
        cpu_limit: None,
    };
    expect![[r#"
        2026-11-21T10:00:05Z db1: load decided (load 2.70 over 15s, 110MiB of 221MiB used; aim: a load of 0.9 per vCPU), so it should grow from 1 vCPU / 256MiB to 3 vCPU / 768MiB; the books were asked for 3 vCPU / 768MiB and granted 2 vCPU / 512MiB, less than it wanted of both, for want of room; plugged vCPUs were set to 2; it is under way.
        2026-11-21T10:00:05Z books: db1 asked for 3 vCPU / 768MiB and was granted 2 vCPU / 512MiB (asked 6 times until 2026-11-21T10:00:17Z); 2 vCPU of 3 vCPU: 0 vCPU of the node's 4 vCPU is free; default/web (priority 10) has 2 vCPU, default/batch has 0 vCPU and wants 1 vCPU; 512MiB of 768MiB: 256MiB of the node's 1.25GiB is free, of which 256MiB is kept for others; default/web (priority 10) has 512MiB and wants 768MiB, default/batch has 0B and wants 256MiB.

        Now, 2026-11-21T10:00:35Z: db1 has 3 vCPU / 512MiB (2 of 3 plugged vCPUs are online), a goal of 3 vCPU / 768MiB, 2 vCPU / 512MiB granted, an informant that follows this agent, sizes in steps of 1 vCPU / 256MiB, and bounds from 1 vCPU / 256MiB to 4 vCPU / 1GiB.
        - It waits for room on the node: it wants 3 vCPU / 768MiB and is granted 2 vCPU / 512MiB. It gets what others give back, by priority and need.
        - Of the node's 4 vCPU, 4 vCPU are reserved: web (priority 10) has 2 vCPU.
        - Of the node's 1.25GiB, 1.25GiB are reserved: web (priority 10) has 512MiB and wants 768MiB.
        - 2 vCPU / 512MiB are reserved for it; of the node's 4 vCPU / 1.25GiB, 4 vCPU / 1.25GiB are reserved in all.
        - /vms.d/db1.toml: max.cpu = 0: must be 0.05 to 512
    "#]].assert_eq(&page(&explained));
}

#[test]
fn an_answer_that_was_given_once_is_not_counted() {
    let at = later(900);
    let (asked, permit) = (size(3, 768), size(2, 512));
    let once = Note { first: at, last: at, times: 1, asked, permit, short: Vec::new() };
    assert_eq!(
        note(&vm("db1"), &once),
        "2026-11-21T10:00:05Z books: db1 asked for 3 vCPU / 768MiB and was granted 2 vCPU / 512MiB."
    );
}

/// The one thing that is waited for, as `top` has it.
fn brief(why: &Waiting) -> String {
    state(&VmStatus { waiting: vec![*why], ..status() }, later(20_000))
}

fn check(decision: &Decision, words: Expect) {
    words.assert_eq(&sentence(decision));
}

fn grows() -> Decision {
    Decision {
        at: START,
        vm: vm("db1"),
        from: size(1, 256),
        signals: Signals {
            load: Some(2.7),
            over: None,
            used: Some(Bytes::from_mib(110)),
            total: Some(Bytes::from_mib(221)),
        },
        window: LoadWindow::FifteenSeconds,
        target: Target::default(),
        goal: size(3, 768),
        reason: Reason { signal: Signal::Load, cpu: None, mem: None },
        permit: None,
        consent: None,
        short: None,
        refusal: None,
        changes: Vec::new(),
        outcome: Outcome::Open,
    }
}

fn node() -> NodeStatus {
    let mut vms = others();
    vms.push(booked("db1", 0, size(2, 512), Some(size(3, 768))));
    NodeStatus { room: size(4, 1280), reserved: size(4, 1280), vms }
}

fn others() -> Vec<Booked> {
    vec![
        booked("web", 10, size(2, 512), Some(size(2, 768))),
        booked("batch", 0, Resources::ZERO, Some(size(1, 256))),
    ]
}

fn booked(name: &str, priority: i32, reserved: Resources, claim: Option<Resources>) -> Booked {
    Booked { name: vm(name), priority, reserved, claim }
}

fn status() -> VmStatus {
    VmStatus {
        name: vm("db1"),
        mode: Mode::Act,
        priority: 0,
        bounds: Bounds { min: size(1, 256), max: size(4, 1024) },
        seen: Some(Seen {
            plugged: MilliCpu::from_cores(3),
            limit: None,
            found_limit: None,
            memory: MemorySeen {
                boot: Bytes::from_mib(256),
                requested: Bytes::from_mib(256),
                size: Bytes::from_mib(256),
            },
            state: RunState::Running,
        }),
        online: Some(MilliCpu::from_cores(2)),
        upper: Some(size(3, 512)),
        signals: Signals::default(),
        goal: Some(size(3, 768)),
        reason: None,
        permit: Some(size(2, 512)),
        consent: None,
        session: SessionState::Active,
        waiting: vec![Waiting::Room { wanted: size(3, 768), permit: size(2, 512) }],
        silent_since: None,
        unit: ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_mib(256)),
        window: Some(LoadWindow::FifteenSeconds),
        target: Some(Target::default()),
        limit_counts: None,
    }
}

fn vm(name: &str) -> VmName {
    VmName::on_host(name)
}

fn size(cpus: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(cpus), mem: Bytes::from_mib(mib) }
}

fn later(millis: u64) -> Moment {
    Moment::from_millis(START.millis() + millis)
}
