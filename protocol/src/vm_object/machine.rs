//! A VirtualMachine of NeonVM as the agent of its node needs it.

use super::wire::{Guest, Wire, cpus, named, slots};
use crate::config::Problem;
use crate::pod::wire::{Instead, Reading};
use crate::pod::{ENABLED, THEIR_ENABLED};
use crate::{BadBody, Bytes, MilliCpu, Resources, VmName};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A VirtualMachine, whole.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "super::wire::Wire")]
pub struct Machine {
    /// Namespace and name.
    pub name: VmName,
    /// The UID: an object of the same name and another UID is another VM.
    pub uid: String,
    /// `resourceVersion`: opaque, compared for equality only.
    pub revision: String,
    /// `metadata.generation`: each change of the spec makes it larger.
    pub generation: i64,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it is labelled as a VM that is scaled: by our label, else by the reference's.
    pub is_enabled: bool,
    /// What people say of how it is scaled, among others.
    pub annotations: BTreeMap<String, String>,
    /// What its controller does with it.
    pub phase: MachinePhase,
    /// The pod that runs it, in the object's namespace.
    pub pod: Option<String>,
    /// The node of that pod.
    pub node: Option<String>,
    /// The address of that pod, at which its guest is reached.
    pub address: Option<IpAddr>,
    /// The step of memory.
    pub slot: Bytes,
    /// What its spec says.
    pub sizes: Sizes,
    /// What its status shows that it has; zero on an axis of which it says nothing.
    pub shows: Resources,
    /// What is invalid or missing, and what counts in its place.
    pub problems: Vec<Problem>,
}

/// What the spec of a VirtualMachine says. QEMU is started with the minimum and for the maximum; what the VM is to use can be
/// changed while it runs. The memory of each is a whole number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// What QEMU is started with.
    pub min: Resources,
    /// The most that it can have.
    pub max: Resources,
    /// What it is to use now.
    pub used: Resources,
}

/// What NeonVM's controller does with a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MachinePhase {
    /// Its pod does not run yet.
    Pending,
    /// It runs, and has what its spec says.
    Running,
    /// It runs, and is given what its spec says or gives it back.
    Scaling,
    /// It runs, and is about to move to another pod.
    PreMigrating,
    /// It moves to another pod.
    Migrating,
    /// It has ended.
    Ended,
    /// None is said, or one of a later version of NeonVM.
    #[default]
    Unknown,
}

// === impl Machine ===

impl TryFrom<Wire> for Machine {
    type Error = BadBody;

    fn try_from(wire: Wire) -> Result<Self, BadBody> {
        let mut metadata = wire.metadata.unwrap_or_default();
        let status = wire.status.unwrap_or_default();
        let guest = wire.spec.unwrap_or_default().guest.unwrap_or_default();
        let filled = |text: &String| !text.is_empty();
        let name = metadata.take_name()?;
        let labels = metadata.labels.unwrap_or_default();
        let enabled = labels.get(ENABLED).or_else(|| labels.get(THEIR_ENABLED));
        let mut reading = Reading::with(Instead::Largest);
        let slot = guest.slot(&mut reading);
        let sizes = Sizes::of(&guest, slot, &mut reading);
        let shows = status.shows(&mut reading);
        let mut problems = reading.problems;
        let address = status.pod_ip.filter(filled).and_then(|text| {
            let invalid = || Problem::new("status.podIP", &text, "must be an IP address");
            text.parse().map_err(|_| problems.push(invalid())).ok()
        });
        Ok(Self {
            name,
            uid: metadata.uid.unwrap_or_default(),
            revision: metadata.resource_version.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            is_terminating: metadata.deletion_timestamp.is_some(),
            is_enabled: enabled.is_some_and(|word| word == "true"),
            annotations: metadata.annotations.unwrap_or_default(),
            phase: MachinePhase::spelled(status.phase.as_deref()),
            pod: status.pod_name.filter(filled),
            node: status.node.filter(filled),
            address,
            slot,
            sizes,
            shows,
            problems,
        })
    }
}

// === impl Sizes ===

impl Sizes {
    /// As NeonVM's webhook fills in what is absent: a minimum of one, and the maximum and what is used as the minimum.
    pub(super) fn of(guest: &Guest, slot: Bytes, reading: &mut Reading) -> Self {
        let [min_cpu, max_cpu, cpu] =
            named(guest.cpus.as_ref()).map(|(amount, name)| cpus(amount, name, reading));
        let [min_count, max_count, count] =
            named(guest.memory_slots.as_ref()).map(|(amount, name)| slots(amount, name, reading));
        let (min_cpu, min_count) =
            (min_cpu.unwrap_or(MilliCpu::from_cores(1)), min_count.unwrap_or(1));
        let size = |cpu: Option<MilliCpu>, count: Option<u64>| Resources {
            cpu: cpu.unwrap_or(min_cpu),
            mem: slot.saturating_mul(count.unwrap_or(min_count)),
        };
        Self { min: size(None, None), max: size(max_cpu, max_count), used: size(cpu, count) }
    }
}

// === impl MachinePhase ===

impl MachinePhase {
    /// The phase that NeonVM spells like this.
    fn spelled(word: Option<&str>) -> Self {
        match word {
            Some("Pending") => Self::Pending,
            Some("Running") => Self::Running,
            Some("Scaling") => Self::Scaling,
            Some("PreMigrating") => Self::PreMigrating,
            Some("Migrating") => Self::Migrating,
            Some("Succeeded" | "Failed") => Self::Ended,
            _ => Self::Unknown,
        }
    }

    /// Whether the VM has a guest that executes.
    pub const fn executes(self) -> bool {
        match self {
            Self::Running | Self::Scaling | Self::PreMigrating | Self::Migrating => true,
            Self::Pending | Self::Ended | Self::Unknown => false,
        }
    }
}
