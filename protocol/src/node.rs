//! A node of a cluster, as far as placement needs it.
//!
//! A [`Node`] is read from the API server's JSON of a core/v1 Node: unknown fields are ignored, and `null`
//! is as an absent field. A missing name is an error. An invalid quantity is none, since it would end the
//! list of all nodes: the largest amount counts in place of a larger one, and zero in place of any other; it is in
//! [`Node::problems`].

use crate::config::Problem;
use crate::pod::wire::{Amounts, Instead, Reading};
use crate::{BadBody, Resources};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "NodeWire")]
pub struct Node {
    /// The name.
    pub name: String,
    /// The UID: a node of the same name and another UID is another machine.
    pub uid: String,
    /// `resourceVersion`: opaque, compared for equality only.
    pub revision: String,
    /// What pods may request in all. An axis that the node does not report is zero.
    pub allocatable: Resources,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the node takes no further pods: it is cordoned.
    pub is_unschedulable: bool,
    /// Whether its kubelet says that the node is short of memory.
    pub has_memory_pressure: bool,
    /// The taints.
    pub taints: Vec<Taint>,
    /// The quantities that are invalid, and what counts in their place.
    pub problems: Vec<Problem>,
}

/// A taint: it repels pods that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value; often empty.
    pub value: String,
    /// The effect.
    pub effect: Effect,
}

/// The effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No further pods are placed.
    NoSchedule,
    /// Other nodes are preferred.
    PreferNoSchedule,
    /// No further pods are placed, and those on the node are evicted.
    NoExecute,
    /// Missing, or of a later version of Kubernetes.
    Unknown,
}

#[derive(Deserialize)]
struct NodeWire {
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
struct Spec {
    unschedulable: Option<bool>,
    taints: Option<Vec<TaintWire>>,
}

#[derive(Deserialize)]
struct TaintWire {
    key: Option<String>,
    value: Option<String>,
    effect: Option<String>,
}

#[derive(Default, Deserialize)]
struct Status {
    allocatable: Option<Amounts>,
    conditions: Option<Vec<ConditionWire>>,
}

#[derive(Deserialize)]
struct ConditionWire {
    r#type: Option<String>,
    status: Option<String>,
}

// === impl Node ===

impl Node {
    /// Whether its kubelet is silent or not ready, as the taints say that the controller of nodes sets.
    pub fn is_silent(&self) -> bool {
        let says_so = |taint: &Taint| {
            ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]
                .contains(&taint.key.as_str())
        };
        self.taints.iter().any(says_so)
    }
}

impl TryFrom<NodeWire> for Node {
    type Error = BadBody;

    fn try_from(wire: NodeWire) -> Result<Self, BadBody> {
        let metadata = wire.metadata.unwrap_or_default();
        let (spec, status) = (wire.spec.unwrap_or_default(), wire.status.unwrap_or_default());
        let missing = || BadBody::Missing { field: "metadata.name".to_owned() };
        let mut reading = Reading::with(Instead::Zero);
        let conditions = status.conditions.unwrap_or_default();
        let allocatable =
            status.allocatable.map(|amounts| amounts.resources("status.allocatable", &mut reading));
        Ok(Self {
            name: metadata.name.filter(|name| !name.is_empty()).ok_or_else(missing)?,
            uid: metadata.uid.unwrap_or_default(),
            revision: metadata.resource_version.unwrap_or_default(),
            allocatable: allocatable.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            is_unschedulable: spec.unschedulable.unwrap_or(false),
            has_memory_pressure: conditions.iter().any(ConditionWire::is_memory_pressure),
            taints: spec.taints.unwrap_or_default().into_iter().map(Taint::from).collect(),
            problems: reading.problems,
        })
    }
}

// === impl ConditionWire ===

impl ConditionWire {
    fn is_memory_pressure(&self) -> bool {
        let is = |text: &Option<String>, word: &str| text.as_deref() == Some(word);
        is(&self.r#type, "MemoryPressure") && is(&self.status, "True")
    }
}

// === impl Taint ===

impl From<TaintWire> for Taint {
    fn from(wire: TaintWire) -> Self {
        Self {
            key: wire.key.unwrap_or_default(),
            value: wire.value.unwrap_or_default(),
            effect: match wire.effect.as_deref() {
                Some("NoSchedule") => Effect::NoSchedule,
                Some("PreferNoSchedule") => Effect::PreferNoSchedule,
                Some("NoExecute") => Effect::NoExecute,
                _ => Effect::Unknown,
            },
        }
    }
}
