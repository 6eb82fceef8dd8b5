//! Memory that the host itself has available: books can be right while the host swaps.

use crate::lock::lock;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use windlass_protocol::{Bytes, Moment};

/// A figure this old is read again.
const FRESH: Duration = Duration::from_millis(500);

/// The figure, read at most so often for all VMs together.
#[derive(Debug)]
pub(crate) struct HostMemory {
    path: PathBuf,
    last: Mutex<Option<(Moment, Option<Bytes>)>>,
}

// === impl HostMemory ===

impl HostMemory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, last: Mutex::default() }
    }

    /// What is available; `None` if it cannot be read.
    pub(crate) fn available(&self, now: Moment) -> Option<Bytes> {
        let mut last = lock(&self.last);
        match *last {
            Some((at, figure)) if now.since(at) < FRESH => figure,
            Some(_) | None => {
                // A file of procfs: it is made from memory and does not wait for a disk.
                let figure = std::fs::read_to_string(&self.path).ok().and_then(|t| parse(&t));
                *last = Some((now, figure));
                figure
            }
        }
    }
}

fn parse(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(Bytes::from_kib(kib))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_line_is_found_and_nothing_is_guessed() {
        let text = "MemTotal:       16316412 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(parse(text), Some(Bytes::from_mib(2)));
        for broken in
            ["", "MemAvailable:", "MemAvailable: -1 kB", "MemAvailable: 12", "MemFree: 1 kB"]
        {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_figure_counts_for_half_a_second_and_is_read_again_then() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let path = folder.at("meminfo");
        let memory = HostMemory::new(path.clone());
        let read = |millis, kib: u64| {
            std::fs::write(&path, format!("MemAvailable: {kib} kB\n")).unwrap();
            memory.available(Moment::from_millis(millis))
        };
        for (millis, kib, figure) in
            [(0, 1, 1), (499, 2, 1), (500, 3, 3), (600, 4, 3), (9_000, 5, 5)]
        {
            assert_eq!(read(millis, kib), Some(Bytes::from_kib(figure)), "{millis}");
        }
    }

    #[test]
    fn a_host_that_does_not_say_is_not_taken_for_an_empty_one() {
        let memory = HostMemory::new(PathBuf::from("/nonexistent/meminfo"));
        assert_eq!(memory.available(Moment::default()), None);
    }
}
