//! Every message between kube-scheduler and its extender, byte for byte as Kubernetes writes it.
//!
//! The files were written by the types of `k8s.io/kube-scheduler/extender/v1` v0.35.4; the one with nodes
//! as well as names is ours, and was read by them. They are added, never edited. What the scheduler asks
//! decodes to our message; what we answer encodes to the file too, and decodes to our message again.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use windlass_protocol::extender::{
    BindingArgs, BindingResult, ExtenderArgs, FilterResult, HostPriority, PreemptionArgs,
    PreemptionResult, Score, Victims,
};
use windlass_protocol::pod::{Allocation, Ceiling, Limits, Phase, Pod, PodVm, VmContainer};
use windlass_protocol::{Bounds, Bytes, MilliCpu, Resources, VmName};

#[test]
fn candidates() {
    for (file, nodes, sent_whole_nodes) in [
        ("extender-v1-args-names.json", vec!["node-a", "node-b", "node-c"], false),
        ("extender-v1-args-nodes.json", vec!["node-a", "node-b"], true),
        ("extender-v1-args-no-nodes.json", vec![], true),
    ] {
        let nodes = nodes.into_iter().map(str::to_owned).collect();
        asked(file, &ExtenderArgs { pod: pod(), nodes, sent_whole_nodes });
    }
}

#[test]
fn filter_results() {
    let result = |nodes: &[&str], failed: &[(&str, &str)]| FilterResult {
        nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        failed: texts(failed),
        ..FilterResult::default()
    };
    let some = FilterResult {
        unresolvable: texts(&[("node-d", "the node is unknown")]),
        ..result(&["node-a", "node-b"], &[("node-c", "2 vCPU are free, 4 are requested")])
    };
    answered("extender-v1-filter-result.json", &some);
    answered("extender-v1-filter-result-none.json", &FilterResult::default());
    let error = "the plugin is not the leader".to_owned();
    let failed = FilterResult { error, ..FilterResult::default() };
    answered("extender-v1-filter-result-error.json", &failed);
    let whole = FilterResult { nodes_too: true, ..result(&["node-a"], &[("node-b", "no room")]) };
    answered("extender-v1-filter-result-nodes.json", &whole);
}

#[test]
fn scores() {
    let list = vec![
        HostPriority { host: "node-a".into(), score: Score::BEST },
        HostPriority { host: "node-b".into(), score: Score::default() },
    ];
    answered("extender-v1-host-priorities.json", &list);
}

#[test]
fn bindings() {
    let Pod { name, uid, .. } = pod();
    let args = BindingArgs { pod: name, uid, node: "node-a".into() };
    answered("extender-v1-binding-args.json", &args);
    answered("extender-v1-binding-result.json", &BindingResult::default());
    let refused = BindingResult { error: "node-a has no room".into() };
    answered("extender-v1-binding-result-refused.json", &refused);
}

#[test]
fn preemption() {
    let victims = Victims { pods: vec!["2b1c".into()], violated_budgets: 1 };
    let only = BTreeMap::from([("node-a".to_owned(), victims)]);
    let mut both = only.clone();
    both.insert("node-b".to_owned(), Victims::default());
    let args = PreemptionArgs { pod: pod(), victims: both };
    asked("extender-v1-preemption-args-meta.json", &args);
    asked("extender-v1-preemption-args-pods.json", &args);
    answered("extender-v1-preemption-result.json", &PreemptionResult { victims: only });
    answered("extender-v1-preemption-result-none.json", &PreemptionResult::default());
}

/// The pod of the files.
fn pod() -> Pod {
    let name = |name: &str| VmName { namespace: "tenants".into(), name: name.into() };
    let bounds = Bounds { min: size(1000, 1024), max: size(4000, 8192) };
    Pod {
        name: name("db1-x7k2p"),
        uid: "9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10".into(),
        revision: "48213".into(),
        node: None,
        scheduler: "windlass-scheduler".into(),
        phase: Phase::Pending,
        is_terminating: false,
        requests: size(1350, 1024 + 64 + 120),
        vm: Some(Box::new(PodVm {
            object: name("db1"),
            bounds,
            priority: 0,
            memory_slot: Bytes::from_mib(128),
            controller: None,
            may_move: false,
            is_enabled: true,
            ceiling: Some(Ceiling { epoch: 3, write: 0, size: size(2000, 4096) }),
            container: Some(Box::new(VmContainer {
                name: "vm".into(),
                spec: size(1000, 1024),
                allocated: None,
                effective: size(1000, 1024),
                limits: Limits {
                    cpu: Some(MilliCpu::from_milli(4000)),
                    mem: Some(Bytes::from_mib(8192)),
                },
                enforced: Limits::default(),
                overhead: windlass_protocol::Resources::ZERO,
                fixed: None,
            })),
            scaling: None,
            problems: Vec::new(),
        })),
        is_headroom: false,
        allocation: Some(Box::new(Allocation {
            spec: size(1350, 1024 + 64 + 120),
            allocated: None,
            generation: 0,
            is_observed: false,
            pending: None,
        })),
        problems: Vec::new(),
    }
}

fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn asked<T: Debug + PartialEq + DeserializeOwned>(file: &str, message: &T) {
    assert_eq!(&serde_json::from_str::<T>(&golden(file)).unwrap(), message, "{file}");
}

fn answered<T: Debug + PartialEq + DeserializeOwned + Serialize>(file: &str, message: &T) {
    assert_eq!(serde_json::to_string(message).unwrap(), golden(file), "{file}");
    asked(file, message);
}

fn golden(file: &str) -> String {
    std::fs::read_to_string(Path::new("golden").join(file)).unwrap()
}
