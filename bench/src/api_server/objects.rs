//! The objects of a served cluster, as text. They are written by hand: what plays the API server shares a core with who
//! measures, and is to take little of it.

use super::Cluster;
use serde_json::{Value, json};

/// The user that agents' tokens are of, unless plugin.toml names another.
const AGENT: &str = "system:serviceaccount:windlass:windlass-agent";

/// How a token begins; the node's name follows.
const TOKEN: &str = "token-of-";

/// The name of a node.
pub(crate) fn node_name(index: usize) -> String {
    format!("node-{index:05}.eu-central-1.compute.internal")
}

/// Namespace and name of a pod.
pub(crate) fn pod_name(index: usize) -> (String, String) {
    (format!("team-{:03}", index % 200), format!("workload-{index:06}-5d59d67564-x7k2p"))
}

/// The token of the agent of a node.
pub(crate) fn token(node: usize) -> String {
    format!("{TOKEN}{}", node_name(node))
}

/// Which pod has this name.
pub(super) fn index_of(name: &str) -> Option<usize> {
    name.split('-').nth(1)?.parse().ok()
}

/// The answer to a review of a token.
pub(super) fn review(asked: &Value) -> Value {
    let node = asked["spec"]["token"].as_str().and_then(|token| token.strip_prefix(TOKEN));
    let user = json!({
        "username": AGENT, "extra": {"authentication.kubernetes.io/node-name": [node]},
    });
    let audiences = &asked["spec"]["audiences"];
    let status = json!({"authenticated": node.is_some(), "audiences": audiences, "user": user});
    json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "spec": {}, "status": status,
    })
}

impl Cluster {
    /// A node; `whole`: not its metadata alone.
    pub(super) fn node(&self, index: usize, whole: bool) -> String {
        let (name, zone) = (node_name(index), ["a", "b", "c"][index % 3]);
        let metadata = format!(
            r#""metadata":{{"name":"{name}","uid":"node-uid-{index}","resourceVersion":"900","labels":{{"kubernetes.io/hostname":"{name}","kubernetes.io/arch":"amd64","topology.kubernetes.io/zone":"eu-central-1{zone}","node.kubernetes.io/instance-type":"m7i.16xlarge"}}}}"#
        );
        if !whole {
            return partial(&metadata);
        }
        let size = r#"{"cpu":"64","memory":"256Gi","pods":"110","ephemeral-storage":"900Gi"}"#;
        format!(
            r#"{{{metadata},"spec":{{"providerID":"aws:///{index}"}},"status":{{"capacity":{size},"allocatable":{size}}}}}"#
        )
    }

    /// A pod at this revision, with this ceiling if it is a VM's; `whole`: not its metadata alone.
    pub(super) fn pod(
        &self,
        index: usize,
        revision: u64,
        ceiling: Option<&str>,
        whole: bool,
    ) -> String {
        let (node, place) = (index / self.pods_of_a_node, index % self.pods_of_a_node);
        let (namespace, name) = pod_name(index);
        let units = 1 + (index * 31) % 4;
        let (labels, annotations) = if place < self.vms_of_a_node {
            // The VMs of every third node leave it no room.
            let most = if node.is_multiple_of(3) { 8 } else { 2 };
            let bounds = format!(
                r#"{{"min":{{"cpu":1,"mem":"1Gi"}},"max":{{"cpu":{most},"mem":"{most}Gi"}}}}"#
            );
            let mut annotations = json!({"windlass.dev/bounds": bounds});
            if let Some(ceiling) = ceiling {
                annotations["windlass.dev/ceiling"] = ceiling.into();
            }
            (r#"{"windlass.dev/enabled":"true","app":"database"}"#, annotations.to_string())
        } else {
            let sum = r#"{"checksum/config":"0f343b0931126a20f133d67c2b018a3b1c6c2f1d4b2c0a7e"}"#;
            (r#"{"app":"web","pod-template-hash":"5d59d67564"}"#, sum.to_owned())
        };
        let metadata = format!(
            r#""metadata":{{"name":"{name}","namespace":"{namespace}","uid":"9f0f6c1e-2f0b-4f3b-9c55-{index:012x}","resourceVersion":"{revision}","labels":{labels},"annotations":{annotations}}}"#
        );
        if !whole {
            return partial(&metadata);
        }
        let amounts = format!(r#"{{"cpu":"{}m","memory":"{units}Gi"}}"#, units * 500);
        let (on, ip) = (node_name(node), format!("10.{}.{}.{place}", node / 250, node % 250));
        format!(
            r#"{{{metadata},"spec":{{"nodeName":"{on}","schedulerName":"windlass-scheduler","containers":[{{"name":"main","image":"registry.example.com/team/workload:1.2.3","resources":{{"requests":{amounts},"limits":{amounts}}},"env":[{{"name":"MODE","value":"production"}}],"ports":[{{"containerPort":8080}}],"volumeMounts":[{{"name":"data","mountPath":"/data"}}]}}],"volumes":[{{"name":"data","emptyDir":{{}}}}],"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"}}]}},"status":{{"phase":"Running","podIP":"{ip}","qosClass":"Guaranteed","conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}}],"containerStatuses":[{{"name":"main","ready":true,"restartCount":0,"state":{{"running":{{}}}}}}]}}}}"#
        )
    }

    /// A VM pod that waits for a place, as the scheduler sends it.
    pub(crate) fn waiting(&self) -> Value {
        let mut pod: Value =
            serde_json::from_str(&self.pod(0, 2_000, None, true)).unwrap_or_default();
        pod["metadata"]["name"] = "waiting".into();
        pod["metadata"]["uid"] = "waiting".into();
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"] = json!({"phase": "Pending"});
        pod
    }
}

fn partial(metadata: &str) -> String {
    format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",{metadata}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_by_hand_is_json_and_names_what_it_is_of() {
        let cluster = Cluster::large(6);
        for whole in [true, false] {
            let node: Value = serde_json::from_str(&cluster.node(4, whole)).unwrap();
            assert_eq!(node["metadata"]["name"], node_name(4));
            assert_eq!(node["status"].is_object(), whole);
            for index in [31, 59] {
                let text = cluster.pod(index, 7, Some(r#"{"epoch":1}"#), whole);
                let pod: Value = serde_json::from_str(&text).unwrap();
                let name = pod["metadata"]["name"].as_str().unwrap();
                assert_eq!(index_of(name), Some(index));
                assert_eq!(pod["metadata"]["resourceVersion"], "7");
                let ceiling = &pod["metadata"]["annotations"]["windlass.dev/ceiling"];
                assert_eq!(ceiling == r#"{"epoch":1}"#, index == 31, "{ceiling}");
                assert_eq!(pod["spec"]["nodeName"] == node_name(1), whole);
            }
        }
        assert_eq!(cluster.waiting()["status"]["phase"], "Pending");
    }

    #[test]
    fn a_token_is_of_its_node() {
        let asked =
            |token: &str| json!({"spec": {"token": token, "audiences": ["windlass-plugin"]}});
        let status = review(&asked(&token(3)))["status"].clone();
        let node = &status["user"]["extra"]["authentication.kubernetes.io/node-name"][0];
        assert_eq!((&status["authenticated"], node), (&json!(true), &json!(node_name(3))));
        assert_eq!(review(&asked("other"))["status"]["authenticated"], false);
    }
}
