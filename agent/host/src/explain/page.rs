//! All that is known of one VM: its decisions and the books' answers by time, then the present.

use super::room::holders;
use super::summary::{last_order, now};
use super::words::{instant, short};
use super::{ordered, sentence, waiting};
use crate::api::Explained;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Moment, Note, VmName, Waiting};

/// The whole story of a VM as text, one sentence a line.
pub fn page(explained: &Explained) -> String {
    let mut lines: Vec<(Moment, String)> = explained
        .decisions
        .iter()
        .chain(&explained.open)
        .map(|decision| (decision.at, sentence(decision)))
        .chain(explained.notes.iter().map(|told| (told.first, note(&explained.vm, told))))
        .collect();
    // Stable: a decision stands before the answer that the books gave to it.
    lines.sort_by_key(|(at, _)| *at);
    let mut text: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    if text.is_empty() {
        text.push("No decision in this time.".to_owned());
    }
    text.push(String::new());
    text.extend(present(explained));
    text.join("\n") + "\n"
}

/// Which VMs got the room when a VM asked for more than it was granted, in one sentence.
pub fn note(vm: &VmName, note: &Note) -> String {
    let Note { first, last, times, asked, permit, short: shortages } = note;
    let again = (*times > 1).then(|| format!(" (asked {times} times until {})", instant(*last)));
    let again = again.unwrap_or_default();
    let why: String = shortages.iter().map(|shortage| format!("; {shortage}")).collect();
    format!(
        "{} books: {} asked for {asked} and was granted {permit}{again}{why}.",
        instant(*first),
        short(vm)
    )
}

/// The VM at this moment, and why it does not move.
fn present(explained: &Explained) -> Vec<String> {
    let mut lines = vec![format!("Now, {}: {}", instant(explained.at), now(explained, size))];
    if let Some(vm) = &explained.status {
        for why in &vm.waiting {
            lines.push(format!("- {}", waiting(why, vm, explained.at)));
            if let Waiting::Room { wanted, permit } = why {
                let holders = holders(explained, *wanted, *permit);
                lines.extend(holders.into_iter().map(|holder| format!("- {holder}")));
            }
        }
    }
    if let Some(node) = &explained.node
        && let Some(booked) = node.vms.iter().find(|booked| booked.name == explained.vm)
    {
        lines.push(format!(
            "- {} are reserved for it; of the node's {}, {} are reserved in all.",
            booked.reserved, node.room, node.reserved
        ));
    }
    lines.extend(explained.status.as_ref().and_then(limit).map(|limit| format!("- {limit}")));
    lines.extend(
        explained.ordered.iter().map(|last| format!("- {}: {}.", last_order(last), ordered(last))),
    );
    lines.extend(explained.problems.iter().map(|problem| format!("- {problem}")));
    lines
}

/// What the host's limit leaves the VM, whose it is, and what came of it.
fn limit(status: &VmStatus) -> Option<String> {
    let seen = status.seen?;
    let limit = seen.limit?;
    let whose = match seen.found_limit {
        Some(found) if found == limit => {
            "; Windlass did not set that, and never raises it".to_owned()
        }
        Some(found) => format!("; {found} stood there before, and Windlass goes no higher"),
        None => String::new(),
    };
    let counts = status.limit_counts.filter(|counts| counts.periods > 0);
    let came = counts.map_or(String::new(), |counts| {
        format!(
            " It used that up in {} of {} periods of 100 ms, and its threads waited {:.1?} for the next one.",
            counts.throttled, counts.periods, counts.waited
        )
    });
    Some(format!("The host limits its CPU to {limit}{whose}.{came}"))
}

fn size(status: &VmStatus) -> String {
    let has = status.upper.map_or("was not seen yet".to_owned(), |upper| format!("has {upper}"));
    let online = status
        .online
        .zip(status.seen)
        .filter(|(online, seen)| *online != seen.plugged)
        .map_or(String::new(), |(online, seen)| {
            format!(" ({online} of {} plugged vCPUs are online)", seen.plugged)
        });
    let goal = status.goal.map_or("no goal yet".to_owned(), |goal| format!("a goal of {goal}"));
    let granted = status
        .permit
        .map_or("nothing granted yet".to_owned(), |granted| format!("{granted} granted"));
    let session = match status.session {
        SessionState::Absent => "no informant",
        SessionState::Registered => "an informant that has not confirmed this agent",
        SessionState::Active => "an informant that follows this agent",
        SessionState::Suspended => "an informant that is now controlled by another agent",
    };
    let unit = status.unit.map_or(String::new(), |unit| format!(", sizes in steps of {unit}"));
    let bounds = status.bounds;
    format!(
        "{has}{online}, {goal}, {granted}, {session}{unit}, and bounds from {} to {}",
        bounds.min, bounds.max
    )
}
