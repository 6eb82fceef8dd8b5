//! What can be asked of the benchmark.

use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
windlass-bench: how fast and how small Windlass is

usage: windlass-bench [--rounds N] [--vms N] [--against FOLDER] [PART...]

  --rounds N         how many bursts each way, or turns of each guest (default 20)
  --vms N            of how many VMs, for `agent` (default 1, 200 and 1000 in turn)
  --against FOLDER   where another windlass and windlass-informant lie, for `growth`

  bursts           from a burst of memory in a real guest to memory that it can use
  permits          permits per second of windlass-plugin, with free room and without, beside a bare echo
  cluster-permits  the same in a cluster, with TLS and the callers' tokens and without, and the memory of its VMs
  extender         how soon the plugin answers the scheduler of 5,000 nodes with 150,000 pods, beside a bare echo
  scheduler        pods per second of kube-scheduler in a real control plane, alone, with a trivial extender and
                   with the plugin
  agent            what windlass-agent takes with 1, 200 and 1000 VMs that are not there, and when load
                   comes to 200 at once
  cluster-agent    what windlass-agent takes in a real control plane with 200 and 1000 VMs, and 5000 on other nodes; how
                   soon 200 grow at once, and how soon a real guest has its first vCPU more
  growth           how soon a guest grows as VMs are held back by default, beside the other windlass

All parts but growth, unless some are named; --against alone is growth. Runs the programs that lie beside it; WINDLASS_BIN names another
windlass.
";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Bursts,
    Permits,
    ClusterPermits,
    Extender,
    Scheduler,
    Agent,
    ClusterAgent,
    Growth,
}

/// What is measured where nothing is named.
const USUAL: [Part; 7] = [
    Part::Bursts,
    Part::Permits,
    Part::ClusterPermits,
    Part::Extender,
    Part::Scheduler,
    Part::Agent,
    Part::ClusterAgent,
];

/// Checked arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// What is measured, in this order.
    pub(crate) parts: Vec<Part>,
    /// How many bursts each way.
    pub(crate) rounds: usize,
    /// How many VMs an agent has; `None`: several numbers in turn.
    pub(crate) vms: Option<usize>,
    /// Where the programs lie that growth is compared with.
    pub(crate) against: Option<PathBuf>,
    /// Only say what can be asked.
    pub(crate) help: bool,
}

// === impl Arguments ===

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let (parts, rounds, vms, against, help) = (Vec::new(), 20, None, None, false);
        let mut parsed = Self { parts, rounds, vms, against, help };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => {
                    let rounds = words.next().context("--rounds needs a number")?;
                    parsed.rounds = rounds.parse().with_context(|| format!("--rounds {rounds}"))?;
                }
                "--vms" => {
                    let vms = words.next().context("--vms needs a number")?;
                    let number = vms.parse().with_context(|| format!("--vms {vms}"))?;
                    ensure!((1..=1000).contains(&number), "--vms {vms}: not from 1 to 1000");
                    parsed.vms = Some(number);
                }
                "--against" => {
                    let folder = words.next().context("--against needs a folder")?;
                    parsed.against = Some(folder.into());
                }
                "--help" | "-h" => parsed.help = true,
                "bursts" => parsed.parts.push(Part::Bursts),
                "permits" => parsed.parts.push(Part::Permits),
                "cluster-permits" => parsed.parts.push(Part::ClusterPermits),
                "extender" => parsed.parts.push(Part::Extender),
                "scheduler" => parsed.parts.push(Part::Scheduler),
                "agent" => parsed.parts.push(Part::Agent),
                "cluster-agent" => parsed.parts.push(Part::ClusterAgent),
                "growth" => parsed.parts.push(Part::Growth),
                _ => bail!("unknown argument {word:?}\n{HELP}"),
            }
        }
        ensure!(parsed.rounds > 0, "--rounds 0: there would be nothing to print");
        if parsed.parts.is_empty() {
            parsed.parts = match parsed.against {
                Some(_) => vec![Part::Growth],
                None => USUAL.to_vec(),
            };
        }
        let compares = parsed.parts.contains(&Part::Growth);
        ensure!(compares == parsed.against.is_some(), "growth and --against need each other");
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_rounds_unless_told_otherwise() {
        let (parts, rounds, vms, against, help) = (USUAL.to_vec(), 20, None, None, false);
        let plain = Arguments { parts, rounds, vms, against, help };
        assert_eq!(parse(&[]).unwrap(), plain);
        let compared = parse(&["--against", "before"]).unwrap();
        assert_eq!(compared.parts, [Part::Growth]);
        assert_eq!(compared.against, Some("before".into()));
        assert_eq!(parse(&["permits"]).unwrap().parts, [Part::Permits]);
        let of_cluster = ["cluster-permits", "scheduler"];
        assert_eq!(parse(&of_cluster).unwrap().parts, [Part::ClusterPermits, Part::Scheduler]);
        assert_eq!(parse(&["--rounds", "3"]).unwrap().rounds, 3);
        assert_eq!(parse(&["--vms", "1000", "agent"]).unwrap().vms, Some(1000));
        assert!(parse(&["-h"]).unwrap().help);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, complaint) in [
            (&["--rounds"][..], "needs a number"),
            (&["--rounds", "many"], "--rounds many"),
            (&["--rounds", "0"], "nothing to print"),
            (&["--vms", "0"], "--vms 0: not from 1 to 1000"),
            (&["--vms", "few"], "--vms few"),
            (&["--against"], "needs a folder"),
            (&["growth"], "need each other"),
            (&["--against", "before", "agent"], "need each other"),
            (&["--fast"], "\"--fast\""),
            (&["permit"], "\"permit\""),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    fn parse(words: &[&str]) -> Result<Arguments> {
        Arguments::parse(words.iter().map(|&word| word.to_owned()))
    }
}
