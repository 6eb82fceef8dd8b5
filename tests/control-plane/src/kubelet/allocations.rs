//! What a kubelet has allocated to its pods, and its answer to a pod that comes or wants another size.
//!
//! As in Kubernetes' `pkg/kubelet/allocation`: what counts of a pod is what was allocated to it, and not what its
//! spec says; pods that want another size are served in the order of `sortPendingResizes`. Of what else the
//! kubelet looks at, nothing is here: ports, affinity, taints, policies of its managers.

use crate::amounts::{Amounts, Quantities};
use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The condition of a pod whose size is not what it wants.
pub(super) const PENDING: &str = "PodResizePending";

/// The pods of a node.
#[derive(Debug)]
pub(super) struct Allocations {
    allocatable: Amounts,
    most_pods: usize,
    pods: BTreeMap<String, Held>,
    /// How many answers there were; they are in this order.
    answers: u64,
}

#[derive(Debug)]
struct Held {
    /// As the API server has it.
    wanted: Pod,
    /// The same, with the resources that are allocated.
    allocated: Pod,
    waits: Option<Waits>,
}

/// A pod's size is not what it wants.
#[derive(Debug)]
struct Waits {
    answer: Answer,
    /// The pod's generation at that answer.
    generation: Option<i64>,
    /// When the answer became what it is, in the order of answers.
    since: u64,
}

/// Why a pod does not come, or does not get the size that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// `OutOfcpu`; `Deferred`.
    pub(super) reason: &'static str,
    /// In the kubelet's words.
    pub(super) message: String,
}

/// What became of a pod that wants another size.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has it.
    Allocated {
        /// With what was allocated before.
        before: Box<Pod>,
        /// With what is.
        now: Box<Pod>,
    },
    /// It waits, or waits in vain.
    Pending(Box<Pod>, Answer),
}

// === impl Allocations ===

impl Allocations {
    /// Those of a node that can give this.
    pub(super) fn of(allocatable: &Quantities) -> Self {
        let pods = allocatable.get("pods").and_then(|count| count.0.parse().ok());
        let most_pods = pods.unwrap_or(0);
        let allocatable = Amounts::of(allocatable);
        Self { allocatable, most_pods, pods: BTreeMap::new(), answers: 0 }
    }

    /// Whether this pod was admitted.
    pub(super) fn has(&self, pod: &Pod) -> bool {
        self.pods.contains_key(uid(pod))
    }

    /// Admits a pod with what it requests, if there is room.
    pub(super) fn admit(&mut self, pod: &Pod) -> Result<(), Answer> {
        self.fits(pod)?;
        self.hold(pod, pod.clone());
        Ok(())
    }

    /// Takes over a pod with what its status says is allocated.
    fn adopt(&mut self, pod: &Pod) {
        let mut allocated = pod.clone();
        let status = pod.status.as_ref();
        let statuses = status.and_then(|status| status.container_statuses.as_ref());
        for status in statuses.into_iter().flatten() {
            let containers = allocated.spec.iter_mut().flat_map(|spec| &mut spec.containers);
            for container in containers.filter(|container| container.name == status.name) {
                let reported = status.resources.clone().unwrap_or_default();
                let requests = status.allocated_resources.clone();
                container.resources = Some(ResourceRequirements { requests, ..reported });
            }
        }
        self.hold(pod, allocated);
    }

    fn hold(&mut self, pod: &Pod, allocated: Pod) {
        let held = Held { wanted: pod.clone(), allocated, waits: None };
        self.pods.insert(uid(pod).to_owned(), held);
    }

    /// Hears what a running pod is now, and says whether its status speaks of another size that it no longer
    /// wants. An unknown pod was admitted by an earlier kubelet.
    pub(super) fn hear(&mut self, pod: &Pod) -> bool {
        if !self.has(pod) {
            self.adopt(pod);
        }
        let Some(held) = self.pods.get_mut(uid(pod)) else { return false };
        held.wanted = pod.clone();
        if held.wants_another_size() {
            return false;
        }
        held.waits = None;
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == PENDING)
    }

    /// Gives back what a pod has.
    pub(super) fn forget(&mut self, pod: &Pod) {
        self.pods.remove(uid(pod));
    }

    /// Forgets all pods but these.
    pub(super) fn keep(&mut self, pods: &[Pod]) {
        self.pods.retain(|known, _| pods.iter().any(|pod| uid(pod) == known));
    }

    /// Serves those that want another size, and says what is new.
    pub(super) fn retry(&mut self) -> Vec<Outcome> {
        let pending = self.pods.iter().filter(|(_, held)| held.wants_another_size());
        let mut pending: Vec<_> = pending.map(|(uid, held)| (held.turn(), uid.clone())).collect();
        pending.sort();
        pending.into_iter().filter_map(|(_, uid)| self.resize(&uid)).collect()
    }

    fn resize(&mut self, uid: &str) -> Option<Outcome> {
        let wanted = &self.pods.get(uid)?.wanted;
        let answer = self.feasible(wanted).and_then(|()| self.fits(wanted));
        self.answers += 1;
        let held = self.pods.get_mut(uid)?;
        let Err(answer) = answer else {
            held.waits = None;
            let before = std::mem::replace(&mut held.allocated, held.wanted.clone());
            let now = Box::new(held.wanted.clone());
            return Some(Outcome::Allocated { before: Box::new(before), now });
        };
        let generation = held.wanted.metadata.generation;
        let same = held.waits.as_ref().filter(|waits| waits.answer.reason == answer.reason);
        let told = same.is_some_and(|waits| waits.generation == generation);
        let since = same.map_or(self.answers, |waits| waits.since);
        held.waits = Some(Waits { answer: answer.clone(), generation, since });
        (!told).then(|| Outcome::Pending(Box::new(held.wanted.clone()), answer))
    }

    /// Whether the node could give this if it had no other pods.
    fn feasible(&self, pod: &Pod) -> Result<(), Answer> {
        let (wants, has) = (Amounts::requested(pod), self.allocatable);
        let what = if wants.memory > has.memory {
            format!("memory, requested: {}, capacity: {}", wants.memory, has.memory)
        } else if wants.cpu > has.cpu {
            format!("cpu, requested: {}, capacity: {}", wants.cpu, has.cpu)
        } else {
            return Ok(());
        };
        let message = format!("Node didn't have enough capacity: {what}");
        Err(Answer { reason: "Infeasible", message })
    }

    /// Whether this fits beside what the other pods have; the first reason, as the kubelet gives it.
    fn fits(&self, pod: &Pod) -> Result<(), Answer> {
        let others = self.pods.iter().filter(|(known, _)| *known != uid(pod));
        let others: Vec<&Pod> = others.map(|(_, held)| &held.allocated).collect();
        let used = others.iter().map(|pod| Amounts::requested(pod));
        let used = used.fold(Amounts::default(), |sum, pod| sum + pod);
        let (wants, has) = (Amounts::requested(pod), self.allocatable);
        let room = has - used;
        let said = |what, wants, used, has| {
            format!(
                "Node didn't have enough resource: {what}, requested: {wants}, used: {used}, capacity: {has}"
            )
        };
        let (reason, message) = if others.len() >= self.most_pods {
            let used = i64::try_from(others.len()).unwrap();
            let has = i64::try_from(self.most_pods).unwrap();
            ("OutOfpods", said("pods", 1, used, has))
        } else if wants.cpu > 0 && wants.cpu > room.cpu {
            ("OutOfcpu", said("cpu", wants.cpu, used.cpu, has.cpu))
        } else if wants.memory > 0 && wants.memory > room.memory {
            ("OutOfmemory", said("memory", wants.memory, used.memory, has.memory))
        } else {
            return Ok(());
        };
        let reason = if self.has(pod) { "Deferred" } else { reason };
        Err(Answer { reason, message })
    }
}

// === impl Held ===

impl Held {
    fn wants_another_size(&self) -> bool {
        resources(&self.wanted) != resources(&self.allocated)
    }

    /// When its turn is: what does not grow, higher priority, guaranteed pods, what waits longest.
    fn turn(&self) -> (bool, Reverse<i32>, bool, u64) {
        let (wants, has) = (Amounts::requested(&self.wanted), Amounts::requested(&self.allocated));
        let grows = wants.cpu > has.cpu || wants.memory > has.memory;
        let priority = self.wanted.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
        let class = self.wanted.status.as_ref().and_then(|status| status.qos_class.as_deref());
        let since = self.waits.as_ref().map_or(u64::MAX, |waits| waits.since);
        (grows, Reverse(priority), class != Some("Guaranteed"), since)
    }
}

/// The resources of each container that may have others.
fn resources(pod: &Pod) -> Vec<(&str, Option<&ResourceRequirements>)> {
    let spec = pod.spec.as_ref();
    let sidecars = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let all = sidecars.chain(containers);
    all.map(|container| (container.name.as_str(), container.resources.as_ref())).collect()
}

/// What a pod is known by.
pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
