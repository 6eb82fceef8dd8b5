//! Preemption: which pods may be evicted to make room for another one.

use super::any_case::AnyCase;
use super::wire::{read_in_any_case, written};
use crate::BadBody;
use crate::pod::Pod;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A request to judge which pods may be evicted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Args")]
pub struct PreemptionArgs {
    /// The pod to place.
    pub pod: Pod,
    /// The candidates by node. An answer may name only these nodes, and pods on them.
    pub victims: BTreeMap<String, Victims>,
}

/// The answer: the nodes on which preemption helps. Without a node, nothing is evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Answer", into = "Answer")]
pub struct PreemptionResult {
    /// What to evict, by node.
    pub victims: BTreeMap<String, Victims>,
}

/// The pods of one node that are evicted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Victims {
    /// The UIDs of the pods.
    pub pods: Vec<String>,
    /// The number of disruption budgets that the eviction violates.
    pub violated_budgets: i64,
}

/// A map by node in which Go writes `null` for a missing pointer.
type ByNode<T> = Option<BTreeMap<String, Option<T>>>;

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
struct Args {
    pod: Option<Pod>,
    node_name_to_victims: ByNode<Whole>,
    node_name_to_meta_victims: ByNode<Meta>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
struct Answer {
    node_name_to_meta_victims: ByNode<Meta>,
}

/// Victims as whole pods.
#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
struct Whole {
    pods: Option<Vec<Object>>,
    #[serde(rename = "NumPDBViolations")]
    violations: Option<i64>,
}

/// Victims by UID.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
struct Meta {
    pods: Option<Vec<MetaPod>>,
    #[serde(rename = "NumPDBViolations")]
    violations: Option<i64>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Self")]
struct MetaPod {
    #[serde(rename = "UID")]
    uid: Option<String>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    uid: Option<String>,
}

read_in_any_case!(Args, Answer, Whole, Meta, MetaPod);
written!(Answer, Meta, MetaPod);

// === impl PreemptionArgs ===

impl TryFrom<Args> for PreemptionArgs {
    type Error = BadBody;

    fn try_from(wire: Args) -> Result<Self, BadBody> {
        let pod = wire.pod.ok_or_else(|| BadBody::Missing { field: "Pod".to_owned() })?;
        let victims = match wire.node_name_to_meta_victims {
            Some(meta) => by_node(Some(meta), Victims::from),
            None => by_node(wire.node_name_to_victims, Victims::from),
        };
        Ok(Self { pod, victims })
    }
}

// === impl PreemptionResult ===

impl From<Answer> for PreemptionResult {
    fn from(wire: Answer) -> Self {
        Self { victims: by_node(wire.node_name_to_meta_victims, Victims::from) }
    }
}

impl From<PreemptionResult> for Answer {
    fn from(result: PreemptionResult) -> Self {
        let meta = |victims: Victims| Meta {
            pods: Some(victims.pods.into_iter().map(|uid| MetaPod { uid: Some(uid) }).collect()),
            violations: Some(victims.violated_budgets),
        };
        let victims = result.victims.into_iter();
        let victims = victims.map(|(node, victims)| (node, Some(meta(victims)))).collect();
        Self { node_name_to_meta_victims: Some(victims) }
    }
}

// === impl Victims ===

impl From<Meta> for Victims {
    fn from(wire: Meta) -> Self {
        let pods = wire.pods.unwrap_or_default().into_iter().filter_map(|pod| pod.uid).collect();
        Self { pods, violated_budgets: wire.violations.unwrap_or(0) }
    }
}

impl From<Whole> for Victims {
    fn from(wire: Whole) -> Self {
        let uid = |pod: Object| pod.metadata.and_then(|metadata| metadata.uid);
        let pods = wire.pods.unwrap_or_default().into_iter().filter_map(uid).collect();
        Self { pods, violated_budgets: wire.violations.unwrap_or(0) }
    }
}

fn by_node<T>(wire: ByNode<T>, read: impl Fn(T) -> Victims) -> BTreeMap<String, Victims> {
    let nodes = wire.unwrap_or_default().into_iter();
    nodes.map(|(node, victims)| (node, victims.map_or_else(Victims::default, &read))).collect()
}
