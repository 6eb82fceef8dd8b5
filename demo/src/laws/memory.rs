//! Law 3: memory never goes below what the guest agreed to, nor below what it uses.

use super::window::around;
use super::{Check, Verdict};
use crate::recording::{Reading, Recording, Track};
use windlass_protocol::{Bytes, Moment, Seen};

/// Each time the hypervisor was asked to take memory, the guest had agreed.
pub(super) fn consent(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::ConsentBeforeShrinkage);
    for vm in &recording.vms {
        for pair in vm.outside.windows(2) {
            let [before, after] = pair else { continue };
            let (had, left) = (before.value.memory, after.value.memory);
            if left.requested >= had.requested {
                continue;
            }
            let left = left.boot.saturating_add(left.requested);
            let agreed = agreed_since(vm, rose(vm, before.to), after.to);
            let wrong = (!agreed.iter().any(|least| *least <= left))
                .then(|| format!("was asked to shrink to {left}, and had not agreed to that"));
            verdict.compare(after.to, Some(&vm.name), wrong);
        }
    }
    verdict
}

/// Before `at`, when the VM last got more memory: what was agreed to earlier is used up.
fn rose(vm: &Track, at: Moment) -> Option<Moment> {
    let rises = |pair: &&[Reading<Seen>]| {
        pair[1].to <= at && pair[1].value.memory.requested > pair[0].value.memory.requested
    };
    vm.outside.windows(2).rfind(rises).map(|pair| pair[0].from)
}

/// What the guest agreed to have, by the decisions and the state of Windlass.
fn agreed_since(vm: &Track, since: Option<Moment>, until: Moment) -> Vec<Bytes> {
    let within = |at: Moment| since.is_none_or(|since| at >= since) && at <= until;
    let decided = vm.decisions.iter().filter(|decision| within(decision.at));
    let decided = decided.filter_map(|decision| decision.consent.as_ref());
    let said = vm.ours.iter().filter(|ours| within(ours.from));
    decided
        .filter(|consent| consent.agreed)
        .map(|consent| consent.asked.mem)
        .chain(said.filter_map(|ours| ours.value.consent.map(|consent| consent.mem)))
        .collect()
}

/// What is in use inside fits into what the hypervisor leaves; and nothing was killed.
pub(super) fn in_use(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::NeverBelowUse);
    for vm in &recording.vms {
        for reading in &vm.inside {
            let Some(near) = around(&vm.outside, reading.from, reading.to) else {
                verdict.unknown += 1;
                continue;
            };
            let used = reading.value.used();
            let left = near.iter().map(|seen| seen.value.memory.lower()).max();
            let wrong = left
                .filter(|left| used > *left)
                .map(|left| format!("uses {used}, and was to be left {left}"));
            verdict.compare(reading.to, Some(&vm.name), wrong);
        }
        if let (Some(first), Some(last)) = (vm.inside.first(), vm.inside.last()) {
            let killed = last.value.oom_kills.saturating_sub(first.value.oom_kills);
            let wrong =
                (killed > 0).then(|| format!("its kernel killed {killed} for want of memory"));
            verdict.compare(last.to, Some(&vm.name), wrong);
        }
    }
    verdict
}
