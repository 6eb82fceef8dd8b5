//! What the NetworkPolicies that we ship open, and to whom.
//!
//! No network is there that enforces them: they are read back from the API server, and judged.

use crate::install::installed;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ListParams};
use windlass_control_plane::{ControlPlane, Identity, Space};

const ENABLED: &str = "windlass.dev/enabled";
const THEIR_ENABLED: &str = "autoscaling.neon.tech/enabled";

/// The folders of NetworkPolicies for a namespace of VMs: the second leaves all other ports open.
pub(crate) const VMS: [&str; 2] = ["../../deploy/kustomize/vms", "../../deploy/kustomize/vms-open"];

#[tokio::test]
async fn the_network_lets_each_peer_reach_its_port_and_no_other() {
    let own = policies(&installed().await.plane, "windlass").await;
    assert_eq!(own.iter().filter(|policy| policy.ingress.is_none()).count(), 1, "all is closed");
    for (from, port, is_open) in [
        (Some("windlass-agent"), 10296, true),
        (Some("windlass-agent"), 10297, false),
        (Some("windlass-agent"), 10305, false),
        (Some("windlass-scheduler"), 10297, true),
        (Some("windlass-scheduler"), 10296, false),
        (None, 10296, false),
        (None, 10297, false),
    ] {
        let opens = own.iter().any(|policy| opens(policy, from, port));
        assert_eq!(opens, is_open, "{from:?} {port}");
    }
}

/// Policies add up: the ports of tenants are opened where a person asks for it, and nowhere else.
#[tokio::test]
async fn policies_for_vms_open_the_informant_to_agents_and_tenants_ports_where_asked_to() {
    let plane = &installed().await.plane;
    for (folder, leaves_open) in VMS.into_iter().zip([false, true]) {
        let space = Space::new(plane).await;
        plane.kubectl(&["apply", "--namespace", space.name(), "-k", folder]).await;
        let all = policies(plane, space.name()).await;
        for (enabled, is_scaled) in [
            (&[(ENABLED, "true")][..], true),
            (&[(THEIR_ENABLED, "true")], true),
            (&[(ENABLED, "true"), (THEIR_ENABLED, "true")], true),
            (&[(ENABLED, "false"), (THEIR_ENABLED, "true")], false),
            (&[(THEIR_ENABLED, "false")], false),
            (&[], false),
        ] {
            let of_pod = all.iter().filter(|policy| selects(policy, enabled)).collect::<Vec<_>>();
            assert_eq!(!of_pod.is_empty(), is_scaled, "{folder} {enabled:?}");
            for (from, port, is_open) in [
                (Some("windlass-agent"), 10301, true),
                (Some("tenant"), 10301, false),
                (None, 10301, false),
                (None, 10300, leaves_open),
                (None, 10302, leaves_open),
                (None, 22, leaves_open),
                (None, 65535, leaves_open),
            ] {
                let opens = of_pod.iter().any(|policy| opens(policy, from, port));
                assert_eq!(opens, is_scaled && is_open, "{folder} {enabled:?} {from:?} {port}");
            }
        }
    }
}

async fn policies(plane: &ControlPlane, namespace: &str) -> Vec<NetworkPolicySpec> {
    let all: Api<NetworkPolicy> = Api::namespaced(plane.client(Identity::Admin).await, namespace);
    let all = all.list(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|policy| policy.spec.unwrap()).collect()
}

/// Whether a policy is of a pod with these labels.
fn selects(policy: &NetworkPolicySpec, labels: &[(&str, &str)]) -> bool {
    let rules = policy.pod_selector.as_ref().and_then(|it| it.match_expressions.as_ref()).unwrap();
    rules.iter().all(|rule| {
        let value = labels.iter().find(|(key, _)| *key == rule.key).map(|(_, value)| *value);
        match rule.operator.as_str() {
            "In" => value.is_some_and(|it| rule.values.iter().flatten().any(|one| one == it)),
            "DoesNotExist" => value.is_none(),
            other => panic!("{other}"),
        }
    })
}

/// Whether a policy lets a pod of this name reach a TCP port; `None`: a pod of no name.
fn opens(policy: &NetworkPolicySpec, from: Option<&str>, port: i32) -> bool {
    policy.ingress.iter().flatten().any(|rule| {
        let is_peer = rule.from.as_ref().is_none_or(|peers| {
            peers.iter().filter_map(|peer| peer.pod_selector.as_ref()).any(|selector| {
                // Of any VM, by a label of another name.
                let labels = selector.match_labels.as_ref();
                let name = labels.and_then(|labels| labels.get("app.kubernetes.io/name"));
                from.zip(name).is_some_and(|(from, name)| from == name)
            })
        });
        let is_port = rule.ports.iter().flatten().any(|opened| {
            let Some(IntOrString::Int(first)) = opened.port else { return false };
            let is_tcp = opened.protocol.as_deref() == Some("TCP");
            is_tcp && (first..=opened.end_port.unwrap_or(first)).contains(&port)
        });
        is_peer && is_port
    })
}
