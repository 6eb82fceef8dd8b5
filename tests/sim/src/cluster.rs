//! Clusters: an API server, plugins that lead one after the other, schedulers, kubelets and the agents of VMs.
//!
//! A [`Schedule`] follows from a seed. [`play::play`] has a `windlass-world` carry it out, with the laws checked after each
//! event; afterwards the world is kind, and everybody must get what fits.

pub mod draw;
pub mod play;
pub mod run;

use std::fmt;
use std::time::Duration;
use windlass_world::cluster::{Setup, Step};

/// A cluster, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What it follows from.
    pub seed: u64,
    /// The cluster at its beginning.
    pub setup: Setup,
    /// What happens.
    pub turns: Vec<Turn>,
}

/// Something that happens, so long after what happened before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// How long.
    pub after: Duration,
    /// What.
    pub step: Step,
}

// === impl Schedule ===

impl Schedule {
    /// How long it lasts before the world is kind.
    pub fn length(&self) -> Duration {
        self.turns.iter().map(|turn| turn.after).sum()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, setup, turns } = self;
        writeln!(
            f,
            "seed {seed}: {} nodes, {} plugins, {} turns in {:.1} s",
            setup.nodes.len(),
            setup.rates.len(),
            turns.len(),
            self.length().as_secs_f64(),
        )
    }
}
