//! The kit against an informant: it plays agents.
//!
//! Every case brings agents of its own, with new ids, and has them take their leave at its end,
//! so that cases do not meet. An informant that real agents use meanwhile is taken from them,
//! and given back: run it against one that is there to be tried.

mod agent;
mod amounts;
mod bench;
mod calls;
mod current;
mod endpoints;
mod handover;
mod health;
mod numbers;
mod pressure;
mod registration;

use crate::case::{self, Case, Choice, Listed};
use crate::report::{Outcome, Report};
use bench::Bench;
use std::net::{IpAddr, SocketAddr};

/// What a case needs that makes memory short at the target.
pub(crate) const PROVOKE: &str = "--provoke";
/// What a case needs that asks the guest for fewer vCPUs than are online.
pub(crate) const DISRUPTIVE: &str = "--disruptive";

/// What is tried, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the informant listens.
    pub target: SocketAddr,
    /// How it reaches this machine.
    pub advertise: IpAddr,
    /// A command for the shell that makes memory short at the target, and enough again: it is run with
    /// `on` and `off` as its only argument.
    pub provoke: Option<String>,
    /// Whether the guest may be asked for fewer vCPUs than are online.
    pub disruptive: bool,
    /// In which versions, and which cases.
    pub choice: Choice,
}

/// Tries an informant; `seen` is told of each outcome as it comes.
pub fn run(options: &Options, seen: &mut dyn FnMut(&Outcome)) -> Report {
    let has = |need: &str| match need {
        PROVOKE => options.provoke.is_some(),
        DISRUPTIVE => options.disruptive,
        _ => false,
    };
    let subject = format!("informant at {}", options.target);
    let bench = |version| Bench::new(options, version);
    case::run(subject, &cases(), &options.choice, has, bench, seen)
}

/// Every case, in the order in which they are run.
pub fn catalogue() -> Vec<Listed> {
    cases().iter().map(Case::listed).collect()
}

fn cases() -> Vec<Case<Bench>> {
    let parts: [&[Case<Bench>]; 9] = [
        &endpoints::CASES,
        &registration::CASES,
        &amounts::CASES,
        &numbers::CASES,
        &health::CASES,
        &current::CASES,
        &calls::CASES,
        &pressure::CASES,
        &handover::CASES,
    ];
    parts.into_iter().flatten().map(|case| Case { ..*case }).collect()
}
