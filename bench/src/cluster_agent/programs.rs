//! Agents of nodes beside a plugin, as they ship but for addresses: with their own accounts and rights, over TLS.

use crate::cluster_plugin::{Api, ClusterPlugin, Shows};
use crate::program::{PATIENCE, Program, beside};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use windlass_control_plane::{ControlPlane, Identity, Space, Way, neonvm};
use windlass_lab::Folder;

/// What is installed, seen from where `make bench` runs.
const MANIFESTS: &str = "deploy/kustomize";
/// Where Windlass is installed.
const HOME: &str = "windlass";
/// The account of agents.
const AGENT: &str = "windlass-agent";
/// What kubectl is told to print the CA that the plugin makes; nothing, until there is one.
const CA: [&str; 6] = [
    "--namespace",
    HOME,
    "get",
    "configmaps",
    "--field-selector=metadata.name=windlass-plugin-ca",
    "--output=jsonpath={.items[*].data.ca\\.crt}",
];

/// What runs beside a control plane.
pub(super) struct Installed<'a> {
    pub(super) plane: &'a ControlPlane,
    pub(super) plugin: ClusterPlugin,
    /// The plugin's way to the API server.
    pub(super) way: Way,
    /// With the file of the plugin's CA.
    folder: Folder,
}

// === impl Installed ===

impl<'a> Installed<'a> {
    /// Applies what ships, and starts the plugin.
    pub(super) async fn on(plane: &'a ControlPlane) -> Result<Self> {
        let manifests = Path::new(MANIFESTS);
        ensure!(
            manifests.is_dir(),
            "{MANIFESTS} is not there: `make bench` runs in the folder above it"
        );
        for part in ["plugin", "plugin-neonvm", "agent"] {
            plane.apply(&manifests.join(part)).await;
        }
        neonvm::kinds(plane).await;
        let way = Way::to(plane, 0).await;
        let api = Api::File(way.kubeconfig(Identity::Plugin));
        let plugin = ClusterPlugin::start(&[], &api, Shows::Own).await?;
        let (folder, begun) = (Folder::create()?, Instant::now());
        let mut ca = plane.kubectl(&CA).await;
        while ca.is_empty() {
            ensure!(begun.elapsed() < PATIENCE, "no CA\n{}", plugin.program.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
            ca = plane.kubectl(&CA).await;
        }
        fs::write(folder.path().join("ca.crt"), ca)?;
        Ok(Self { plane, plugin, way, folder })
    }

    /// Makes the pod of a node's agent.
    pub(super) async fn agent_pod(&self, node: &str) {
        let home = Space::named(self.plane, HOME).await;
        home.pod_of(AGENT, &format!("agent-{node}"), node).await;
    }

    /// Starts the agent of a node, by this way to the API server or straight, with these words besides.
    pub(super) async fn agent(
        &self,
        node: &str,
        way: Option<&Way>,
        words: &[&str],
    ) -> Result<Program> {
        let home = Space::named(self.plane, HOME).await;
        let pod = home.pods().get(&format!("agent-{node}")).await?;
        let to_plane = home.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
        let to_plugin = home.token(AGENT, "windlass-plugin", Some(&pod)).await;
        let kubeconfig = match way {
            Some(way) => way.kubeconfig_with(node, &to_plane),
            None => self.plane.kubeconfig_with(node, &to_plane),
        };
        let folder = Folder::create()?;
        let token = folder.path().join("token");
        fs::write(&token, to_plugin)?;
        let permits = self.plugin.permits.context("the plugin serves no permits")?;
        let ca = self.folder.path().join("ca.crt");
        let (first, last) = crate::agent::free_ports(super::MANY)?;
        let text = format!(
            "plugin = \"https://{permits}\"\nplugin_ca = {ca:?}\nplugin_token = {token:?}\n\
             admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
             callback_ports = \"{first}-{last}\"\n\
             [kubernetes]\nnode = \"{node}\"\nkubeconfig = {kubeconfig:?}\n"
        );
        Program::run(&beside("windlass-agent")?, words, folder, &text)
    }
}
