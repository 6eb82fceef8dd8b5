//! Other programs that act on the pods of VMs: known by the labels of their own pods, and by what they write on pods of VMs.
//!
//! | program | known by | what it does to VMs |
//! |---|---|---|
//! | VerticalPodAutoscaler | the annotations `vpaUpdates` and `vpaObservedContainers`, which its webhook writes | it sets the requests that the plugin sets, or evicts the pod to set them |
//! | descheduler | the label of its own pod | it evicts pods by what they request and how long they run |
//! | cluster-autoscaler, Karpenter | the label of its own pod | it removes nodes that requests do not fill, and adds none for what only the books know |

use std::collections::BTreeMap;
use windlass_protocol::VmName;
use windlass_protocol::neighbours::{Finding, Neighbour};

/// The labels by which programs call themselves.
pub const LABELS: [&str; 3] = ["app.kubernetes.io/name", "k8s-app", "app"];

/// As many pods are named.
const NAMED: usize = 3;

const EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// The pod of a VM.
#[derive(Clone, Debug)]
pub struct VmPod {
    /// Its name.
    pub name: VmName,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A program that runs in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// A descheduler.
    Descheduler,
    /// The cluster-autoscaler.
    ClusterAutoscaler,
    /// Karpenter.
    Karpenter,
}

/// What the books know that matters here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes {
    /// Nodes of mode dedicated that have VMs: what these have does not show in requests.
    pub dedicated: usize,
    /// Whether pools of nodes are told by labels.
    pub have_labels: bool,
}

impl Program {
    /// The program whose pod has this label.
    pub fn labelled(value: &str) -> Option<Self> {
        let is = |part| value.contains(part);
        match () {
            () if is("descheduler") => Some(Self::Descheduler),
            () if is("cluster-autoscaler") => Some(Self::ClusterAutoscaler),
            () if is("karpenter") => Some(Self::Karpenter),
            () => None,
        }
    }

    /// The values of [`LABELS`] that the pods of these programs have, as they are usually installed.
    pub const USUAL: [&str; 5] = [
        "descheduler",
        "cluster-autoscaler",
        "aws-cluster-autoscaler",
        "clusterapi-cluster-autoscaler",
        "karpenter",
    ];
}

/// What people should know of, the worst first.
pub fn findings(vms: &[VmPod], mut programs: Vec<Program>, nodes: Nodes) -> Vec<Finding> {
    programs.sort_unstable();
    programs.dedup();
    let mut found = Vec::new();
    found.extend(of_vpa(vms));
    for program in programs {
        match program {
            Program::Descheduler => found.extend(of_descheduler(vms)),
            Program::ClusterAutoscaler => {
                found.extend(removing(vms, "cluster-autoscaler", (SAFE_TO_EVICT, "false")));
                found.extend(of_autoscaler("cluster-autoscaler", nodes));
            }
            Program::Karpenter => {
                found.extend(removing(vms, "Karpenter", (DO_NOT_DISRUPT, "true")));
                found.extend(of_autoscaler("Karpenter", nodes));
            }
        }
    }
    found.sort_by_key(|finding| !finding.is_wrong);
    found
}

fn of_vpa(vms: &[VmPod]) -> Option<Finding> {
    let is_its = |vm: &&VmPod| vm.annotations.keys().any(|key| key.starts_with("vpa"));
    let words = |count| {
        format!(
            "A VerticalPodAutoscaler sets the requests of {count}: it undoes what the plugin resizes, and evicts the VM to do so. \
             Set its updatePolicy.updateMode to Off, or take these pods out of its target."
        )
    };
    finding(Neighbour::VerticalPodAutoscaler, vms.iter().filter(is_its), words)
}

fn of_descheduler(vms: &[VmPod]) -> Option<Finding> {
    let is_open = |vm: &&VmPod| vm.annotations.get(EVICTION).is_none_or(|value| value != "true");
    let words = |count| {
        format!(
            "A descheduler runs, and may evict {count}. Annotate them with {EVICTION}: \"true\", or exclude them by the labelSelector of its \
             DefaultEvictor."
        )
    };
    finding(Neighbour::Descheduler, vms.iter().filter(is_open), words)
}

fn removing(vms: &[VmPod], program: &str, (key, kept): (&str, &str)) -> Option<Finding> {
    let is_open = |vm: &&VmPod| vm.annotations.get(key).is_none_or(|value| value != kept);
    let words = |count| {
        format!(
            "{program} removes nodes that requests do not fill, and evicts {count} to do so. Annotate the pods of VMs that are not to be \
             restarted with {key}: \"{kept}\"."
        )
    };
    finding(Neighbour::NodeAutoscaler, vms.iter().filter(is_open), words)
}

fn of_autoscaler(program: &str, nodes: Nodes) -> Vec<Finding> {
    let finding = |words| Finding {
        neighbour: Neighbour::NodeAutoscaler,
        is_wrong: false,
        words,
        pods: Vec::new(),
    };
    let mut found = Vec::new();
    if nodes.dedicated > 0 {
        found.push(finding(format!(
            "{program} goes by requests, and those of {} do not show what VMs there have grown to: it adds no node for a VM that the books refuse. \
             A pool of mode headroom or resize shows it.",
            counted(nodes.dedicated, "node of mode dedicated", "nodes of mode dedicated")
        )));
    }
    if nodes.have_labels {
        found.push(finding(format!(
            "{program} adds a node for a waiting VM if its node template has what the pod asks for: the labels of kubernetes.pool, and resources of \
             device plugins such as devices.kubevirt.io/kvm, have to be in the template. No template has windlass.dev/vm: for VMs that request it, \
             use the scheduler of deploy/scheduler."
        )));
    }
    found
}

fn finding<'a>(
    neighbour: Neighbour,
    pods: impl Iterator<Item = &'a VmPod>,
    words: impl FnOnce(String) -> String,
) -> Option<Finding> {
    let mut names: Vec<VmName> = pods.map(|pod| pod.name.clone()).collect();
    let count = counted(names.len(), "pod of a VM", "pods of VMs");
    (!names.is_empty()).then(|| {
        names.sort_unstable();
        names.truncate(NAMED);
        Finding { neighbour, is_wrong: true, words: words(count), pods: names }
    })
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_how_they_call_themselves() {
        for value in Program::USUAL {
            assert!(Program::labelled(value).is_some(), "{value}");
        }
        assert_eq!(Program::labelled("kube-scheduler"), None);
        assert_eq!(Program::labelled(""), None);
    }

    #[test]
    fn nothing_is_said_where_no_such_program_is() {
        let nodes = Nodes { dedicated: 3, have_labels: true };
        assert_eq!(findings(&[vm("a", &[])], Vec::new(), nodes), []);
    }

    #[test]
    fn each_program_is_named_with_the_pods_that_it_may_reach() {
        let vms = [
            vm("a", &[("vpaUpdates", "Pod resources updated by db: container 0: cpu request")]),
            vm("b", &[(EVICTION, "true"), (SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "true")]),
            vm("c", &[(EVICTION, "false"), (SAFE_TO_EVICT, "true")]),
        ];
        let programs = vec![Program::Karpenter, Program::Descheduler, Program::Descheduler];
        let found = findings(&vms, programs, Nodes { dedicated: 1, have_labels: true });
        let said: Vec<_> = found
            .iter()
            .map(|it| {
                let pods: Vec<&str> = it.pods.iter().map(|pod| pod.name.as_str()).collect();
                (it.neighbour.to_string(), it.is_wrong, pods.join(","))
            })
            .collect();
        let expected = [
            ("vertical-pod-autoscaler", true, "a"),
            ("descheduler", true, "a,c"),
            ("node-autoscaler", true, "a,c"),
            ("node-autoscaler", false, ""),
            ("node-autoscaler", false, ""),
        ];
        assert_eq!(
            said,
            expected.map(|(who, wrong, pods)| (who.to_owned(), wrong, pods.to_owned()))
        );
        assert!(found[0].words.contains("of 1 pod of a VM:"), "{}", found[0].words);
        assert!(found[1].words.contains("may evict 2 pods of VMs."), "{}", found[1].words);
    }

    #[test]
    fn of_many_pods_a_few_are_named() {
        let many: Vec<VmPod> = (0..9).map(|nth| vm(&nth.to_string(), &[])).collect();
        let found = findings(&many, vec![Program::ClusterAutoscaler], Nodes::default());
        assert_eq!((found.len(), found[0].pods.len()), (1, NAMED));
        assert!(found[0].words.contains("9 pods of VMs"), "{}", found[0].words);
    }

    fn vm(name: &str, annotations: &[(&str, &str)]) -> VmPod {
        let annotations = annotations.iter();
        let annotations = annotations.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        VmPod { name: VmName::on_host(name), annotations: annotations.collect() }
    }
}
