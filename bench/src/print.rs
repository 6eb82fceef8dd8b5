//! What is printed, and what it means.

mod cluster;
mod cluster_agent;

pub(crate) use cluster::{
    cluster_permits, cluster_permits_head, memory_of_vms, scheduler, scheduler_head,
};
pub(crate) use cluster_agent::{
    alone, alone_head, at_rest, cluster_agent_head, cluster_surge, least,
};

use crate::agent::{Load, SURGE, Surge, Took, WATCHED};
use crate::api_server::EVENTS;
use crate::burst::{
    BEYOND_MIB, BOOT_MIB, EVERY, LEFT_MIB, LOOK, Met, STEP_MIB, THRESHOLD_PERCENT, USABLE_MIB,
};
use crate::cores;
use crate::crowd::PHASE;
use crate::extender::{self, Times, Verb};
use crate::growth::{BURSTS, Grown};
use crate::permits::{Asked, CLIENTS, Room, TURN, TURNS};
use crate::sizes::Resident;
use crate::summary::Summary;
use anyhow::{Context, Result};
use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::Duration;
use windlass_lab::Lab;

/// Everything that has a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The host's process.
    pub(crate) host: Resident,
    /// The QEMU processes of its two VMs.
    pub(crate) qemu: u64,
    /// The informant's process.
    pub(crate) informant: Resident,
    /// Memory that the kernel of its guest manages.
    pub(crate) guest: u64,
    /// The informant on disk.
    pub(crate) informant_file: u64,
    /// `windlass` on disk.
    pub(crate) host_file: u64,
}

/// On what this runs, without which no figure means anything.
pub(crate) fn conditions(rounds: usize, lab: &Lab, windlass: &Path) -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or("?");
    say(&format!(
        "windlass-bench: {rounds} rounds, {cores} cores, load average {load} at the start, guests \
         by {}\n{}\n",
        lab.accel().as_str(),
        windlass.display()
    ))
}

pub(crate) fn round(number: usize, windlass: Met, hand: Met) -> Result<()> {
    say(&format!(
        "round {number:2}: windlass {:6.2} s, by hand {:6.2} s\n",
        windlass.usable.as_secs_f64(),
        hand.usable.as_secs_f64()
    ))
}

/// Time from the threshold to memory.
pub(crate) fn times(windlass: &[Met], hand: &[Met]) -> Result<()> {
    let of = |met: &[Met], which: fn(&Met) -> Duration| {
        Summary::of(met.iter().map(which)).context("no rounds")
    };
    let (usable, asked) = (of(windlass, |met| met.usable)?, of(windlass, |met| met.asked)?);
    let least = of(hand, |met| met.usable)?;
    let mut text = format!(
        "\nFrom the urgency threshold to memory usable in the guest\n\
         A guest of {BOOT_MIB} MiB with {LEFT_MIB} MiB left takes {STEP_MIB} MiB every {} ms until \
         it holds {BEYOND_MIB} MiB more than it had. The clock runs from the look at which less \
         than {THRESHOLD_PERCENT} % is available to the look at which its kernel manages \
         {USABLE_MIB} MiB more; a look every {} ms.\n\
         {:34} {:>9} {:>9}\n",
        EVERY.as_millis(),
        LOOK.as_millis(),
        "",
        "median",
        "maximum"
    );
    for (name, Summary { median, most }) in [
        ("windlass", usable),
        ("  of it until QEMU was asked", asked),
        ("by hand: the least there is", least),
    ] {
        text.push_str(&format!("{name:34} {median:>7.2} s {most:>7.2} s\n"));
    }
    let Summary { median, most } = usable.over(least);
    text.push_str(&format!("{:34} {median:>7.1} x {most:>7.1} x\n", "ratio"));
    text.push_str(
        "By hand, the benchmark itself asks QEMU at the very look that crosses the threshold: no \
         informant notices, no agent decides, no books are asked. Both guests burst in turn, on \
         the same machine in the same minutes. Aim for windlass: 2 s.\n",
    );
    say(&text)
}

/// A round of both sides; of the bursts the median.
pub(crate) fn grown_round(number: usize, ours: &Grown, other: &Grown) -> Result<()> {
    let last = |times: &[Duration], count| {
        let of_this_round = times.iter().rev().take(count).copied();
        Summary::of(of_this_round).map_or(f64::NAN, |these| these.median)
    };
    say(&format!(
        "round {number:2}: first vCPU {:6.2} s, the other's {:6.2} s; memory {:6.3} s, the other's {:6.3} s\n",
        last(&ours.cpu, 1),
        last(&other.cpu, 1),
        last(&ours.memory, BURSTS),
        last(&other.memory, BURSTS)
    ))
}

/// How soon both sides grew.
pub(crate) fn grown(ours: &Grown, other: &Grown) -> Result<()> {
    let mut text = format!("\n{:34} {:>9} {:>9}\n", "Growth of a guest", "median", "maximum");
    for (name, ours, other) in [
        ("from load to the first vCPU", &ours.cpu, &other.cpu),
        ("from the threshold to memory", &ours.memory, &other.memory),
    ] {
        let of = |times: &[Duration]| Summary::of(times.iter().copied()).context("no rounds");
        let (ours, other) = (of(ours)?, of(other)?);
        for (name, Summary { median, most }) in [(name, ours), ("  the other windlass", other)] {
            text.push_str(&format!("{name:34} {median:>7.2} s {most:>7.2} s\n"));
        }
        let Summary { median, most } = ours.over(other);
        text.push_str(&format!("{:34} {median:>7.2} x {most:>7.2} x\n", "  ratio"));
    }
    say(&text)
}

/// Memory and disk.
pub(crate) fn sizes(sizes: &Sizes) -> Result<()> {
    let Sizes { host, qemu, informant, guest, informant_file, host_file } = *sizes;
    say(&format!(
        "\nSizes after that\n\
         {:34} {} now, {} at most: {} of what the QEMUs of its VMs have; aim 20 MiB\n\
         {:34} {} now, {} at most: {} of what its guest has\n\
         {:34} {}: {} of windlass ({})\n",
        "host with two VMs, resident",
        mib(host.now),
        mib(host.most),
        percent(host.now, qemu),
        "informant in its guest, resident",
        mib(informant.now),
        mib(informant.most),
        percent(informant.now, guest),
        "informant on disk",
        mib(informant_file),
        percent(informant_file, host_file),
        mib(host_file),
    ))
}

/// What the figures of permits are.
pub(crate) fn permits_head() -> Result<()> {
    let cores = if cores::is_shared() { "share one core with" } else { "have a core beside" };
    say(&format!(
        "\nPermits of windlass-plugin\n\
         {CLIENTS} clients (one, where there is one VM) ask without a pause over a connection each, \
         VM after VM, in v5.0: on a node with free room a unit more and a unit less in turn, on a \
         full one a unit more that none of them gets. The echo is a bare axum router that gives \
         the same bytes back. Both {cores} the clients, and {TURNS} turns of {} s, one after the \
         other. CPU is what the server took of its core per answer. Aims: at least 0.80 of the \
         echo's rate at no more than 1.30 of its CPU, 12 MiB.\n\
         {:>5} {:>5} {:>10} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7} {:>10}\n",
        TURN.as_secs(),
        "VMs",
        "room",
        "permits/s",
        "p50",
        "p99",
        "CPU",
        "echoes/s",
        "p50",
        "p99",
        "CPU",
        "rate",
        "CPU",
        "resident"
    ))
}

/// A line of them.
pub(crate) fn permits(
    vms: usize,
    room: Room,
    permits: &Asked,
    echoes: &Asked,
    resident: Resident,
) -> Result<()> {
    let micros = |time: Duration| format!("{} us", time.as_micros());
    let of = |asked: &Asked| {
        let [p50, p99] = [50, 99].map(|percent| micros(asked.percentile(percent)));
        let cpu = format!("{:.1} us", asked.cpu_each());
        format!("{:>10.0} {p50:>8} {p99:>8} {cpu:>8}", asked.per_second())
    };
    let rate = permits.per_second() / echoes.per_second();
    let cpu = permits.cpu_each() / echoes.cpu_each();
    let (room, permits, echoes) = (room.as_str(), of(permits), of(echoes));
    let resident = mib(resident.now);
    say(&format!("{vms:>5} {room:>5} {permits} {echoes} {rate:>7.2} {cpu:>7.2} {resident:>10}\n"))
}

/// How much slower a thousand VMs are than a hundred, and the echo, which knows none, in the same turns.
pub(crate) fn flat(room: Room, permits: f64, echo: f64) -> Result<()> {
    let (room, both) = (room.as_str(), permits / echo);
    say(&format!(
        "1000 VMs of a {room} node: {permits:.2} of the rate with 100, the echo {echo:.2}; {both:.2} of the echo's, aim 0.90\n"
    ))
}

/// What the figures of an extender are.
pub(crate) fn extender_head(nodes: usize, pods: usize) -> Result<()> {
    let cores = if cores::is_shared() { "share one core with" } else { "have a core beside" };
    say(&format!(
        "\nExtender of windlass-plugin with {nodes} nodes and {pods} pods, of which {EVENTS} change per second\n\
         One client asks for a pod and so many names of nodes, one request after another. The echo is a bare axum \
         router that gives the same bytes back. A third of the nodes has no room for the pod. Both {cores} the client and what \
         plays the API server; \
         {} turns, interleaved. Of each turn the median and the 99th of a hundred: their median, and least to most. \
         Aims: 2 ms for 99 of a hundred at 500 names, 400 MiB.\n\
         {:>6} {:>11} {:>10} {:>20} {:>10} {:>20}\n",
        extender::TURNS,
        "names",
        "request",
        "p50",
        "least to most",
        "p99",
        "least to most"
    ))
}

/// A line of them.
pub(crate) fn extender(names: usize, verb: Verb, times: &Times) -> Result<()> {
    let of = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        let micros = |time: Option<&Duration>| time.map_or(0, Duration::as_micros);
        let [least, middle, most] =
            [times.first(), times.get(times.len() / 2), times.last()].map(micros);
        format!("{:>10} {:>20}", format!("{middle} us"), format!("{least} to {most}"))
    };
    let (p50, p99) = (of(&times.p50), of(&times.p99));
    say(&format!("{names:>6} {:>11} {p50} {p99}\n", verb.as_str()))
}

/// What the plugin takes, and when it had listed all.
pub(crate) fn extender_memory(listed: Duration, resident: Resident, pods: usize) -> Result<()> {
    let (now, most) = (mib(resident.now), mib(resident.most));
    let each = resident.now / pods.max(1) as u64;
    say(&format!(
        "all pods listed after {:.1} s; resident {now}, at most {most}, {each} bytes for each pod\n",
        listed.as_secs_f64()
    ))
}

/// What the figures of an agent are.
pub(crate) fn agent_head() -> Result<()> {
    say(&format!(
        "\nwindlass-agent with VMs that are not there\n\
         Monitors and informants answer at once and agree to all. The load of a VM stays, or changes every \
         {} s between next to none and 2.5 vCPUs' work, so that sizes follow it all the time. Watched \
         for {} s once each has a session and its size. Periods of metrics and health checks are ours \
         (1 s, 5 s) or the reference's (5 s, 5 s). The ratio is to one VM, per VM.\n\
         {:8} {:10} {:>5} {:>12} {:>16} {:>7} {:>8} {:>12} {:>6} {:>12}\n",
        PHASE.as_secs(),
        WATCHED.as_secs(),
        "load",
        "periods",
        "VMs",
        "of a core",
        "of it per VM",
        "ratio",
        "sizes",
        "resident",
        "files",
        "all sessions"
    ))
}

/// A line of them.
#[expect(clippy::cast_precision_loss, reason = "at most thousands")]
pub(crate) fn agent(took: Took, first: Took) -> Result<()> {
    let per_vm =
        |took: Took| 100.0 * took.cpu.as_secs_f64() / took.watched.as_secs_f64() / took.vms as f64;
    let Took { periods, vms, ready, resized, resident, descriptors, .. } = took;
    let load = match took.load {
        Load::Stays => "stays",
        Load::Changes => "changes",
    };
    let (share, ratio) = (per_vm(took), per_vm(took) / per_vm(first));
    say(&format!(
        "{load:8} {periods:10} {vms:>5} {:>10.2} % {share:>14.4} % {ratio:>7.2} {resized:>8} {:>12} \
         {descriptors:>6} {:>10.2} s\n",
        share * vms as f64,
        mib(resident.now),
        ready.as_secs_f64()
    ))
}

/// How VMs grew that had load at once.
pub(crate) fn surge(surge: &Surge) -> Result<()> {
    let Summary { median, most } =
        Summary::of(surge.took.iter().copied()).context("nothing grew")?;
    say(&format!(
        "\n{SURGE} VMs of one windlass-agent get load at the same moment; until each has its size: median \
         {median:.2} s, the last {most:.2} s; {} sizes were asked for again\n",
        surge.repeated
    ))
}

fn say(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn mib(bytes: u64) -> String {
    let hundredths = bytes.saturating_mul(100) >> 20;
    format!("{}.{:02} MiB", hundredths / 100, hundredths % 100)
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(1000) / whole.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_mebibytes_and_percent() {
        assert_eq!(mib(3 << 19), "1.50 MiB");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 0), "100.0 %");
    }
}
