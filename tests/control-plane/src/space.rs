//! A namespace of a test's own, and nodes that only its pods go to.
//!
//! Tests that share a control plane do not meet: the name of each node carries the namespace, and each pod
//! asks for nodes with the namespace's label.

use crate::identity::Identity;
use crate::plane::ControlPlane;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodCondition, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::time::Duration;

/// The label of a space's nodes.
const LABEL: &str = "windlass.dev/space";

/// A namespace. It stays as long as its control plane.
pub struct Space<'a> {
    plane: &'a ControlPlane,
    client: Client,
    name: String,
}

// === impl Space ===

impl<'a> Space<'a> {
    /// Makes a namespace, with a name that no other test has.
    pub async fn new(plane: &'a ControlPlane) -> Self {
        let client = plane.client(Identity::Admin).await;
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some("space-".to_owned());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Self { plane, client, name: made.name_any() }
    }

    /// The namespace of this name, which is there.
    pub async fn named(plane: &'a ControlPlane, name: &str) -> Self {
        let client = plane.client(Identity::Admin).await;
        Self { plane, client, name: name.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client that may do everything.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Makes a node that is ready and has this to give; its whole name.
    pub async fn node(&self, name: &str, cpu: &str, memory: &str) -> String {
        let name = format!("{}-{name}", self.name);
        let has = json!({"cpu": cpu, "memory": memory, "pods": "110"});
        let node = json!({"metadata": {"name": name, "labels": {
            LABEL: self.name, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        }}});
        let status = json!({"status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "a test is its kubelet"}],
            "addresses": [{"type": "Hostname", "address": name}],
        }});
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let params = PatchParams::default();
        nodes.patch_status(&name, &params, &Patch::Merge(&status)).await.unwrap();
        name
    }

    /// Makes a pod of one container that requests this, and is limited by nothing but its extended resources
    /// (`windlass.dev/vm`); `more` is merged into its `spec`, object by object.
    pub async fn pod(&self, name: &str, requests: Value, more: Value) -> Pod {
        let mut limits = requests.clone();
        limits.as_object_mut().unwrap().retain(|name, _| name.contains('/'));
        let mut spec = json!({
            "nodeSelector": {LABEL: self.name},
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "none",
                "resources": {"requests": requests, "limits": limits},
            }],
        });
        merge(&mut spec, more);
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    /// Makes a service account.
    pub async fn account(&self, name: &str) {
        let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        self.accounts().create(&PostParams::default(), &account).await.unwrap();
    }

    /// Makes a pod of a service account that is on a node, as one of a DaemonSet is.
    pub async fn pod_of(&self, account: &str, name: &str, node: &str) -> Pod {
        let more = json!({"nodeName": node, "serviceAccountName": account});
        self.pod(name, json!({"cpu": "0", "memory": "0"}), more).await
    }

    /// A token of a service account, as a pod gets it from its kubelet; without `pod` it is bound to none.
    ///
    /// It lasts for an hour, as the manifests of agents ask for it.
    pub async fn token(&self, account: &str, audience: &str, pod: Option<&Pod>) -> String {
        self.token_for(Duration::from_secs(3600), account, audience, pod).await
    }

    /// A token that lasts so long; an API server makes none for less than ten minutes.
    pub async fn token_for(
        &self,
        lasts: Duration,
        account: &str,
        audience: &str,
        pod: Option<&Pod>,
    ) -> String {
        let bound = pod.map(|pod| {
            json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()})
        });
        let seconds = lasts.as_secs();
        let spec =
            json!({"audiences": [audience], "expirationSeconds": seconds, "boundObjectRef": bound});
        let request = serde_json::from_value(json!({"spec": spec})).unwrap();
        let params = PostParams::default();
        let made = self.accounts().create_token_request(account, &params, &request).await.unwrap();
        made.status.unwrap().token
    }

    fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Asks for other requests of a pod's container, in place.
    ///
    /// # Errors
    /// As the API server refuses it.
    pub async fn resize(&self, name: &str, requests: Value) -> kube::Result<Pod> {
        let resources = json!({"requests": requests});
        let to = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}});
        // By name of the container: a merge patch would replace all of them.
        let params = PatchParams::default();
        self.pods().patch_subresource("resize", name, &params, &Patch::Strategic(&to)).await
    }

    /// Looks at a pod until it is as `wanted`, and gives it.
    ///
    /// # Panics
    /// If it is not so in time, with its status as it was last.
    pub async fn until_pod(&self, name: &str, what: &str, wanted: impl Fn(&Pod) -> bool) -> Pod {
        let pods = self.pods();
        let what = format!("pod {name}: {what}");
        self.plane
            .until(&what, async || {
                let pod = pods.get_opt(name).await.map_err(|error| error.to_string())?;
                let pod = pod.ok_or_else(|| "there is no such pod".to_owned())?;
                if wanted(&pod) {
                    return Ok(pod);
                }
                Err(format!("on node {:?}, {:?}", node_of(&pod), pod.status))
            })
            .await
    }

    /// Waits until a pod is gone.
    ///
    /// # Panics
    /// If it is not so in time.
    pub async fn until_gone(&self, name: &str) {
        let pods = self.pods();
        self.plane
            .until(&format!("pod {name} is gone"), async || match pods.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(pod)) => Err(format!("{:?}", pod.status)),
                Err(error) => Err(error.to_string()),
            })
            .await;
    }
}

/// The node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// A pod's phase: `Pending`, `Running`.
pub fn phase_of(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// A pod's condition of this type.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// JSON merge patch, of objects in objects.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}
