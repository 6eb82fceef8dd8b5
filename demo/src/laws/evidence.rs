//! Whether there was enough to judge by: each VM, from each side, in each step.

use super::{Check, Verdict};
use crate::recording::{Reading, Recording};
use windlass_protocol::Moment;

/// At least one reading of each kind, of each VM, in each step.
pub(super) fn check(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::EverythingSeen);
    let ended = recording.ended();
    for act in &recording.acts {
        let over = act.over(ended);
        for vm in &recording.vms {
            for (side, seen) in [
                ("the hypervisor", seen(&vm.outside, act.began, over)),
                ("inside the guest", seen(&vm.inside, act.began, over)),
                ("Windlass", seen(&vm.ours, act.began, over)),
            ] {
                let wrong =
                    (!seen).then(|| format!("no figure by {side} in step \"{}\"", act.name));
                verdict.compare(over, Some(&vm.name), wrong);
            }
        }
    }
    verdict
}

fn seen<T>(readings: &[Reading<T>], from: Moment, to: Moment) -> bool {
    readings.iter().any(|reading| reading.from >= from && reading.to <= to)
}
