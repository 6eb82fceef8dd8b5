//! The wire of a scheduler's extender: what kube-scheduler asks, and what it is answered.
//!
//! The types are those of `k8s.io/kube-scheduler/extender/v1`. Keys are written as Go writes them, in
//! PascalCase, and read in any case; `null` is as an absent field; unknown keys are ignored. The pods and
//! nodes inside are ordinary objects of the API.
//!
//! ```text
//!   filter      ExtenderArgs    ─►  FilterResult        the nodes that fit, and why the others do not
//!   prioritize  ExtenderArgs    ─►  [HostPriority]      0 to 10 each; the scheduler multiplies by its weight
//!   bind        BindingArgs     ─►  BindingResult       an empty error is success
//!   preempt     PreemptionArgs  ─►  PreemptionResult    what may be evicted, by UID
//! ```
//!
//! A scheduler with `nodeCacheCapable: true` names nodes; another sends whole nodes, of which the names are
//! read. Its filter takes nodes for an answer, so [`FilterAnswer::nodes_too`] adds nodes of only a name.
//! The pod is then placed on one of them, but the scheduler's own scores see nothing of these nodes.

mod any_case;
mod preemption;
mod wire;

pub use preemption::{PreemptionArgs, PreemptionResult, Victims};

use crate::VmName;
use crate::pod::Pod;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A request to filter or to prioritize nodes for a pod.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "wire::Args")]
pub struct ExtenderArgs {
    /// The pod to place.
    pub pod: Pod,
    /// The names of the candidates. An answer may name only these.
    pub nodes: Vec<String>,
    /// Whether the scheduler sent whole nodes: it is configured without `nodeCacheCapable`, which is slow.
    pub sent_whole_nodes: bool,
}

/// The answer to a request to filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "wire::Filtered")]
pub struct FilterResult {
    /// The nodes that fit, out of those of the request.
    pub nodes: Vec<String>,
    /// The nodes that do not fit, and why; preemption may help.
    pub failed: BTreeMap<String, String>,
    /// The nodes that preemption does not help either, and why.
    pub unresolvable: BTreeMap<String, String>,
    /// Why the request failed as a whole; empty if it did not.
    pub error: String,
    /// Whether the nodes that fit are also written as objects: [`ExtenderArgs::sent_whole_nodes`].
    pub nodes_too: bool,
}

/// The same as it is written, out of names and reasons that are elsewhere: an answer names up to 5,000 nodes, and copies none
/// of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterAnswer<'a> {
    /// As [`FilterResult::nodes`].
    pub nodes: Vec<&'a str>,
    /// As [`FilterResult::failed`], in any order. Go keeps the last reason of a node that is there twice.
    pub failed: Vec<(&'a str, &'a str)>,
    /// As [`FilterResult::unresolvable`], in any order.
    pub unresolvable: Vec<(&'a str, &'a str)>,
    /// As [`FilterResult::error`].
    pub error: &'a str,
    /// As [`FilterResult::nodes_too`].
    pub nodes_too: bool,
}

/// The score of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub struct HostPriority {
    /// The node.
    pub host: String,
    /// The score; the highest is the best.
    pub score: Score,
}

/// A score from 0 to 10. The scheduler does not clamp: a higher one would outweigh its own scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Score(u8);

/// A score above 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not a score from 0 to 10")]
pub struct BadScore(u8);

/// A request to bind a pod to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "wire::Binding", into = "wire::Binding")]
pub struct BindingArgs {
    /// The pod.
    pub pod: VmName,
    /// The pod's UID.
    pub uid: String,
    /// The node.
    pub node: String,
}

/// The answer to a request to bind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "wire::Bound", into = "wire::Bound")]
pub struct BindingResult {
    /// Why the pod is not bound; empty if it is.
    pub error: String,
}

// === impl FilterResult ===

impl FilterResult {
    /// As it is written.
    pub fn answer(&self) -> FilterAnswer<'_> {
        let Self { nodes, failed, unresolvable, error, nodes_too } = self;
        FilterAnswer {
            nodes: nodes.iter().map(String::as_str).collect(),
            failed: pairs(failed),
            unresolvable: pairs(unresolvable),
            error,
            nodes_too: *nodes_too,
        }
    }
}

fn pairs(texts: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    texts.iter().map(|(node, why)| (node.as_str(), why.as_str())).collect()
}

// === impl Score ===

impl Score {
    /// The best score.
    pub const BEST: Self = Self(10);

    /// This score, or the best if it is higher.
    pub const fn at_most(score: u8) -> Self {
        if score > Self::BEST.0 { Self::BEST } else { Self(score) }
    }

    /// The score as a number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Score {
    type Error = BadScore;

    fn try_from(score: u8) -> Result<Self, BadScore> {
        if score > Self::BEST.0 { Err(BadScore(score)) } else { Ok(Self(score)) }
    }
}

impl From<Score> for u8 {
    fn from(score: Score) -> Self {
        score.0
    }
}
