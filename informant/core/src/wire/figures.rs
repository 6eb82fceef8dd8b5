//! The lines of `/metrics` that an agent reads, as Prometheus text.
//!
//! Names that begin with `host_load` are the reference's, and there are no others: it takes
//! the first line with that beginning. A figure that is missing has no line.

use crate::event::Memory;
use crate::load::Averages;
use std::collections::BTreeSet;
use std::fmt::{Display, Write};

/// What was read of a guest; what could not be read is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The kernel's load averages over 1, 5 and 15 minutes.
    pub minutes: Option<[f64; 3]>,
    /// Load averages over 5 and 15 seconds, from samples of the run queue.
    pub seconds: Averages,
    /// vCPUs.
    pub cpus: Option<Cpus>,
    /// Memory.
    pub memory: Option<Memory>,
}

/// How many vCPUs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// There, in use or not.
    pub present: usize,
    /// In use.
    pub online: usize,
    /// The highest in use, counted from one.
    pub reach: u32,
}

/// Text with one figure a line.
#[derive(Debug)]
pub struct Page(String);

// === impl Figures ===

impl Figures {
    /// A page that begins with these.
    pub fn page(&self) -> Page {
        let mut page = Page(String::with_capacity(4096));
        self.load(&mut page);
        self.memory(&mut page);
        page
    }

    fn load(&self, page: &mut Page) {
        if let Some(loads) = self.minutes {
            for (minutes, load) in [1, 5, 15].into_iter().zip(loads) {
                let name = format!("host_load{minutes}");
                page.add(&name, "The kernel's load average, by minutes.", [("", load)]);
            }
        }
        let Averages { five_seconds, fifteen_seconds } = self.seconds;
        let averages = [("{window=\"5s\"}", five_seconds), ("{window=\"15s\"}", fifteen_seconds)];
        let filled = averages.into_iter().filter_map(|(window, load)| Some((window, load?)));
        page.add("windlass_load", "Load average from samples of the run queue.", filled);
        if let Some(Cpus { present, online, reach }) = self.cpus {
            page.add("windlass_cpus_online", "vCPUs in use.", [("", online)]);
            let about = "The highest vCPU in use, counted from one.";
            page.add("windlass_cpus_reach", about, [("", reach)]);
            page.add("windlass_cpus_present", "vCPUs that are there.", [("", present)]);
        }
    }

    fn memory(&self, page: &mut Page) {
        let Some(memory) = self.memory else { return };
        for (name, about, amount) in [
            ("total", "Memory that the kernel manages.", memory.total),
            ("available", "Memory that could be had without swapping.", memory.available),
            ("free", "Memory that nobody uses, not even as cache.", memory.free),
        ] {
            page.add(&format!("windlass_memory_{name}_bytes"), about, [("", amount.bytes())]);
        }
    }
}

// === impl Cpus ===

impl Cpus {
    /// Counts vCPUs by their numbers, which begin at zero.
    pub fn of(present: &BTreeSet<u32>, online: &BTreeSet<u32>) -> Self {
        let reach = online.last().map_or(0, |highest| highest.saturating_add(1));
        Self { present: present.len(), online: online.len(), reach }
    }
}

// === impl Page ===

impl Page {
    /// All of it.
    pub fn text(self) -> String {
        self.0
    }

    /// Figures of one name, by labels; nothing at all if there are none. A name that ends in `_total` is a
    /// counter's, any other a gauge's.
    pub fn add<L: Display, V: Display>(
        &mut self,
        name: &str,
        about: &str,
        figures: impl IntoIterator<Item = (L, V)>,
    ) {
        let mut figures = figures.into_iter().peekable();
        if figures.peek().is_none() {
            return;
        }
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
        for (labels, value) in figures {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use windlass_protocol::Bytes;

    #[test]
    fn every_figure_has_its_line() {
        let [total, available, free] = [2048, 1024, 512].map(Bytes::from_kib);
        let figures = Figures {
            minutes: Some([0.5, 1.0, 12.25]),
            seconds: Averages { five_seconds: Some(2.5), fifteen_seconds: Some(0.0) },
            cpus: Some(Cpus::of(&[0, 1, 2, 3].into(), &[0, 2].into())),
            memory: Some(Memory { total, available, free, overhead: None }),
        };
        expect![[r##"
            # HELP host_load1 The kernel's load average, by minutes.
            # TYPE host_load1 gauge
            host_load1 0.5
            # HELP host_load5 The kernel's load average, by minutes.
            # TYPE host_load5 gauge
            host_load5 1
            # HELP host_load15 The kernel's load average, by minutes.
            # TYPE host_load15 gauge
            host_load15 12.25
            # HELP windlass_load Load average from samples of the run queue.
            # TYPE windlass_load gauge
            windlass_load{window="5s"} 2.5
            windlass_load{window="15s"} 0
            # HELP windlass_cpus_online vCPUs in use.
            # TYPE windlass_cpus_online gauge
            windlass_cpus_online 2
            # HELP windlass_cpus_reach The highest vCPU in use, counted from one.
            # TYPE windlass_cpus_reach gauge
            windlass_cpus_reach 3
            # HELP windlass_cpus_present vCPUs that are there.
            # TYPE windlass_cpus_present gauge
            windlass_cpus_present 4
            # HELP windlass_memory_total_bytes Memory that the kernel manages.
            # TYPE windlass_memory_total_bytes gauge
            windlass_memory_total_bytes 2097152
            # HELP windlass_memory_available_bytes Memory that could be had without swapping.
            # TYPE windlass_memory_available_bytes gauge
            windlass_memory_available_bytes 1048576
            # HELP windlass_memory_free_bytes Memory that nobody uses, not even as cache.
            # TYPE windlass_memory_free_bytes gauge
            windlass_memory_free_bytes 524288
        "##]]
        .assert_eq(&figures.page().text());
    }

    #[test]
    fn a_window_that_is_not_filled_has_no_line() {
        let text = |five_seconds, fifteen_seconds| {
            let seconds = Averages { five_seconds, fifteen_seconds };
            Figures { seconds, ..Figures::default() }.page().text()
        };
        let five = text(Some(2.5), None);
        assert!(five.ends_with("windlass_load{window=\"5s\"} 2.5\n"), "{five}");
        assert_eq!(text(None, None), "");
    }

    #[test]
    fn what_is_missing_has_no_line() {
        assert_eq!(Figures::default().page().text(), "");
        let nobody = Cpus::of(&BTreeSet::new(), &BTreeSet::new());
        assert_eq!(nobody, Cpus { present: 0, online: 0, reach: 0 });
        let mut page = Figures::default().page();
        page.add::<&str, u64>("any_total", "Nothing.", []);
        assert_eq!(page.text(), "");
    }
}
