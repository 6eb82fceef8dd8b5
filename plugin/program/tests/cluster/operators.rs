//! What people see of VMs: the condition and the events of one that cannot grow, and what the plugin shows those who may see its pod.

use crate::agent::request;
use crate::trust::{Trusted, trusted};
use crate::vms::Vms;
use k8s_openapi::api::core::v1::{Event, Node, Pod, PodCondition};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_control_plane::space::condition;
use windlass_control_plane::{Identity, neonvm};
use windlass_testkit::tls::Client;
use windlass_testkit::wait;

const CONDITION: &str = "windlass.dev/Scaling";
const AUDIENCE: &str = "windlass-plugin";

#[tokio::test]
async fn a_vm_that_cannot_grow_says_why_to_those_who_may_see_its_pod() {
    let trusted = trusted().await;
    let vms = Vms::of(&trusted.plane).await;
    let node = vms.space.node("full", "4", "16Gi").await;
    for name in ["vm", "other"] {
        vms.vm(name, 4).await;
        assert_eq!(vms.bound(name).await, node);
    }
    let agents = trusted.agents().await;
    let pod = agents.pod_of("windlass-agent", &format!("on-{node}"), &node).await;
    let token = agents.token("windlass-agent", AUDIENCE, Some(&pod)).await;
    let ask = |name: &str, size: u64, last: u64| asks(trusted, &vms, (&token, name), size, last);
    assert_eq!((ask("other", 1, 0), ask("other", 3, 1), ask("vm", 1, 0)), (1, 3, 1));

    let namespace = vms.space.name();
    may_see_pods(&vms, "reader").await;
    vms.space.account("stranger").await;
    // The node is full: the agent of `vm` asks for more, as agents do, and people are told.
    let keeps_asking = || {
        ask("vm", 3, 1);
        ask("other", 3, 3);
    };
    let full = until_shown(&vms, "vm", "NodeFull", keeps_asking).await;
    println!("condition: {}", serde_json::to_string(&full).unwrap());
    assert_eq!(full.status, "False");
    let words = "The VM asked for 3 vCPU and may have 1 vCPU: 0 vCPU of the node's 4 vCPU is free.";
    assert_eq!(full.message.as_deref(), Some(words));
    let event = event(&vms, "NodeFull").await;
    println!("event: {} {:?} {:?}", event.reason.unwrap(), event.type_, event.message);
    assert_eq!(
        (event.involved_object.name.as_deref(), event.message.as_deref()),
        (Some("vm"), Some(words))
    );
    let pod = vms.space.pods().get("other").await.unwrap();
    assert!(
        condition(&pod, CONDITION).is_none(),
        "nothing is written of a VM that has what it asks for"
    );

    // Who may get the pods of the namespace sees them, and nobody else.
    let reader = vms.space.token("reader", AUDIENCE, None).await;
    let stranger = vms.space.token("stranger", AUDIENCE, None).await;
    let of_another_audience =
        vms.space.token("reader", "https://kubernetes.default.svc", None).await;
    let (one, all) =
        (format!("/v1/namespaces/{namespace}/vms/vm"), format!("/v1/namespaces/{namespace}/vms"));
    let (status, body) = shown(trusted, &reader, &one);
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    println!("shown: {body:#}");
    let vm = &body["vms"][0];
    assert_eq!(vm["condition"]["reason"], "NodeFull");
    assert_eq!((&vm["node"], &vm["condition"]["message"]), (&json!(node), &json!(words)));
    let (status, body) = shown(trusted, &reader, &all);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, body["vms"].as_array().unwrap().len()), (200, 2));
    for (token, path, status, words) in [
        ("", &one, 401, "no bearer token"),
        ("nonsense", &one, 401, "the API server refuses the token"),
        (&of_another_audience, &one, 401, "the API server refuses the token"),
        (&stranger, &one, 403, "may not get pods in"),
        (&stranger, &all, 403, "may not get pods in"),
        (&reader, &"/v1/vms".to_owned(), 403, "may not get pods in all namespaces"),
        (&reader, &"/v1/namespaces/default/vms".to_owned(), 403, "may not get pods in default"),
        (&reader, &format!("{one}-2"), 404, "is on a node"),
        (&reader, &"/log-level".to_owned(), 404, "nothing is shown at this path"),
    ] {
        let (answered, said) = shown(trusted, token, path);
        assert_eq!(answered, status, "{path}: {said}");
        assert!(said.contains(words), "{path}: {said}");
    }

    // What else acts on the pods of VMs, of those that the caller may see.
    let vpa =
        Patch::Merge(json!({"metadata": {"annotations": {"vpaUpdates": "container 0: cpu"}}}));
    vms.space.pods().patch("vm", &PatchParams::default(), &vpa).await.unwrap();
    let descheduler = json!({
        "metadata": {"name": "evicts", "labels": {"app.kubernetes.io/name": "descheduler"}},
        "spec": {"containers": [{"name": "evicts", "image": "none"}], "schedulerName": "nobody"},
    });
    let descheduler = serde_json::from_value(descheduler).unwrap();
    vms.space.pods().create(&PostParams::default(), &descheduler).await.unwrap();
    let (status, body) = shown(trusted, &reader, &format!("/v1/namespaces/{namespace}/findings"));
    assert_eq!(status, 200, "{body}");
    println!("findings: {body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    let named = |nth: usize| {
        let finding = &body["findings"][nth];
        (finding["neighbour"].as_str().unwrap(), finding["pods"].as_array().unwrap().len())
    };
    assert_eq!(body["looked_at"], 2);
    assert_eq!([named(0), named(1)], [("vertical-pod-autoscaler", 1), ("descheduler", 2)]);
    assert_eq!(shown(trusted, &reader, "/v1/findings").0, 403);

    let refused = r#"windlass_plugin_condition_writes_total{write="condition",answer="refused"}"#;
    let metrics = trusted.plugin.metrics();
    let own: Api<Pod> = Api::namespaced(trusted.plane.client(Identity::Plugin).await, namespace);
    let lie = Patch::Merge(json!({"status": {"phase": "Running", "podIP": "10.0.0.9"}}));
    let refused_by_policy = own.patch_status("vm", &PatchParams::default(), &lie).await;
    let said = refused_by_policy.unwrap_err().to_string();
    assert!(said.contains("changes nothing of a pod's status but the condition"), "{said}");
    assert!(!metrics.contains(refused) && metrics.contains(r#"{write="event",answer="done"}"#));
}

#[tokio::test]
async fn a_vm_of_a_cordoned_node_does_not_grow_and_says_so() {
    let trusted = trusted().await;
    let vms = Vms::of(&trusted.plane).await;
    let node = vms.space.node("left", "8", "16Gi").await;
    vms.vm("vm", 4).await;
    assert_eq!(vms.bound("vm").await, node);
    let agents = trusted.agents().await;
    let pod = agents.pod_of("windlass-agent", &format!("on-{node}"), &node).await;
    let token = agents.token("windlass-agent", AUDIENCE, Some(&pod)).await;
    let ask = |size: u64, last: u64| asks(trusted, &vms, (&token, "vm"), size, last);
    assert_eq!((ask(1, 0), ask(2, 1)), (1, 2));
    let cordon = async |is_cordoned: bool| {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned}}));
        let nodes: Api<Node> = Api::all(vms.space.client().clone());
        nodes.patch(&node, &PatchParams::default(), &patch).await.unwrap();
    };
    cordon(true).await;
    let is_cordoned = || trusted.plugin.node(&node)["is_cordoned"] == true;
    wait::until("the plugin knows of the cordon", is_cordoned);
    assert_eq!((ask(3, 2), ask(2, 2)), (2, 2), "there is room for it");
    let keeps_asking = || {
        ask(3, 2);
    };
    let shown = until_shown(&vms, "vm", "NodeCordoned", keeps_asking).await;
    println!("condition: {}", serde_json::to_string(&shown).unwrap());
    let words = "The VM asked for 3 vCPU and may have 2 vCPU: the node is cordoned.";
    assert_eq!(shown.message.as_deref(), Some(words));
    println!("event: {:?}", event(&vms, "NodeCordoned").await.message);
    cordon(false).await;
    wait::until("the plugin knows that it ended", || !is_cordoned());
    assert_eq!(ask(3, 2), 3);
}

/// NeonVM's objects say bounds without an annotation; what their pods request is another matter.
#[tokio::test]
async fn a_vm_of_neonvm_is_shown_with_the_bounds_of_its_object() {
    let trusted = trusted().await;
    let vms = Vms::of(&trusted.plane).await;
    let (namespace, client) = (vms.space.name(), vms.space.client().clone());
    let node = vms.space.node("neon", "8", "16Gi").await;
    may_see_pods(&vms, "reader").await;
    let token = vms.space.token("reader", AUDIENCE, None).await;
    let objects: Api<DynamicObject> = Api::namespaced_with(client, namespace, &neonvm::kind());
    let object = json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine", "metadata": {"name": "db1"},
        "spec": {"guest": {
            "cpus": {"min": "500m", "max": 4, "use": 1},
            "memorySlotSize": "512Mi", "memorySlots": {"min": 1, "max": 8, "use": 2},
        }},
    });
    objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let labels = json!({"vm.neon.tech/name": "db1", "windlass.dev/enabled": "true"});
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    let pod = json!({
        "metadata": {"name": "db1-a", "labels": labels},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "vm", "image": "none", "resources": {"requests": requests}}],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    vms.space.pods().create(&PostParams::default(), &pod).await.unwrap();
    let until_shown = |min: (u64, u64), max: (u64, u64)| {
        let size = |(cpu, mib): (u64, u64)| json!({"cpu": cpu, "mem": mib << 20});
        let expected = json!({"min": size(min), "max": size(max)});
        wait::until(&format!("shown with {expected}"), || {
            let path = format!("/v1/namespaces/{namespace}/vms/db1");
            let (status, body) = shown(trusted, &token, &path);
            status == 200 && {
                let body: Value = serde_json::from_str(&body).unwrap();
                body["vms"][0]["pod"]["name"] == "db1-a" && body["vms"][0]["bounds"] == expected
            }
        });
    };
    until_shown((500, 512), (4000, 4096));
    let bounds = json!({"windlass.dev/bounds": r#"{"max":{"cpu":2}}"#});
    let patch = Patch::Merge(json!({"metadata": {"annotations": bounds}}));
    objects.patch("db1", &PatchParams::default(), &patch).await.unwrap();
    until_shown((500, 512), (2000, 4096));
}

/// An agent that may not act on a VM asks for none, and says why.
#[tokio::test]
async fn an_agent_says_why_it_asks_for_no_permit_of_its_own_vms_alone() {
    let trusted = trusted().await;
    let vms = Vms::of(&trusted.plane).await;
    let node = vms.space.node("mute", "8", "16Gi").await;
    vms.vm("vm", 4).await;
    assert_eq!(vms.bound("vm").await, node);
    let agents = trusted.agents().await;
    let tells = async |on: &str, names: &[&str], words: &str| {
        let pod = agents.pod_of("windlass-agent", &format!("on-{on}"), on).await;
        let token = agents.token("windlass-agent", AUDIENCE, Some(&pod)).await;
        let told = json!({"why": "no-informant", "words": words});
        let of = |name| json!({"pod": {"namespace": vms.space.name(), "name": name}, "told": told.clone()});
        let body = json!({"vms": names.iter().map(of).collect::<Vec<_>>()}).to_string();
        let header = format!("authorization: Bearer {token}\r\n");
        let client = Client::new(&trusted.ca, None);
        move || {
            let answer = client.ask(trusted.permits(), "POST", "/v1/told", &header, &body).unwrap();
            answer.status
        }
    };
    let elsewhere = vms.space.node("elsewhere", "8", "16Gi").await;
    vms.vm_on("beside", 1, 4, &elsewhere).await;
    assert_eq!(vms.bound("beside").await, elsewhere);
    // What the other agent says of both VMs is read by the time that people see what it says of its own.
    let other = tells(&elsewhere, &["vm", "beside"], "This is not its node.").await;
    until_shown(&vms, "beside", "InformantSilent", || assert_eq!(other(), 200)).await;
    let own = tells(&node, &["vm"], "No informant in the guest speaks for the VM.").await;
    let shown = until_shown(&vms, "vm", "InformantSilent", || assert_eq!(own(), 200)).await;
    println!("condition: {}", serde_json::to_string(&shown).unwrap());
    assert_eq!(shown.message.as_deref(), Some("No informant in the guest speaks for the VM."));
}

/// Makes a service account that may get the pods of the namespace.
async fn may_see_pods(vms: &Vms<'_>, account: &str) {
    let namespace = vms.space.name();
    vms.space.account(account).await;
    let role = json!({
        "metadata": {"name": account},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let roles: Api<Role> = Api::namespaced(vms.space.client().clone(), namespace);
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let binding = json!({
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(vms.space.client().clone(), namespace);
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

/// What the agent with this token is permitted, in vCPUs, that asks for a VM, and was permitted this much before.
fn asks(
    trusted: &Trusted,
    vms: &Vms<'_>,
    (token, name): (&str, &str),
    size: u64,
    last: u64,
) -> u64 {
    let pod = json!({"namespace": vms.space.name(), "name": name});
    let last = Some(json!({"vCPUs": last, "mem": format!("{last}Gi")})).filter(|_| last > 0);
    let header = format!("authorization: Bearer {token}\r\n");
    let client = Client::new(&trusted.ca, None);
    let body = request(&pod, size, &last);
    let answer = client.ask(trusted.permits(), "POST", "/", &header, &body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str::<Value>(&answer.body).unwrap()["permit"]["vCPUs"].as_u64().unwrap()
}

/// What the plugin shows at a path to whoever has this token.
fn shown(trusted: &Trusted, token: &str, path: &str) -> (u16, String) {
    let header = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    let client = Client::new(&trusted.ca, None);
    let answer = client.ask(trusted.permits(), "GET", path, &header, "").unwrap();
    (answer.status, answer.body)
}

/// The condition of a VM, once it has this reason. Agents ask all the while.
async fn until_shown(
    vms: &Vms<'_>,
    name: &str,
    reason: &str,
    keeps_asking: impl Fn(),
) -> PodCondition {
    let mut shown = None;
    wait::until_async(reason, async || {
        keeps_asking();
        let pod = vms.space.pods().get(name).await.unwrap();
        shown =
            condition(&pod, CONDITION).filter(|it| it.reason.as_deref() == Some(reason)).cloned();
        shown.is_some()
    })
    .await;
    shown.unwrap()
}

/// The event with this reason.
async fn event(vms: &Vms<'_>, reason: &str) -> Event {
    let events: Api<Event> = Api::namespaced(vms.space.client().clone(), vms.space.name());
    let mut found = None;
    wait::until_async("the event", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        found = all.into_iter().find(|event| event.reason.as_deref() == Some(reason));
        found.is_some()
    })
    .await;
    found.unwrap()
}
