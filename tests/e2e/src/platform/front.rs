//! What stands in for the Service of the plugin: it passes each connection on to the pod that the Service selects at that moment.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The labels that the Service selects.
const LEADER: &str = "app.kubernetes.io/name=windlass-plugin,windlass.dev/role=leader";

/// Two ports of the loopback interface. They end with its value.
pub(super) struct Front {
    addresses: Addresses,
    _work: JoinSet<()>,
}

/// Where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) permits: SocketAddr,
    pub(super) extender: SocketAddr,
}

// === impl Front ===

impl Front {
    pub(super) async fn start(client: &Client, namespace: &str) -> Result<Self> {
        let permits = TcpListener::bind("127.0.0.1:0").await?;
        let extender = TcpListener::bind("127.0.0.1:0").await?;
        let addresses =
            Addresses { permits: permits.local_addr()?, extender: extender.local_addr()? };
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let work = [(permits, 10296), (extender, 10297)];
        let work = work.map(|(listener, port)| pass(listener, pods.clone(), port));
        Ok(Self { addresses, _work: JoinSet::from_iter(work) })
    }

    pub(super) fn addresses(&self) -> Addresses {
        self.addresses
    }
}

async fn pass(listener: TcpListener, pods: Api<Pod>, port: u16) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut near, _)) = listener.accept().await else { continue };
        let pods = pods.clone();
        connections.spawn(async move {
            // Where there is no leader, the caller's connection is closed.
            let Some(address) = leader(&pods).await else { return };
            if let Ok(mut far) = TcpStream::connect(format!("{address}:{port}")).await {
                let _either_has_left = copy_bidirectional(&mut near, &mut far).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The address of the pod that leads.
async fn leader(pods: &Api<Pod>) -> Option<String> {
    let found = pods.list(&ListParams::default().labels(LEADER)).await.ok()?;
    found.items.into_iter().find_map(|pod| pod.status?.pod_ip)
}
