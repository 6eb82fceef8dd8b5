//! Law 1: a VM never has more than its permit.

use super::window::around;
use super::{Check, Verdict};
use crate::recording::{Reading, Recording, Track};
use windlass_protocol::{Moment, Resources};

/// Sizes against permits. Before its first permit a VM may have what it was found with.
pub(super) fn check(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::PermitBeforeGrowth);
    for vm in &recording.vms {
        for reading in &vm.inside {
            let has = reading.value.online;
            let Some(permit) = allowed(vm, reading) else {
                verdict.unknown += 1;
                continue;
            };
            let wrong = (has > permit.cpu)
                .then(|| format!("has {has} vCPU online, its permit is {} vCPU", permit.cpu));
            verdict.compare(reading.to, Some(&vm.name), wrong);
        }
        for reading in &vm.outside {
            let has = reading.value.memory.upper();
            let Some(permit) = allowed(vm, reading) else {
                verdict.unknown += 1;
                continue;
            };
            let wrong = (has > permit.mem)
                .then(|| format!("has {has} of memory, its permit is {}", permit.mem));
            verdict.compare(reading.to, Some(&vm.name), wrong);
        }
    }
    verdict
}

/// The largest permit near this reading.
fn allowed<T>(vm: &Track, reading: &Reading<T>) -> Option<Resources> {
    let near = around(&vm.ours, reading.from, reading.to)?;
    let found = near.iter().filter_map(|ours| ours.value.permit).reduce(Resources::max);
    found.or_else(|| found_with(vm, reading.to))
}

/// What the VM had when it was first seen, if no permit had been given by `at`.
fn found_with(vm: &Track, at: Moment) -> Option<Resources> {
    let given = vm.ours.iter().any(|ours| ours.from <= at && ours.value.permit.is_some());
    let (cpu, mem) = (vm.inside.first()?.value.online, vm.outside.first()?.value.memory.upper());
    (!given).then_some(Resources { cpu, mem })
}
