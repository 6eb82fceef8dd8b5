//! What the guest sees of itself, as one line of JSON.
//!
//! A figure that cannot be read is `null`, never zero.

use crate::crew::Doing;
use std::fmt::Write;
use std::fs;

/// The figures, beside what the crew is doing.
pub(crate) fn line(doing: Doing) -> String {
    let mut json = String::from("{");
    let memory = read("/proc/meminfo");
    for (name, key) in
        [("mem_total", "MemTotal:"), ("mem_available", "MemAvailable:"), ("mem_free", "MemFree:")]
    {
        put(&mut json, name, kilobytes(&memory, key));
    }
    put(&mut json, "cpus_online", count(&read("/sys/devices/system/cpu/online")));
    put(&mut json, "cpus_present", count(&read("/sys/devices/system/cpu/present")));
    let load = read("/proc/loadavg");
    for (place, name) in ["load1", "load5", "load15"].into_iter().enumerate() {
        put(&mut json, name, float(load.split(' ').nth(place)));
    }
    put(&mut json, "oom_kills", plain(&read("/proc/vmstat"), "oom_kill"));
    put(&mut json, "uptime", float(read("/proc/uptime").split(' ').next()));
    put(&mut json, "boot_id", quoted(&read("/proc/sys/kernel/random/boot_id")));
    put(&mut json, "onlining", quoted(&read("/sys/devices/system/memory/auto_online_blocks")));
    put(&mut json, "workers", Some(doing.workers));
    put(&mut json, "held", Some(doing.held));
    put(&mut json, "wanted", Some(doing.wanted));
    put(&mut json, "holders_killed", Some(doing.holders_killed));
    put(&mut json, "informant", doing.informant);
    let arguments = doing.informant.map(|pid| read(&format!("/proc/{pid}/cmdline")));
    put(&mut json, "informant_versions", arguments.and_then(|words| quoted(versions(&words)?)));
    let status = doing.informant.map(|pid| read(&format!("/proc/{pid}/status")));
    let status = status.unwrap_or_default();
    put(&mut json, "informant_resident", kilobytes(&status, "VmRSS:"));
    put(&mut json, "informant_peak", kilobytes(&status, "VmHWM:"));
    put(&mut json, "informants_ended", Some(doing.informants_ended));
    json.push('}');
    json
}

fn put(json: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    let comma = if json.len() > 1 { "," } else { "" };
    let written = match value {
        Some(value) => write!(json, "{comma}\"{name}\":{value}"),
        None => write!(json, "{comma}\"{name}\":null"),
    };
    written.expect("a string takes what is written to it");
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// `MemTotal:  155548 kB` in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    plain(text, key)?.checked_mul(1024)
}

/// The number behind `key` at the start of a line.
fn plain(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(key))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn float(word: Option<&str>) -> Option<f64> {
    word?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A word that needs no escapes, in quotes.
fn quoted(text: &str) -> Option<String> {
    let word = text.trim();
    let plain = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    plain.then(|| format!("\"{word}\""))
}

/// What stands behind `--versions` in a process's arguments, each of which ends with a zero.
fn versions(arguments: &str) -> Option<&str> {
    let mut words = arguments.split('\0');
    words.find(|&word| word == "--versions")?;
    words.next()
}

/// How many members a list such as `0-2,5` has.
fn count(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(count("0\n"), Some(1));
        assert_eq!(count("0-3\n"), Some(4));
        assert_eq!(count("0,2-3,7"), Some(4));
        assert_eq!(count(""), None);
        assert_eq!(count("3-1"), None);
    }

    #[test]
    fn numbers_are_found_by_the_whole_first_word() {
        let text = "oom_kill_disable 7\noom_kill 3\nMemTotal:  155548 kB\n";
        assert_eq!(plain(text, "oom_kill"), Some(3));
        assert_eq!(kilobytes(text, "MemTotal:"), Some(155_548 * 1024));
        assert_eq!(plain(text, "MemFree:"), None);
    }

    #[test]
    fn versions_are_found_among_arguments() {
        assert_eq!(versions("/bin/informant\0--versions\0v1.1\0"), Some("v1.1"));
        assert_eq!(versions("/bin/informant\0--root\0/x\0"), None);
    }

    #[test]
    fn what_is_missing_is_null() {
        let mut json = String::from("{");
        put(&mut json, "a", None::<u64>);
        put(&mut json, "b", Some(2.5));
        assert_eq!(json, r#"{"a":null,"b":2.5"#);
    }

    #[test]
    fn text_that_would_need_escapes_is_left_out() {
        assert_eq!(quoted("online_movable\n").as_deref(), Some("\"online_movable\""));
        assert_eq!(quoted("a\"b"), None);
    }
}
