//! Law 2: all VMs together never have more than the node.

use super::window::least_at;
use super::{Check, Verdict};
use crate::recording::Recording;
use windlass_protocol::{Bytes, MilliCpu, Moment};

/// Sums of sizes against the room, at each moment at which a VM was read; and the books' sums.
pub(super) fn check(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::BooksWithinTheNode);
    let room = recording.room;
    for at in moments(recording, |vm| vm.inside.iter().map(|r| r.to).collect()) {
        let each = recording.vms.iter().map(|vm| least_at(&vm.inside, at, |r| r.online));
        let Some(sum) = each.reduce(|a, b| Some(a?.saturating_add(b?))).flatten() else {
            verdict.unknown += 1;
            continue;
        };
        verdict.compare(at, None, over_cpu(sum, room.cpu));
    }
    for at in moments(recording, |vm| vm.outside.iter().map(|r| r.to).collect()) {
        let each = recording.vms.iter().map(|vm| least_at(&vm.outside, at, |r| r.memory.upper()));
        let Some(sum) = each.reduce(|a, b| Some(a?.saturating_add(b?))).flatten() else {
            verdict.unknown += 1;
            continue;
        };
        verdict.compare(at, None, over_memory(sum, room.mem));
    }
    for books in &recording.books {
        let wrong = if books.value.room != room {
            Some(format!("the books have room for {}, the node has {room}", books.value.room))
        } else {
            let reserved = books.value.reserved;
            (!room.covers(reserved))
                .then(|| format!("the books have {reserved} reserved of {room}"))
        };
        verdict.compare(books.to, None, wrong);
    }
    verdict
}

fn over_cpu(sum: MilliCpu, room: MilliCpu) -> Option<String> {
    (sum > room).then(|| format!("{sum} vCPUs are online, the node has {room}"))
}

fn over_memory(sum: Bytes, room: Bytes) -> Option<String> {
    (sum > room).then(|| format!("the VMs have {sum} of memory, the node has {room}"))
}

fn moments(
    recording: &Recording,
    of: impl Fn(&crate::recording::Track) -> Vec<Moment>,
) -> Vec<Moment> {
    let mut moments: Vec<Moment> = recording.vms.iter().flat_map(of).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}
