//! Which VMs of a node are pods themselves: QEMU in a container, whose monitor is in a volume of the pod.
//!
//! The pod says all of its VM: labels and annotations say whether and how it is scaled, its address is the guest's. A VM stays
//! declared until its pod has ended, is gone, or says that it is not to be scaled: what is not valid withdraws nothing.

use crate::declared::{INFORMANT_PORT, Terms};
use crate::roster::{Guest, Vm};
use crate::said::{Object, Said};
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::config::Problem;
use windlass_protocol::pod::{MONITOR, NodePod, Phase, PodVm};
use windlass_protocol::{CpuLimit, VmName};

/// The VMs of a node that are pods.
#[derive(Clone, Debug)]
pub struct OwnPods {
    terms: Terms,
    vms: BTreeMap<VmName, Own>,
}

/// What is to be done about a VM.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is declared like this.
    Manage {
        /// The VM.
        vm: Vm,
        /// The UID of its pod, by which its volumes are found.
        uid: String,
    },
    /// It is declared no more.
    Forget(VmName),
    /// What its pod says is not valid, or is valid again; the last valid values count.
    Complain {
        /// The VM.
        vm: VmName,
        /// What is wrong; nothing any more.
        problems: Vec<Problem>,
    },
}

/// A pod that is a VM.
#[derive(Clone, Debug)]
struct Own {
    uid: String,
    said: Said,
    problems: Vec<Problem>,
    /// As it is declared.
    vm: Option<Vm>,
}

// === impl OwnPods ===

impl OwnPods {
    /// No VM is declared yet.
    pub const fn new(terms: Terms) -> Self {
        Self { terms, vms: BTreeMap::new() }
    }

    /// These are all pods of the node.
    pub fn pods_listed(&mut self, pods: &[NodePod]) -> Vec<Step> {
        let there: BTreeSet<&VmName> = pods.iter().map(|pod| &pod.pod.name).collect();
        let gone = self.vms.keys().filter(|name| !there.contains(name));
        let gone: Vec<VmName> = gone.cloned().collect();
        let mut steps: Vec<Step> = gone.iter().filter_map(|name| self.leave(name)).collect();
        steps.extend(pods.iter().flat_map(|pod| self.pod_seen(pod)));
        steps
    }

    /// A pod of the node, as it is now.
    pub fn pod_seen(&mut self, pod: &NodePod) -> Vec<Step> {
        let (name, uid) = (&pod.pod.name, &pod.pod.uid);
        let is_same = self.vms.get(name).is_some_and(|own| own.uid == *uid);
        let vm = pod.pod.vm.as_deref().filter(|vm| {
            let is_itself = vm.object == *name;
            is_itself && vm.is_enabled && pod.pod.counts()
        });
        let Some(vm) = vm else { return self.leave(name).into_iter().collect() };
        let mut steps = Vec::new();
        if !is_same {
            steps.extend(self.leave(name));
            let own =
                Own { uid: uid.clone(), said: Said::default(), problems: Vec::new(), vm: None };
            self.vms.insert(name.clone(), own);
        }
        match pod.pod.phase {
            Phase::Running => steps.extend(self.hear(pod, vm)),
            // Its guest does not run yet, or nobody knows.
            Phase::Pending | Phase::Unknown | Phase::Succeeded | Phase::Failed => {}
        }
        steps
    }

    /// A pod of the node is no more.
    pub fn pod_gone(&mut self, name: &VmName, uid: &str) -> Option<Step> {
        self.vms.get(name).filter(|own| own.uid == uid)?;
        self.leave(name)
    }

    fn leave(&mut self, name: &VmName) -> Option<Step> {
        self.vms.remove(name)?.vm.map(|_| Step::Forget(name.clone()))
    }

    fn hear(&mut self, pod: &NodePod, vm: &PodVm) -> Vec<Step> {
        let (terms, name) = (self.terms, &pod.pod.name);
        let Some(own) = self.vms.get_mut(name) else { return Vec::new() };
        let (vm, problems) = own.read(pod, vm, terms);
        let mut steps = Vec::new();
        if problems != own.problems {
            own.problems.clone_from(&problems);
            steps.push(Step::Complain { vm: name.clone(), problems });
        }
        if let Some(vm) = vm.filter(|vm| own.vm.as_ref() != Some(vm)) {
            own.vm = Some(vm.clone());
            steps.push(Step::Manage { vm, uid: own.uid.clone() });
        }
        steps
    }
}

// === impl Own ===

impl Own {
    /// What the pod declares, if it is valid, and what is not.
    fn read(&mut self, pod: &NodePod, vm: &PodVm, terms: Terms) -> (Option<Vm>, Vec<Problem>) {
        // A limit that moves with its request keeps from the guest what the pod no longer has. A higher one does not.
        let is_limited = vm.container.as_ref().is_some_and(|container| {
            !container.spec.cpu.is_zero() && container.limits.cpu == Some(container.spec.cpu)
        });
        let object = Object {
            uid: &self.uid,
            annotations: &pod.annotations,
            bounds: None,
            slot: vm.memory_slot,
            cpu_limit: is_limited.then_some(CpuLimit::Trust),
        };
        let (info, more) = self.said.read(&pod.pod.name, object, terms.usual);
        let mut problems = pod.problems.clone();
        problems.extend(more);
        if !is_file_name(&self.uid) {
            problems.push(Problem::new("metadata.uid", &self.uid, "must be letters, digits and -"));
            return (None, problems);
        }
        if !pod.has_monitor {
            let limit = format!(
                "must have an emptyDir of the name {MONITOR}: the monitor of QEMU that is the agent's is in it"
            );
            problems.push(Problem::without_value("spec.volumes", limit));
            return (None, problems);
        }
        let vm = info.zip(pod.address).map(|(info, address)| {
            let informant = (address, INFORMANT_PORT).into();
            let guest = Guest { informant, advertise: terms.advertise, metrics: None };
            Vm { info: info.into(), guest }
        });
        (vm, problems)
    }
}

/// Whether a UID can be the name of a folder, and of no other.
fn is_file_name(uid: &str) -> bool {
    !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
