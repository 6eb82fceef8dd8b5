//! Which VMs of a node the objects of a cluster declare: pods of the node that run a VM, and the VMs' own objects.
//!
//! A VM is the pod that runs it: while it moves to another node it has two pods, and the object names the one that counts. The pod says
//! where the VM is; the object says whether and how it is scaled, and at what address its guest is. What is not known declares nothing and
//! withdraws nothing: an object that a watch does not show may be there. An annotation that is invalid counts with its last valid value; a VM
//! of which no valid bounds were read is not scaled.

use crate::roster::{Guest, Vm};
use crate::said::{Object, Said};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use windlass_protocol::config::Problem;
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Bounds, Usual, VmName};

/// Where our informants listen.
pub const INFORMANT_PORT: u16 = 10301;

/// What is the same for all VMs of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What counts where an object says nothing.
    pub usual: Usual,
    /// How guests reach the agent; `None`: at the local address that reaches them.
    pub advertise: Option<IpAddr>,
}

/// The VMs of a node, as objects of a cluster declare them.
#[derive(Clone, Debug)]
pub struct Declared {
    terms: Terms,
    vms: BTreeMap<VmName, Member>,
}

/// What is to be done about a VM.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is declared like this.
    Manage {
        /// The VM, by its pod.
        vm: Vm,
        /// Its object.
        object: VmName,
    },
    /// It is declared no more.
    Forget(VmName),
    /// What its object says is not valid, or is valid again; the last valid values count.
    Complain {
        /// The VM, by its pod.
        vm: VmName,
        /// Its object.
        object: VmName,
        /// What is wrong; nothing any more.
        problems: Vec<Problem>,
    },
}

/// A pod that runs a VM.
#[derive(Clone, Debug)]
struct Member {
    uid: String,
    object: VmName,
    said: Said,
    problems: Vec<Problem>,
    /// As it is declared.
    vm: Option<Vm>,
}

// === impl Declared ===

impl Declared {
    /// No VM is declared yet.
    pub const fn new(terms: Terms) -> Self {
        Self { terms, vms: BTreeMap::new() }
    }

    /// These are all pods of the node. `machine`: the object of a name, if it is known.
    pub fn pods_listed(
        &mut self,
        pods: Vec<Pod>,
        machine: impl Fn(&VmName) -> Option<Arc<Machine>>,
    ) -> Vec<Step> {
        let there: BTreeSet<&VmName> = pods.iter().map(|pod| &pod.name).collect();
        let gone = self.vms.keys().filter(|name| !there.contains(name));
        let gone: Vec<VmName> = gone.cloned().collect();
        let mut steps: Vec<Step> = gone.iter().filter_map(|name| self.leave(name)).collect();
        for pod in pods {
            steps.extend(self.pod_seen(&pod, &machine));
        }
        steps
    }

    /// A pod of the node, as it is now.
    pub fn pod_seen(
        &mut self,
        pod: &Pod,
        machine: impl Fn(&VmName) -> Option<Arc<Machine>>,
    ) -> Vec<Step> {
        let known = self.vms.get(&pod.name).filter(|member| member.uid == pod.uid);
        let object = pod.vm.as_ref().map(|vm| &vm.object).filter(|_| counts(pod));
        match (known, object) {
            (Some(_), Some(_)) => Vec::new(),
            (_, None) => self.leave(&pod.name).into_iter().collect(),
            (None, Some(object)) => {
                let mut steps: Vec<Step> = self.leave(&pod.name).into_iter().collect();
                let member = Member {
                    uid: pod.uid.clone(),
                    object: object.clone(),
                    said: Said::default(),
                    problems: Vec::new(),
                    vm: None,
                };
                self.vms.insert(pod.name.clone(), member);
                if let Some(machine) = machine(object) {
                    steps.extend(self.hear(&pod.name, &machine));
                }
                steps
            }
        }
    }

    /// A pod of the node is no more.
    pub fn pod_gone(&mut self, name: &VmName, uid: &str) -> Option<Step> {
        self.vms.get(name).filter(|member| member.uid == uid)?;
        self.leave(name)
    }

    /// The object of a VM, as it is now.
    pub fn object_seen(&mut self, machine: &Machine) -> Vec<Step> {
        let of = |(_, member): &(&VmName, &Member)| member.object == machine.name;
        let pods: Vec<VmName> = self.vms.iter().filter(of).map(|(pod, _)| pod.clone()).collect();
        pods.iter().flat_map(|pod| self.hear(pod, machine)).collect()
    }

    /// Objects that are not known, and the pods that run their VMs.
    pub fn unknown(&self, is_known: impl Fn(&VmName) -> bool) -> Vec<(VmName, String)> {
        let unknown = self.vms.iter().filter(|(_, member)| !is_known(&member.object));
        unknown.map(|(pod, member)| (member.object.clone(), pod.name.clone())).collect()
    }

    /// The pod runs no VM any more that is ours.
    fn leave(&mut self, pod: &VmName) -> Option<Step> {
        self.vms.remove(pod)?.vm.map(|_| Step::Forget(pod.clone()))
    }

    fn hear(&mut self, pod: &VmName, machine: &Machine) -> Vec<Step> {
        let terms = self.terms;
        let Some(member) = self.vms.get_mut(pod) else { return Vec::new() };
        let is_ours = machine.is_enabled
            && machine.pod.as_deref() == Some(pod.name.as_str())
            && machine.phase.executes();
        if !is_ours {
            return member.vm.take().map(|_| Step::Forget(pod.clone())).into_iter().collect();
        }
        let (vm, problems) = member.read(pod, machine, terms);
        let mut steps = Vec::new();
        if problems != member.problems {
            member.problems.clone_from(&problems);
            let (vm, object) = (pod.clone(), member.object.clone());
            steps.push(Step::Complain { vm, object, problems });
        }
        if let Some(vm) = vm.filter(|vm| member.vm.as_ref() != Some(vm)) {
            member.vm = Some(vm.clone());
            steps.push(Step::Manage { vm, object: member.object.clone() });
        }
        steps
    }
}

// === impl Member ===

impl Member {
    /// What the object declares, if it is valid, and what is not.
    fn read(
        &mut self,
        pod: &VmName,
        machine: &Machine,
        terms: Terms,
    ) -> (Option<Vm>, Vec<Problem>) {
        let object = Object {
            uid: &machine.uid,
            annotations: &machine.annotations,
            bounds: Some(Bounds { min: machine.sizes.min, max: machine.sizes.max }),
            slot: machine.slot,
            cpu_limit: None,
        };
        let (info, more) = self.said.read(pod, object, terms.usual);
        let mut problems = machine.problems.clone();
        problems.extend(more);
        // Without what its spec says and its address nothing can be said of a VM.
        let address = machine.address.filter(|_| machine.problems.is_empty());
        let vm = info.zip(address).map(|(info, address)| {
            let informant = (address, INFORMANT_PORT).into();
            let guest = Guest { informant, advertise: terms.advertise, metrics: None };
            Vm { info: info.into(), guest }
        });
        (vm, problems)
    }
}

/// Whether an object says that this pod of this node runs its VM: then the agent of the node labels it. While a VM is on its way here,
/// or has left, another agent does.
pub fn is_run_by(machine: &Machine, pod: &str, node: &str) -> bool {
    machine.pod.as_deref() == Some(pod) && machine.node.as_deref() == Some(node)
}

/// Whether a pod may run a VM that is scaled.
fn counts(pod: &Pod) -> bool {
    pod.counts() && pod.vm.as_ref().is_some_and(|vm| vm.is_enabled && vm.object != pod.name)
}
