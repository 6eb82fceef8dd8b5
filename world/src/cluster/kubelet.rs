//! The kubelet of one node: it admits what fits in beside what it has allocated, resizes, and says so later. New limits are in
//! force after it has said what it allocated.

use crate::cluster::api::Api;
use crate::cluster::pods::{beside, container};
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::Resources;
use windlass_protocol::pod::{Limits, Pending, Phase, Pod};

/// What it has of its pods, by uid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kubelet {
    admitted: BTreeMap<String, Admitted>,
    rejected: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Admitted {
    allocated: Resources,
    /// Of that, what is not the VM's container's.
    beside: Resources,
    /// The limits of the VM's container, once all is carried out, and those in force.
    limits: Limits,
    enforced: Limits,
    seen: i64,
    pending: Option<Pending>,
}

/// What one look came to.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Pods that run from here on, and those that do no more, by uid.
    pub(crate) started: Vec<String>,
    pub(crate) ended: Vec<String>,
    /// How many resizes are deferred, how many can never be, and how many pods are rejected.
    pub(crate) deferred: usize,
    pub(crate) infeasible: usize,
    pub(crate) rejected: usize,
}

// === impl Kubelet ===

impl Kubelet {
    /// It looks at the pods of its node. Shrinks come first.
    pub(crate) fn look(&mut self, api: &Api, node: &str) -> Looked {
        let mut looked = Looked::default();
        let Some(size) = api.nodes.get(node).map(|node| node.allocatable) else { return looked };
        let here: BTreeSet<&str> = api.on(node).map(|pod| pod.uid.as_str()).collect();
        let is_gone = |uid: &&String| !here.contains(uid.as_str());
        looked.ended = self.admitted.keys().filter(is_gone).cloned().collect();
        self.admitted.retain(|uid, _| here.contains(uid.as_str()));
        let mut pods: Vec<_> = api.on(node).collect();
        pods.sort_by_key(|pod| {
            let grows = |it: &Admitted| !it.allocated.covers(spec_of(pod).0);
            self.admitted.get(&pod.uid).is_none_or(grows)
        });
        for pod in pods {
            let (spec, seen) = spec_of(pod);
            let others = self.admitted.iter().filter(|(uid, _)| **uid != pod.uid);
            let used =
                others.fold(Resources::ZERO, |sum, (_, it)| sum.saturating_add(it.allocated));
            let fits = size.covers(used.saturating_add(spec));
            match self.admitted.get_mut(&pod.uid) {
                Some(it) if fits || it.allocated.covers(spec) => it.carry_out(pod),
                Some(it) if size.covers(spec) => {
                    looked.deferred += usize::from(it.pending.is_none());
                    (it.seen, it.pending) = (seen, Some(Pending::Deferred));
                }
                Some(it) => {
                    looked.infeasible += usize::from(it.pending.is_none());
                    (it.seen, it.pending) = (seen, Some(Pending::Infeasible));
                }
                None if self.rejected.contains(&pod.uid) || pod.is_terminating => {}
                None if fits => {
                    self.admitted.insert(pod.uid.clone(), Admitted::of(pod));
                    looked.started.push(pod.uid.clone());
                }
                None => {
                    looked.rejected += 1;
                    self.rejected.insert(pod.uid.clone());
                }
            }
        }
        looked
    }

    /// These pods have ended. It starts one anew that is said to be there after all.
    pub(crate) fn forget(&mut self, ended: &BTreeSet<&str>) {
        self.admitted.retain(|uid, _| !ended.contains(uid.as_str()));
    }

    /// It says of its pods what it has done. Whether there is more to say: limits came into force meanwhile.
    pub(crate) fn report(&mut self, api: &mut Api, node: &str) -> bool {
        let pods: Vec<_> = api.on(node).cloned().collect();
        for pod in pods {
            let mut next = Pod::clone(&pod);
            match self.admitted.get(&pod.uid) {
                Some(admitted) => admitted.say(&mut next),
                None if self.rejected.contains(&pod.uid) => next.phase = Phase::Failed,
                None => {}
            }
            if next != *pod {
                api.change(&pod.name, |pod| *pod = next);
            }
        }
        let late = self.admitted.values_mut().filter(|it| it.enforced != it.limits);
        late.fold(false, |_, it| {
            it.enforced = it.limits;
            true
        })
    }

    /// What it has allocated to a pod, if it has admitted it.
    pub(crate) fn allocated(&self, uid: &str) -> Option<Resources> {
        self.admitted.get(uid).map(|it| it.allocated)
    }

    /// What the container of a VM has whatever comes: what is allocated, within the limits in force.
    pub(crate) fn ensures(&self, uid: &str) -> Option<Resources> {
        let it = self.admitted.get(uid)?;
        let own = it.allocated.saturating_sub(it.beside);
        Some(Resources {
            cpu: it.enforced.cpu.map_or(own.cpu, |limit| limit.min(own.cpu)),
            mem: it.enforced.mem.map_or(own.mem, |limit| limit.min(own.mem)),
        })
    }
}

// === impl Admitted ===

impl Admitted {
    /// A pod that was not admitted before has its limits from the start.
    fn of(pod: &Pod) -> Self {
        let limits = limits_of(pod);
        let ((allocated, seen), beside) = (spec_of(pod), beside(pod));
        Self { allocated, beside, limits, enforced: limits, seen, pending: None }
    }

    fn carry_out(&mut self, pod: &Pod) {
        *self = Self { enforced: self.enforced, ..Self::of(pod) };
    }

    fn say(&self, pod: &mut Pod) {
        pod.phase = Phase::Running;
        if let Some(it) = &mut pod.allocation {
            (it.allocated, it.pending) = (Some(self.allocated), self.pending);
            it.is_observed = self.seen >= it.generation;
        }
        let container = pod.vm.as_mut().and_then(|vm| vm.container.as_deref_mut());
        if let Some(container) = container {
            container.allocated = Some(self.allocated.saturating_sub(self.beside));
            container.enforced = self.enforced;
        }
    }
}

/// What a pod asks for, and the number of its spec.
fn spec_of(pod: &Pod) -> (Resources, i64) {
    pod.allocation.as_ref().map_or((pod.requests, 0), |it| (it.spec, it.generation))
}

fn limits_of(pod: &Pod) -> Limits {
    container(pod).map(|container| container.limits).unwrap_or_default()
}
