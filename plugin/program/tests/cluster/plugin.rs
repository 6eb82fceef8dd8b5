//! The program, started with a file that a person could have written.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windlass_testkit::http::{self, Answer};
use windlass_testkit::process::Process;
use windlass_testkit::{Folder, wait};

const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass-plugin");

/// A running plugin. It ends with its value.
pub(crate) struct Plugin {
    process: Process,
    pub(crate) permits: String,
    extender: String,
    admin: String,
    dumps: String,
    kubeconfig: PathBuf,
    _folder: Folder,
}

impl Plugin {
    /// Starts a plugin that follows the API server of this kubeconfig, and waits until its books are rebuilt.
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        let folder = Folder::create().unwrap();
        let free = "127.0.0.1:0";
        put(&folder, kubeconfig, free, free);
        Self::run(folder, kubeconfig.to_owned())
    }

    /// Kills it, and starts it again at the same addresses.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        let (folder, kubeconfig) = (Folder::create().unwrap(), self.kubeconfig.clone());
        put(&folder, &kubeconfig, &self.permits, &self.extender);
        *self = Self::run(folder, kubeconfig);
    }

    fn run(folder: Folder, kubeconfig: PathBuf) -> Self {
        let config = folder.at("plugin.toml");
        let process = Process::start(PROGRAM, |command| {
            command.arg("--config").arg(&config);
        });
        let address = |what: &str| process.out().after(&format!("{what} http://"));
        let (permits, extender) = (address("permits"), address("extender"));
        let (dumps, admin) = (address("dump-state"), address("admin"));
        let plugin = Self { process, permits, extender, admin, dumps, kubeconfig, _folder: folder };
        let is_ready = || http::ask(&plugin.admin, "GET", "/readyz", "").status == 200;
        wait::until("the books are rebuilt", is_ready);
        plugin
    }

    /// Its part of a scheduler's configuration, as `deploy/scheduler` has it.
    pub(crate) fn scheduler_config(&self) -> Value {
        json!({
            "urlPrefix": format!("http://{}", self.extender),
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "weight": 1,
            "nodeCacheCapable": true,
            "httpTimeout": "8s",
        })
    }

    /// What the extender answers.
    pub(crate) fn extend(&self, verb: &str, body: &str) -> (u16, String) {
        let Answer { status, body, .. } =
            http::ask(&self.extender, "POST", &format!("/{verb}"), body);
        (status, body)
    }

    /// The books of a node.
    pub(crate) fn node(&self, name: &str) -> Value {
        let Answer { status, body, .. } = http::ask(&self.dumps, "GET", "/", "{}");
        assert_eq!(status, 200, "{body}");
        let dump: Value = serde_json::from_str(&body).unwrap();
        let nodes = dump["windlass"]["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["name"] == name).unwrap_or(&Value::Null).clone()
    }

    /// Its page of metrics.
    pub(crate) fn metrics(&self) -> String {
        http::ask(&self.admin, "GET", "/metrics", "").body
    }

    /// How many placements on a node no pod has shown yet.
    pub(crate) fn placements(&self, node: &str) -> usize {
        self.node(node)["placements"].as_array().map_or(0, Vec::len)
    }
}

/// The file that a person would write.
fn put(folder: &Folder, kubeconfig: &Path, permits: &str, extender: &str) {
    let path = kubeconfig.display();
    let file = format!(
        "listen = \"{permits}\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [kubernetes]\nextender = \"{extender}\"\nkubeconfig = \"{path}\"\n"
    );
    folder.put("plugin.toml", file);
}
