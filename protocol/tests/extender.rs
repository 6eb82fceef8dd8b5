//! What kube-scheduler or Go would accept is accepted, and any bytes are read without a panic.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use windlass_protocol::extender::{
    BindingArgs, BindingResult, ExtenderArgs, FilterResult, HostPriority, PreemptionArgs,
    PreemptionResult, Score,
};
use windlass_protocol::node::Node;
use windlass_protocol::pod::{Ceiling, Pod};
use windlass_protocol::{Bytes, MilliCpu, Resources};

#[test]
fn keys_match_whatever_their_case() {
    let wanted: ExtenderArgs =
        read(r#"{"Pod":{"metadata":{"name":"a"}},"NodeNames":["n1"],"Nodes":null}"#);
    for text in [
        r#"{"pod":{"metadata":{"name":"a"}},"nodeNames":["n1"]}"#,
        r#"{"POD":{"metadata":{"name":"a"}},"nodenames":["n1"],"nodes":null,"later":[{}]}"#,
        r#"{"nodeNameſ":["n1"],"pod":{"metadata":{"name":"a"}}}"#,
    ] {
        assert_eq!(read::<ExtenderArgs>(text), wanted, "{text}");
    }
    let binding: BindingArgs =
        read(r#"{"podName":"a","podnamespace":"b","podUid":"c","NODE":"d"}"#);
    assert_eq!((binding.pod.to_string(), binding.uid, binding.node), pair("b/a", "c", "d"));
    let args: PreemptionArgs = read(
        r#"{"pod":{"metadata":{"name":"a"}},
            "nodeNameToMetaVictims":{"n1":{"pods":[{"uid":"u"}],"numPdbViolations":2}}}"#,
    );
    assert_eq!(args.victims["n1"].pods, ["u"]);
    assert_eq!(args.victims["n1"].violated_budgets, 2);
}

#[test]
fn null_and_absent_are_alike() {
    for text in [r#"{}"#, r#"{"PodName":null,"PodNamespace":null,"PodUID":null,"Node":null}"#] {
        assert_eq!(read::<BindingArgs>(text), BindingArgs::default(), "{text}");
    }
    for text in [r#"{}"#, r#"{"Error":null}"#] {
        assert_eq!(read::<BindingResult>(text), BindingResult::default(), "{text}");
    }
    for text in [r#"{}"#, r#"{"NodeNames":null,"FailedNodes":null,"Error":null,"Nodes":null}"#] {
        assert_eq!(read::<FilterResult>(text), FilterResult::default(), "{text}");
    }
    for text in [r#"{}"#, r#"{"NodeNameToMetaVictims":null}"#] {
        assert_eq!(read::<PreemptionResult>(text), PreemptionResult::default(), "{text}");
    }
    let args: PreemptionArgs = read(
        r#"{"Pod":{"metadata":{"name":"a"}},"NodeNameToMetaVictims":null,
            "NodeNameToVictims":{"n1":null,"n2":{"Pods":null}}}"#,
    );
    assert!(
        args.victims.len() == 2 && args.victims.values().all(|victims| victims.pods.is_empty())
    );
}

#[test]
fn a_request_without_a_pod_is_refused() {
    for text in [r#"{"NodeNames":[]}"#, r#"{"Pod":null}"#] {
        let error = serde_json::from_str::<ExtenderArgs>(text).unwrap_err().to_string();
        assert!(error.starts_with("Pod: is missing"), "{error}");
        let error = serde_json::from_str::<PreemptionArgs>(text).unwrap_err().to_string();
        assert!(error.starts_with("Pod: is missing"), "{error}");
    }
    let unnamed = r#"{"Pod":{"metadata":{"name":"a"}},"Nodes":{"items":[{"metadata":{}}]}}"#;
    let error = serde_json::from_str::<ExtenderArgs>(unnamed).unwrap_err().to_string();
    assert!(error.starts_with("Nodes.items[0].metadata.name: is missing"), "{error}");
}

#[test]
fn a_filter_result_is_never_empty() {
    let none = serde_json::to_string(&FilterResult::default()).unwrap();
    assert!(none.contains(r#""NodeNames":[]"#), "{none}");
}

#[test]
fn a_score_is_at_most_ten() {
    assert_eq!(serde_json::from_str::<Score>("10").unwrap(), Score::BEST);
    for text in ["11", "-1", "300", "1.5", "\"1\""] {
        assert!(serde_json::from_str::<Score>(text).is_err(), "{text}");
    }
    assert_eq!(Score::try_from(11).unwrap_err().to_string(), "11 is not a score from 0 to 10");
    assert_eq!((Score::at_most(255), Score::at_most(3).number()), (Score::BEST, 3));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(body in vec(any::<u8>(), 0..300)) {
        read_as_everything(&body);
    }

    /// Bytes that are nearly a message reach further than random ones.
    #[test]
    fn damaged_messages_never_panic(
        message in 0..MESSAGES.len(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = MESSAGES[message].as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        read_as_everything(&body);
        body.truncate(cut.index(body.len()));
        read_as_everything(&body);
    }

    /// So do values of the wrong kind in the right places.
    #[test]
    fn values_of_any_kind_never_panic(
        message in 0..MESSAGES.len(),
        changes in vec((any::<prop::sample::Index>(), 0..VALUES.len()), 1..4),
    ) {
        let mut body = MESSAGES[message].to_owned();
        for (at, value) in changes {
            let colons: Vec<usize> = body.match_indices("\":").map(|(at, _)| at + 2).collect();
            let from = colons[at.index(colons.len())];
            let to = body[from..].find([',', '}']).map_or(body.len(), |end| from + end);
            body.replace_range(from..to, VALUES[value]);
        }
        read_as_everything(body.as_bytes());
    }

    #[test]
    fn a_written_ceiling_reads_back(
        epoch in any::<u64>(), write in 0..=Ceiling::LAST_WRITE, cpu in 0..=i64::MAX as u64, mem in 0..=i64::MAX as u64,
    ) {
        let size = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        let ceiling = Ceiling { epoch, write, size };
        prop_assert_eq!(Ceiling::decode(&ceiling.encode()), Ok(ceiling));
    }
}

const MESSAGES: [&str; 9] = [
    include_str!("../golden/extender-v1-args-names.json"),
    include_str!("../golden/extender-v1-args-nodes.json"),
    include_str!("../golden/extender-v1-preemption-args-meta.json"),
    include_str!("../golden/extender-v1-preemption-args-pods.json"),
    include_str!("../golden/extender-v1-filter-result.json"),
    include_str!("../golden/extender-v1-binding-args.json"),
    include_str!("../golden/extender-v1-host-priorities.json"),
    r#"{"metadata":{"name":"a","uid":"b","labels":{"windlass.dev/enabled":"true"},
        "annotations":{"windlass.dev/bounds":"{}","windlass.dev/ceiling":"{}","vm.neon.tech/resources":"{}"}},
        "spec":{"nodeName":"n","containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},
        "status":{"phase":"Running","containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}}"#,
    r#"{"metadata":{"name":"n","uid":"b","labels":{"a":"b"}},"spec":{"unschedulable":true,
        "taints":[{"key":"a","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"4","memory":"9Gi"}}}"#,
];

const VALUES: [&str; 14] = [
    "null", "true", "0", "-1", "1e999", "1.5", "\"\"", "\"9Ei\"", "\"-1\"", "\"true\"", "[]", "{}",
    "[null]", "[{}]",
];

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn read_as_everything(body: &[u8]) {
    let _ = serde_json::from_slice::<Pod>(body);
    let _ = serde_json::from_slice::<Node>(body);
    let _ = serde_json::from_slice::<ExtenderArgs>(body);
    let _ = serde_json::from_slice::<FilterResult>(body);
    let _ = serde_json::from_slice::<Vec<HostPriority>>(body);
    let _ = serde_json::from_slice::<BindingArgs>(body);
    let _ = serde_json::from_slice::<PreemptionArgs>(body);
    let _ = serde_json::from_slice::<PreemptionResult>(body);
    let _ = Ceiling::decode(&String::from_utf8_lossy(body));
}

fn pair(pod: &str, uid: &str, node: &str) -> (String, String, String) {
    (pod.to_owned(), uid.to_owned(), node.to_owned())
}
