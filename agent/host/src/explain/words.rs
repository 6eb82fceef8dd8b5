//! Words that several sentences share: names, times, lists, directions, lines.

use std::time::Duration;
use windlass_protocol::{Clip, Moment, Reason, Resources, Signal, VmName};

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

/// A time span as people say it, in whole seconds: `4s`, `2m 5s`, `1h 3m`.
pub(super) fn lasting(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// How long ago something was, in the largest unit: `45s ago`, `3m ago`, `1h ago`.
pub fn ago(span: Duration) -> String {
    let seconds = span.as_secs();
    match (seconds / 3600, seconds / 60) {
        (0, 0) => format!("{seconds}s ago"),
        (0, minutes) => format!("{minutes}m ago"),
        (hours, _) => format!("{hours}h ago"),
    }
}

/// When something is tried again: `retry in 4s`.
pub(super) fn retry(until: Moment, now: Moment) -> String {
    format!("retry in {}", left(until, now))
}

/// How long it is until then, at least a second: `4s`.
pub(super) fn left(until: Moment, now: Moment) -> String {
    let seconds = until.since(now).as_millis().div_ceil(1000).max(1);
    lasting(Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)))
}

/// Text in lines of at most `width` columns, broken at spaces. What a line goes on with stands
/// two columns further in than the line itself. A word that is longer than a line is not broken.
pub fn wrap(text: &str, width: usize) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let mut used = 0;
        for word in line.split(' ').skip(indent).filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            let start = if used == 0 { indent } else { indent + 2 };
            if used == 0 || used + 1 + length > width {
                if used > 0 {
                    wrapped.push('\n');
                }
                wrapped.push_str(&" ".repeat(start));
                used = start;
            } else {
                wrapped.push(' ');
                used += 1;
            }
            wrapped.push_str(word);
            used += length;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Text in at most `width` columns; `…` stands for what has no room.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// What whole compute units make larger than an axis calls for by itself: `memory is rounded up to
/// 512MiB and CPU goes along to 2 vCPU`.
pub(super) fn by_units(reason: Reason, goal: Resources) -> Option<String> {
    let axis = |name: &str, clip: Option<Clip>, leads: bool, to: String| {
        let how = if leads { "is rounded up" } else { "goes along" };
        (clip == Some(Clip::Unit)).then(|| format!("{name} {how} to {to}"))
    };
    let (load, memory) = (reason.signal == Signal::Load, reason.signal == Signal::Memory);
    let cpu = axis("CPU", reason.cpu, load, format!("{} vCPU", goal.cpu));
    let mem = axis("memory", reason.mem, memory, goal.mem.to_string());
    let parts = if memory { [mem, cpu] } else { [cpu, mem] };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| list(&parts))
}

/// An amount on the axes where there is some: `2 vCPU`, `512MiB`, or both.
pub fn amount(size: Resources) -> String {
    match (size.cpu.is_zero(), size.mem.is_zero()) {
        (false, true) => format!("{} vCPU", size.cpu),
        (true, false) => size.mem.to_string(),
        (false, false) | (true, true) => size.to_string(),
    }
}

/// With a capital letter, to begin a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
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
    fn a_span_is_said_in_its_two_largest_units() {
        let said = |seconds| lasting(Duration::from_secs(seconds));
        assert_eq!([said(4), said(125), said(3_800)], ["4s", "2m 5s", "1h 3m"]);
        let past = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!([past(59), past(60), past(7_199)], ["59s ago", "1m ago", "1h ago"]);
        let at = Moment::from_millis;
        assert_eq!(
            [retry(at(4_500), at(1_000)), retry(at(1), at(9))],
            ["retry in 4s", "retry in 1s"]
        );
    }

    #[test]
    fn a_long_line_goes_on_further_in_and_loses_nothing() {
        assert_eq!(
            wrap("one two three four\n\n  a bb ccc", 9),
            "one two\n  three\n  four\n\n  a bb\n    ccc\n"
        );
        assert_eq!([wrap("one two", 7), wrap("one two", 6)], ["one two\n", "one\n  two\n"]);
        assert_eq!(wrap("/run/vms/db1/qmp.sock", 5), "/run/vms/db1/qmp.sock\n");
        assert_eq!(wrap("as it is", usize::MAX), "as it is\n");
    }

    #[test]
    fn what_has_no_room_leaves_a_sign() {
        assert_eq!([fit("frozen", 6), fit("frozen", 5), fit("–", 1)], ["frozen", "froz…", "–"]);
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
