//! What we ship for a cluster, applied as a person applies it: the plugin runs with the identity and the file of the manifests, makes its own
//! certificates, and an agent and a scheduler trust it by what it made.

use crate::SCHEDULER;
use crate::agent::request;
use crate::network::VMS;
use crate::plugin::Plugin;
use crate::vms::Vms;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ResourceQuota, Secret, Service};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, Identity, Scheduler, Space};
use windlass_testkit::tls::{Client, Pair};
use windlass_testkit::{http, wait};

const AGENT: &str = "windlass-agent";

/// The folders of manifests for a cluster, in the order in which they are applied.
pub(crate) const MANIFESTS: [&str; 3] =
    ["../../deploy/kustomize/plugin", "../../deploy/kustomize/agent", "../../deploy/scheduler"];

#[tokio::test]
async fn manifests_that_are_applied_twice_change_nothing() {
    let plane = &installed().await.plane;
    let vms = Space::new(plane).await;
    // The plugin renews its Lease all the while.
    let revisions = async |args: &[&str]| {
        let columns = "custom-columns=KIND:.kind,NAME:.metadata.name,IS:.metadata.resourceVersion";
        let all = plane.kubectl(&[&["get", "--output", columns], args].concat()).await;
        let lines = all.lines().filter(|line| !line.starts_with("Lease "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let of_vms = VMS.map(|folder| vec!["--namespace", vms.name(), "-k", folder]);
    let folders = MANIFESTS.map(|folder| vec!["-k", folder]);
    for args in folders.into_iter().chain(of_vms) {
        plane.kubectl(&[&["apply"], &args[..]].concat()).await;
        let before = revisions(&args).await;
        assert!(before.len() > 1, "{before:?}");
        plane.kubectl(&[&["apply"], &args[..]].concat()).await;
        assert_eq!(revisions(&args).await, before);
    }
}

/// Agents that reach QEMU in pods have no more rights at the API server than others.
#[tokio::test]
async fn agents_of_qemu_in_pods_differ_in_their_pods_alone() {
    let plane = &installed().await.plane;
    let folder = "../../deploy/kustomize/agent-qemu";
    let args = ["apply", "--dry-run=server", "--output", "name", "-k"];
    let objects = async |folder: &str| {
        let said = plane.kubectl(&[&args[..], &[folder]].concat()).await;
        said.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(objects(folder).await, objects(MANIFESTS[1]).await);
    let args = ["apply", "--dry-run=server", "--output", "json", "-k", folder];
    let all: Value = serde_json::from_str(&plane.kubectl(&args).await).unwrap();
    let all = all["items"].as_array().unwrap();
    let daemon_set = all.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
    let pod = &daemon_set["spec"]["template"]["spec"];
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let pods = mounts.iter().find(|mount| mount["name"] == "pods").unwrap();
    assert_eq!((&pods["mountPath"], &pods["readOnly"]), (&json!("/pods"), &json!(true)));
    let allowed = &pod["containers"][0]["securityContext"]["capabilities"];
    assert_eq!(allowed, &json!({"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}));
    let env = pod["containers"][0]["env"].as_array().unwrap();
    assert!(env.contains(&json!({"name": "WINDLASS_PODS_DIR", "value": "/pods"})), "{env:?}");
}

/// The cluster's own scheduler asks the plugin as the second one does, for pods that say so.
#[tokio::test]
async fn the_recipe_for_the_cluster_s_own_scheduler_leaves_no_vm_past_the_plugin() {
    let plane = &installed().await.plane;
    plane.kubectl(&["apply", "-k", "../../deploy/own-scheduler"]).await;
    let space = Space::new(plane).await;
    plane.kubectl(&["label", "namespace", space.name(), "windlass.dev/placement=checked"]).await;
    let (own, second) =
        ("../../deploy/own-scheduler/config.yaml", "../../deploy/scheduler/config.yaml");
    let text = |path: &str| std::fs::read_to_string(path).unwrap();
    let (own, second) = (text(own), text(second));
    let said = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(key));
        line.map(|line| line.trim().to_owned())
    };
    for key in [
        "filterVerb",
        "prioritizeVerb",
        "preemptVerb",
        "bindVerb",
        "weight",
        "nodeCacheCapable",
        "httpTimeout",
        "ignorable",
    ] {
        assert!(said(&own, key).is_some() && said(&own, key) == said(&second, key), "{key}");
    }
    assert!(own.contains("name: windlass.dev/vm"));
    let pod = |name: &str, scheduler: &str, requests: Value| {
        let pod = json!({
            "metadata": {"name": name, "labels": {"windlass.dev/enabled": "true"}},
            "spec": {"schedulerName": scheduler, "containers": [{
                "name": "vm", "image": "none", "resources": {"requests": requests, "limits": requests},
            }]},
        });
        serde_json::from_value::<Pod>(pod).unwrap()
    };
    let pods = space.pods();
    let create = async |pod: Pod| pods.create(&PostParams::default(), &pod).await;
    let past = || pod("past", "default-scheduler", json!({"cpu": "1"}));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let is_refused = async || match pods.create(&dry, &past()).await {
        Ok(_) => false,
        Err(error) => error.to_string().contains("a VM pod requests windlass.dev/vm"),
    };
    wait::until_async("the policy is in force", is_refused).await;
    create(pod("own", "default-scheduler", json!({"cpu": "1", "windlass.dev/vm": "1"})))
        .await
        .unwrap();
    create(pod("second", SCHEDULER, json!({"cpu": "1"}))).await.unwrap();
    space.pod("other", json!({"cpu": "1"}), json!({})).await;
}

/// The API server itself judges pods by the standard `restricted` where a namespace says so.
#[tokio::test]
async fn pods_of_the_deployments_pass_where_the_rest_is_refused() {
    let plane = &installed().await.plane;
    let space = Space::new(plane).await;
    let namespaces: Api<Namespace> = Api::all(space.client().clone());
    let label = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let patch = Patch::Merge(json!({"metadata": {"labels": label}}));
    namespaces.patch(space.name(), &PatchParams::default(), &patch).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(space.client().clone(), "windlass");
    let agents: Api<DaemonSet> = Api::namespaced(space.client().clone(), "windlass");
    let agents = agents.get(AGENT).await.unwrap().spec.unwrap().template;
    let mut templates = vec![(AGENT, agents)];
    for name in ["windlass-plugin", "windlass-scheduler"] {
        templates.push((name, deployments.get(name).await.unwrap().spec.unwrap().template));
    }
    let quotas: Api<ResourceQuota> = Api::namespaced(space.client().clone(), "windlass");
    let quota = quotas.get("windlass-critical-pods").await.unwrap().spec.unwrap();
    let [of_classes] = &quota.scope_selector.unwrap().match_expressions.unwrap()[..] else {
        panic!("one scope, the class")
    };
    let classes = of_classes.values.clone().unwrap();
    for (name, template) in templates {
        let class = template.spec.as_ref().unwrap().priority_class_name.clone().unwrap();
        assert!(classes.contains(&class), "{name}: no quota allows {class} where it takes one");
        let mut pod = Pod { spec: template.spec, ..Pod::default() };
        pod.metadata.name = Some(name.to_owned());
        space.pods().create(&PostParams::default(), &pod).await.unwrap();
        let spec = pod.spec.as_mut().unwrap();
        spec.security_context = None;
        pod.metadata.name = Some(format!("{name}-root"));
        let refused = space.pods().create(&PostParams::default(), &pod).await.unwrap_err();
        assert!(refused.to_string().contains("violates PodSecurity"), "{refused}");
    }
    // What the Service selects is what the plugin labels, and what the NetworkPolicies name.
    let services: Api<Service> = Api::namespaced(space.client().clone(), "windlass");
    let spec = services.get("windlass-plugin").await.unwrap().spec.unwrap();
    let selector = spec.selector.unwrap();
    assert_eq!(selector["windlass.dev/role"], "leader");
    let deployment = deployments.get("windlass-plugin").await.unwrap().spec.unwrap();
    let labels = deployment.template.metadata.unwrap().labels.unwrap();
    assert_eq!(labels["app.kubernetes.io/name"], selector["app.kubernetes.io/name"]);
}

#[tokio::test]
async fn agent_and_scheduler_trust_a_plugin_that_made_its_own_certificates() {
    let installed = installed().await;
    let plane = &installed.plane;
    let vms = Vms::of(plane).await;
    let node = vms.space.node("one", "4", "16Gi").await;
    vms.vm("vm", 4).await;
    assert_eq!(vms.bound("vm").await, node, "the scheduler shows the certificate of its Secret");
    let agents = Space::named(plane, "windlass").await;
    let pod = agents.pod_of(AGENT, &format!("on-{node}"), &node).await;
    let token = agents.token(AGENT, "windlass-plugin", Some(&pod)).await;
    let body = request(&json!({"namespace": vms.space.name(), "name": "vm"}), 1, &None);
    let header = format!("authorization: Bearer {token}\r\n");
    let client = Client::trusting(&installed.bundle().await, None);
    let permits = installed.plugin.permits.parse().unwrap();
    let permit = || client.ask(permits, "POST", "/", &header, &body).unwrap().status;
    assert_eq!(permit(), 200);

    // A person breaks what the plugin shows: new connections get what the leader makes anew, open ones go on.
    let mut open = client.connect(permits).unwrap();
    let old = installed.serving().await;
    let patch = Patch::Merge(json!({"stringData": {"tls.key": "no key"}}));
    let secrets = installed.secrets().await;
    secrets.patch("windlass-plugin-tls", &PatchParams::default(), &patch).await.unwrap();
    let is_new = async || installed.serving().await != old;
    wait::until_async("the pair is made anew", is_new).await;
    let words = ["windlass-plugin-tls", "tls.key", "holds no private key in PEM"];
    assert!(installed.plugin.has_logged(&words));
    let is_shown = || {
        let metrics = installed.plugin.metrics();
        metrics.contains(r#"windlass_plugin_certificate_reloads_total{answer="done"} 2"#)
            && metrics.contains(
                r#"windlass_plugin_certificate_problems_total{object="windlass-plugin-tls"} 1"#,
            )
    };
    wait::until("both ports show the new pair", is_shown);
    assert_eq!(permit(), 200);
    let head = http::request("POST", "/", &body).replacen("\r\n", &format!("\r\n{header}"), 1);
    std::io::Write::write_all(&mut open, head.as_bytes()).unwrap();
    assert!(http::rest(open).starts_with("HTTP/1.1 200 "));
    assert!(
        !installed.plugin.has_logged(&["PRIVATE KEY"]) && !installed.plugin.has_logged(&[&token])
    );
}

#[tokio::test]
async fn an_agent_lists_pods_and_changes_none() {
    let plane = &installed().await.plane;
    let (agents, space) = (Space::named(plane, "windlass").await, Space::new(plane).await);
    let node = space.node("one", "4", "16Gi").await;
    let pod = agents.pod_of(AGENT, &format!("on-{node}"), &node).await;
    let token = agents.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
    let client = plane.client_with(&token).await;
    space.pod("vm", json!({"cpu": "1", "memory": "1Gi"}), json!({"nodeName": node})).await;
    let all: Api<Pod> = Api::all(client.clone());
    let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let names = all.list(&of_node).await.unwrap().into_iter().map(|pod| pod.metadata.name.unwrap());
    assert!(names.collect::<Vec<_>>().contains(&"vm".to_owned()));
    assert!(all.watch(&Default::default(), "0").await.is_ok());
    let (pods, params) = (Api::<Pod>::namespaced(client, space.name()), PatchParams::default());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    for answer in [
        pods.get("vm").await.map(drop),
        pods.patch("vm", &params, &patch).await.map(drop),
        pods.patch_status("vm", &params, &patch).await.map(drop),
        pods.patch_subresource("resize", "vm", &params, &patch).await.map(drop),
        pods.delete("vm", &Default::default()).await.map(drop),
        pods.create(&PostParams::default(), &Pod::default()).await.map(drop),
    ] {
        let refused = answer.unwrap_err().to_string();
        assert!(refused.contains("cannot"), "{refused}");
    }
}

/// The API server writes the node of an agent's pod into its token, and the policy reads it there. The kind is of another project.
#[tokio::test]
async fn an_agent_changes_the_use_of_virtual_machines_on_its_own_node_and_nothing_else() {
    let plane = &installed().await.plane;
    let (agents, space) = (Space::named(plane, "windlass").await, Space::new(plane).await);
    let node = space.node("one", "4", "16Gi").await;
    let pod = agents.pod_of(AGENT, &format!("on-{node}"), &node).await;
    let token = agents.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
    let agent = plane.client_with(&token).await;
    let loose = agents.token(AGENT, "https://kubernetes.default.svc", None).await;
    let loose = plane.client_with(&loose).await;
    plane.apply(&plane.folder().put("vm-kind.json", vm_kind().to_string())).await;
    let kind = GroupVersionKind::gvk("vm.neon.tech", "v1", "VirtualMachine");
    let kind = ApiResource::from_gvk_with_plural(&kind, "virtualmachines");
    let vms = |client: &kube::Client| {
        Api::<DynamicObject>::namespaced_with(client.clone(), space.name(), &kind)
    };
    let is_known = async || vms(space.client()).list(&ListParams::default()).await.is_ok();
    wait::until_async("the kind is known", is_known).await;
    for (name, on) in [("own", node.as_str()), ("theirs", "another")] {
        let size = json!({"min": 1, "max": 4, "use": 1});
        let vm = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"guest": {"cpus": size, "memorySlots": size, "rootDisk": {"image": "a"}}, "qmp": 1},
            "status": {"node": on},
        });
        let vm = serde_json::from_value(vm).unwrap();
        vms(space.client()).create(&PostParams::default(), &vm).await.unwrap();
    }
    let uses = json!({"spec": {"guest": {"cpus": {"use": 2}, "memorySlots": {"use": 3}}}});
    let try_patch = async |client: &kube::Client, name: &str, patch: &Value| match vms(client)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
    {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let renamed = json!({"metadata": {"labels": {"a": "b"}}});
    let is_in_force = async || try_patch(&agent, "own", &renamed).await.contains("changes nothing");
    wait::until_async("the policy is in force", is_in_force).await;
    assert_eq!(try_patch(&agent, "own", &uses).await, "");
    let labels = json!({"metadata": {"labels": {"windlass.dev/node": "own"}}});
    assert_eq!(try_patch(&agent, "own", &labels).await, "");
    for (client, name) in [(&agent, "theirs"), (&loose, "own")] {
        let said = try_patch(client, name, &uses).await;
        assert!(said.contains("another node"), "{name}: {said:?}");
    }
    // Others are not held by it.
    assert_eq!(try_patch(space.client(), "theirs", &renamed).await, "");
    for patch in [
        json!({"spec": {"guest": {"cpus": {"max": 8}}}}),
        json!({"spec": {"guest": {"memorySlots": {"min": null}}}}),
        json!({"spec": {"guest": {"rootDisk": {"image": "b"}}}}),
        json!({"spec": {"guest": {"more": 1}}}),
        json!({"spec": {"qmp": 2}}),
        json!({"spec": {"qmp": null}}),
        json!({"metadata": {"annotations": {"windlass.dev/bounds": "{}"}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"finalizers": ["a/b"]}}),
    ] {
        let said = try_patch(&agent, "own", &patch).await;
        assert!(said.contains("changes nothing of a VirtualMachine"), "{patch}: {said:?}");
    }
}

/// A kind of any fields, of the name that NeonVM gives its own.
fn vm_kind() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "virtualmachines.vm.neon.tech"},
        "spec": {
            "group": "vm.neon.tech", "scope": "Namespaced",
            "names": {"kind": "VirtualMachine", "plural": "virtualmachines"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    })
}

/// A control plane with our manifests, the plugin and a scheduler.
pub(crate) struct Installed {
    pub(crate) plane: ControlPlane,
    plugin: Plugin,
    _scheduler: Scheduler,
}

pub(crate) async fn installed() -> &'static Installed {
    static INSTALLED: OnceCell<Installed> = OnceCell::const_new();
    INSTALLED.get_or_init(Installed::start).await
}

// === impl Installed ===

impl Installed {
    async fn start() -> Self {
        let plane = ControlPlane::start().await;
        for folder in MANIFESTS {
            plane.kubectl(&["apply", "-k", folder]).await;
        }
        let (plugin, pair) = plugin_as_shipped(&plane).await;
        let folder = plane.folder();
        let mut config = plugin.scheduler_config();
        config["urlPrefix"] = json!(format!("https://{}", plugin.extender));
        config["enableHTTPS"] = json!(true);
        config["tlsConfig"] = json!({
            "caFile": folder.put("made-ca.pem", bundle(&plane).await),
            "certFile": folder.put("made-scheduler.pem", &pair.certificate),
            "keyFile": folder.put("made-scheduler.key", &pair.key),
        });
        let _scheduler = Scheduler::start(&plane, SCHEDULER, &[config]).await;
        Self { plane, plugin, _scheduler }
    }

    async fn bundle(&self) -> String {
        bundle(&self.plane).await
    }

    async fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.plane.client(Identity::Admin).await, "windlass")
    }

    async fn serving(&self) -> String {
        pair(&self.secrets().await.get("windlass-plugin-tls").await.unwrap()).certificate
    }
}

/// A plugin with the file that we ship, and the certificate that it made for the scheduler.
pub(crate) async fn plugin_as_shipped(plane: &ControlPlane) -> (Plugin, Pair) {
    let shipped = std::fs::read_to_string(format!("{}/plugin.toml", MANIFESTS[0])).unwrap();
    let plugin = Plugin::start_with_shipped(&plane.kubeconfig(Identity::Plugin), &shipped);
    let secrets: Api<Secret> = Api::namespaced(plane.client(Identity::Admin).await, "windlass");
    let is_made = async || secrets.get_opt("windlass-scheduler-tls").await.unwrap().is_some();
    wait::until_async("the scheduler's certificate is made", is_made).await;
    let pair = pair(&secrets.get("windlass-scheduler-tls").await.unwrap());
    (plugin, pair)
}

/// The CAs by which the plugin is trusted.
pub(crate) async fn bundle(plane: &ControlPlane) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(Identity::Admin).await, "windlass");
    maps.get("windlass-plugin-ca").await.unwrap().data.unwrap()["ca.crt"].clone()
}

fn pair(secret: &Secret) -> Pair {
    let text = |key: &str| {
        let ByteString(bytes) = &secret.data.as_ref().unwrap()[key];
        String::from_utf8(bytes.clone()).unwrap()
    };
    Pair { certificate: text("tls.crt"), key: text("tls.key") }
}
