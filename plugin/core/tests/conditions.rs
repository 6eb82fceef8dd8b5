//! Whether a VM follows its load, and why not: as a table, and what of it is written.

use windlass_plugin_core::Shortage;
use windlass_plugin_core::books::telling::Known;
use windlass_plugin_core::conditions::{Facts, Look, Pacing};
use windlass_protocol::config::Problem;
use windlass_protocol::plugin::{Told, Why};
use windlass_protocol::vm_view::{Condition, Scaling, Status};
use windlass_protocol::{Axis, Bytes, Held, MilliCpu, Moment, Resources, VmName};

#[test]
fn a_condition_says_what_an_operator_has_to_know_first() {
    let told = |why, words: &str| Some(Told::new(None, why, words));
    let invalid = Problem::new("windlass.dev/bounds", "{}", "min is missing");
    let waits = told(Why::Room, "The VM waits for room on its node: it wants 1 vCPU more.");
    for (known, problems, reason, message) in [
        (
            Known { told: told(Why::AtGoal, "The VM has its goal."), ..calm() },
            &[][..],
            Scaling::Following,
            "The VM has its goal.",
        ),
        (calm(), &[], Scaling::Following, "The VM has what its agent asked for."),
        (
            Known {
                heard: Some(at(60)),
                told: waits.clone(),
                short: vec![short(None, 0)],
                ..calm()
            },
            &[],
            Scaling::AgentSilent,
            "The agent of the node has not asked for the VM for 40 s: the VM keeps its size, and what it was permitted stays reserved.",
        ),
        // An agent that never understood them asks for nothing.
        (
            Known { heard: None, ..calm() },
            std::slice::from_ref(&invalid),
            Scaling::AnnotationsInvalid,
            "An annotation is invalid: windlass.dev/bounds = {}: min is missing.",
        ),
        (
            Known { heard: None, ..calm() },
            &[],
            Scaling::AgentSilent,
            "No agent has asked for the VM in the 50 s since this plugin knows it: the VM keeps its size, and the most that it may have is reserved.",
        ),
        (
            Known { heard: None, here_since: Some(at(60)), ..calm() },
            &[],
            Scaling::AgentSilent,
            "No agent has asked for the VM in the 40 s since this plugin knows it: the VM keeps its size, and the most that it may have is reserved.",
        ),
        (
            Known { heard: None, here_since: Some(at(80)), ..calm() },
            &[],
            Scaling::Following,
            "No agent has asked for the VM yet.",
        ),
        (
            Known { told: waits.clone(), short: vec![short(None, 0)], ..calm() },
            std::slice::from_ref(&invalid),
            Scaling::AnnotationsInvalid,
            "An annotation is invalid: windlass.dev/bounds = {}: min is missing.",
        ),
        (
            Known { told: waits.clone(), short: vec![short(None, 0)], ..calm() },
            &[],
            Scaling::NodeFull,
            "The VM asked for 3 vCPU and may have 2 vCPU: 0 vCPU of the node's 5 vCPU is free.",
        ),
        (
            Known { short: vec![short(None, 500)], ..calm() },
            &[],
            Scaling::NodeOverfull,
            "The VM asked for 3 vCPU and may have 2 vCPU: 0.5 vCPU more is reserved than the node's 5 vCPU.",
        ),
        (
            Known { short: vec![short(None, 0), short(Some(Held::Cordoned), 0)], ..calm() },
            &[],
            Scaling::NodeCordoned,
            "The VM asked for 3 vCPU and may have 2 vCPU: the node is cordoned.",
        ),
        (
            Known { short: vec![short(Some(Held::MemoryPressure), 0)], ..calm() },
            &[],
            Scaling::NodeMemoryPressure,
            "The VM asked for 3 vCPU and may have 2 vCPU: the node is short of memory, says its kubelet.",
        ),
        (
            Known { moves: true, heard: None, ..calm() },
            &[],
            Scaling::Moving,
            "The VM is about to move to another node, and keeps its size until then.",
        ),
        (
            Known { told: told(Why::NoInformant, "No informant."), ..calm() },
            &[],
            Scaling::InformantSilent,
            "No informant.",
        ),
    ] {
        let of_vm = Facts { problems, listening_since: at(50), ..facts(&known) };
        let Condition { reason: is, message: says } = of_vm.judge(NOW);
        assert_eq!((is, says.as_str()), (reason, message));
        assert!(!says.contains("other-tenant"), "a condition names no other VM: {says}");
    }
}

#[test]
fn a_pod_that_is_not_resized_is_named_where_a_permit_waits_for_it() {
    let known = Known { told: Some(Told::new(None, Why::Room, "waits")), ..calm() };
    let judge = |not_resized| {
        let of_vm = Facts { not_resized, ..facts(&known) };
        of_vm.judge(NOW).reason
    };
    assert_eq!(judge(Some("limits")), Scaling::PodNotResized);
    assert_eq!(judge(None), Scaling::PermitWaits);
}

/// An agent tells with a request, before it is answered. Memory that was permitted arrives for seconds.
#[test]
fn a_vm_waits_for_its_permit_only_while_the_books_give_it_less_than_its_goal() {
    const WAITS: &str = "The VM waits for room on its node: it wants 1 vCPU more.";
    const PERMITTED: &str = "The VM is permitted what its load calls for, and is being resized.";
    let (one, two) = (size(1, 1), size(2, 2));
    for (why, goal, permit, short, reason, message) in [
        (Why::Room, Some(two), Some(two), None, Scaling::Following, PERMITTED),
        (Why::NoPermit, Some(two), Some(size(3, 2)), None, Scaling::Following, PERMITTED),
        (Why::Resizing, Some(two), Some(two), None, Scaling::Following, WAITS),
        (Why::Room, Some(two), Some(one), None, Scaling::PermitWaits, WAITS),
        (Why::Room, Some(two), Some(size(2, 1)), None, Scaling::PermitWaits, WAITS),
        (Why::Room, Some(two), None, None, Scaling::PermitWaits, WAITS),
        (Why::Room, None, Some(two), None, Scaling::PermitWaits, WAITS),
        (Why::NoPermit, Some(two), None, None, Scaling::PermitWaits, WAITS),
        (
            Why::Room,
            Some(two),
            Some(one),
            Some(short(None, 0)),
            Scaling::NodeFull,
            "The VM asked for 3 vCPU and may have 2 vCPU: 0 vCPU of the node's 5 vCPU is free.",
        ),
        // What else keeps it from its goal is no matter of permits.
        (Why::HostMemory, Some(two), Some(two), None, Scaling::HostMemoryShort, WAITS),
        (Why::Stuck, Some(two), Some(two), None, Scaling::ResizeStuck, WAITS),
    ] {
        let told = Some(Told::new(goal, why, WAITS));
        let known = Known { told, permit, short: short.into_iter().collect(), ..calm() };
        let judge = |not_resized| {
            let of_vm = Facts { not_resized, ..facts(&known) };
            of_vm.judge(NOW)
        };
        let expected = Condition { reason, message: message.to_owned() };
        assert_eq!(judge(None), expected, "{why} {goal:?} {permit:?}");
        let is_pods = judge(Some("limits")).reason == Scaling::PodNotResized;
        assert_eq!(is_pods, reason == Scaling::PermitWaits, "{why} {goal:?} {permit:?}");
    }
}

#[test]
fn a_plugin_that_just_began_blames_no_agent() {
    let known = Known { heard: None, ..calm() };
    let judge = |since| {
        let of_vm = Facts { listening_since: since, ..facts(&known) };
        of_vm.judge(NOW).reason
    };
    assert_eq!((judge(at(71)), judge(at(70))), (Scaling::Following, Scaling::AgentSilent));
}

#[test]
fn every_reason_is_spelled_alike_and_has_a_status() {
    for reason in Scaling::ALL {
        assert_eq!(Scaling::spelled(&reason.to_string()), Some(reason));
        assert_eq!(reason.status() == Status::True, reason == Scaling::Following, "{reason}");
    }
}

#[test]
fn a_condition_is_written_once_it_has_lasted_and_not_again_while_the_pod_shows_it() {
    let mut pacing = Pacing::default();
    assert_eq!(due(&mut pacing, 0, &[("a", Scaling::NodeFull, None)]), [""; 0]);
    assert_eq!(due(&mut pacing, 14, &[("a", Scaling::NodeFull, None)]), [""; 0]);
    assert_eq!(due(&mut pacing, 15, &[("a", Scaling::NodeFull, None)]), ["a NodeFull 0"]);
    let shown = Some("NodeFull");
    assert_eq!(due(&mut pacing, 100, &[("a", Scaling::NodeFull, shown)]), [""; 0]);
    assert!(pacing.is_empty(), "nothing is remembered of a VM whose pod shows what is so");
    assert_eq!(due(&mut pacing, 110, &[("a", Scaling::Following, shown)]), [""; 0]);
    assert_eq!(due(&mut pacing, 125, &[("a", Scaling::Following, shown)]), ["a Following 110"]);
}

#[test]
fn a_reason_that_passes_within_seconds_is_no_news() {
    let mut pacing = Pacing::default();
    for second in [0, 20, 40, 60] {
        assert_eq!(due(&mut pacing, second, &[("a", Scaling::NodeFull, None)]), [""; 0]);
        assert_eq!(due(&mut pacing, second + 10, &[("a", Scaling::Following, None)]), [""; 0]);
    }
    for second in 0..10 {
        let reason = if second % 2 == 0 { Scaling::NodeFull } else { Scaling::NodeCordoned };
        assert_eq!(due(&mut pacing, 100 + 10 * second, &[("a", reason, None)]), [""; 0]);
    }
}

#[test]
fn a_vm_has_one_write_a_minute_and_a_write_that_was_lost_is_made_again() {
    let mut pacing = Pacing::default();
    let mut all = Vec::new();
    for second in (0..200).step_by(5) {
        let written = due(&mut pacing, second, &[("a", Scaling::NodeFull, None)]);
        all.extend(written.into_iter().map(|_| second));
    }
    assert_eq!(all, [15, 75, 135, 195], "the pod never shows it");
}

#[test]
fn a_healthy_vm_whose_pod_shows_nothing_needs_no_write_and_a_stale_word_is_corrected() {
    let mut pacing = Pacing::default();
    let looks = [
        ("healthy", Scaling::Following, None),
        ("stale", Scaling::Following, Some("NodeFull")),
        ("newer", Scaling::Following, Some("GoneFishing")),
    ];
    due(&mut pacing, 0, &looks);
    assert_eq!(due(&mut pacing, 15, &looks), ["stale Following 0", "newer Following 0"]);
}

#[test]
fn no_more_than_so_many_are_written_at_a_time_and_the_rest_follows() {
    let mut pacing = Pacing::default();
    let names: Vec<String> = (0..5).map(|nth| format!("vm{nth}")).collect();
    let looks: Vec<_> =
        names.iter().map(|name| look(name, "uid", Scaling::NodeFull, None)).collect();
    pacing.due(at(0), looks.clone(), 2);
    let counts: Vec<usize> =
        (15..19).map(|second| pacing.due(at(second), looks.clone(), 2).len()).collect();
    assert_eq!(counts, [2, 2, 1, 0]);
    let another = vec![look("vm9", "another", Scaling::NodeFull, None)];
    assert_eq!(pacing.due(at(20), another, 2).len(), 0);
    assert_eq!(pacing.len(), 1, "pods that are gone are forgotten");
}

#[test]
fn another_pod_of_the_name_begins_anew() {
    let mut pacing = Pacing::default();
    pacing.due(at(0), vec![look("vm", "one", Scaling::NodeFull, None)], 2);
    let another = || vec![look("vm", "another", Scaling::NodeFull, None)];
    assert_eq!(pacing.due(at(20), another(), 2).len(), 0);
    assert_eq!(pacing.due(at(35), another(), 2).len(), 1);
}

const NOW: Moment = at(100);

const fn at(second: u64) -> Moment {
    Moment::from_millis(second * 1000)
}

/// What is due then, in words.
fn due(pacing: &mut Pacing, second: u64, vms: &[(&str, Scaling, Option<&str>)]) -> Vec<String> {
    let looks = vms.iter().map(|(name, reason, shown)| look(name, "uid", *reason, *shown));
    let due = pacing.due(at(second), looks.collect(), 20).into_iter();
    due.map(|due| {
        let (look, since) = (due.look, due.since.millis() / 1000);
        format!("{} {} {since}", look.pod.name, look.condition.reason)
    })
    .collect()
}

fn look(name: &str, uid: &str, reason: Scaling, shown: Option<&str>) -> Look {
    let pod = VmName::on_host(name);
    Look {
        object: pod.clone(),
        pod,
        uid: uid.to_owned(),
        object_uid: None,
        shown: shown.map(Into::into),
        condition: Condition { reason, message: String::new() },
    }
}

fn short(held: Option<Held>, over: u64) -> Shortage {
    let other = windlass_protocol::status::Booked {
        name: VmName::on_host("other-tenant"),
        priority: 0,
        reserved: Resources::ZERO,
        claim: None,
    };
    let (asked, permitted, room) = (3000, 2000, 5000);
    let others = [other].into();
    Shortage { axis: Axis::Cpu, asked, permitted, room, free: 0, over, kept: 0, others, held }
}

fn size(cores: u64, gib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(cores), mem: Bytes::from_gib(gib) }
}

/// Nothing is wrong beside what is known.
fn facts(known: &Known) -> Facts<'_> {
    Facts { known, problems: &[], not_resized: None, stays: None, listening_since: at(0) }
}

fn calm() -> Known {
    Known {
        reserved: size(1, 1),
        wanted: None,
        short: Vec::new(),
        heard: Some(at(98)),
        here_since: None,
        told: None,
        permit: Some(size(1, 1)),
        moves: false,
    }
}
