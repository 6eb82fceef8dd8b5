//! The files of `/proc` that are read, and their parsers.
//!
//! A parser takes what a kernel could write and says `None` to everything else: a figure that
//! is missing or absurd is missing, never zero.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use windlass_informant_core::Memory;
use windlass_protocol::Bytes;

/// No vCPU or memory block has a higher number than this.
const HIGHEST: u32 = 65_535;

/// Lines that are longer are not of interest (`intr` of `/proc/stat` can be).
const LINE: u64 = 512;

/// `/proc/loadavg`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAverages {
    /// Over 1, 5 and 15 minutes.
    pub minutes: [f64; 3],
    /// Tasks that run or could run, the reader included.
    pub running: u32,
}

/// A file of `/proc/pressure`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// Some task waits.
    pub some: Stall,
    /// All tasks wait; absent for CPU on older kernels.
    pub full: Option<Stall>,
}

/// One line of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Percent of the last ten seconds.
    pub avg10: f64,
    /// Microseconds since boot.
    pub total_us: u64,
}

/// Total, available and free of `/proc/meminfo`; the overhead is not in there.
pub fn meminfo(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib = rest.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        Some(Bytes::from_kib(kib))
    };
    let memory = Memory {
        total: field("MemTotal")?,
        available: field("MemAvailable")?,
        free: field("MemFree")?,
        overhead: None,
    };
    (!memory.total.is_zero() && memory.available <= memory.total).then_some(memory)
}

/// `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`.
pub fn loadavg(text: &str) -> Option<LoadAverages> {
    let mut fields = text.split_ascii_whitespace();
    let mut average = || {
        let load: f64 = fields.next()?.parse().ok()?;
        (load.is_finite() && load >= 0.0).then_some(load)
    };
    let minutes = [average()?, average()?, average()?];
    let running = fields.next()?.split_once('/')?.0.parse().ok()?;
    Some(LoadAverages { minutes, running })
}

/// Tasks that wait for I/O, from `/proc/stat`.
pub fn blocked(stat: impl BufRead) -> Option<u32> {
    let mut found = None;
    lines(stat, |line| {
        if let Some(rest) = line.strip_prefix("procs_blocked ") {
            found = rest.trim().parse().ok();
        }
    });
    found
}

/// What the VM has and the kernel does not manage, from `/proc/zoneinfo`: pages present less
/// pages managed, over all zones but those that hot-added memory goes to. There, pages that
/// are not managed are not the kernel's but the hypervisor's (virtio-mem takes them back so).
pub fn overhead(zoneinfo: impl BufRead, page_size: u64) -> Option<Bytes> {
    let (mut counts, mut present) = (false, 0_u64);
    let (mut pages, mut zones) = (0_u64, 0_u32);
    lines(zoneinfo, |line| {
        if let Some((_, zone)) = line.strip_prefix("Node ").and_then(|l| l.split_once(", zone")) {
            counts = !matches!(zone.trim(), "Movable" | "Device");
            present = 0;
        }
        let figure = |name| line.trim_start().strip_prefix(name)?.trim().parse::<u64>().ok();
        if let Some(value) = figure("present ") {
            present = value;
        }
        if let Some(managed) = figure("managed ").filter(|_| counts) {
            pages = pages.saturating_add(present.saturating_sub(managed));
            zones += 1;
        }
    });
    (zones > 0).then(|| Bytes::from_bytes(pages.saturating_mul(page_size)))
}

/// A file of `/proc/pressure`.
pub fn pressure(text: &str) -> Option<Pressure> {
    let line = |kind: &str| {
        let fields = text.lines().find_map(|line| line.strip_prefix(kind))?;
        let field =
            |name: &str| fields.split_ascii_whitespace().find_map(|field| field.strip_prefix(name));
        let avg10: f64 = field("avg10=")?.parse().ok()?;
        let total_us = field("total=")?.parse().ok()?;
        (avg10.is_finite() && avg10 >= 0.0).then_some(Stall { avg10, total_us })
    };
    Some(Pressure { some: line("some ")?, full: line("full ") })
}

/// A list of numbers as the kernel writes it: `0-3,8`. Empty is a list.
pub fn list(text: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > HIGHEST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Calls `each` with every line that is text and not too long; memory is bounded by [`LINE`].
fn lines(mut file: impl BufRead, mut each: impl FnMut(&str)) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match file.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let whole = line.ends_with(b"\n");
        if let Ok(text) = std::str::from_utf8(&line) {
            each(text.trim_end());
        }
        if !whole && file.skip_until(b'\n').is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONEINFO: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 0
  pages free     3840
        boost    0
        min      92
        spanned  4095
        present  3998
        managed  3840
Node 0, zone    DMA32
  pages free     100
        spanned  61408
        present  61408
        managed  47872
        protection: (0, 0, 0, 0, 0)
Node 0, zone   Normal
  pages free     0
        present  0
        managed  0
Node 0, zone  Movable
        present  65536
        managed  32768
";

    #[test]
    fn the_kernel_s_overhead_leaves_added_memory_out() {
        let pages = (3998 - 3840) + (61408 - 47872);
        assert_eq!(overhead(ZONEINFO.as_bytes(), 4096), Some(Bytes::from_bytes(pages * 4096)));
        assert_eq!(overhead(&b"nothing of the kind\n"[..], 4096), None);
    }

    #[test]
    fn memory_without_mem_available_is_unknown() {
        let text = "MemTotal:  206848 kB\nMemFree:  100 kB\nMemAvailable:  1000 kB\n";
        let memory = meminfo(text).unwrap();
        assert_eq!(memory.total, Bytes::from_kib(206_848));
        assert_eq!(memory.available, Bytes::from_kib(1000));
        assert_eq!(meminfo("MemTotal: 1 kB\nMemFree: 1 kB\n"), None);
        let of = |total, available| {
            meminfo(&format!("MemTotal: {total} kB\nMemFree: 0 kB\nMemAvailable: {available} kB\n"))
        };
        for (total, available, known) in [(1, 2, false), (1, 1, true), (1, 0, true), (0, 0, false)]
        {
            assert_eq!(of(total, available).is_some(), known, "{available} of {total}");
        }
    }

    #[test]
    fn load_is_read_with_the_run_queue() {
        let load = loadavg("0.20 1.18 2.12 3/80 11206\n").unwrap();
        assert_eq!(load, LoadAverages { minutes: [0.2, 1.18, 2.12], running: 3 });
        for bad in [
            "",
            "0.2 0.1",
            "NaN 0 0 1/2 3",
            "0 inf 0 1/2 3",
            "-1 0 0 1/2 3",
            "0 0 0 x/2 3",
            "0 0 0 1 3",
        ] {
            assert_eq!(loadavg(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_long_line_does_not_hide_what_follows() {
        let stat =
            format!("cpu 1 2 3\nintr {}\nprocs_running 2\nprocs_blocked 7\n", "9 ".repeat(5000));
        assert_eq!(blocked(stat.as_bytes()), Some(7));
        assert_eq!(blocked(&b"procs_running 2\n"[..]), None);
        // Nor is the rest of it a line of its own.
        for length in [511, 512, 513] {
            let stat = format!("procs_blocked 7\n{}procs_blocked 9\n", "x".repeat(length));
            assert_eq!(blocked(stat.as_bytes()), Some(7), "{length}");
            let stat = format!("{}\nprocs_blocked 7\n", "x".repeat(length));
            assert_eq!(blocked(stat.as_bytes()), Some(7), "{length}");
        }
    }

    #[test]
    fn pressure_without_full_is_pressure() {
        let line = "some avg10=1.50 avg60=0.80 avg300=0.10 total=123456\n";
        let some = Stall { avg10: 1.5, total_us: 123_456 };
        assert_eq!(pressure(line), Some(Pressure { some, full: None }));
        assert_eq!(pressure("full avg10=0.00 total=1"), None);
        let both = pressure("some avg10=0.00 total=0\nfull avg10=0.25 total=2\n").unwrap();
        assert_eq!(both.some, Stall { avg10: 0.0, total_us: 0 });
        assert_eq!(both.full, Some(Stall { avg10: 0.25, total_us: 2 }));
        for bad in ["NaN", "-1", "inf", "x"] {
            assert_eq!(pressure(&format!("some avg10={bad} total=1\n")), None, "{bad}");
        }
    }

    #[test]
    fn lists_of_vcpus_are_read_and_bounded() {
        assert_eq!(list("0-2,5\n"), Some(BTreeSet::from([0, 1, 2, 5])));
        assert_eq!(list("\n"), Some(BTreeSet::new()));
        assert_eq!(list("65535,3-3"), Some(BTreeSet::from([3, 65_535])));
        for bad in ["3-1", "0-4294967295", "65536", "a", "1-", "-1"] {
            assert_eq!(list(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (meminfo(&text), loadavg(&text), pressure(&text), list(&text));
            let _ = (blocked(&bytes[..]), overhead(&bytes[..], 4096));
        }

        #[test]
        fn absurd_figures_do_not_panic(a in any::<u64>(), b in any::<u64>()) {
            let zone = format!("Node 0, zone Normal\n present  {a}\n managed  {b}\n");
            let _ = overhead(zone.as_bytes(), u64::MAX);
            let _ = meminfo(&format!("MemTotal: {a} kB\nMemFree: {b} kB\nMemAvailable: {b} kB\n"));
            let _ = list(&format!("{a}-{b}"));
        }
    }
}
