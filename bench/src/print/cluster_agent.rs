//! What is printed of an agent in a cluster.

use super::{mib, say};
use crate::cluster_agent::{AtRest, ELSEWHERE, FEW, Grown, MANY, Surge, WATCHED};
use crate::summary::Summary;
use anyhow::{Context, Result};
use windlass_lab::Lab;

/// What the figures of an agent are.
pub(crate) fn cluster_agent_head() -> Result<()> {
    say(&format!(
        "\nwindlass-agent in a cluster, with VMs of NeonVM that are not there\n\
         A real API server and the plugin, over TLS; NeonVM's controller and the guests are played. The VMs have nothing to \
         do. Watched for {} s once each has a session. With {ELSEWHERE} VMs on other nodes 20 of their objects change each second. \
         The ratio is to the same agent without them, per core. Aims at {MANY} VMs: 12 % of a core, 48 MiB, and a ratio of 1.\n\
         {:>5} {:>9} {:>12} {:>7} {:>12} {:>12} {:>7} {:>6} {:>12}\n",
        WATCHED.as_secs(),
        "VMs",
        "elsewhere",
        "of a core",
        "ratio",
        "resident",
        "at most",
        "ratio",
        "files",
        "all sessions"
    ))
}

/// A line of them, beside the same agent without VMs on other nodes.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn at_rest(took: AtRest, alone: AtRest) -> Result<()> {
    let AtRest { vms, elsewhere, ready, share, resident, descriptors } = took;
    say(&format!(
        "{vms:>5} {elsewhere:>9} {:>10.2} % {:>7.2} {:>12} {:>12} {:>7.2} {descriptors:>6} {:>10.2} s\n",
        share * 100.0,
        share / alone.share,
        mib(resident.now),
        mib(resident.most),
        resident.now as f64 / alone.resident.now as f64,
        ready.as_secs_f64()
    ))
}

/// What is the least that an agent can take.
pub(crate) fn least(agent: f64, least: f64) -> Result<()> {
    say(&format!(
        "a process that reads the metrics of {MANY} VMs each second and does nothing else takes {:.2} % of a core: the agent \
         takes {:.2} times that\n",
        least * 100.0,
        agent / least
    ))
}

/// How VMs grew that had load at once.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn cluster_surge(surge: &Surge) -> Result<()> {
    let Summary { median, most } =
        Summary::of(surge.took.iter().copied()).context("nothing grew")?;
    let per_vm = |count: u64| count as f64 / FEW as f64;
    let mut text = format!(
        "\n{FEW} VMs of one node get load at the same moment, with ceilings that are too low; until each has its size: median \
         {median:.2} s, the last {most:.2} s (aim 5 s); {:.2} sizes for each VM, {} new sessions in all; agent and plugin ran on\n",
        per_vm(surge.sizes),
        surge.sessions
    );
    for (who, asked) in [("agent", surge.agent), ("plugin", surge.plugin)] {
        text.push_str(&format!(
            "requests of the {who} to the API server for each VM: {:.2}, of which {:.2} write; {} in {} s at rest\n",
            per_vm(asked.all),
            per_vm(asked.writes),
            asked.at_rest,
            WATCHED.as_secs()
        ));
    }
    say(&text)
}

/// What the figures of one guest are.
pub(crate) fn alone_head(rounds: usize, lab: &Lab) -> Result<()> {
    say(&format!(
        "\nFrom load to the first vCPU more that a real guest uses, {rounds} times, guests by {}\n\
         In the cluster: informant, agent, plugin with a ceiling at the API server, object, NeonVM's controller (played, by a \
         watch), QEMU. Beside it another guest in turn, of windlass host. After the first time vCPUs are plugged, and come back \
         from being parked.\n",
        lab.accel().as_str()
    ))
}

/// Both ways, and their ratio.
pub(crate) fn alone(grown: &Grown) -> Result<()> {
    let of =
        |times: &[std::time::Duration]| Summary::of(times.iter().copied()).context("nothing grew");
    let (cluster, host) = (of(&grown.cluster)?, of(&grown.host)?);
    let ratio = cluster.over(host);
    say(&format!(
        "cluster: median {:.2} s, at most {:.2} s; host: median {:.2} s, at most {:.2} s; ratio {:.2}, {:.2}\n",
        cluster.median, cluster.most, host.median, host.most, ratio.median, ratio.most
    ))
}
