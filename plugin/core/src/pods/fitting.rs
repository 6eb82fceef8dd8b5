//! Ceilings that keep VMs from a place: recorded for what a VM was promised when another pod ran it.
//!
//! The pod of a VM that has an object of its own is placed with the VM's ceiling: what an agent wrote into the object may not be
//! known yet. While no pod runs the VM, no agent is promised anything. Once nothing that was promised before can be written any
//! more, the object, read anew, says what the VM starts with, and the ceiling is lowered to that.

use crate::ceilings;
use crate::cluster::Node;
use crate::pods::known::Known;
use crate::pods::objects::CeilingOn;
use crate::pods::{Freed, Pods};
use std::time::Duration;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::timing::{LONGEST_ACT, REQUEST_IS_LATE};
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Moment, Resources, VmName};

/// What an agent was promised for a pod that is gone it writes within this time, or never.
const RESTS: Duration = REQUEST_IS_LATE.saturating_add(LONGEST_ACT);

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The pods that wait for room while a ceiling of their VM asks for more than the VM starts with, and of which no pod ran for long
    /// enough: the object on which each ceiling is to be lowered, by the pod's name.
    pub fn ceilings_to_fit(&mut self, now: Moment) -> Vec<(VmName, CeilingOn)> {
        let waiting = self.waiting.pods();
        let kept = waiting.filter_map(|refused| Some((refused, self.too_high(&refused.name)?)));
        let since = |uid: &String| self.waiting.too_high.get(uid).copied().unwrap_or(now);
        let kept: Vec<_> = kept
            .map(|(refused, on)| {
                (refused.uid.clone(), since(&refused.uid), refused.name.clone(), on)
            })
            .collect();
        let due = kept.iter().filter(|(_, since, ..)| now.since(*since) >= RESTS);
        let due = due.map(|(.., name, on)| (name.clone(), on.clone())).collect();
        self.waiting.too_high = kept.into_iter().map(|(uid, since, ..)| (uid, since)).collect();
        due
    }

    /// The ceiling that takes the place of the one on this object of the VM of a waiting pod, which was read just now. `None`: the
    /// pod waits for something else by now.
    pub fn fitting_ceiling(&self, pod: &VmName, read: &VmObject, epoch: u64) -> Option<Ceiling> {
        let CeilingOn::Object(_, uid) = self.too_high(pod)? else { return None };
        let known = read.ceiling.filter(|_| read.uid == uid)?;
        let size = self.starts_with(pod, read)?;
        let lower = ceilings::next(Some(known), known.write, epoch, size.min(known.size));
        (lower.size != known.size).then_some(lower)
    }

    /// The object of the VM of a pod, if none of the VM's pods takes room and its ceiling is above what it starts with.
    fn too_high(&self, pod: &VmName) -> Option<CeilingOn> {
        let on = self.ceiling_on(pod)?;
        let object = self.pods.get(pod).and_then(Known::other_object)?;
        let known = self.objects.known.get(object)?;
        let size = self.starts_with(pod, known)?;
        let mut pods = self.objects.pods.get(object).into_iter().flatten();
        let runs = pods.any(|pod| self.pods.get(pod).is_some_and(|pod| pod.place().is_some()));
        (!runs && !size.covers(known.ceiling?.size)).then_some(on)
    }

    /// What the VM of a pod starts with by its object.
    fn starts_with(&self, pod: &VmName, object: &VmObject) -> Option<Resources> {
        let vm = self.pods.get(pod)?.vm()?;
        let size = object.has.max(vm.bounds.min);
        Some(Resources { mem: size.mem.round_up(vm.memory_slot), ..size })
    }

    /// A pod of a VM may ask for less since its object is known as it is now: on which nodes it fits.
    pub(super) fn asks_anew(&mut self, pod: &VmName) -> Freed {
        let mut freed = Freed::default();
        let Some(before) = self.waiting.asked(pod) else { return freed };
        let Some(known) = self.pods.get(pod) else { return freed };
        let asked = known.share().asked().max(self.comes_with(pod, known.vm()));
        self.waiting.asks(pod, asked);
        if !asked.covers(before) {
            let nodes = self.nodes.in_order().into_iter();
            let fits = |node: &str| self.open(node).is_some_and(|open| open.free().covers(asked));
            nodes.for_each(|(node, _)| freed.note(node, fits(node)));
        }
        freed
    }
}
