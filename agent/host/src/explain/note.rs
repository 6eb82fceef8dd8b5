//! What the books answered when there was less than was asked for: which VMs have the room.

use super::words::{instant, short};
use windlass_protocol::{Note, VmName};

/// Which VMs got the room when a VM asked for more than it was granted, in one sentence.
pub fn note(vm: &VmName, note: &Note) -> String {
    let Note { first, last, times, asked, permit, short: shortages } = note;
    let again = if *times > 1 {
        format!(" (asked {times} times until {})", instant(*last))
    } else {
        String::new()
    };
    let why: Vec<String> = shortages.iter().map(|shortage| format!("; {shortage}")).collect();
    format!(
        "{} books: {} asked for {asked} and was granted {permit}{again}{}.",
        instant(*first),
        short(vm),
        why.concat()
    )
}
