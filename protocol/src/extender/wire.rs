//! How the extender's messages are spelled.
//!
//! `remote = "Self"` makes serde's derived code plain functions, which the traits call; for reading, through
//! [`AnyCase`].

use super::any_case::AnyCase;
use super::{BindingArgs, BindingResult, ExtenderArgs, FilterResult, HostPriority};
use crate::pod::Pod;
use crate::{BadBody, VmName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Reads these types with keys in any case.
macro_rules! read_in_any_case {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize(AnyCase(deserializer))
            }
        }
    )+};
}

/// Writes these types with the same keys.
macro_rules! written {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    )+};
}

pub(super) use {read_in_any_case, written};

read_in_any_case!(Args, Filtered, HostPriority, Binding, Bound);
written!(Filtered, HostPriority, Binding, Bound);

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Args {
    pod: Option<Pod>,
    nodes: Option<NodeList>,
    node_names: Option<Vec<String>>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Filtered {
    nodes: Option<NodeList>,
    node_names: Option<Vec<String>>,
    failed_nodes: Option<BTreeMap<String, String>>,
    failed_and_unresolvable_nodes: Option<BTreeMap<String, String>>,
    error: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Binding {
    pod_name: Option<String>,
    pod_namespace: Option<String>,
    #[serde(rename = "PodUID")]
    pod_uid: Option<String>,
    node: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Bound {
    error: Option<String>,
}

/// A core/v1 NodeList, of which the names matter.
#[derive(Deserialize, Serialize)]
struct NodeList {
    items: Option<Vec<Named>>,
}

#[derive(Deserialize, Serialize)]
struct Named {
    metadata: Option<Name>,
}

#[derive(Deserialize, Serialize)]
struct Name {
    name: Option<String>,
}

// === impl Args ===

impl TryFrom<Args> for ExtenderArgs {
    type Error = BadBody;

    fn try_from(wire: Args) -> Result<Self, BadBody> {
        let pod = wire.pod.ok_or_else(|| BadBody::Missing { field: "Pod".to_owned() })?;
        let sent_whole_nodes = wire.node_names.is_none() && wire.nodes.is_some();
        Ok(Self { pod, nodes: names(wire.node_names, wire.nodes)?, sent_whole_nodes })
    }
}

// === impl Filtered ===

impl TryFrom<Filtered> for FilterResult {
    type Error = BadBody;

    fn try_from(wire: Filtered) -> Result<Self, BadBody> {
        Ok(Self {
            nodes_too: wire.nodes.is_some(),
            nodes: names(wire.node_names, wire.nodes)?,
            failed: wire.failed_nodes.unwrap_or_default(),
            unresolvable: wire.failed_and_unresolvable_nodes.unwrap_or_default(),
            error: wire.error.unwrap_or_default(),
        })
    }
}

impl From<FilterResult> for Filtered {
    fn from(result: FilterResult) -> Self {
        Self {
            nodes: result.nodes_too.then(|| NodeList::of(&result.nodes)),
            // Always a list: to the scheduler, `null` means that no node fits.
            node_names: Some(result.nodes),
            failed_nodes: Some(result.failed),
            failed_and_unresolvable_nodes: Some(result.unresolvable),
            error: Some(result.error),
        }
    }
}

// === impl Binding ===

impl From<Binding> for BindingArgs {
    fn from(wire: Binding) -> Self {
        Self {
            pod: VmName {
                namespace: wire.pod_namespace.unwrap_or_default(),
                name: wire.pod_name.unwrap_or_default(),
            },
            uid: wire.pod_uid.unwrap_or_default(),
            node: wire.node.unwrap_or_default(),
        }
    }
}

impl From<BindingArgs> for Binding {
    fn from(args: BindingArgs) -> Self {
        Self {
            pod_name: Some(args.pod.name),
            pod_namespace: Some(args.pod.namespace),
            pod_uid: Some(args.uid),
            node: Some(args.node),
        }
    }
}

// === impl Bound ===

impl From<Bound> for BindingResult {
    fn from(wire: Bound) -> Self {
        Self { error: wire.error.unwrap_or_default() }
    }
}

impl From<BindingResult> for Bound {
    fn from(result: BindingResult) -> Self {
        Self { error: Some(result.error) }
    }
}

// === impl NodeList ===

impl NodeList {
    fn of(names: &[String]) -> Self {
        let node = |name: &String| Named { metadata: Some(Name { name: Some(name.clone()) }) };
        Self { items: Some(names.iter().map(node).collect()) }
    }
}

/// The names, or else those of whole nodes.
fn names(names: Option<Vec<String>>, nodes: Option<NodeList>) -> Result<Vec<String>, BadBody> {
    if let Some(names) = names {
        return Ok(names);
    }
    let items = nodes.and_then(|nodes| nodes.items).unwrap_or_default();
    let name = |(index, node): (usize, Named)| {
        let field = format!("Nodes.items[{index}].metadata.name");
        node.metadata.and_then(|data| data.name).ok_or(BadBody::Missing { field })
    };
    items.into_iter().enumerate().map(name).collect()
}
