//! A core/v1 Pod as the API server writes it, as far as it is read.
//!
//! Every field may be absent or `null`. Quantities stay text until the place of each is known, so that an
//! error names it.

use super::{Phase, Pod, PodVm, requests};
use crate::quantity::{self, QuantityError};
use crate::{BadBody, Bytes, MilliCpu, Resources, VmName};
use serde::de::{Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Deserialize)]
pub(crate) struct PodWire {
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    node_name: Option<String>,
    scheduler_name: Option<String>,
    pub(super) containers: Option<Vec<Container>>,
    pub(super) init_containers: Option<Vec<Container>>,
    pub(super) resources: Option<Requirements>,
    pub(super) overhead: Option<Amounts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: Option<String>,
    pub(super) restart_policy: Option<String>,
    pub(super) resources: Option<Requirements>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    phase: Option<String>,
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) container_statuses: Option<Vec<ContainerStatus>>,
    pub(super) init_container_statuses: Option<Vec<ContainerStatus>>,
    pub(super) resources: Option<Requirements>,
    pub(super) allocated_resources: Option<Amounts>,
}

#[derive(Deserialize)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub(super) name: Option<String>,
    pub(super) resources: Option<Requirements>,
    pub(super) allocated_resources: Option<Amounts>,
}

#[derive(Deserialize)]
pub(super) struct Requirements {
    pub(super) requests: Option<Amounts>,
}

/// A ResourceList; other resources than the two are ignored.
#[derive(Deserialize)]
pub(crate) struct Amounts {
    cpu: Option<Amount>,
    memory: Option<Amount>,
}

/// A quantity as written: a text, or a bare number.
struct Amount(String);

// === impl Pod ===

impl TryFrom<PodWire> for Pod {
    type Error = BadBody;

    fn try_from(wire: PodWire) -> Result<Self, BadBody> {
        let metadata = wire.metadata.unwrap_or_default();
        let (spec, status) = (wire.spec.unwrap_or_default(), wire.status.unwrap_or_default());
        let filled = |text: &String| !text.is_empty();
        let missing = || BadBody::Missing { field: "metadata.name".to_owned() };
        let name = VmName {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.filter(filled).ok_or_else(missing)?,
        };
        let requests = requests::of(&spec, &status)?;
        let (labels, annotations) = (metadata.labels, metadata.annotations);
        let vm = labels.and_then(|labels| {
            PodVm::of(&name, &labels, &annotations.unwrap_or_default(), requests)
        });
        Ok(Self {
            name,
            uid: metadata.uid.unwrap_or_default(),
            revision: metadata.resource_version.unwrap_or_default(),
            node: spec.node_name.filter(filled),
            scheduler: spec.scheduler_name.unwrap_or_default(),
            phase: Phase::spelled(status.phase.as_deref()),
            is_terminating: metadata.deletion_timestamp.is_some(),
            requests,
            vm,
        })
    }
}

// === impl Amounts ===

impl Amounts {
    /// The amounts, zero where there is none. An error names the field within `place`.
    pub(crate) fn resources(&self, place: impl fmt::Display) -> Result<Resources, BadBody> {
        let (cpu, mem) = self.axes(place)?;
        Ok(Resources { cpu: cpu.unwrap_or_default(), mem: mem.unwrap_or_default() })
    }

    /// The amounts, by axis.
    pub(super) fn axes(
        &self,
        place: impl fmt::Display,
    ) -> Result<(Option<MilliCpu>, Option<Bytes>), BadBody> {
        let cpu = self.cpu.as_ref().map(|amount| amount.read(&place, "cpu", quantity::cpu));
        let mem =
            self.memory.as_ref().map(|amount| amount.read(&place, "memory", quantity::memory));
        Ok((cpu.transpose()?, mem.transpose()?))
    }
}

// === impl Amount ===

impl Amount {
    fn read<T>(
        &self,
        place: impl fmt::Display,
        axis: &str,
        parse: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Result<T, BadBody> {
        let Self(text) = self;
        parse(text).map_err(|error| BadBody::field(format!("{place}.{axis}"), text, error))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl Visitor<'_> for Written {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", QuantityError::Form)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
        }

        deserializer.deserialize_any(Written)
    }
}
