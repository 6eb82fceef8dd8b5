//! What can be asked of the simulation.

use clap::Parser;

/// Plays schedules of whole systems in virtual time, each from a seed, and says which of them
/// broke a law. Exits with 1 if one did.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "windlass-sim",
    version,
    after_help = "\
Examples:
  windlass-sim --from-seed 1 --schedules 100000 --coverage
  windlass-sim --from-seed 1 --until-failure --minutes 30
  windlass-sim --seed 4711 --trace
  windlass-sim --seed 4711 --minimise
  windlass-sim --cluster --schedules 100000
  windlass-sim --cluster --seed 4711 --trace"
)]
pub struct Arguments {
    /// The first seed of a range.
    #[arg(long, value_name = "SEED", default_value_t = 1, conflicts_with = "seed")]
    pub from_seed: u64,
    /// How many schedules.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, conflicts_with = "seed")]
    pub schedules: u64,
    /// Stops at the first that fails.
    #[arg(long, conflicts_with = "seed")]
    pub until_failure: bool,
    /// Goes on for so many minutes, however many schedules that are.
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["seed", "schedules"])]
    pub minutes: Option<u64>,
    /// Tells which events met which states, and which never did.
    #[arg(long, conflicts_with = "seed")]
    pub coverage: bool,
    /// The books are a process of their own, and know of VMs by a list alone.
    #[arg(long)]
    pub listed: bool,
    /// Clusters: an API server, plugins that lead one after the other, schedulers, kubelets and agents.
    #[arg(long, conflicts_with_all = ["listed", "coverage"])]
    pub cluster: bool,
    /// How many at a time; as many as there are cores.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
    /// Plays this one.
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Tells it, a line per event.
    #[arg(long, requires = "seed")]
    pub trace: bool,
    /// Leaves out of it what is not needed for it to fail, and tells what is left.
    #[arg(long, requires = "seed")]
    pub minimise: bool,
}
