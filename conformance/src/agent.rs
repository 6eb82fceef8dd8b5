//! The kit against an agent: it plays informant, plugin and QMP monitor of one VM.
//!
//! ```text
//!            ┌─────────────── stage ───────────────┐
//!   agent ──►│ informant (and /metrics)   plugin   │   what was heard, in order, with times
//!         ◄──│ calls back                 monitor  │
//!            └─────────────────────────────────────┘
//! ```
//!
//! Every case has an agent of its own, started anew, so that cases do not meet. Cases about the
//! informant's protocol are run in each of its versions, those about the plugin's in each of
//! those.

mod bench;
mod calls;
mod monitor;
mod permits;
mod sessions;
mod sizes;
mod stage;
mod world;

pub use bench::{Ready, Shell, Start, Stop};

use crate::case::{Case, Listed, OURS};
use crate::report::{Outcome, Report};
use crate::versions::Version;
use bench::Bench;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// What is tried, and how.
#[derive(Clone)]
pub struct Options {
    /// Starts the agent under test.
    pub start: Arc<dyn Start>,
    /// The versions of the informant's protocol.
    pub informant: Vec<Version>,
    /// The versions of the plugin's protocol.
    pub plugin: Vec<Version>,
    /// Names of cases; empty: all.
    pub only: Vec<String>,
    /// Without what only Windlass does.
    pub skip_ours: bool,
    /// What the agent of a case said is kept in this folder, where it says it in a file.
    pub logs: Option<PathBuf>,
    /// So many cases are run at once.
    pub at_once: usize,
}

/// Tries an agent; `seen` is told of each outcome as it comes. Cases wait most of the time, and
/// share nothing: so several are run at once.
pub fn run(options: &Options, seen: &mut dyn FnMut(&Outcome)) -> Report {
    let mut report = Report::new("agent".to_owned());
    let mut chosen = |cases: Vec<Case<Bench>>| -> Vec<Case<Bench>> {
        let named = |case: &Case<Bench>| {
            options.only.is_empty() || options.only.iter().any(|name| name == case.name)
        };
        let (left_out, chosen): (Vec<_>, Vec<_>) =
            cases.into_iter().filter(named).partition(|case| case.ours && options.skip_ours);
        left_out.iter().for_each(|case| report.leave_out(case.name, OURS.to_owned()));
        chosen
    };
    let (informant, plugin) = (chosen(with_informant()), chosen(with_plugin()));
    let informant = tries(&informant, &options.informant, |case, version| {
        Bench::with_informant(options, log(options, case, version), version)
    });
    let plugin = tries(&plugin, &options.plugin, |case, version| {
        Bench::with_plugin(options, log(options, case, version), version)
    });
    let all: Vec<Try> = informant.chain(plugin).collect();
    for outcome in at_once(&all, options.at_once, seen) {
        report.add(outcome);
    }
    report
}

/// A case in one version.
struct Try {
    case: Case<Bench>,
    version: Version,
    bench: Bench,
}

/// Where what the agent of a case says is kept.
fn log(options: &Options, case: &Case<Bench>, version: Version) -> Option<PathBuf> {
    options.logs.as_ref().map(|folder| folder.join(format!("{}-{version}.log", case.name)))
}

fn tries(
    cases: &[Case<Bench>],
    versions: &[Version],
    bench: impl Fn(&Case<Bench>, Version) -> Bench,
) -> impl Iterator<Item = Try> {
    versions.iter().flat_map(move |version| {
        let holds = |case: &&Case<Bench>| case.span.holds(*version);
        let one = |case: &Case<Bench>| Try {
            case: Case { ..*case },
            version: *version,
            bench: bench(case, *version),
        };
        cases.iter().filter(holds).map(one).collect::<Vec<_>>()
    })
}

/// Runs them, so many at once; their outcomes in their own order.
fn at_once(all: &[Try], count: usize, seen: &mut dyn FnMut(&Outcome)) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let (ended, outcomes) = mpsc::channel();
    let mut found: Vec<(usize, Outcome)> = Vec::with_capacity(all.len());
    std::thread::scope(|scope| {
        for _ in 0..count.max(1) {
            let (ended, next) = (ended.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(Try { case, version, bench }) = all.get(index) else { return };
                    let started = Instant::now();
                    let verdict = (case.run)(bench);
                    let took = started.elapsed();
                    let outcome = Outcome::new(case.name, case.rules, *version, took, verdict);
                    // Whoever listens does so until the last one ended.
                    let _ = ended.send((index, outcome));
                }
            });
        }
        drop(ended);
        for (index, outcome) in outcomes {
            seen(&outcome);
            found.push((index, outcome));
        }
    });
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Cases of the informant's protocol, in the order in which they are run.
pub fn informant_catalogue() -> Vec<Listed> {
    with_informant().iter().map(Case::listed).collect()
}

/// Cases of the plugin's protocol.
pub fn plugin_catalogue() -> Vec<Listed> {
    with_plugin().iter().map(Case::listed).collect()
}

fn with_informant() -> Vec<Case<Bench>> {
    let parts: [&[Case<Bench>]; 3] = [&sessions::CASES, &calls::CASES, &sizes::CASES];
    parts.into_iter().flatten().map(|case| Case { ..*case }).collect()
}

fn with_plugin() -> Vec<Case<Bench>> {
    permits::CASES.iter().map(|case| Case { ..*case }).collect()
}
