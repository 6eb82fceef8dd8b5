//! An honest recording passes; one that was doctored does not, law by law.

use super::verdict::Violation;
use super::*;
use crate::recording::{Reading, Track};
use crate::rehearsal::recording;
use windlass_protocol::Moment;
use windlass_protocol::{Bytes, MilliCpu, Resources};

const MIB: Bytes = Bytes::from_mib(1);

#[test]
fn an_honest_recording_holds() {
    for verdict in check(&recording()) {
        assert!(verdict.holds(), "{verdict:#?}");
    }
}

#[test]
fn a_vcpu_beyond_the_permit_is_caught() {
    let mut recording = recording();
    for reading in during(&mut recording, "contention", |vm| &mut vm.inside, "web") {
        reading.value.online = MilliCpu::from_cores(2);
    }
    assert_eq!(
        broken(&recording, Check::PermitBeforeGrowth),
        ["web: has 2 vCPU online, its permit is 1 vCPU"]
    );
}

#[test]
fn memory_that_was_only_asked_for_counts_against_the_permit() {
    let mut recording = recording();
    for reading in during(&mut recording, "idle", |vm| &mut vm.outside, "cache") {
        reading.value.memory.requested = Bytes::from_mib(128);
    }
    assert_eq!(
        broken(&recording, Check::PermitBeforeGrowth),
        ["cache: has 384MiB of memory, its permit is 256MiB"]
    );
}

#[test]
fn a_vm_that_grew_before_its_first_permit_is_caught() {
    let mut recording = recording();
    let cache = recording.vms.iter_mut().find(|vm| vm.name.name == "cache").unwrap();
    for ours in &mut cache.ours {
        ours.value.permit = None;
    }
    assert_eq!(
        broken(&recording, Check::PermitBeforeGrowth),
        [
            "cache: has 2 vCPU online, its permit is 1 vCPU",
            "cache: has 512MiB of memory, its permit is 256MiB"
        ]
    );
}

#[test]
fn more_than_the_node_is_caught_though_each_has_a_permit() {
    let mut recording = recording();
    let more = Resources { cpu: MilliCpu::from_cores(3), mem: Bytes::from_mib(1024) };
    for reading in during(&mut recording, "burst", |vm| &mut vm.ours, "web") {
        reading.value.permit = Some(more);
    }
    for reading in during(&mut recording, "burst", |vm| &mut vm.inside, "web") {
        reading.value.online = more.cpu;
    }
    for reading in during(&mut recording, "burst", |vm| &mut vm.outside, "web") {
        reading.value.memory.size = Bytes::from_mib(768);
    }
    let found = broken(&recording, Check::BooksWithinTheNode);
    assert!(found.contains(&"7 vCPUs are online, the node has 5".to_owned()), "{found:?}");
    let memory = "the VMs have 2.25GiB of memory, the node has 1.75GiB";
    assert!(found.contains(&memory.to_owned()), "{found:?}");
    assert!(!verdict(&recording, Check::PermitBeforeGrowth).violations.iter().any(|violation| {
        recording.seconds(violation.at) > 25.0 && recording.seconds(violation.at) < 31.0
    }));
}

#[test]
fn a_size_that_is_passed_on_between_two_readings_is_no_excess() {
    let mut recording = recording();
    // One reading only: the other VM's next reading may have been taken after it gave back.
    let mut readings = during(&mut recording, "contention", |vm| &mut vm.inside, "web");
    readings[9].value.online = MilliCpu::from_cores(2);
    assert_eq!(broken(&recording, Check::BooksWithinTheNode), Vec::<String>::new());
}

#[test]
fn books_that_promise_too_much_are_caught() {
    let mut recording = recording();
    recording.books[40].value.reserved.mem = Bytes::from_gib(2);
    assert_eq!(
        broken(&recording, Check::BooksWithinTheNode),
        ["the books have 3 vCPU / 2GiB reserved of 5 vCPU / 1.75GiB"]
    );
}

#[test]
fn memory_taken_without_consent_is_caught() {
    for doctored in [true, false] {
        let mut recording = recording();
        let batch = recording.vms.iter_mut().find(|vm| vm.name.name == "batch").unwrap();
        for decision in &mut batch.decisions {
            match &mut decision.consent {
                Some(consent) if doctored => consent.agreed = false,
                consent => *consent = None,
            }
        }
        assert_eq!(
            broken(&recording, Check::ConsentBeforeShrinkage),
            [
                "batch: was asked to shrink to 512MiB, and had not agreed to that",
                "batch: was asked to shrink to 256MiB, and had not agreed to that"
            ]
        );
    }
}

#[test]
fn consent_that_came_later_or_for_less_is_none() {
    let mut recording = recording();
    let end = recording.ended();
    let batch = recording.vms.iter_mut().find(|vm| vm.name.name == "batch").unwrap();
    let mut consents = batch.decisions.iter_mut().filter(|decision| decision.consent.is_some());
    consents.next().unwrap().at = end;
    let second = consents.next().unwrap().consent.as_mut().unwrap();
    second.asked.mem = Bytes::from_mib(512);
    assert_eq!(broken(&recording, Check::ConsentBeforeShrinkage).len(), 2);
}

#[test]
fn memory_below_what_is_in_use_is_caught() {
    let mut recording = recording();
    for reading in during(&mut recording, "burst", |vm| &mut vm.inside, "cache") {
        reading.value.available = MIB;
        reading.value.total = Bytes::from_mib(400);
    }
    let found = broken(&recording, Check::NeverBelowUse);
    assert_eq!(found, ["cache: uses 399MiB, and was to be left 256MiB"]);
}

#[test]
fn a_process_killed_for_want_of_memory_is_caught() {
    let mut recording = recording();
    recording.vms[2].inside.last_mut().unwrap().value.oom_kills = 2;
    assert_eq!(
        broken(&recording, Check::NeverBelowUse),
        ["cache: its kernel killed 2 for want of memory"]
    );
}

#[test]
fn a_vm_that_did_not_get_there_is_caught() {
    let mut recording = recording();
    recording.acts[1].reached = None;
    recording.acts[1].ends[1].had = Some(Resources::ZERO);
    recording.acts[2].ends[0].had = None;
    assert_eq!(
        broken(&recording, Check::EveryGoalReached),
        [
            "batch: in step \"rise\" it should have 3 vCPU / 768MiB, it has 0 vCPU / 0B",
            "step \"rise\" did not come to its end within 60s",
            "web: in step \"contention\" it should have 1 vCPU / 512MiB, and nothing was seen of it"
        ]
    );
}

#[test]
fn a_side_that_nobody_looked_at_is_caught() {
    let mut recording = recording();
    let (from, to) = window(&recording, "burst");
    recording.vms[2].inside.retain(|reading| reading.to < from || reading.from > to);
    assert_eq!(
        broken(&recording, Check::EverythingSeen),
        ["cache: no figure by inside the guest in step \"burst\""]
    );
}

#[test]
fn nothing_seen_is_not_nothing_wrong() {
    let mut recording = recording();
    recording.acts.clear();
    recording.books.clear();
    for vm in &mut recording.vms {
        vm.outside.clear();
        vm.inside.clear();
        vm.ours.clear();
    }
    for verdict in check(&recording) {
        assert!(!verdict.holds(), "{verdict:?}");
    }
}

fn broken(recording: &Recording, check: Check) -> Vec<String> {
    let violations = verdict(recording, check).violations;
    let text = |violation: Violation| match violation.vm {
        Some(vm) => format!("{}: {}", vm.name, violation.what),
        None => violation.what,
    };
    violations.into_iter().map(text).collect()
}

fn verdict(recording: &Recording, wanted: Check) -> Verdict {
    check(recording).into_iter().find(|verdict| verdict.check == wanted).unwrap()
}

fn window(recording: &Recording, act: &str) -> (Moment, Moment) {
    let act = recording.acts.iter().find(|played| played.name == act).unwrap();
    (act.began, act.reached.unwrap())
}

fn during<'a, T: 'a>(
    recording: &'a mut Recording,
    act: &str,
    kind: fn(&mut Track) -> &mut Vec<Reading<T>>,
    vm: &str,
) -> Vec<&'a mut Reading<T>> {
    let (from, to) = window(recording, act);
    let vm = recording.vms.iter_mut().find(|track| track.name.name == vm).unwrap();
    kind(vm).iter_mut().filter(|reading| reading.from >= from && reading.to <= to).collect()
}
