//! The kubelet of one node: it admits what fits in beside what it has allocated, resizes, and says so later.

use crate::cluster::api::Api;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::Resources;
use windlass_protocol::pod::{Pending, Phase};

/// What it has of its pods, by uid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kubelet {
    admitted: BTreeMap<String, Admitted>,
    rejected: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Admitted {
    allocated: Resources,
    seen: i64,
    pending: Option<Pending>,
}

/// What one look came to.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Pods that run from here on, by uid.
    pub(crate) started: Vec<String>,
    /// How many resizes are deferred, and how many pods rejected.
    pub(crate) deferred: usize,
    pub(crate) rejected: usize,
}

// === impl Kubelet ===

impl Kubelet {
    /// It looks at the pods of its node. Shrinks come first.
    pub(crate) fn look(&mut self, api: &Api, node: &str) -> Looked {
        let mut looked = Looked::default();
        let Some(size) = api.nodes.get(node).map(|node| node.allocatable) else { return looked };
        let here: BTreeSet<&str> = api.on(node).map(|pod| pod.uid.as_str()).collect();
        self.admitted.retain(|uid, _| here.contains(uid.as_str()));
        let spec_of = |pod: &windlass_protocol::pod::Pod| {
            pod.allocation.as_ref().map_or((pod.requests, 0), |it| (it.spec, it.generation))
        };
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
                Some(it) if fits => *it = Admitted { allocated: spec, seen, pending: None },
                Some(it) => {
                    looked.deferred += usize::from(it.pending.is_none());
                    (it.seen, it.pending) = (seen, Some(Pending::Deferred));
                }
                None if self.rejected.contains(&pod.uid) || pod.is_terminating => {}
                None if fits => {
                    let admitted = Admitted { allocated: spec, seen, pending: None };
                    self.admitted.insert(pod.uid.clone(), admitted);
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

    /// It says of its pods what it has done.
    pub(crate) fn report(&self, api: &mut Api, node: &str) {
        let pods: Vec<_> = api.on(node).cloned().collect();
        for pod in pods {
            let mut next = windlass_protocol::pod::Pod::clone(&pod);
            match self.admitted.get(&pod.uid) {
                Some(Admitted { allocated, seen, pending }) => {
                    next.phase = Phase::Running;
                    if let Some(it) = &mut next.allocation {
                        (it.allocated, it.pending) = (Some(*allocated), *pending);
                        it.is_observed = *seen >= it.generation;
                        next.requests = it.spec.max(*allocated);
                    }
                }
                None if self.rejected.contains(&pod.uid) => next.phase = Phase::Failed,
                None => {}
            }
            if next != *pod {
                api.change(&pod.name, |pod| *pod = next);
            }
        }
    }
}
