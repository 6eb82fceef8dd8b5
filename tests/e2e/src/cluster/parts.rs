//! The programs of a cluster, as they ship but for addresses.

use super::{AGENT, EVERY, HOME, LIMIT, PODS, RESIZED};
use crate::host::free_ports;
use crate::programs::beside;
use crate::served::Served;
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;
use windlass_control_plane::{ControlPlane, Identity, Space};
use windlass_lab::Folder;

/// The file with the plugin's CA, in the folder of the test.
pub(super) const CA: &str = "ca.crt";
/// The file with the token of a person, in the folder of the test.
pub(super) const TOKEN: &str = "token-of-operator";
/// For whom tokens of the plugin's callers are made.
const AUDIENCE: &str = "windlass-plugin";
/// The account of a person who may get the pods of the test.
const OPERATOR: &str = "operator";

/// The plugin, which makes its own certificates, and this way to the API server.
pub(super) async fn plugin(
    plane: &ControlPlane,
    way: SocketAddr,
    folder: &Folder,
) -> Result<Served> {
    let kubeconfig = by_way(&plane.kubeconfig(Identity::Plugin), way, folder)?;
    let text = format!(
        "dump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [kubernetes]\nkubeconfig = {kubeconfig:?}\nneonvm = true\nconditions = true\n\
         lease = {{ enabled = false }}\npermits = \"127.0.0.1:0\"\n\
         plain_extender = true\nextender = \"127.0.0.1:0\"\n\
         [[kubernetes.pool]]\nname = \"resized\"\nlabels = {{ \"{RESIZED}\" = \"true\" }}\nmode = \"resize\"\n",
    );
    start("windlass-plugin", folder, "plugin", text).await
}

/// The agent of a node: its pod is there, and it shows a token of that pod to the API server, to which it has this way, and another to
/// the plugin.
pub(super) async fn agent(
    plane: &ControlPlane,
    way: SocketAddr,
    home: &Space<'_>,
    folder: &Folder,
    plugin: &Served,
    node: &str,
) -> Result<Served> {
    let pod = home.pods().get(&format!("agent-{node}")).await?;
    let to_plane = home.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
    let to_plugin = home.token(AGENT, AUDIENCE, Some(&pod)).await;
    let kubeconfig = by_way(&plane.kubeconfig_with(node, &to_plane), way, folder)?;
    let token = folder.path().join(format!("token-{node}"));
    fs::write(&token, to_plugin)?;
    let permits = plugin.permits.context("the plugin says where it serves permits")?;
    let (ca, ports) = (folder.path().join(CA), free_ports()?);
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

/// A person who asks the plugin: an account of the test's namespace that may get pods there.
pub(super) async fn operator(
    plane: &ControlPlane,
    space: &Space<'_>,
    folder: &Folder,
) -> Result<()> {
    let namespace = space.name();
    space.account(OPERATOR).await;
    let create = async |what: &[&str]| {
        plane.kubectl(&[&["--namespace", namespace, "create"], what].concat()).await
    };
    create(&["role", OPERATOR, "--verb=get", "--resource=pods"]).await;
    let account = format!("--serviceaccount={namespace}:{OPERATOR}");
    create(&["rolebinding", OPERATOR, &format!("--role={OPERATOR}"), &account]).await;
    fs::write(folder.path().join(TOKEN), space.token(OPERATOR, AUDIENCE, None).await)?;
    Ok(())
}

/// A file like this one, by which a program has this way to the API server.
fn by_way(kubeconfig: &Path, way: SocketAddr, folder: &Folder) -> Result<PathBuf> {
    let mut config: Value = serde_json::from_str(&fs::read_to_string(kubeconfig)?)?;
    config["clusters"][0]["cluster"]["server"] = format!("https://{way}").into();
    let path = folder.path().join(kubeconfig.file_name().context("a file has a name")?);
    fs::write(&path, config.to_string())?;
    Ok(path)
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
