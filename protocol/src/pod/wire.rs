//! A core/v1 Pod as the API server writes it, as far as it is read.
//!
//! Every field may be absent or `null`. Quantities stay text until the place of each is known, so that a
//! problem names it.
//!
//! An invalid quantity is no error: an error ends a list or a watch of all pods, and a tenant can make a pod
//! of `cpu: 10E`.

use super::{Allocation, DEFAULT_CONTAINER, HEADROOM, Phase, Pod, PodVm, VmContainer, requests};
use crate::config::Problem;
use crate::quantity::{self, LARGEST_CPU, LARGEST_MEMORY, QuantityError};
use crate::vm_view::CONDITION;
use crate::{BadBody, Bytes, MilliCpu, Resources, VmName};
use serde::de::{Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Deserialize)]
pub(crate) struct PodWire {
    pub(super) metadata: Option<Metadata>,
    pub(super) spec: Option<Spec>,
    pub(super) status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) generation: Option<i64>,
    pub(crate) deletion_timestamp: Option<IgnoredAny>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
}

/// An object that owns the pod.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) controller: Option<bool>,
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
    pub(super) volumes: Option<Vec<Volume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Volume {
    pub(super) name: Option<String>,
    pub(super) empty_dir: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: Option<String>,
    pub(super) restart_policy: Option<String>,
    pub(super) resources: Option<Requirements>,
    pub(super) resize_policy: Option<Vec<ResizePolicy>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResizePolicy {
    pub(super) restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    pub(super) observed_generation: Option<i64>,
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
    pub(super) limits: Option<Amounts>,
}

/// A ResourceList; other resources than the two are ignored.
#[derive(Deserialize)]
pub(crate) struct Amounts {
    cpu: Option<Amount>,
    memory: Option<Amount>,
}

/// A quantity as written: a text, or a bare number.
pub(crate) struct Amount(String);

/// The amounts of one object, and what is wrong with them. An amount that is too large counts as the largest.
pub(crate) struct Reading {
    /// In place of any other invalid amount.
    instead: Instead,
    pub(crate) problems: Vec<Problem>,
}

/// What counts in place of an invalid amount.
#[derive(Clone, Copy)]
pub(crate) enum Instead {
    /// Of a request: the pod fits on no node.
    Largest,
    /// Of what a node has: no pod fits there.
    Zero,
}

// === impl Pod ===

impl TryFrom<PodWire> for Pod {
    type Error = BadBody;

    fn try_from(wire: PodWire) -> Result<Self, BadBody> {
        let mut metadata = wire.metadata.unwrap_or_default();
        let (spec, status) = (wire.spec.unwrap_or_default(), wire.status.unwrap_or_default());
        let filled = |text: &String| !text.is_empty();
        let name = metadata.take_name()?;
        let mut reading = Reading::with(Instead::Largest);
        let requests = requests::of(&spec, &status, &mut reading);
        let labels = metadata.labels.unwrap_or_default();
        let annotations = metadata.annotations.unwrap_or_default();
        let mut vm = {
            let owners = metadata.owner_references.unwrap_or_default();
            PodVm::of(&name, &labels, &annotations, &owners, requests).map(Box::new)
        };
        if let Some(vm) = &mut vm {
            let meant = annotations.get(DEFAULT_CONTAINER).map(String::as_str);
            let overhead = vm.overhead(&annotations);
            vm.container = VmContainer::of(&spec, &status, meant, overhead).map(Box::new);
            vm.scaling = status.scaling();
        }
        let is_headroom = vm.is_none() && labels.get(HEADROOM).is_some_and(|word| word == "true");
        let allocation = (is_headroom || vm.is_some())
            .then(|| Box::new(Allocation::of(&spec, &status, metadata.generation)));
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
            is_headroom,
            allocation,
            problems: reading.problems,
        })
    }
}

// === impl Status ===

impl Status {
    /// The reason of the condition that a plugin keeps.
    fn scaling(&self) -> Option<Box<str>> {
        let mut all = self.conditions.iter().flatten();
        let own = all.find(|condition| condition.kind.as_deref() == Some(CONDITION))?;
        own.reason.as_deref().map(Into::into)
    }
}

// === impl Metadata ===

impl Metadata {
    /// Namespace and name; the namespace is empty if there is none.
    ///
    /// # Errors
    /// There is no name.
    pub(crate) fn take_name(&mut self) -> Result<VmName, BadBody> {
        let name = self.name.take().filter(|name| !name.is_empty());
        let missing = || BadBody::Missing { field: "metadata.name".to_owned() };
        let namespace = self.namespace.take().unwrap_or_default();
        Ok(VmName { namespace, name: name.ok_or_else(missing)? })
    }
}

// === impl Amounts ===

impl Amounts {
    /// The amounts, zero where there is none. A problem names the field within `place`.
    pub(crate) fn resources(&self, place: impl fmt::Display, reading: &mut Reading) -> Resources {
        let (cpu, mem) = self.axes(place, reading);
        Resources { cpu: cpu.unwrap_or_default(), mem: mem.unwrap_or_default() }
    }

    /// The amounts, by axis.
    pub(super) fn axes(
        &self,
        place: impl fmt::Display,
        reading: &mut Reading,
    ) -> (Option<MilliCpu>, Option<Bytes>) {
        let Self { cpu, memory } = self;
        let cpu = cpu.as_ref().map(|amount| {
            reading.read(amount, format_args!("{place}.cpu"), quantity::cpu, LARGEST_CPU)
        });
        let memory = memory.as_ref().map(|amount| {
            reading.read(amount, format_args!("{place}.memory"), quantity::memory, LARGEST_MEMORY)
        });
        (cpu, memory)
    }
}

// === impl Reading ===

impl Reading {
    pub(crate) const fn with(instead: Instead) -> Self {
        Self { instead, problems: Vec::new() }
    }

    /// One amount. A problem names the field.
    pub(crate) fn read<T: Default>(
        &mut self,
        Amount(text): &Amount,
        field: impl fmt::Display,
        parse: impl Fn(&str) -> Result<T, QuantityError>,
        largest: T,
    ) -> T {
        let error = match parse(text) {
            Ok(amount) => return amount,
            Err(error) => error,
        };
        let (counted, word) = match (error, self.instead) {
            (QuantityError::TooLarge, _)
            | (QuantityError::Form | QuantityError::Negative, Instead::Largest) => {
                (largest, "the largest amount")
            }
            (QuantityError::Form | QuantityError::Negative, Instead::Zero) => {
                (T::default(), "zero")
            }
        };
        let limit = format!("must be {error}; {word} counts");
        self.problems.push(Problem::new(field.to_string(), text, limit));
        counted
    }
}

// === impl Amount ===

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
