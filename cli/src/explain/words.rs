//! Words that several sentences share: names, times, lists, directions.

use std::time::Duration;
use windlass_protocol::{Moment, Resources, VmName};

/// Which way a size goes on one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
    Same,
}

/// A moment as people write it: `2026-11-21T10:00:05Z`.
pub fn instant(moment: Moment) -> String {
    let millis = i64::try_from(moment.millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| format!("{}ms after 1970", moment.millis()),
        |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

/// The time of day of a moment in UTC: `10:00:05Z`.
pub(super) fn clock(moment: Moment) -> String {
    let text = instant(moment);
    text.split_once('T').map_or(text.clone(), |(_, time)| time.to_owned())
}

/// The name of a VM, without the namespace that every VM of a host has.
pub fn short(vm: &VmName) -> String {
    if vm.namespace == "default" { vm.name.clone() } else { vm.to_string() }
}

/// A time span to a tenth of a second: `0.4s`, `72.0s`.
pub(super) fn span(span: Duration) -> String {
    format!("{:.1}s", span.as_secs_f64())
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Which way CPU and memory go.
pub(super) fn ways(from: Resources, to: Resources) -> (Way, Way) {
    (way(from.cpu, to.cpu), way(from.mem, to.mem))
}

fn way<T: Ord>(from: T, to: T) -> Way {
    match to.cmp(&from) {
        std::cmp::Ordering::Greater => Way::Up,
        std::cmp::Ordering::Less => Way::Down,
        std::cmp::Ordering::Equal => Way::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_a_date_in_utc() {
        assert_eq!(instant(Moment::from_millis(1_795_255_205_999)), "2026-11-21T10:00:05Z");
        assert_eq!(instant(Moment::from_millis(u64::MAX)), "18446744073709551615ms after 1970");
    }

    #[test]
    fn a_list_ends_with_and() {
        let parts =
            |n: usize| ["a", "b", "c"][..n].iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            [list(&parts(0)), list(&parts(1)), list(&parts(2)), list(&parts(3))],
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
