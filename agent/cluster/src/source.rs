//! Has the agent manage the VMs that pods of its node and their objects declare.

use crate::labels::{self, Labels};
use kube::Client;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tracing::{info, warn};
use windlass_agent::Agent;
use windlass_agent_core::declared::{Declared, Step, Terms};
use windlass_agent_core::own_pods::{self, OwnPods};
use windlass_drivers::any::AnyAttach;
use windlass_drivers_neonvm::{Machines, NeonVm};
use windlass_drivers_qemu::QemuInPod;
use windlass_kit::admin::Readiness;
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::objects::{NodePodObject, WholeMachineObject};
use windlass_kit_kubernetes::{Followed, Following, Manner, Told, Watches, follow};
use windlass_protocol::VmName;
use windlass_protocol::config::Problem;
use windlass_protocol::pod::{MONITOR, NodePod};
use windlass_protocol::vm_object::{Machine, NODE, node_label};

/// What is needed to find the VMs of a node.
pub struct Source {
    /// How the API server is reached.
    pub client: Client,
    /// The node.
    pub node: String,
    /// What is the same for all its VMs.
    pub terms: Terms,
    /// The kubelet's folder of pods, where VMs of QEMU in pods are scaled.
    pub pods_dir: Option<PathBuf>,
    /// What manages them.
    pub agent: Agent,
    /// Failures of watches are counted there.
    pub watches: Watches,
    /// Unready until pods and objects were listed.
    pub readiness: Readiness,
    /// Looks after the tasks.
    pub watchdog: Watchdog,
}

/// What the watches have told. Clones share it.
#[derive(Clone)]
struct Known(Arc<Inner>);

struct Inner {
    declared: Mutex<Declared>,
    /// VMs that are pods, and the kubelet's folder of pods.
    own: Option<(Mutex<OwnPods>, PathBuf)>,
    machines: Machines,
    agent: Agent,
    /// Told when pods have come whose objects may not be known.
    pods_came: Arc<Notify>,
}

/// Follows the VMs of a node, among these tasks.
pub fn start(source: Source, tasks: &Tasks) {
    let Source { client, node, terms, pods_dir, agent, watches, readiness, watchdog } = source;
    let stop = tasks.stopping();
    let following = |of: &'static str, followed: Followed| {
        readiness.wait_for(of);
        Following {
            client: client.clone(),
            watches: watches.clone(),
            readiness: readiness.clone(),
            followed,
            pulse: watchdog.watch(of),
            stop: stop.clone(),
        }
    };
    let (of_pods, of_machines) = (Followed::default(), Followed::default());
    let machines = Machines::new(client.clone(), of_machines.clone());
    let pods_came = Arc::<Notify>::default();
    let known = Known(Arc::new(Inner {
        declared: Mutex::new(Declared::new(terms)),
        own: pods_dir.map(|dir| (Mutex::new(OwnPods::new(terms)), dir)),
        machines: machines.clone(),
        agent,
        pods_came: Arc::clone(&pods_came),
    }));
    let label = node_label(&node);
    let manner = Manner { labels: Some(format!("{NODE}={label}")), after: 1, ..Manner::default() };
    let (told, following_machines) = (known.clone(), following("vms", of_machines.clone()));
    tasks.vital("vms", async move {
        let tell = |it| told.machines_told(it);
        follow::<WholeMachineObject>("vms", manner, following_machines, tell).await
    });
    let manner = Manner { fields: Some(format!("spec.nodeName={node}")), ..Manner::default() };
    let (told, following_pods) = (known.clone(), following("pods", of_pods.clone()));
    tasks.vital("pods", async move {
        follow::<NodePodObject>("pods", manner, following_pods, |it| told.pods_told(it)).await
    });
    let labels = Labels {
        client: client.clone(),
        node,
        label,
        machines,
        is_listed: Box::new(move || of_pods.is_listed() && of_machines.is_listed()),
        unknown: Box::new(move || known.unknown()),
        pods_came,
        pulse: watchdog.watch("labels of vms"),
        stop,
    };
    tasks.vital("labels of vms", labels::run(labels));
}

// === impl Known ===

impl Known {
    fn pods_told(&self, told: Told<NodePod>) {
        self.own_told(&told);
        let machine = |name: &VmName| self.0.machines.get(name);
        let mut declared = self.declared();
        let steps = match told {
            Told::All(pods, _) => {
                declared.pods_listed(pods.into_iter().map(|pod| pod.pod).collect(), machine)
            }
            Told::Seen(pod) => declared.pod_seen(&pod.pod, machine),
            Told::Gone(NodePod { pod, .. }) => {
                declared.pod_gone(&pod.name, &pod.uid).into_iter().collect()
            }
        };
        self.carry_out(steps);
        self.0.pods_came.notify_one();
    }

    /// What the pods say of VMs that are pods.
    fn own_told(&self, told: &Told<NodePod>) {
        let Some((own, dir)) = &self.0.own else { return };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = match told {
            Told::All(pods, _) => own.pods_listed(pods),
            Told::Seen(pod) => own.pod_seen(pod),
            Told::Gone(NodePod { pod, .. }) => {
                own.pod_gone(&pod.name, &pod.uid).into_iter().collect()
            }
        };
        for step in steps {
            match step {
                own_pods::Step::Manage { vm, uid } => {
                    let name = vm.info.name.clone();
                    info!(vm = %name, "vm declared");
                    let way = QemuInPod { qmp: monitor(dir, &uid) };
                    if self.0.agent.heeds(&name) {
                        self.0.agent.manage(vm, AnyAttach::new(way));
                    }
                }
                own_pods::Step::Forget(name) => self.forget(&name),
                own_pods::Step::Complain { vm, problems } => complain(&vm, &vm, &problems),
            }
        }
    }

    fn forget(&self, name: &VmName) {
        info!(vm = %name, "vm is declared no more");
        // Without a runner it was never there.
        let _ = self.0.agent.forget(name);
    }

    fn machines_told(&self, told: Told<Machine>) {
        // What is declared follows what is known: one at a time.
        let mut declared = self.declared();
        for machine in self.0.machines.told(told) {
            self.carry_out(declared.object_seen(&machine));
        }
        self.0.pods_came.notify_one();
    }

    /// Objects that are not known, and the pods that run their VMs.
    fn unknown(&self) -> Vec<(VmName, String)> {
        self.declared().unknown(|name| self.0.machines.get(name).is_some())
    }

    fn carry_out(&self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Manage { vm, object } => {
                    let name = vm.info.name.clone();
                    info!(vm = %name, %object, "vm declared");
                    let way = NeonVm::new(self.0.machines.clone(), object, name.name.clone());
                    if self.0.agent.heeds(&name) {
                        self.0.agent.manage(vm, AnyAttach::new(way));
                    }
                }
                Step::Forget(name) => self.forget(&name),
                Step::Complain { vm, object, problems } => complain(&vm, &object, &problems),
            }
        }
    }

    fn declared(&self) -> MutexGuard<'_, Declared> {
        self.0.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what an object declares wrongly, or that it is right again.
fn complain(vm: &VmName, object: &VmName, problems: &[Problem]) {
    if problems.is_empty() {
        return info!(%vm, %object, "what the object says is valid again");
    }
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let problems = problems.join("; ");
    warn!(%vm, %object, problems, "what the object says is not valid; what was valid last counts, if anything was");
}

/// The monitor of the VM whose pod has this UID, as the kubelet lays out the folder of its pods.
fn monitor(pods: &Path, uid: &str) -> PathBuf {
    pods.join(uid).join("volumes/kubernetes.io~empty-dir").join(MONITOR).join("qmp.sock")
}
