//! VMs whose pods belong to objects of another project: what these objects say, and which pods run them.
//!
//! The ceiling of such a VM is recorded on its object, since the object's controller has its way with the annotations of the
//! pod. One pod at a time runs the VM, the one that the object names; where the VM moves, another pod of it comes into
//! being, which counts with what the VM comes with and whose ceiling nobody records. As long as an object is not known, its VM's
//! agent is permitted nothing beyond what the VM counts with.

use crate::pods::known::Known;
use crate::pods::record::{OnObject, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Bounds, VmName};

/// As many earlier revisions of an object are remembered.
const EARLIER: usize = 4;

/// The objects of VMs, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) are_followed: bool,
    pub(crate) known: BTreeMap<VmName, VmObject>,
    /// Revisions of each that the watch delivered before.
    earlier: BTreeMap<VmName, VecDeque<String>>,
    /// Ceilings of VMs whose pods left, which the API server has confirmed and the watch does not show yet; and whether a list came
    /// since, which may have begun before.
    confirmed: BTreeMap<VmName, (Ceiling, bool)>,
    /// The pods of each VM that has an object of its own, whether it is known or not.
    pub(crate) pods: BTreeMap<VmName, BTreeSet<Arc<VmName>>>,
}

/// The object that the ceiling of a VM is recorded on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeilingOn {
    /// The VM's pod, with this uid.
    Pod(VmName, String),
    /// The VM's own object, with this uid.
    Object(VmName, String),
}

// === impl CeilingOn ===

impl CeilingOn {
    /// The uid of the object.
    pub fn uid(&self) -> &str {
        match self {
            Self::Pod(_, uid) | Self::Object(_, uid) => uid,
        }
    }
}

// === impl Objects ===

impl Objects {
    /// None is known. Where they are followed, ceilings are recorded on them.
    pub(crate) fn followed(are_followed: bool) -> Self {
        Self { are_followed, ..Self::default() }
    }

    /// Whether a word of the watch on an object is no news.
    pub(crate) fn is_late(&self, object: &VmObject) -> bool {
        let is_same = self.known.get(&object.name).is_some_and(|known| known.uid == object.uid);
        let earlier = self.earlier.get(&object.name).filter(|_| is_same);
        earlier.is_some_and(|earlier| earlier.contains(&object.revision))
    }

    /// An object is known like this from here on.
    pub(crate) fn put(&mut self, name: &VmName, next: Option<VmObject>) {
        let Some(next) = next else {
            self.known.remove(name);
            self.earlier.remove(name);
            self.confirmed.remove(name);
            return;
        };
        let uid = next.uid.clone();
        let is_same = self.known.get(name).is_some_and(|known| known.uid == uid);
        let is_ahead = |(confirmed, _): &(Ceiling, bool)| is_newer(*confirmed, next.ceiling);
        if !is_same || !self.confirmed.get(name).is_some_and(is_ahead) {
            self.confirmed.remove(name);
        }
        let Some(last) = self.known.insert(name.clone(), next) else { return };
        let earlier = self.earlier.entry(name.clone()).or_default();
        if last.uid != uid {
            earlier.clear();
        }
        earlier.push_back(last.revision);
        if earlier.len() > EARLIER {
            earlier.pop_front();
        }
    }

    /// This object, if it is known and names this pod as the one that runs its VM.
    pub(crate) fn naming(&self, pod: &VmName, object: &VmName) -> Option<&VmObject> {
        let object = self.known.get(object).filter(|_| self.are_followed);
        object.filter(|it| it.pod.as_ref() == Some(&pod.name))
    }

    /// A list told of all objects: no word of the watch that came before counts.
    pub(crate) fn listed(&mut self) {
        self.earlier.clear();
        self.confirmed.retain(|_, (_, was_listed)| !std::mem::replace(was_listed, true));
    }

    /// The books of a pod that leaves know this ceiling of its VM: its next pod counts with that, though the watch may not show it yet.
    pub(crate) fn confirm(&mut self, object: &VmName, ceiling: Ceiling) {
        let known = self.known.get(object).filter(|known| is_newer(ceiling, known.ceiling));
        if known.is_some() {
            self.confirmed.insert(object.clone(), (ceiling, false));
        }
    }

    /// The newest ceiling that is known of a VM.
    pub(crate) fn ceiling(&self, object: &VmName) -> Option<Ceiling> {
        let shown = self.known.get(object).and_then(|known| known.ceiling);
        self.confirmed.get(object).map(|(confirmed, _)| *confirmed).or(shown)
    }

    /// The bounds of the VM of this object, if it is known and says valid ones.
    pub(crate) fn bounds(&self, object: &VmName) -> Option<Bounds> {
        self.known.get(object).filter(|_| self.are_followed)?.bounds
    }

    /// What is known of a pod learns what the object of its VM says.
    pub(crate) fn show_to(&self, pod: &VmName, known: &mut Known) {
        let Some(object) = known.other_object().filter(|_| self.are_followed) else { return };
        let slot = self.known.get(object).and_then(|object| object.slot);
        let on_object = self.naming(pod, object).map(|VmObject { uid, has, .. }| {
            Box::new(OnObject { uid: uid.clone(), has: *has, ceiling: self.ceiling(object) })
        });
        known.record = Record::OnObject(on_object);
        if let Some(slot) = slot {
            known.counts_in(slot);
        }
    }

    /// A pod is known from here on as `next`, and was as `last`.
    pub(crate) fn note(&mut self, pod: &Arc<VmName>, last: Option<&Known>, next: Option<&Known>) {
        let before = last.and_then(Known::other_object);
        let after = next.and_then(Known::other_object);
        if before == after {
            return;
        }
        if let Some(object) = before
            && let Some(pods) = self.pods.get_mut(object)
        {
            pods.remove(pod);
            if pods.is_empty() {
                self.pods.remove(object);
            }
        }
        if let Some(object) = after {
            self.pods.entry(object.clone()).or_default().insert(Arc::clone(pod));
        }
    }
}

/// Whether a ceiling was recorded after another.
fn is_newer(ceiling: Ceiling, other: Option<Ceiling>) -> bool {
    other.is_none_or(|other| ceiling.order() > other.order())
}
