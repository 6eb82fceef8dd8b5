//! The VM of a pod, from the pod's labels and annotations.
//!
//! A pod is a VM if it is labelled as enabled; then the pod is the VM's object. A pod runs a VM if a label
//! names the VM's object, as NeonVM's pods have it. The annotations are those of [`crate::annotations`]:
//! NeonVM copies them from its object to the pod.

use super::wire::Owner;
use super::{Ceiling, VmContainer, overhead};
use crate::annotations::{self, Annotations, BOUNDS, CEILING, Defaults, OVERHEAD};
use crate::config::Problem;
use crate::go_json::{self, keys};
use crate::{
    BadBody, Bounds, Bytes, MilliCpu, Resources, ScaleDownSaid, Usual, VmInfo, VmName, VmRecord,
    limits,
};
use std::collections::BTreeMap;

/// The label of a VM that Windlass scales: `true`.
pub const ENABLED: &str = "windlass.dev/enabled";
/// The reference's label of a VM that is scaled; ours wins.
pub const THEIR_ENABLED: &str = "autoscaling.neon.tech/enabled";
/// The label with which NeonVM names the object of a pod's VM, in the pod's namespace.
pub const THEIR_NAME: &str = "vm.neon.tech/name";
/// The label of a VM that may be moved to another node while it runs: `true`, on the VM's object.
pub const MAY_MOVE: &str = "windlass.dev/may-move";
/// The reference's label of such a VM; ours wins.
pub const THEIR_MAY_MOVE: &str = "autoscaling.neon.tech/auto-migration-enabled";
/// The kind of NeonVM's objects.
const THEIR_KIND: &str = "VirtualMachine";
/// The API group of NeonVM's objects.
const THEIR_GROUP: &str = "vm.neon.tech/";
/// The annotation in which later NeonVMs copy their object's sizes to the pod: the slot of memory, and the
/// bounds where no annotation of ours or the reference's says them.
pub const THEIR_RESOURCES: &str = "vm.neon.tech/resources";

type Texts = BTreeMap<String, String>;

/// The VM that a pod is or runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PodVm {
    /// The object of the VM: the one that the pod's label names, else the pod.
    pub object: VmName,
    /// The smallest and the largest size. Without valid bounds, both are the pod's requests; only then an
    /// axis can be zero.
    pub bounds: Bounds,
    /// The order when room is short: the higher priority goes first.
    pub priority: i32,
    /// The step of memory.
    pub memory_slot: Bytes,
    /// The recorded ceiling, if one is readable.
    pub ceiling: Option<Ceiling>,
    /// The uid of the object that controls the pod, if that is a VM of a kind that can be moved to another node while it
    /// runs. The pod that such a VM moves to is controlled by the migration.
    pub controller: Option<Box<str>>,
    /// Whether the VM may be moved.
    pub may_move: bool,
    /// Whether the VM is labelled as one that is scaled; NeonVM copies the labels of its objects to their pods.
    pub is_enabled: bool,
    /// The container that it runs in; `None` only of a pod without containers.
    pub container: Option<Box<VmContainer>>,
    /// The reason of the condition that a plugin keeps on the pod, if it is there.
    pub scaling: Option<Box<str>>,
    /// The annotations that are missing or invalid, and what counts in their place.
    pub problems: Vec<Problem>,
}

// === impl PodVm ===

impl PodVm {
    /// What the books know of the VM.
    pub fn record(&self) -> VmRecord {
        VmRecord::listed(self.priority, self.bounds, self.memory_slot)
    }

    /// What of its container is not the VM's, by its own annotation alone; `None`: that cannot be read.
    pub(super) fn overhead(&mut self, annotations: &Texts) -> Option<Resources> {
        let said = annotation(annotations, OVERHEAD, overhead::read, &mut self.problems);
        let is_unread = said.is_none() && annotations.contains_key(OVERHEAD);
        (!is_unread).then(|| said.unwrap_or_default())
    }

    /// The VM of the pod with this name, labels, annotations, owners and requests; `None` if it has none.
    pub(super) fn of(
        pod: &VmName,
        labels: &Texts,
        annotations: &Texts,
        owners: &[Owner],
        requests: Resources,
    ) -> Option<Self> {
        let object = labels.get(THEIR_NAME).filter(|name| !name.is_empty());
        let enabled = labels.get(ENABLED).or_else(|| labels.get(THEIR_ENABLED));
        let is_enabled = enabled.is_some_and(|word| word == "true");
        if object.is_none() && !is_enabled {
            return None;
        }
        let name = object.unwrap_or(&pod.name).clone();
        let object = VmName { namespace: pod.namespace.clone(), name };
        let mut problems = Vec::new();
        let own = annotation(annotations, THEIR_RESOURCES, Sizes::read, &mut problems);
        let ceiling = annotation(annotations, CEILING, Ceiling::decode, &mut problems);
        let (memory_slot, bounds) = own.map_or((VmInfo::DEFAULT_MEMORY_SLOT, None), Sizes::split);
        let mut said = Annotations::default();
        problems.extend(said.update(annotations, memory_slot));
        let priority = said.priority().unwrap_or(0);
        let bounds = match said.info(object.clone(), &defaults(memory_slot, bounds)) {
            Ok(info) => info.bounds,
            Err(errors) => {
                // What annotations leave open, the object of the VM says.
                let open = defaults(memory_slot, Some(widest(memory_slot)));
                let errors = if labels.contains_key(THEIR_NAME) {
                    said.info(object.clone(), &open).err().unwrap_or_default()
                } else {
                    errors
                };
                if !errors.is_empty() {
                    problems.extend(errors);
                    let limit = "the pod's requests count, as the minimum and as the maximum";
                    problems.push(Problem::without_value(BOUNDS, limit));
                }
                Bounds { min: requests, max: requests }
            }
        };
        let may_move = labels.get(MAY_MOVE).or_else(|| labels.get(THEIR_MAY_MOVE));
        let may_move = may_move.is_some_and(|word| word == "true");
        let controller = owners.iter().find(|owner| owner.is_vm()).and_then(|it| it.uid.as_deref());
        let controller = controller.map(Into::into);
        let container = None;
        Some(Self {
            object,
            bounds,
            priority,
            memory_slot,
            ceiling,
            controller,
            may_move,
            is_enabled,
            container,
            scaling: None,
            problems,
        })
    }
}

// === impl Owner ===

impl Owner {
    /// Whether it is a VM, and controls what it owns.
    fn is_vm(&self) -> bool {
        let is_theirs = |group: &String| group.starts_with(THEIR_GROUP);
        self.controller == Some(true)
            && self.kind.as_deref() == Some(THEIR_KIND)
            && self.api_version.as_ref().is_some_and(is_theirs)
    }
}

/// The sizes of a NeonVM object.
#[derive(Clone, Copy, Default)]
struct Sizes {
    min_cpu: MilliCpu,
    max_cpu: MilliCpu,
    min_slots: u32,
    max_slots: u32,
    slot: Bytes,
}

keys!(read Sizes {
    "cpus": { "min": min_cpu, "max": max_cpu },
    "memorySlots": { "min": min_slots, "max": max_slots },
    "memorySlotSize": slot,
});

// === impl Sizes ===

impl Sizes {
    fn read(text: &str) -> Result<Self, BadBody> {
        let sizes: Self = go_json::decode_whole(text.as_bytes())?;
        if !limits::SLOT.has_memory(sizes.slot) {
            return Err(BadBody::field("memorySlotSize", sizes.slot, limits::SLOT.allowed()));
        }
        for (field, is_valid) in [
            ("cpus.min", limits::CPU.has_cpu(sizes.min_cpu)),
            ("cpus.max", limits::CPU.has_cpu(sizes.max_cpu) && sizes.max_cpu >= sizes.min_cpu),
            ("memorySlots.min", sizes.min_slots > 0),
            ("memorySlots.max", sizes.max_slots >= sizes.min_slots),
        ] {
            if !is_valid {
                let expected = "above zero, with a maximum that is no smaller than the minimum";
                return Err(BadBody::field(field, text, expected));
            }
        }
        Ok(sizes)
    }

    /// The slot of memory, and the bounds.
    fn split(self) -> (Bytes, Option<Bounds>) {
        let size = |cpu, slots| Resources::new(cpu, self.slot.saturating_mul(u64::from(slots)));
        let min = size(self.min_cpu, self.min_slots);
        let max = size(self.max_cpu, self.max_slots);
        (self.slot, Some(Bounds { min, max }))
    }
}

/// What an annotation says, if it is there and valid.
fn annotation<T>(
    annotations: &Texts,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, BadBody>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let text = annotations.get(name)?;
    let bad = |bad| problems.push(annotations::explain(name, text, bad));
    read(text).map_err(bad).ok()
}

/// Bounds that leave all of what annotations can say open.
fn widest(memory_slot: Bytes) -> Bounds {
    let min = Resources::new(MilliCpu::from_milli(50), memory_slot);
    let max = Resources::new(MilliCpu::from_milli(512_000), memory_slot.saturating_mul(65_535));
    Bounds { min, max }
}

fn defaults(memory_slot: Bytes, bounds: Option<Bounds>) -> Defaults {
    Defaults {
        bounds,
        policy: None,
        load_window: None,
        priority: None,
        mode: None,
        memory_slot,
        scale_down: ScaleDownSaid::default(),
        cpu_limit: None,
        usual: Usual::default(),
    }
}
