//! The agents of a cluster's nodes: the pod of each has a token, and trusts the CA that the plugin made.

use crate::vms::Vms;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use windlass_control_plane::{ControlPlane, Space};
use windlass_testkit::http::Answer;
use windlass_testkit::tls::Client;

/// The account of agents, in the namespace of Windlass.
const AGENT: &str = "windlass-agent";
const AUDIENCE: &str = "windlass-plugin";

/// The agents, and where they ask.
pub(crate) struct Callers<'a> {
    space: Space<'a>,
    pods: BTreeMap<String, Pod>,
    client: Client,
    permits: SocketAddr,
}

// === impl Callers ===

impl<'a> Callers<'a> {
    /// An agent on each of these nodes. The plugin has made its CA.
    pub(crate) async fn of(plane: &'a ControlPlane, nodes: &[String], permits: &str) -> Self {
        let space = Space::named(plane, "windlass").await;
        space.account(AGENT).await;
        let mut pods = BTreeMap::new();
        for node in nodes {
            let pod = space.pod_of(AGENT, &format!("on-{node}"), node).await;
            pods.insert(node.clone(), pod);
        }
        let ca = made_ca(&space).await.unwrap();
        Self { space, pods, client: Client::trusting(&ca, None), permits: permits.parse().unwrap() }
    }

    /// A token of the agent on this node, as its kubelet gets it.
    pub(crate) async fn token(&self, node: &str) -> String {
        self.space.token(AGENT, AUDIENCE, Some(&self.pods[node])).await
    }

    /// The answer to what an agent asks with this token, if one comes.
    pub(crate) async fn ask(&self, token: &str, body: String) -> Option<Answer> {
        let header = format!("authorization: Bearer {token}\r\n");
        let (client, at) = (self.client.clone(), self.permits);
        let asked = move || client.ask(at, "POST", "/", &header, &body).ok();
        tokio::task::spawn_blocking(asked).await.unwrap()
    }
}

/// Whether the plugin has made its CA.
pub(crate) async fn is_ca_made(vms: &Vms<'_>) -> bool {
    made_ca(&vms.space).await.is_some()
}

async fn made_ca(space: &Space<'_>) -> Option<String> {
    let maps: Api<ConfigMap> = Api::namespaced(space.client().clone(), "windlass");
    maps.get_opt("windlass-plugin-ca").await.unwrap()?.data?.remove("ca.crt")
}
