//! The kit against a plugin: it plays the agents of two VMs of one node.
//!
//! Every case begins with both VMs at one vCPU and eight slots of memory, asked for in the
//! version under test, so that cases do not meet. What the VMs are permitted changes all the
//! time: run it against a plugin that is there to be tried.

mod bench;
mod checks;
mod moving;
mod permits;
mod said;
mod shapes;

use crate::case::{self, Case, Choice, Listed};
use crate::report::{Outcome, Report};
use bench::Bench;
use std::fmt;
use std::net::SocketAddr;

/// What a case needs that is about a VM that is moved.
pub(crate) const MOVING: &str = "--moving";

/// A VM's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What is tried, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the plugin listens.
    pub target: SocketAddr,
    /// A VM that it knows, on a node with room for three vCPUs and 24 slots at least.
    pub vm: Vm,
    /// Another on the same node, where nobody else is.
    pub other: Vm,
    /// One of one vCPU and eight slots that is about to be moved.
    pub moving: Option<Vm>,
    /// Bytes of a slot of memory of these VMs.
    pub slot: u64,
    /// It keeps what a VM gave back until it is sure that the VM does not use it.
    pub frees_late: bool,
    /// In which versions, and which cases.
    pub choice: Choice,
}

/// Tries a plugin; `seen` is told of each outcome as it comes.
pub fn run(options: &Options, seen: &mut dyn FnMut(&Outcome)) -> Report {
    let has = |need: &str| need == MOVING && options.moving.is_some();
    let subject = format!("plugin at {}", options.target);
    let bench = |version| Bench::new(options, version);
    case::run(subject, &cases(), &options.choice, has, bench, seen)
}

/// Every case, in the order in which they are run.
pub fn catalogue() -> Vec<Listed> {
    cases().iter().map(Case::listed).collect()
}

fn cases() -> Vec<Case<Bench>> {
    let parts: [&[Case<Bench>]; 4] =
        [&checks::CASES, &shapes::CASES, &permits::CASES, &moving::CASES];
    parts.into_iter().flatten().map(|case| Case { ..*case }).collect()
}

// === impl Vm ===

impl Vm {
    /// Reads `NAMESPACE/NAME`, or a name in the namespace `default`.
    pub fn named(text: &str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
