//! What is printed of a plugin in a cluster, beside its extender.

use super::{mib, say};
use crate::cluster_permits::{By, MANY, Turns, VMS};
use crate::cores;
use crate::permits::{CLIENTS, TURN, TURNS};
use crate::scheduler::{self, Came, NODES, PODS, With};
use crate::sizes::Resident;
use crate::summary::Spread;
use anyhow::{Context, Result};

/// What the figures of permits in a cluster are.
pub(crate) fn cluster_permits_head() -> Result<()> {
    let cores = if cores::is_shared() { "share one core with" } else { "have a core beside" };
    say(&format!(
        "\nPermits of windlass-plugin in a cluster, for {VMS} VMs of {} nodes\n\
         {CLIENTS} clients ask without a pause over a connection each, VM after VM, a unit more and a unit less in turn. With TLS \
         each request has the token of the VM's node, of which the plugin asks the API server once a minute. The echo is a bare \
         axum router that gives the same bytes back, behind the same TLS. Both {cores} the clients and what plays the API server; \
         {TURNS} turns of {} s, interleaved. Of the turns the median, and least to most; ratios are of the same turn. Aims: at least \
         0.70 of the echo's rate with TLS, 0.80 without.\n\
         {:>5} {:>8} {:>10} {:>18} {:>10} {:>18}\n",
        VMS / 8,
        TURN.as_secs(),
        "TLS",
        "server",
        "answers/s",
        "least to most",
        "CPU",
        "least to most"
    ))
}

/// Both servers, and their ratios.
pub(crate) fn cluster_permits(by: By, permits: &Turns, echo: &Turns) -> Result<()> {
    let tls = match by {
        By::Tls => "yes",
        By::Plain => "no",
    };
    let mut text = String::new();
    for (name, turns) in [("windlass", permits), ("echo", echo)] {
        let [rate, cpu] = turns.spreads().context("no turns")?;
        let (rates, cpus) = (least_to_most(rate, 0), least_to_most(cpu, 1));
        text.push_str(&format!(
            "{tls:>5} {name:>8} {:>10.0} {rates:>18} {:>7.1} us {cpus:>18}\n",
            rate.median, cpu.median
        ));
    }
    let rate = Spread::ratio(&permits.rates, &echo.rates).context("no turns")?;
    let cpu = Spread::ratio(&permits.cpu, &echo.cpu).context("no turns")?;
    let (rates, cpus) = (least_to_most(rate, 2), least_to_most(cpu, 2));
    say(&format!(
        "{text}{tls:>5} {:>8} {:>10.2} {rates:>18} {:>10.2} {cpus:>18}\n",
        "ratio", rate.median, cpu.median
    ))
}

/// What VMs take of a plugin's memory.
pub(crate) fn memory_of_vms(few: Resident, many: Resident) -> Result<()> {
    let more = many.now.saturating_sub(few.now) * 1000 / (MANY - VMS) as u64;
    say(&format!(
        "resident: {} with {VMS} VMs, {} with {MANY}, whose agents have all asked: {} per 1000 VMs\n",
        mib(few.now),
        mib(many.now),
        mib(more)
    ))
}

/// What the figures of a scheduler are.
pub(crate) fn scheduler_head() -> Result<()> {
    say(&format!(
        "\nPods per second of kube-scheduler with {NODES} nodes\n\
         A real control plane, and a scheduler as Kubernetes ships it, whose requests to the API server are not limited. \
         {PODS} VM pods wait for it; the clock runs from the first binding to the last. Alone it binds by itself. An \
         extender is asked to filter, to prioritize and to bind, and binds by the API server: the trivial one lets every node \
         fit, and sends the binding alone. All share the machine's cores; {} turns, interleaved. Of the turns the median, \
         and least to most; ratios are of the same turn. Aim: at least 0.95 of the trivial one.\n\
         {:>9} {:>8} {:>18} {:>12} {:>18} {:>14} {:>18}\n",
        scheduler::TURNS,
        "with",
        "pods/s",
        "least to most",
        "of alone",
        "least to most",
        "of the trivial",
        "least to most"
    ))
}

/// All three.
pub(crate) fn scheduler(came: &Came) -> Result<()> {
    let rates = |with| came.rates.get(&with).context("no turns");
    let mut text = String::new();
    for with in With::ALL {
        let rate = Spread::of(rates(with)?.clone()).context("no turns")?;
        text.push_str(&format!(
            "{:>9} {:>8.1} {:>18}",
            with.as_str(),
            rate.median,
            least_to_most(rate, 1)
        ));
        for (other, width) in [(With::Nothing, 12), (With::Trivial, 14)] {
            if with > other {
                let ratio = Spread::ratio(rates(with)?, rates(other)?).context("no turns")?;
                let spread = least_to_most(ratio, 2);
                text.push_str(&format!(" {:>width$.2} {spread:>18}", ratio.median));
            }
        }
        text.push('\n');
    }
    let cpu = Spread::of(came.cpu.clone()).context("no turns")?;
    say(&format!(
        "{text}the plugin takes {:.0} us of a core for each pod ({})\n",
        cpu.median,
        least_to_most(cpu, 0)
    ))
}

fn least_to_most(spread: Spread, digits: usize) -> String {
    format!("{:.digits$} to {:.digits$}", spread.least, spread.most)
}
