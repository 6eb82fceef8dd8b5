//! The programs of a cluster, as they ship but for addresses.

use super::{AGENT, EVERY, HOME, LIMIT, PODS, RESIZED};
use crate::host::free_ports;
use crate::programs::beside;
use crate::served::Served;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::time::Instant;
use windlass_control_plane::{ControlPlane, Identity, Space};
use windlass_lab::Folder;

/// The plugin, which makes its own certificates.
pub(super) async fn plugin(plane: &ControlPlane, folder: &Folder) -> Result<Served> {
    let kubeconfig = plane.kubeconfig(Identity::Plugin);
    let text = format!(
        "dump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [kubernetes]\nkubeconfig = {kubeconfig:?}\nneonvm = true\n\
         lease = {{ enabled = false }}\npermits = \"127.0.0.1:0\"\n\
         plain_extender = true\nextender = \"127.0.0.1:0\"\n\
         [[kubernetes.pool]]\nname = \"resized\"\nlabels = {{ \"{RESIZED}\" = \"true\" }}\nmode = \"resize\"\n",
    );
    start("windlass-plugin", folder, "plugin", text).await
}

/// The agent of a node: its pod is there, and it shows a token of that pod to the API server and another to the plugin.
pub(super) async fn agent(
    plane: &ControlPlane,
    home: &Space<'_>,
    folder: &Folder,
    plugin: &Served,
    node: &str,
) -> Result<Served> {
    let pod = home.pods().get(&format!("agent-{node}")).await?;
    let to_plane = home.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
    let to_plugin = home.token(AGENT, "windlass-plugin", Some(&pod)).await;
    let kubeconfig = plane.kubeconfig_with(node, &to_plane);
    let token = folder.path().join(format!("token-{node}"));
    fs::write(&token, to_plugin)?;
    let permits = plugin.permits.context("the plugin says where it serves permits")?;
    let (ca, ports) = (folder.path().join("ca.crt"), free_ports()?);
    let pods = folder.path().join(PODS);
    let text = format!(
        "plugin = \"https://{permits}\"\nplugin_ca = {ca:?}\nplugin_token = {token:?}\n\
         admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
         callback_ports = \"{}-{}\"\n\
         [kubernetes]\nnode = \"{node}\"\nkubeconfig = {kubeconfig:?}\npods_dir = {pods:?}\n",
        ports.start(),
        ports.end(),
    );
    let name = format!("agent-{}", node.rsplit('-').next().unwrap_or(node));
    start("windlass-agent", folder, &name, text).await
}

async fn start(program: &'static str, folder: &Folder, name: &str, text: String) -> Result<Served> {
    let (folder, name) = (folder.path().to_owned(), name.to_owned());
    let started = move || Served::start(&beside(program)?, &folder, &name, &text);
    tokio::task::spawn_blocking(started).await?
}

/// The CA that the plugin makes for its agents, once it has.
pub(super) async fn ca(plane: &ControlPlane) -> Result<String> {
    let ask = [
        "--namespace",
        HOME,
        "get",
        "configmaps",
        "--field-selector=metadata.name=windlass-plugin-ca",
        "--output=jsonpath={.items[*].data.ca\\.crt}",
    ];
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        let ca = plane.kubectl(&ask).await;
        if !ca.is_empty() {
            return Ok(ca);
        }
        tokio::time::sleep(EVERY).await;
    }
    Err(anyhow!("the plugin has made no CA"))
}
