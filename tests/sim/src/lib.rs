//! Whole systems in virtual time: nodes, agents, guests and books, and every fault, from a seed.
//!
//! A [`Schedule`] is what people and misfortune do, and when; it follows from a seed alone.
//! [`play::play`] has a `windlass-world` carry it out: the real cores, under virtual time, judged
//! by what the simulated hypervisors have. Afterwards the world is kind, and every VM must get
//! its goal. A schedule that fails can be replayed as a story, and made smaller
//! ([`minimise::minimise`]). [`cluster`] does the same for Kubernetes clusters.

pub mod arguments;
pub mod cluster;
pub mod draw;
pub mod gaps;
mod limits;
pub mod minimise;
pub mod outcome;
pub mod play;
mod releases;
pub mod run;
pub mod schedule;
pub mod seeds;
mod stops;
pub mod tally;

pub use schedule::{Act, Kind, Schedule, Turn};
