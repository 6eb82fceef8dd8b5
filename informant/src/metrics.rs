//! What is measured and counted, as Prometheus text.
//!
//! The lines that an agent reads are the core's [`Figures`]; the rest is for people. A figure
//! that is missing has no line.

use crate::hotplug;
use crate::memory_cotenant::MemoryCotenant;
use crate::proc::{self, Stall};
use crate::shared::Shared;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_informant_core::wire::Figures;
use windlass_informant_core::wire::figures::{Cpus, Page};

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

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The text of `/metrics`.
pub fn text<B: MemoryCotenant>(shared: &Shared<B>) -> String {
    let mut page = read(shared).page();
    pressure(shared, &mut page);
    own(shared, &mut page);
    shared.cotenant.metrics(shared.clock.now(), &mut page);
    page.text()
}

fn read<B: MemoryCotenant>(shared: &Shared<B>) -> Figures {
    let loads = shared.tree.read("proc/loadavg").ok().and_then(|text| proc::loadavg(&text));
    let seconds = shared.load().averages(shared.clock.now());
    // Asked first: what was on its way then is there by the time the machine is read.
    let coming = shared.core().coming_online();
    let cpus = hotplug::cpus(&shared.tree).map(|(present, mut online)| {
        online.extend(coming.filter(|cpu| present.contains(cpu)));
        Cpus::of(&present, &online)
    });
    let memory = shared.tree.read("proc/meminfo").ok().and_then(|text| proc::meminfo(&text));
    let memory = memory.map(|memory| shared.cotenant.shown(shared.clock.now(), memory));
    Figures { minutes: loads.map(|loads| loads.minutes), seconds, cpus, memory }
}

fn pressure<B: MemoryCotenant>(shared: &Shared<B>, page: &mut Page) {
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
    page.add("windlass_pressure_avg10_percent", about, percents);
    let about = "Time in which some or all tasks waited, since boot.";
    page.add("windlass_pressure_seconds_total", about, seconds);
}

fn own<B: MemoryCotenant>(shared: &Shared<B>, page: &mut Page) {
    let (agents, parked, urgent) = {
        let core = shared.core();
        (core.agents(), core.parked().len(), core.urgent(shared.clock.now()))
    };
    page.add("windlass_informant_agents", "Agents that are registered.", [("", agents)]);
    page.add("windlass_informant_parked_cpus", "vCPUs taken offline.", [("", parked)]);
    let about = "Whether memory is being asked for at once.";
    page.add("windlass_informant_memory_urgent", about, [("", u8::from(urgent))]);

    let counts = &shared.counts;
    let about = "Requests by what became of them.";
    let requests = [
        ("{answer=\"ok\"}", counts.answered.get()),
        ("{answer=\"refused\"}", counts.refused.get()),
    ];
    page.add("windlass_informant_requests_total", about, requests);
    for (name, about, count) in [
        ("samples", "Samples of memory.", &counts.samples),
        ("connections_crowded", "Connections closed to make room.", &counts.crowded),
        ("memory_requests", "Requests for memory, sent to an agent.", &counts.asked),
        ("memory_stalls", "Notices that tasks waited for memory.", &counts.stalls),
    ] {
        let name = format!("windlass_informant_{name}_total");
        page.add(&name, about, [("", count.get())]);
    }
}
