//! The agent in a cluster. The plugin knows it by the token of its pod, and it knows the plugin by the CA that the plugin made;
//! both are files, which a kubelet replaces while the agent runs.

use crate::guest::Guest;
use crate::support::{Agent, Folder, Process, of, plugin_program, vm_file};
use serde_json::json;
use tokio::runtime::Builder;
use windlass_control_plane::{ControlPlane, Identity, Space};
use windlass_testkit::qmp::Machine;
use windlass_testkit::tls::Ca;
use windlass_testkit::wait::until;

/// The account of agents, in the namespace of Windlass.
const AGENT: &str = "windlass-agent";
const AUDIENCE: &str = "windlass-plugin";

/// What kubectl is told to print the CAs that agents are to trust; nothing, until there are any.
const CA: [&str; 6] = [
    "--namespace",
    "windlass",
    "get",
    "configmaps",
    "--field-selector=metadata.name=windlass-plugin-ca",
    "--output=jsonpath={.items[*].data.ca\\.crt}",
];

#[test]
fn token_and_ca_of_an_agent_in_a_cluster_are_replaced_while_it_runs() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let plane = runtime.block_on(ControlPlane::start());
    let kubectl = |args: &[&str]| runtime.block_on(plane.kubectl(args));
    for manifests in ["../../deploy/kustomize/plugin", "../../deploy/kustomize/agent"] {
        kubectl(&["apply", "-k", manifests]);
    }
    let (agents, pod) = runtime.block_on(async {
        let node = Space::new(&plane).await.node("one", "4", "16Gi").await;
        plane.apply(&plane.folder().put("vm.json", vm_pod(&node))).await;
        let agents = Space::named(&plane, "windlass").await;
        let pod = agents.pod_of(AGENT, "agent", &node).await;
        (agents, pod)
    });
    let new_token = || runtime.block_on(agents.token(AGENT, AUDIENCE, Some(&pod)));
    let ca = || kubectl(&CA);
    let mut plugin = Plugin::start(&plane);
    until("the plugin has made a CA", || !ca().is_empty());
    let made = ca();

    let (folder, guest) = (Folder::new(), Guest::start());
    let machine = Machine::start(folder.path("a.sock"), 0);
    folder.put("a", &vm_file(machine.path(), guest.address()));
    folder.write("ca.crt", Ca::new("other").pem());
    folder.write("token", "nonsense");
    let [ca_file, token] = ["ca.crt", "token"].map(|name| folder.path(name));
    let more = format!("plugin_ca = {ca_file:?}\nplugin_token = {token:?}\n");
    guest.load(1.5);
    let agent = Agent::start_to(&folder, &plugin.permits, &more);
    until("the agent does not trust the plugin", || agent.logged("plugin does not answer") == 1);
    folder.write("ca.crt", &made);
    until("the plugin does not know the token", || agent.logged("plugin denies this agent") == 1);
    assert_eq!(agent.slots("a"), Some(2));
    folder.write("token", &new_token());
    until("it grows", || agent.slots("a") == Some(4));

    folder.write("token", "nonsense");
    until("the plugin does not know it", || agent.logged("plugin denies this agent") == 2);
    guest.load(3.4);
    folder.write("token", &new_token());
    until("it has its maximum", || agent.slots("a") == Some(8));

    // Connections that are open go on for ten minutes: the plugin is started anew.
    kubectl(&["--namespace", "windlass", "delete", "secret", "windlass-plugin-tls"]);
    until("there is a new CA", || ca() != made);
    plugin.restart();
    until("the agent does not trust it", || agent.logged("plugin does not answer") == 2);
    guest.load(0.1);
    until("it shrinks all the same", || agent.slots("a") == Some(2));
    guest.load(1.5);
    folder.write("ca.crt", &ca());
    until("it grows again", || agent.slots("a") == Some(4));
    assert!(!agent.log().contains("eyJ"), "a token was logged");
}

/// A plugin that follows the API server. It ends with its value.
struct Plugin {
    process: Process,
    folder: Folder,
    kubernetes: String,
    permits: String,
}

// === impl Plugin ===

impl Plugin {
    fn start(plane: &ControlPlane) -> Self {
        let folder = Folder::new();
        let process = Process::new(plugin_program(), &folder, "plugin.toml");
        let kubeconfig = plane.kubeconfig(Identity::Plugin);
        let kubernetes = format!(
            "[kubernetes]\nkubeconfig = {kubeconfig:?}\nlease = {{ enabled = false }}\n\
             plain_extender = true\nextender = \"127.0.0.1:0\"\n"
        );
        let permits = "https://127.0.0.1:0".to_owned();
        let mut plugin = Self { process, folder, kubernetes, permits };
        plugin.restart();
        plugin
    }

    /// The second time and later at the same address.
    fn restart(&mut self) {
        self.process.kill();
        let permits = self.permits.trim_start_matches("https://");
        let text = format!(
            "dump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
             compute_unit = {{ cpu = 1, memory = \"256MiB\" }}\n{}permits = {permits:?}\n",
            self.kubernetes
        );
        self.folder.write("plugin.toml", &text);
        self.permits = of(&self.process.start(), "permits");
    }
}

/// The pod that is the VM `a`, in the namespace of VM files.
fn vm_pod(node: &str) -> String {
    let size = |cpu: u64, mem: &str| json!({"cpu": cpu, "mem": mem});
    let bounds = json!({"min": size(1, "256Mi"), "max": size(2, "1Gi")}).to_string();
    let requests = json!({"cpu": "1", "memory": "256Mi"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "labels": {"windlass.dev/enabled": "true"},
            "annotations": {"windlass.dev/bounds": bounds},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "vm", "image": "none", "resources": {"requests": requests}}],
        },
    })
    .to_string()
}
