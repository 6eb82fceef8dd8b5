//! A node whose VMs' pods are resized, with an API server, a kubelet and its delays, agents whose requests are late, and a
//! plugin whose writes are lost or come late.
//!
//! The worst scheduler binds other pods without a look at what is free: the kubelet rejects what does not fit in beside
//! what it has allocated. What a VM has is what its agent was permitted, once the answer reaches it.

use crate::cluster::{Held, NOW, cu, other};
use crate::resizing::{self, Has, pools, resized_node};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Resize, Written};
use windlass_plugin_core::{Ask, Pods, Proposed};
use windlass_protocol::pod::{Pending, Phase, Pod};
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Moment, Resources, VmName};

pub(crate) const SIZE: u64 = 8;
const NAMES: usize = 3;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A VM pod is bound past the plugin, with these compute units.
    Vm(usize, u64),
    /// The pod of a VM of another object is bound, with these compute units; the VM has this much from the start.
    OfAnother(usize, u64, u64),
    /// Another pod is bound, whatever is free.
    Other(usize, u64),
    /// Another pod is bound and a VM asks, before the watch shows either; the kubelet looks at both.
    Race(usize, u64),
    /// A pod is over.
    End {
        is_vm: bool,
        name: usize,
    },
    /// The agent of a VM asks, and the answer reaches it or not.
    Ask {
        name: usize,
        units: u64,
        is_heard: bool,
    },
    /// A request that was sent before arrives once more; nobody hears the answer.
    Repeat(usize),
    /// The plugin writes what is due, and this becomes of it.
    Write(Fate),
    /// A write that was sent takes effect, if the pod is as it was.
    Land(usize),
    /// The kubelet looks at its pods.
    Look,
    /// The kubelet says what it has allocated to its pods, or to one of them.
    Report(usize),
    /// The watch delivers the next events.
    Deliver(usize),
    /// So many tenths of a second go by.
    Wait(u64),
    /// Another plugin starts, and touches the pods later.
    Restart,
    Touch(usize),
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
    allocated: u64,
    seen: i64,
    pending: Option<Pending>,
}

/// A VM and its agent.
#[derive(Clone, Copy)]
struct Agent {
    has: u64,
    /// What it was last permitted, if it was permitted anything.
    last: Option<u64>,
}

/// What a pod is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A VM.
    Vm,
    /// The pod of a VM to which another object gave this much.
    OfAnother { has: u64 },
    /// No VM.
    Other,
}

/// A pod at the API server.
#[derive(Clone)]
struct Object {
    uid: String,
    revision: String,
    kind: Kind,
    spec: u64,
    generation: i64,
    allocated: Option<u64>,
    is_observed: bool,
    pending: Option<Pending>,
    has_ended: bool,
}

pub(crate) struct Resized {
    pods: Pods<Held>,
    server: BTreeMap<VmName, Object>,
    kubelet: BTreeMap<String, Admitted>,
    rejected: Vec<String>,
    agents: BTreeMap<String, Agent>,
    /// What agents have sent, and when.
    asked: Vec<(Moment, VmName, String, Ask)>,
    flying: Vec<Resize>,
    events: Vec<(VmName, Option<Pod>, String)>,
    next: usize,
    count: i64,
    now: Moment,
    pub(crate) grown: usize,
    pub(crate) given_up: usize,
}

// === impl Resized ===

impl Resized {
    pub(crate) fn new() -> Self {
        Self {
            pods: resizing::resized(SIZE),
            server: BTreeMap::new(),
            kubelet: BTreeMap::new(),
            rejected: Vec::new(),
            agents: BTreeMap::new(),
            asked: Vec::new(),
            flying: Vec::new(),
            events: Vec::new(),
            next: 0,
            count: 0,
            now: NOW,
            grown: 0,
            given_up: 0,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Vm(name, units) => self.create(&vm_name(name), units, Kind::Vm),
            Step::OfAnother(name, units, has) => {
                self.create(&vm_name(name), units, Kind::OfAnother { has });
            }
            Step::Other(name, units) => self.create(&other_name(name), units, Kind::Other),
            Step::Race(name, units) => {
                self.create(&other_name(name), units, Kind::Other);
                self.look();
                self.ask(&vm_name(name), units, true);
                self.step(&Step::Write(Fate::Answered));
                self.look();
            }
            Step::End { is_vm, name } => {
                self.end(&if is_vm { vm_name(name) } else { other_name(name) });
            }
            Step::Ask { name, units, is_heard } => self.ask(&vm_name(name), units, is_heard),
            Step::Repeat(nth) if !self.asked.is_empty() => {
                let (at, name, uid, ask) =
                    self.asked[self.asked.len() - 1 - nth % self.asked.len()].clone();
                let is_there = self.server.get(&name).is_some_and(|pod| pod.uid == uid);
                if is_there && self.now.since(at) < REQUEST_IS_LATE {
                    self.answer(&name, ask);
                }
            }
            Step::Repeat(_) => {}
            Step::Write(fate) => {
                let due: Vec<VmName> = self.pods.resized().cloned().collect();
                for vm in due {
                    if let Some(resize) = self.pods.resize_due(self.now, &vm)
                        && self.pods.resize_sent(self.now, &resize)
                    {
                        self.write(resize, fate);
                    }
                }
            }
            Step::Land(nth) if !self.flying.is_empty() => {
                let resize = self.flying.remove(nth % self.flying.len());
                self.land(&resize);
            }
            Step::Land(_) => {}
            Step::Look => self.look(),
            Step::Report(nth) => self.report(nth),
            Step::Deliver(many) => (0..many).for_each(|_| self.deliver()),
            Step::Wait(tenths) => self.now = self.now.after(Duration::from_millis(tenths * 100)),
            Step::Restart => self.restart(),
            Step::Touch(name) => self.change(&vm_name(name), |_| {}),
        }
    }

    /// What the pods that run have: of a VM the larger of what is allocated to it and of its size. What a VM of another object
    /// has beyond that, no kubelet knows.
    pub(crate) fn in_use(&self) -> u64 {
        let of = |pod: &Object| {
            let allocated = self.kubelet.get(&pod.uid)?.allocated;
            let agent = self.agents.get(&pod.uid).filter(|_| pod.kind == Kind::Vm);
            Some(allocated.max(agent.map_or(0, |agent| agent.has)))
        };
        self.server.values().filter_map(of).sum()
    }

    /// A VM that has more than its kubelet has allocated to it and more than another object gave it, or than the books keep for it.
    pub(crate) fn uncovered(&self) -> Option<String> {
        let vms = self.server.iter().filter_map(|(name, pod)| {
            Some((name, pod, self.agents.get(&pod.uid)?.has, self.kubelet.get(&pod.uid)?.allocated))
        });
        let booked = |name: &VmName| {
            let node = self.pods.node_of(name)?;
            node.with_books(|books| books.reserved_for(name))
        };
        let is_known = |name: &VmName, pod: &Object| {
            self.pods.pod_revision(name).is_some() && self.pods.uid_of(name) == Some(&pod.uid)
        };
        vms.filter(|(name, pod, size, allocated)| {
            let booked = booked(name).unwrap_or_default();
            *size > pod.kind.given().max(*allocated)
                || (is_known(name, pod) && !booked.covers(cu(*size)))
        })
        .map(|(name, _, size, allocated)| {
            format!("{name} has {size} of {allocated}, and {:?} in the books", booked(name))
        })
        .next()
    }

    fn create(&mut self, name: &VmName, spec: u64, kind: Kind) {
        // An agent names its VM by the pod's name alone: one that follows another is placed through the plugin, which reads it.
        let mut to_come = self.events[self.next..].iter();
        let is_unseen = to_come.any(|(other, ..)| other == name);
        if self.server.contains_key(name) || self.pods.uid_of(name).is_some() || is_unseen {
            return;
        }
        let pod = Object {
            uid: format!("uid {}", self.count),
            revision: String::new(),
            kind,
            spec,
            generation: 1,
            allocated: None,
            is_observed: false,
            pending: None,
            has_ended: false,
        };
        if let Kind::OfAnother { has } = kind {
            self.agents.insert(pod.uid.clone(), Agent { has, last: None });
        }
        self.server.insert(name.clone(), pod);
        self.change(name, |_| {});
    }

    fn end(&mut self, name: &VmName) {
        if let Some(pod) = self.server.remove(name) {
            self.agents.remove(&pod.uid);
            self.kubelet.remove(&pod.uid);
            self.events.push((name.clone(), None, pod.uid));
        }
    }

    fn ask(&mut self, name: &VmName, units: u64, is_heard: bool) {
        let Some(Object { uid, spec, .. }) = self.server.get(name).cloned() else { return };
        // Nothing runs before the kubelet has admitted it.
        if !self.kubelet.contains_key(&uid) {
            return;
        }
        let first = Agent { has: spec.min(1), last: Some(spec.min(1)) };
        let agent = *self.agents.entry(uid.clone()).or_insert(first);
        // An agent that was permitted nothing yet says what the VM has.
        let units = agent.last.map_or(agent.has, |_| units);
        // What the VM has more than it wants it gives back before it says so.
        let has = agent.has.min(units);
        let last_permit = agent.last.map(cu);
        let ask = Ask { last_permit, names_permits: true, ..Ask::from(cu(units)) };
        self.asked.push((self.now, name.clone(), uid.clone(), ask));
        let permit = self.answer(name, ask).filter(|_| is_heard);
        let permit = permit.map(|permit| permit.cpu.milli() / 1000);
        self.grown += usize::from(permit.is_some_and(|permit| permit > agent.has));
        let next = permit.map_or(Agent { has, ..agent }, |it| Agent { has: it, last: Some(it) });
        self.agents.insert(uid, next);
    }

    /// The answer, at the end of the wait for the kubelet.
    fn answer(&mut self, name: &VmName, ask: Ask) -> Option<Resources> {
        let now = self.now;
        let answer = self.pods.node_of(name)?.with_books(|books| {
            match books.propose(now, name, ask).unwrap() {
                Proposed::Granted(granted) => granted,
                Proposed::Waits => books.request(now, name, ask).unwrap(),
            }
        });
        Some(answer.permit)
    }

    fn write(&mut self, resize: Resize, fate: Fate) {
        self.given_up += usize::from(resize.kind.word() == "give-up");
        let written = match fate {
            Fate::Answered => {
                self.land(&resize);
                Written::Answered
            }
            Fate::AnswerLost => {
                self.land(&resize);
                Written::Unknown
            }
            Fate::UnderWay => {
                self.flying.push(resize.clone());
                Written::Unknown
            }
            Fate::Refused => Written::Refused,
        };
        self.pods.resize_written(self.now, &resize, written);
    }

    fn land(&mut self, resize: &Resize) {
        let is_same = |pod: &Object| pod.uid == resize.uid && pod.revision == resize.revision;
        if self.server.get(&resize.vm).is_some_and(is_same) {
            let spec = resize.to.cpu.milli() / 1000;
            self.change(&resize.vm, |pod| {
                (pod.spec, pod.is_observed) = (spec, false);
                pod.generation += 1;
            });
        }
    }

    /// The kubelet admits what fits in beside what it has allocated, and resizes.
    fn look(&mut self) {
        for pod in self.server.values().filter(|pod| !pod.has_ended) {
            let others = self.kubelet.iter().filter(|(uid, _)| **uid != pod.uid);
            let used: u64 = others.map(|(_, it)| it.allocated).sum();
            let fits = used + pod.spec <= SIZE;
            let (allocated, seen) = (pod.spec, pod.generation);
            match self.kubelet.get_mut(&pod.uid) {
                Some(it) if fits => *it = Admitted { allocated, seen, pending: None },
                Some(it) => (it.seen, it.pending) = (seen, Some(Pending::Deferred)),
                None if self.rejected.contains(&pod.uid) => {}
                None if fits => {
                    let admitted = Admitted { allocated, seen, pending: None };
                    self.kubelet.insert(pod.uid.clone(), admitted);
                }
                None => self.rejected.push(pod.uid.clone()),
            }
        }
    }

    fn report(&mut self, nth: usize) {
        let uids: Vec<String> = self.kubelet.keys().cloned().collect();
        let is_said = |at: usize| nth.is_multiple_of(2) || at == nth % uids.len().max(1);
        for (_, uid) in uids.iter().enumerate().filter(|(at, _)| is_said(*at)) {
            let Admitted { allocated, seen, pending } = self.kubelet[uid];
            self.change_of(uid, |pod| {
                (pod.allocated, pod.pending) = (Some(allocated), pending);
                pod.is_observed = seen >= pod.generation;
            });
        }
        for uid in std::mem::take(&mut self.rejected) {
            self.change_of(&uid, |pod| pod.has_ended = true);
        }
    }

    fn restart(&mut self) {
        // What was sent to the earlier plugin reaches no other: its connections have ended with it.
        self.asked.clear();
        self.pods = Pods::of(pools());
        self.pods.pods_listed(self.server.iter().map(|(name, pod)| pod.shown(name)).collect());
        self.pods.inherit_resizes();
        self.pods.nodes_listed(vec![resized_node(SIZE)], |_| Held::empty());
        self.next = self.events.len();
    }

    fn change_of(&mut self, uid: &str, change: impl FnOnce(&mut Object)) {
        let name = self.server.iter().find(|(_, pod)| pod.uid == uid).map(|(name, _)| name.clone());
        if let Some(name) = name {
            self.change(&name, change);
        }
    }

    fn change(&mut self, name: &VmName, change: impl FnOnce(&mut Object)) {
        if let Some(pod) = self.server.get_mut(name) {
            change(pod);
            self.count += 1;
            pod.revision = self.count.to_string();
            self.events.push((name.clone(), Some(pod.shown(name)), pod.uid.clone()));
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

// === impl Kind ===

impl Kind {
    /// What another object gave the VM.
    const fn given(self) -> u64 {
        match self {
            Self::OfAnother { has } => has,
            Self::Vm | Self::Other => 0,
        }
    }
}

// === impl Object ===

impl Object {
    /// As the watch shows it.
    fn shown(&self, name: &VmName) -> Pod {
        let Self { uid, revision, spec, allocated, is_observed, pending, .. } = self.clone();
        let vm = resizing::pod(&name.name, Has { spec, allocated, is_observed, pending });
        let mut pod = match self.kind {
            Kind::Vm => vm,
            Kind::OfAnother { .. } => resizing::of_another(vm),
            Kind::Other => Pod { node: Some("n".to_owned()), ..other(&name.name, spec) },
        };
        if let Some(allocation) = &mut pod.allocation {
            allocation.generation = self.generation;
        }
        let phase = match (self.has_ended, allocated) {
            (true, _) => Phase::Failed,
            (false, Some(_)) => Phase::Running,
            (false, None) => Phase::Pending,
        };
        Pod { uid, revision, phase, ..pod }
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES;
    let ask = (name.clone(), 1..5_u64, prop::bool::weighted(0.8));
    prop_oneof![
        4 => (name.clone(), 1..3_u64).prop_map(|(name, units)| Step::Vm(name, units)),
        1 => (name.clone(), 1..3_u64, 1..5_u64)
            .prop_map(|(name, units, has)| Step::OfAnother(name, units, has)),
        4 => (name.clone(), 1..6_u64).prop_map(|(name, units)| Step::Other(name, units)),
        3 => (name.clone(), 2..5_u64).prop_map(|(name, units)| Step::Race(name, units)),
        1 => (any::<bool>(), name.clone()).prop_map(|(is_vm, name)| Step::End { is_vm, name }),
        8 => ask.prop_map(|(name, units, is_heard)| Step::Ask { name, units, is_heard }),
        2 => (0..40_usize).prop_map(Step::Repeat),
        8 => fate().prop_map(Step::Write),
        3 => (0..4_usize).prop_map(Step::Land),
        8 => Just(Step::Look),
        8 => (0..7_usize).prop_map(Step::Report),
        10 => (1..8_usize).prop_map(Step::Deliver),
        3 => (1..120_u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
        1 => name.prop_map(Step::Touch),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        5 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        2 => Just(Fate::UnderWay),
        1 => Just(Fate::Refused),
    ]
}

fn vm_name(name: usize) -> VmName {
    VmName::on_host(format!("vm{name}"))
}

fn other_name(name: usize) -> VmName {
    VmName::on_host(format!("other{name}"))
}
