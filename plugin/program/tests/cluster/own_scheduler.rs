//! The recipe for the cluster's own scheduler, as it is shipped: a scheduler of that name reads the file, and asks the plugin for VM pods alone.

use crate::install::{MANIFESTS, bundle, plugin_as_shipped};
use crate::plugin::Plugin;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::json;
use windlass_control_plane::space::{condition, node_of};
use windlass_control_plane::{ControlPlane, Identity, Scheduler, Space};
use windlass_testkit::Folder;

const RECIPE: &str = "../../deploy/own-scheduler/config.yaml";

#[tokio::test]
async fn the_cluster_s_own_scheduler_asks_the_plugin_for_vm_pods_alone() {
    let plane = ControlPlane::start().await;
    plane.kubectl(&["apply", "-k", MANIFESTS[0]]).await;
    let (plugin, pair) = plugin_as_shipped(&plane).await;
    let folder = Folder::create().unwrap();
    folder.put("ca.crt", bundle(&plane).await);
    folder.put("tls.crt", &pair.certificate);
    folder.put("tls.key", &pair.key);
    // Where a machine with a control plane has these, and the address that its person writes there.
    let (kubeconfig, at) = (plane.kubeconfig(Identity::Scheduler), &plugin.extender);
    let mut config = std::fs::read_to_string(RECIPE).unwrap();
    let begin = config.find("\napiVersion: ").unwrap();
    config.replace_range(..begin, "");
    for (theirs, ours, times) in [
        ("/etc/kubernetes/scheduler.conf", kubeconfig.display().to_string(), 1),
        ("/etc/kubernetes/windlass", folder.path().display().to_string(), 3),
        ("//windlass-plugin.windlass.svc:10297", format!("//{at}"), 1),
    ] {
        assert_eq!(config.matches(theirs).count(), times, "{theirs}");
        config = config.replace(theirs, &ours);
    }
    let _scheduler = Scheduler::start_with(&plane, Scheduler::DEFAULT, &config).await;

    let space = Space::new(&plane).await;
    let node = space.node("one", "4", "16Gi").await;
    let is_bound = async |name: &str| {
        let pod = space.until_pod(name, "bound", |pod| node_of(pod).is_some()).await;
        assert_eq!(node_of(&pod), Some(node.as_str()));
        pod
    };
    space.pod("ordinary", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    let ordinary = is_bound("ordinary").await;
    assert_eq!((calls(&plugin), has_ceiling(&ordinary)), (0.0, false));
    make_vm(&space, "vm").await;
    let vm = is_bound("vm").await;
    let asked = calls(&plugin);
    assert!(asked >= 2.0 && has_ceiling(&vm), "{asked}: it filters, and has the plugin bind");
    let bound = r#"windlass_plugin_extender_calls_total{verb="bind",answer="some"} 1"#;
    assert!(plugin.metrics().contains(bound));
    assert_eq!(plugin.node(&node)["reserved"]["cpu"], 1000);

    // Without the plugin's word no VM pod is placed; every other one is.
    drop(plugin);
    make_vm(&space, "late").await;
    space.until_pod("late", "refused", is_refused).await;
    space.pod("last", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    is_bound("last").await;
    let late = space.pods().get("late").await.unwrap();
    assert_eq!(node_of(&late), None);
}

/// Makes a VM pod, which asks for the resource by which the scheduler knows it.
async fn make_vm(space: &Space<'_>, name: &str) {
    let bounds = json!({"min": {"cpu": 1, "mem": "1Gi"}, "max": {"cpu": 2, "mem": "2Gi"}});
    let own = json!({"windlass.dev/vm": "1"});
    let requests = json!({"cpu": "1", "memory": "1Gi", "windlass.dev/vm": "1"});
    let pod = json!({
        "metadata": {
            "name": name,
            "labels": {"windlass.dev/enabled": "true"},
            "annotations": {"windlass.dev/bounds": bounds.to_string()},
        },
        "spec": {
            "nodeSelector": {"windlass.dev/space": space.name()},
            "containers": [{
                "name": "vm", "image": "none", "resources": {"requests": requests, "limits": own},
            }],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    space.pods().create(&PostParams::default(), &pod).await.unwrap();
}

/// How many requests of the scheduler the plugin has counted.
fn calls(plugin: &Plugin) -> f64 {
    let metrics = plugin.metrics();
    let lines =
        metrics.lines().filter(|line| line.starts_with("windlass_plugin_extender_calls_total{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

fn has_ceiling(pod: &Pod) -> bool {
    let all = pod.metadata.annotations.as_ref();
    all.is_some_and(|all| all.contains_key("windlass.dev/ceiling"))
}

fn is_refused(pod: &Pod) -> bool {
    condition(pod, "PodScheduled").is_some_and(|it| it.status == "False")
}
