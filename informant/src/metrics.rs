//! What is measured and counted, as Prometheus text.
//!
//! Names that begin with `host_load` are the reference's, and there are no others: it takes
//! the first line with that beginning. A figure that is missing has no line.

use crate::hotplug;
use crate::proc::{self, Stall};
use crate::shared::Shared;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// What was counted since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Samples of memory.
    pub samples: Count,
    /// Requests that were carried out.
    pub answered: Count,
    /// Requests that were refused, or not understood.
    pub refused: Count,
    /// Connections that were closed to make room for others.
    pub crowded: Count,
    /// Requests for memory sent to an agent.
    pub asked: Count,
    /// Notices that tasks waited for memory.
    pub stalls: Count,
}

/// A count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The text of `/metrics`.
pub fn text(shared: &Shared) -> String {
    let mut page = Page(String::with_capacity(4096));
    load(shared, &mut page);
    memory(shared, &mut page);
    pressure(shared, &mut page);
    own(shared, &mut page);
    page.0
}

fn load(shared: &Shared, page: &mut Page) {
    let loads = shared.tree.read("proc/loadavg").ok();
    if let Some(loads) = loads.and_then(|text| proc::loadavg(&text)) {
        for (minutes, load) in [1, 5, 15].into_iter().zip(loads.minutes) {
            let name = format!("host_load{minutes}");
            page.gauge(&name, "The kernel's load average, by minutes.", [("", load)]);
        }
    }
    if let Some([five, fifteen]) = shared.load().averages(shared.clock.now()) {
        let averages = [("{window=\"5s\"}", five), ("{window=\"15s\"}", fifteen)];
        page.gauge("windlass_load", "Load average from samples of the run queue.", averages);
    }
    if let Some((present, online)) = hotplug::cpus(&shared.tree) {
        page.gauge("windlass_cpus_online", "vCPUs in use.", [("", online.len())]);
        let reach = online.last().map_or(0, |highest| highest + 1);
        let about = "The highest vCPU in use, counted from one.";
        page.gauge("windlass_cpus_reach", about, [("", reach)]);
        page.gauge("windlass_cpus_present", "vCPUs that are there.", [("", present.len())]);
    }
}

fn memory(shared: &Shared, page: &mut Page) {
    let memory = shared.tree.read("proc/meminfo").ok();
    let Some(memory) = memory.and_then(|text| proc::meminfo(&text)) else { return };
    for (name, about, amount) in [
        ("total", "Memory that the kernel manages.", memory.total),
        ("available", "Memory that could be had without swapping.", memory.available),
        ("free", "Memory that nobody uses, not even as cache.", memory.free),
    ] {
        page.gauge(&format!("windlass_memory_{name}_bytes"), about, [("", amount.bytes())]);
    }
}

fn pressure(shared: &Shared, page: &mut Page) {
    let (mut percents, mut seconds) = (Vec::new(), Vec::new());
    for resource in ["cpu", "memory", "io"] {
        let file = shared.tree.read(&format!("proc/pressure/{resource}"));
        let Some(found) = file.ok().and_then(|text| proc::pressure(&text)) else { continue };
        for (kind, stall) in [("some", Some(found.some)), ("full", found.full)] {
            let Some(Stall { avg10, total_us }) = stall else { continue };
            let labels = format!("{{resource=\"{resource}\",kind=\"{kind}\"}}");
            let (whole, micros) = (total_us / 1_000_000, total_us % 1_000_000);
            percents.push((labels.clone(), avg10));
            seconds.push((labels, format!("{whole}.{micros:06}")));
        }
    }
    let about = "Percent of the last ten seconds in which some or all tasks waited.";
    page.gauge("windlass_pressure_avg10_percent", about, percents);
    let about = "Time in which some or all tasks waited, since boot.";
    page.figures("windlass_pressure_seconds_total", "counter", about, seconds);
}

fn own(shared: &Shared, page: &mut Page) {
    let (agents, parked, urgent) = {
        let core = shared.core();
        (core.agents(), core.parked().len(), core.urgent(shared.clock.now()))
    };
    page.gauge("windlass_informant_agents", "Agents that are registered.", [("", agents)]);
    page.gauge("windlass_informant_parked_cpus", "vCPUs taken offline.", [("", parked)]);
    let about = "Whether memory is being asked for at once.";
    page.gauge("windlass_informant_memory_urgent", about, [("", u8::from(urgent))]);

    let counts = &shared.counts;
    let about = "Requests by what became of them.";
    let requests = [
        ("{answer=\"ok\"}", counts.answered.get()),
        ("{answer=\"refused\"}", counts.refused.get()),
    ];
    page.figures("windlass_informant_requests_total", "counter", about, requests);
    for (name, about, count) in [
        ("samples", "Samples of memory.", &counts.samples),
        ("connections_crowded", "Connections closed to make room.", &counts.crowded),
        ("memory_requests", "Requests for memory, sent to an agent.", &counts.asked),
        ("memory_stalls", "Notices that tasks waited for memory.", &counts.stalls),
    ] {
        let name = format!("windlass_informant_{name}_total");
        page.figures(&name, "counter", about, [("", count.get())]);
    }
}

/// Text with one figure a line.
struct Page(String);

impl Page {
    fn gauge<L: Display, V: Display>(
        &mut self,
        name: &str,
        about: &str,
        figures: impl IntoIterator<Item = (L, V)>,
    ) {
        self.figures(name, "gauge", about, figures);
    }

    /// Figures of one name, by labels; nothing at all if there are none.
    fn figures<L: Display, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        figures: impl IntoIterator<Item = (L, V)>,
    ) {
        let mut figures = figures.into_iter().peekable();
        if figures.peek().is_none() {
            return;
        }
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
        for (labels, value) in figures {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}
