//! How the extender's messages are spelled.
//!
//! `remote = "Self"` makes serde's derived code plain functions, which the traits call; for reading, through
//! [`AnyCase`].

use super::any_case::AnyCase;
use super::{BindingArgs, BindingResult, ExtenderArgs, FilterAnswer, FilterResult, HostPriority};
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
written!(HostPriority, Binding, Bound);

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Args {
    pod: Option<Pod>,
    nodes: Option<NodeList>,
    node_names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "PascalCase")]
pub(super) struct Filtered {
    nodes: Option<NodeList>,
    node_names: Option<Vec<String>>,
    failed_nodes: Option<BTreeMap<String, String>>,
    failed_and_unresolvable_nodes: Option<BTreeMap<String, String>>,
    error: Option<String>,
}

/// A [`Filtered`] that is written.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answered<'a> {
    nodes: Option<Items<'a>>,
    /// Always a list: to the scheduler, `null` means that no node fits.
    node_names: &'a [&'a str],
    failed_nodes: Pairs<'a>,
    failed_and_unresolvable_nodes: Pairs<'a>,
    error: &'a str,
}

/// An object of these keys and values.
struct Pairs<'a>(&'a [(&'a str, &'a str)]);

/// A core/v1 NodeList of nodes that have only a name.
#[derive(Serialize)]
struct Items<'a> {
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    metadata: ItemName<'a>,
}

#[derive(Serialize)]
struct ItemName<'a> {
    name: &'a str,
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
#[derive(Deserialize)]
struct NodeList {
    items: Option<Vec<Named>>,
}

#[derive(Deserialize)]
struct Named {
    metadata: Option<Name>,
}

#[derive(Deserialize)]
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

// === impl FilterResult ===

impl Serialize for FilterResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.answer().serialize(serializer)
    }
}

// === impl FilterAnswer ===

impl Serialize for FilterAnswer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let answered = Answered {
            nodes: self.nodes_too.then(|| Items::of(&self.nodes)),
            node_names: &self.nodes,
            failed_nodes: Pairs(&self.failed),
            failed_and_unresolvable_nodes: Pairs(&self.unresolvable),
            error: self.error,
        };
        answered.serialize(serializer)
    }
}

// === impl Pairs ===

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

// === impl Items ===

impl<'a> Items<'a> {
    fn of(names: &[&'a str]) -> Self {
        let item = |&name: &&'a str| Item { metadata: ItemName { name } };
        Self { items: names.iter().map(item).collect() }
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
