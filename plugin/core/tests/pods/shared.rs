//! A node that is shared with others, with an API server, a kubelet and its delays, and a controller whose writes are
//! lost or come late.
//!
//! The worst scheduler binds other pods without a look at what is free: the kubelet rejects what does not fit in beside
//! what it has allocated. What a VM has is what its agent was permitted.

use crate::cluster::{Held, NOW, cu, node, other, permit, vm};
use proptest::prelude::*;
use std::collections::BTreeMap;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{
    Change, HeadroomTerms, Mode, Outcome, Pool, Pools, Write, Written,
};
use windlass_plugin_core::{Ask, Pods};
use windlass_protocol::pod::{Allocation, Pending, Phase, Pod};
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName, node};

pub(crate) const OWN: &str = "own";
const NODE: &str = "n";
const SIZE: u64 = 8;
const NAMES: usize = 3;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A VM pod comes through the extender, with these compute units.
    Vm(usize, u64),
    /// Another pod is bound, whatever is free.
    Other(usize, u64),
    /// Another program has a VM pod request more, once it runs. That it requests less is a fact that no book can forestall.
    ResizeVm(usize, u64),
    /// A pod is over.
    End {
        is_vm: bool,
        name: usize,
    },
    /// The agent of a VM asks.
    Ask(usize, u64),
    /// The controller writes, and this becomes of it.
    Write(Fate),
    /// A write that was sent takes effect, if the pod is as it was.
    Land(usize),
    /// The kubelet looks at its pods.
    Look,
    /// The kubelet says what it has allocated to one of its pods.
    Report(usize),
    /// The watch delivers the next events.
    Deliver(usize),
    /// Another plugin starts, and touches the headroom pod later.
    Restart,
    Touch,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Answered,
    AnswerLost,
    UnderWay,
    Refused,
}

/// What the kubelet has of a pod.
#[derive(Clone, Copy)]
struct Admitted {
    allocated: Resources,
    seen: i64,
    pending: Option<Pending>,
}

pub(crate) struct Shared {
    pods: Pods<Held>,
    server: BTreeMap<VmName, Pod>,
    kubelet: BTreeMap<String, Admitted>,
    rejected: Vec<String>,
    permits: BTreeMap<String, Resources>,
    flying: Vec<Change>,
    events: Vec<(VmName, Option<Pod>, String)>,
    next: usize,
    count: i64,
    pub(crate) grants_beyond_requests: usize,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(spare: Option<u64>) -> Self {
        let mut shared = Self {
            pods: Pods::of(pools(spare)),
            server: BTreeMap::new(),
            kubelet: BTreeMap::new(),
            rejected: Vec::new(),
            permits: BTreeMap::new(),
            flying: Vec::new(),
            events: Vec::new(),
            next: 0,
            count: 0,
            grants_beyond_requests: 0,
        };
        shared.pods.nodes_listed(vec![shared_node(SIZE)], |_| Held::empty());
        shared
    }

    pub(crate) fn step(&mut self, step: &Step, spare: Option<u64>) {
        match *step {
            Step::Vm(name, units) => self.place(&vm_name(name), units),
            Step::Other(name, units) => {
                let name = other_name(name);
                let pod = Pod { node: Some(NODE.to_owned()), ..other(&name.name, units) };
                self.create(&name, pod);
            }
            Step::ResizeVm(name, units) => {
                let is_reported = |pod: &Pod| pod.allocation.as_ref()?.allocated.map(drop);
                let grows =
                    |pod: &Pod| is_reported(pod).is_some() && cu(units).covers(pod.requests);
                if self.server.get(&vm_name(name)).is_some_and(grows) {
                    self.respec(&vm_name(name), cu(units));
                }
            }
            Step::End { is_vm, name } => {
                self.end(&if is_vm { vm_name(name) } else { other_name(name) });
            }
            Step::Ask(name, units) => self.ask(&vm_name(name), units),
            Step::Write(fate) => {
                for change in self.pods.headroom_plan(NOW) {
                    if self.pods.headroom_sent(&change) {
                        self.write(change, fate);
                    }
                }
            }
            Step::Land(nth) if !self.flying.is_empty() => {
                let change = self.flying.remove(nth % self.flying.len());
                self.land(&change);
            }
            Step::Land(_) => {}
            Step::Look => self.look(),
            Step::Report(nth) => {
                let uids: Vec<String> = self.kubelet.keys().cloned().collect();
                if let Some(uid) = uids.get(nth % uids.len().max(1)) {
                    self.report(uid);
                }
                for uid in std::mem::take(&mut self.rejected) {
                    self.change_of(&uid, |pod| pod.phase = Phase::Failed);
                }
            }
            Step::Deliver(many) => (0..many).for_each(|_| self.deliver()),
            Step::Restart => {
                self.pods = Pods::of(pools(spare));
                self.pods.nodes_listed(vec![shared_node(SIZE)], |_| Held::empty());
                self.pods.pods_listed(self.server.values().cloned().collect());
                self.pods.inherit_headroom();
                self.next = self.events.len();
            }
            Step::Touch => {
                let headroom = pools(spare).headroom_of(NODE);
                self.change(&headroom, |_| {});
            }
        }
    }

    /// What the pods that run may have, the headroom pod aside.
    pub(crate) fn in_use(&self) -> Resources {
        let of = |pod: &Pod| {
            let allocated = self.kubelet.get(&pod.uid)?.allocated;
            let permit = self.permits.get(&pod.uid).copied().unwrap_or_default();
            (pod.name.namespace != OWN).then(|| allocated.max(permit))
        };
        self.server.values().filter_map(of).fold(Resources::ZERO, Resources::saturating_add)
    }

    fn place(&mut self, name: &VmName, units: u64) {
        if self.server.contains_key(name) {
            return;
        }
        self.create(name, vm(&name.name, units));
        let pod = self.server[name].clone();
        if self.pods.place(&pod, NODE).is_ok() {
            self.change(name, |pod| pod.node = Some(NODE.to_owned()));
            self.pods.settle(name, &pod.uid, Outcome::Bound);
        }
    }

    fn create(&mut self, name: &VmName, pod: Pod) {
        if self.server.contains_key(name) {
            return;
        }
        let allocation = (pod.vm.is_some() || pod.is_headroom).then(|| {
            let spec = pod.requests;
            Box::new(Allocation {
                spec,
                allocated: None,
                generation: 1,
                is_observed: false,
                pending: None,
            })
        });
        let uid = format!("uid {}", self.count);
        self.server.insert(name.clone(), Pod { uid, allocation, ..pod });
        self.change(name, |_| {});
    }

    fn respec(&mut self, name: &VmName, spec: Resources) {
        self.change(name, |pod| {
            if let Some(it) = pod.allocation.as_mut().filter(|it| it.spec != spec) {
                (it.spec, it.generation, it.is_observed) = (spec, it.generation + 1, false);
                pod.requests = it.spec.max(it.allocated.unwrap_or_default());
            }
        });
    }

    fn end(&mut self, name: &VmName) {
        if let Some(pod) = self.server.remove(name) {
            self.permits.remove(&pod.uid);
            self.kubelet.remove(&pod.uid);
            self.events.push((name.clone(), None, pod.uid));
        }
    }

    fn ask(&mut self, name: &VmName, units: u64) {
        let Some(pod) = self.server.get(name) else { return };
        // Nothing runs before the kubelet has admitted it.
        if !self.kubelet.contains_key(&pod.uid) {
            return;
        }
        let Some(held) = self.pods.node_of(name) else { return };
        let last = self.permits.get(&pod.uid).copied();
        let ask = Ask { last_permit: Some(last.unwrap_or_default()), ..Ask::from(cu(units)) };
        let granted = held.with_books(|books| permit(books, NOW, name, ask));
        let grew = !pod.requests.covers(granted.permit) && last != Some(granted.permit);
        self.grants_beyond_requests += usize::from(grew);
        self.permits.insert(pod.uid.clone(), granted.permit);
    }

    fn write(&mut self, change: Change, fate: Fate) {
        let written = match fate {
            Fate::Answered => {
                self.land(&change);
                Written::Answered
            }
            Fate::AnswerLost => {
                self.land(&change);
                Written::Unknown
            }
            Fate::UnderWay => {
                self.flying.push(change.clone());
                Written::Unknown
            }
            Fate::Refused => Written::Refused,
        };
        self.pods.headroom_written(&change, written);
    }

    fn land(&mut self, change: &Change) {
        let name = change.pod.clone();
        let is_same = |uid: &str, revision: &str| {
            self.server.get(&name).is_some_and(|pod| pod.uid == uid && pod.revision == revision)
        };
        match &change.write {
            Write::Create { size } => self.create(&name, headroom_pod(&name, *size)),
            Write::Resize { uid, revision, size, .. } if is_same(uid, revision) => {
                self.respec(&name, *size);
            }
            Write::Delete { uid, revision, .. } if is_same(uid, revision) => self.end(&name),
            Write::Resize { .. } | Write::Delete { .. } => {}
        }
    }

    /// The kubelet admits what fits in beside what it has allocated, and resizes.
    fn look(&mut self) {
        let pods: Vec<Pod> = self.server.values().cloned().collect();
        for pod in pods.iter().filter(|pod| pod.node.is_some() && !pod.phase.is_ended()) {
            let spec = pod.allocation.as_ref().map_or(pod.requests, |it| it.spec);
            let seen = pod.allocation.as_ref().map_or(0, |it| it.generation);
            let others = self.kubelet.iter().filter(|(uid, _)| **uid != pod.uid);
            let used = others.map(|(_, it)| it.allocated);
            let used = used.fold(Resources::ZERO, Resources::saturating_add);
            let fits = cu(SIZE).covers(used.saturating_add(spec));
            match self.kubelet.get_mut(&pod.uid) {
                Some(it) if fits => *it = Admitted { allocated: spec, seen, pending: None },
                Some(it) => (it.seen, it.pending) = (seen, Some(Pending::Deferred)),
                None if self.rejected.contains(&pod.uid) => {}
                None if fits => {
                    let admitted = Admitted { allocated: spec, seen, pending: None };
                    self.kubelet.insert(pod.uid.clone(), admitted);
                }
                None => self.rejected.push(pod.uid.clone()),
            }
        }
    }

    fn report(&mut self, uid: &str) {
        let Admitted { allocated, seen, pending } = self.kubelet[uid];
        self.change_of(uid, |pod| {
            pod.phase = Phase::Running;
            if let Some(it) = &mut pod.allocation {
                (it.allocated, it.pending) = (Some(allocated), pending);
                it.is_observed = seen >= it.generation;
                pod.requests = it.spec.max(allocated);
            }
        });
    }

    fn change_of(&mut self, uid: &str, change: impl FnOnce(&mut Pod)) {
        let name = self.server.values().find(|pod| pod.uid == uid).map(|pod| pod.name.clone());
        if let Some(name) = name {
            self.change(&name, change);
        }
    }

    fn change(&mut self, name: &VmName, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.server.get_mut(name) {
            change(pod);
            self.count += 1;
            pod.revision = self.count.to_string();
            self.events.push((name.clone(), Some(pod.clone()), pod.uid.clone()));
        }
    }

    fn deliver(&mut self) {
        if let Some((name, pod, uid)) = self.events.get(self.next).cloned() {
            self.next += 1;
            match pod {
                Some(pod) => drop(self.pods.pod_seen(pod)),
                None => drop(self.pods.pod_gone(&name, &uid)),
            }
        }
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES;
    prop_oneof![
        3 => (name.clone(), 1..3_u64).prop_map(|(name, units)| Step::Vm(name, units)),
        3 => (name.clone(), 1..5_u64).prop_map(|(name, units)| Step::Other(name, units)),
        1 => (name.clone(), 1..4_u64).prop_map(|(name, units)| Step::ResizeVm(name, units)),
        2 => (any::<bool>(), name.clone()).prop_map(|(is_vm, name)| Step::End { is_vm, name }),
        6 => (name, 1..5_u64).prop_map(|(name, units)| Step::Ask(name, units)),
        6 => fate().prop_map(Step::Write),
        3 => (0..4_usize).prop_map(Step::Land),
        8 => Just(Step::Look),
        8 => (0..7_usize).prop_map(Step::Report),
        10 => (1..8_usize).prop_map(Step::Deliver),
        1 => Just(Step::Restart),
        1 => Just(Step::Touch),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        2 => Just(Fate::UnderWay),
        1 => Just(Fate::Refused),
    ]
}

/// One pool of shared nodes; the rest of the cluster is dedicated.
pub(crate) fn pools(spare: Option<u64>) -> Pools {
    let terms = HeadroomTerms {
        cpu: spare.map(MilliCpu::from_cores),
        mem: spare.map(Bytes::from_gib),
        ..HeadroomTerms::default()
    };
    let labels = BTreeMap::from([("kind".to_owned(), "shared".to_owned())]);
    let pool =
        Pool { name: "shared".to_owned(), labels, mode: Mode::Headroom(terms), watermark: None };
    Pools { pools: vec![pool], namespace: OWN.to_owned(), ..Pools::default() }
}

/// A node of that pool.
pub(crate) fn shared_node(units: u64) -> node::Node {
    let labels = BTreeMap::from([("kind".to_owned(), "shared".to_owned())]);
    node::Node { labels, ..node(NODE, cu(units)) }
}

/// A headroom pod of this node that no kubelet has seen yet.
pub(crate) fn headroom_pod(name: &VmName, size: Resources) -> Pod {
    Pod {
        name: name.clone(),
        node: Some(NODE.to_owned()),
        requests: size,
        is_headroom: true,
        ..other(&name.name, 0)
    }
}

fn vm_name(name: usize) -> VmName {
    VmName::on_host(format!("vm{name}"))
}

fn other_name(name: usize) -> VmName {
    VmName::on_host(format!("other{name}"))
}
