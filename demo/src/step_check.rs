//! Whether a VM is where the script says, and if not, what is missing.
//!
//! A pure function of what was seen since the step began: sizes by the hypervisor and from
//! inside the guest; goal, permit and what is waited for by Windlass's word.

use super::recording::{Inside, Ours, Reading, Recording, Track};
use super::script::{Because, End, Load, Step};
use windlass_protocol::{Bytes, Moment, Resources, Seen, Waiting};

/// What a guest's kernel may keep for itself of the memory that the hypervisor gave it.
const KERNEL: Bytes = Bytes::from_mib(64);

/// What is still missing for `step`, which began at `began`; empty once all is as it should be.
pub(crate) fn missing(recording: &Recording, step: &Step, began: Moment) -> Vec<String> {
    step.ends
        .iter()
        .filter_map(|end| {
            let vm = recording.vms.iter().find(|vm| vm.name.name == end.vm);
            let why = vm.map_or(Some("is not there".to_owned()), |vm| lacks(vm, step, end, began));
            why.map(|why| format!("{} {why}", end.vm))
        })
        .collect()
}

/// What a VM has by the latest figures from outside.
pub(crate) fn had(vm: &Track) -> Option<Resources> {
    let (inside, seen) = (vm.inside.last()?, vm.outside.last()?);
    Some(Resources { cpu: inside.value.online, mem: seen.value.memory.present() })
}

fn lacks(vm: &Track, step: &Step, end: &End, began: Moment) -> Option<String> {
    let (Some(seen), Some(inside), Some(ours)) =
        (latest(&vm.outside, began), latest(&vm.inside, began), latest(&vm.ours, began))
    else {
        return Some("was not seen from all sides since the step began".to_owned());
    };
    load(inside, step, end.vm)
        .or_else(|| size(seen, inside, end.has))
        .or_else(|| reason(vm, ours, end, began))
}

fn latest<T>(readings: &[Reading<T>], began: Moment) -> Option<&T> {
    readings.last().filter(|reading| reading.from >= began).map(|reading| &reading.value)
}

/// Whether the load of this step is what it should be.
fn load(inside: &Inside, step: &Step, vm: &str) -> Option<String> {
    let loads = step.loads.iter().filter(|(whose, _)| *whose == vm);
    loads.map(|(_, load)| load).find_map(|load| {
        let there = match load {
            Load::Spin(processes) => inside.workers == *processes,
            Load::Take { total, .. } => inside.held >= *total,
            Load::Free => inside.held.is_zero(),
        };
        (!there).then(|| {
            format!("is not loaded yet: {} processes, {} held", inside.workers, inside.held)
        })
    })
}

fn size(seen: &Seen, inside: &Inside, should: Resources) -> Option<String> {
    let memory = seen.memory;
    let had = Resources { cpu: inside.online, mem: memory.present() };
    if had != should {
        return Some(format!("has {had}, should have {should}"));
    }
    if memory.requested != memory.size {
        return Some(format!("was asked for {} on top of {}", memory.requested, memory.boot));
    }
    let usable = inside.total;
    let fits = usable <= should.mem && usable.saturating_add(KERNEL) >= should.mem;
    (!fits).then(|| format!("sees {usable} inside, should see about {}", should.mem))
}

fn reason(vm: &Track, ours: &Ours, end: &End, began: Moment) -> Option<String> {
    let permit = ours.permit == Some(end.has);
    let (goal, permit) = match end.because {
        Because::Goal => (Some(end.has), permit),
        Because::Room(wants) => {
            let waits = ours.waiting.iter().any(|why| matches!(why, Waiting::Room { .. }));
            (Some(wants), permit && waits)
        }
        Because::Refusal => (None, refused(vm, began)),
    };
    if goal.is_some() && ours.goal != goal {
        let is = ours.goal.map_or("none".to_owned(), |goal| goal.to_string());
        return Some(format!("has a goal of {is}, should be {}", goal.unwrap_or_default()));
    }
    (!permit).then(|| match end.because {
        Because::Goal | Because::Room(_) => {
            let is = ours.permit.map_or("none".to_owned(), |permit| permit.to_string());
            format!(
                "has a permit for {is}, should be {}, and waits for {:?}",
                end.has, ours.waiting
            )
        }
        Because::Refusal => "was not refused by its guest yet".to_owned(),
    })
}

/// Whether the guest refused to have less since then.
fn refused(vm: &Track, began: Moment) -> bool {
    vm.ours
        .iter()
        .filter(|ours| ours.from >= began)
        .any(|ours| ours.value.waiting.iter().any(|why| matches!(why, Waiting::Refused { .. })))
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal::recording;
    use super::super::script::SCRIPT;
    use super::*;
    use windlass_protocol::MilliCpu;

    #[test]
    fn every_step_of_an_honest_recording_ends_with_nothing_missing() {
        for (index, step) in SCRIPT.steps.iter().enumerate() {
            let recording = recording();
            let (began, over) = window(&recording, index);
            let recording = recording.until(over);
            assert_eq!(missing(&recording, step, began), Vec::<String>::new(), "{}", step.name);
        }
    }

    #[test]
    fn what_was_seen_before_a_step_began_does_not_end_it() {
        let recording = recording();
        let (began, over) = window(&recording, 0);
        let recording = recording.until(over);
        let later = began.after(std::time::Duration::from_secs(60));
        assert_eq!(missing(&recording, &SCRIPT.steps[0], later).len(), 3);
    }

    type Doctor = fn(&mut Track);

    #[test]
    fn each_side_alone_keeps_a_step_from_ending() {
        let doctored: [(Doctor, &str); 6] = [
            (|vm| last(&mut vm.inside).workers = 0, "web is not loaded yet"),
            (|vm| last(&mut vm.inside).online = MilliCpu::from_cores(2), "web has 2 vCPU"),
            (|vm| last(&mut vm.outside).memory.size = Bytes::ZERO, "web has 1 vCPU / 256MiB"),
            (|vm| last(&mut vm.inside).total = Bytes::from_mib(300), "web sees 300MiB inside"),
            (|vm| last(&mut vm.ours).goal = None, "web has a goal of none"),
            (|vm| last(&mut vm.ours).waiting.clear(), "web has a permit for 1 vCPU"),
        ];
        for (doctor, found) in doctored {
            let whole = recording();
            let (began, over) = window(&whole, 2);
            let mut recording = whole.until(over);
            doctor(&mut recording.vms[0]);
            let missing = missing(&recording, &SCRIPT.steps[2], began);
            assert!(missing.len() == 1 && missing[0].starts_with(found), "{missing:?}");
        }
    }

    fn window(recording: &Recording, act: usize) -> (Moment, Moment) {
        let over = recording.acts[act].reached.unwrap().after(std::time::Duration::from_millis(50));
        (recording.acts[act].began, over)
    }

    fn last<T>(readings: &mut [Reading<T>]) -> &mut T {
        &mut readings.last_mut().unwrap().value
    }
}
