//! The object of a VM whose pod is not the VM: NeonVM's VirtualMachine, as far as the books of a plugin need it
//! ([`VmObject`]), and as the agent of its node does ([`Machine`]).
//!
//! Both are read from the API server's JSON of a `vm.neon.tech/v1` VirtualMachine: unknown fields are ignored, and
//! `null` is as an absent field. A missing name is an error. An invalid quantity is none, since it would end the list of all
//! objects: the largest amount counts in its place, and it is among the problems of what was read. Source of the fields: the
//! CustomResourceDefinition of NeonVM v0.12.2.

mod label;
mod machine;
mod wire;

pub use label::{NODE, node_label};
pub use machine::{Machine, MachinePhase, Sizes};

use crate::annotations::{self, Annotations, CEILING};
use crate::config::Problem;
use crate::pod::Ceiling;
use crate::pod::wire::{Instead, Reading};
use crate::{BadBody, Bounds, Bytes, Resources, VmName, limits};
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::{Guest, Wire};

/// The object of a VM.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "wire::Wire")]
pub struct VmObject {
    /// Namespace and name.
    pub name: VmName,
    /// The UID: an object of the same name and another UID is another VM.
    pub uid: String,
    /// `resourceVersion`: opaque, compared for equality only.
    pub revision: String,
    /// The pod that runs the VM, in the object's namespace; a VM that moves has another pod besides.
    pub pod: Option<String>,
    /// The larger of what its spec asks for, which is no more than its maximum, and of what its status shows. An axis of which
    /// neither says anything is zero.
    pub has: Resources,
    /// Its smallest and its largest size, as the agent of its node reads them: each of the four is its annotation's, or else its
    /// spec's. `None`: they are invalid, and the agent does not resize it by them.
    pub bounds: Option<Bounds>,
    /// The step of memory, unless it is none that a VM can have.
    pub slot: Option<Bytes>,
    /// The recorded ceiling, if one is readable.
    pub ceiling: Option<Ceiling>,
    /// What is invalid, and what counts in its place.
    pub problems: Vec<Problem>,
}

// === impl VmObject ===

impl TryFrom<Wire> for VmObject {
    type Error = BadBody;

    fn try_from(wire: Wire) -> Result<Self, BadBody> {
        let mut metadata = wire.metadata.unwrap_or_default();
        let status = wire.status.unwrap_or_default();
        let guest = wire.spec.unwrap_or_default().guest.unwrap_or_default();
        let filled = |text: &String| !text.is_empty();
        let name = metadata.take_name()?;
        let bounds = bounds(&guest, metadata.annotations.as_ref());
        let mut reading = Reading::with(Instead::Largest);
        let has = guest.asks(&mut reading).max(status.shows(&mut reading));
        let slot = Some(guest.slot(&mut reading)).filter(|slot| limits::SLOT.has_memory(*slot));
        let mut problems = reading.problems;
        let text = metadata.annotations.as_ref().and_then(|texts| texts.get(CEILING));
        let ceiling = text.and_then(|text| {
            let bad = |bad| problems.push(annotations::explain(CEILING, text, bad));
            Ceiling::decode(text).map_err(bad).ok()
        });
        Ok(Self {
            name,
            uid: metadata.uid.unwrap_or_default(),
            revision: metadata.resource_version.unwrap_or_default(),
            pod: status.pod_name.filter(filled),
            has,
            bounds,
            slot,
            ceiling,
            problems,
        })
    }
}

/// The bounds of a VM whose object says this.
fn bounds(guest: &Guest, annotations: Option<&BTreeMap<String, String>>) -> Option<Bounds> {
    let mut reading = Reading::with(Instead::Largest);
    let slot = guest.slot(&mut reading);
    let Sizes { min, max, .. } = Sizes::of(guest, slot, &mut reading);
    if !reading.problems.is_empty() {
        return None;
    }
    let mut said = Annotations::default();
    if let Some(annotations) = annotations {
        said.update(annotations, slot);
        if said.unread_bounds(annotations).is_some() {
            return None;
        }
    }
    said.bounds(Bounds { min, max }).ok()
}
