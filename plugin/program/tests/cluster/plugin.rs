//! The program, started with a file that a person could have written.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use windlass_control_plane::Scheduler;
use windlass_testkit::http::{self, Answer};
use windlass_testkit::process::Process;
use windlass_testkit::tls::{Ca, Pair};
use windlass_testkit::{Folder, wait};

const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass-plugin");

/// A running plugin. It ends with its value.
pub(crate) struct Plugin {
    process: Process,
    pub(crate) permits: String,
    pub(crate) extender: String,
    admin: String,
    dumps: String,
    kubeconfig: PathBuf,
    leads: By,
    folder: Folder,
}

/// By what a plugin leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// It is alone.
    Itself,
    /// By the Lease that we ship.
    Lease,
}

impl Plugin {
    /// Starts a plugin that is alone and follows the API server of this kubeconfig, and waits until it answers.
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        let plugin = Self::started(kubeconfig, By::Itself);
        wait::until("the plugin answers", || plugin.leads());
        plugin
    }

    /// The same, by a Lease or alone, and waits until its books are rebuilt.
    pub(crate) fn started(kubeconfig: &Path, leads: By) -> Self {
        let folder = Folder::create().unwrap();
        let free = "127.0.0.1:0";
        put(&folder, kubeconfig, &plain(free, free), leads);
        Self::run(folder, kubeconfig.to_owned(), ("http", "http"), leads)
    }

    /// The same, where agents are known by their tokens, and trust what the plugin makes.
    pub(crate) fn started_with_agents(kubeconfig: &Path, leads: By) -> Self {
        let folder = Folder::create().unwrap();
        let free = "127.0.0.1:0";
        let ports = format!("permits = \"{free}\"\nplain_extender = true\nextender = \"{free}\"\n");
        put(&folder, kubeconfig, &ports, leads);
        Self::run(folder, kubeconfig.to_owned(), ("https", "http"), leads)
    }

    /// The same with TLS: it shows this certificate, knows agents and the scheduler by theirs, and follows NeonVM's objects.
    pub(crate) fn start_with_tls(kubeconfig: &Path, pair: &Pair, client_ca: &Ca) -> Self {
        let folder = Folder::create().unwrap();
        put_pair(&folder, pair);
        let (certificate, key) = (folder.at("tls.crt"), folder.at("tls.key"));
        let ca = folder.put("ca.crt", client_ca.pem());
        let of_tls = format!(
            "permits = \"127.0.0.1:0\"\nextender = \"127.0.0.1:0\"\n\
             conditions = true\nneonvm = true\n\
             tls = {{ certificate = {certificate:?}, key = {key:?}, client_ca = {ca:?} }}\n"
        );
        put(&folder, kubeconfig, &of_tls, By::Itself);
        let plugin = Self::run(folder, kubeconfig.to_owned(), ("https", "https"), By::Itself);
        wait::until("the plugin answers", || plugin.leads());
        plugin
    }

    /// The same with the file that we ship for a cluster, but for addresses that are free and where the API server is: it leads by the
    /// Lease that we ship, and makes its own certificates.
    pub(crate) fn start_with_shipped(kubeconfig: &Path, file: &str) -> Self {
        let folder = Folder::create().unwrap();
        let free = "127.0.0.1:0";
        let file = file.replace("0.0.0.0:10305", free).replace("0.0.0.0:10297", free);
        let path = kubeconfig.display();
        let file = format!(
            "dump_state = \"{free}\"\n{file}\npermits = \"{free}\"\nkubeconfig = \"{path}\"\n"
        );
        folder.put("plugin.toml", file);
        let plugin = Self::run(folder, kubeconfig.to_owned(), ("https", "https"), By::Lease);
        wait::until("the plugin answers", || plugin.leads());
        plugin
    }

    /// Gives it another certificate, as the kubelet does with that of a Secret.
    pub(crate) fn renew(&self, pair: &Pair) {
        put_pair(&self.folder, pair);
    }

    /// Kills it, and starts it again at the same addresses.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        let (folder, kubeconfig) = (Folder::create().unwrap(), self.kubeconfig.clone());
        put(&folder, &kubeconfig, &plain(&self.permits, &self.extender), self.leads);
        *self = Self::run(folder, kubeconfig, ("http", "http"), self.leads);
        if self.leads == By::Itself {
            wait::until("the plugin answers", || self.leads());
        }
    }

    /// Its process.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Whether it leads and answers, by its own account.
    pub(crate) fn leads(&self) -> bool {
        self.metrics().contains("\nwindlass_plugin_leader 1\n")
    }

    /// The epoch in which it answers; 0: it does not.
    pub(crate) fn epoch(&self) -> u64 {
        let metrics = self.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix("windlass_plugin_epoch "));
        line.unwrap().parse().unwrap()
    }

    /// With the schemes of its ports for permits and for the extender.
    fn run(folder: Folder, kubeconfig: PathBuf, schemes: (&str, &str), leads: By) -> Self {
        let config = folder.at("plugin.toml");
        let process = Process::start(PROGRAM, |command| {
            command.arg("--config").arg(&config).stderr(Stdio::piped());
        });
        let address = |what: &str| process.out().after(&format!("{what}://"));
        let (permits, extender) = (
            address(&format!("permits {}", schemes.0)),
            address(&format!("extender {}", schemes.1)),
        );
        let (dumps, admin) = (address("dump-state http"), address("admin http"));
        let plugin = Self { process, permits, extender, admin, dumps, kubeconfig, leads, folder };
        let is_ready = || http::ask(&plugin.admin, "GET", "/readyz", "").status == 200;
        wait::until("the books are rebuilt", is_ready);
        plugin
    }

    /// Its part of a scheduler's configuration, as `deploy/scheduler` has it.
    pub(crate) fn scheduler_config(&self) -> Value {
        Scheduler::extender_at(&self.extender)
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

    /// Whether it has logged a line with all these words.
    pub(crate) fn has_logged(&self, words: &[&str]) -> bool {
        self.process.err().all().iter().any(|line| words.iter().all(|word| line.contains(word)))
    }

    /// How many placements on a node no pod has shown yet.
    pub(crate) fn placements(&self, node: &str) -> usize {
        self.node(node)["placements"].as_array().map_or(0, Vec::len)
    }
}

/// The file that a person would write.
fn put(folder: &Folder, kubeconfig: &Path, ports: &str, leads: By) {
    let (path, by_lease) = (kubeconfig.display(), leads == By::Lease);
    let file = format!(
        "dump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [kubernetes]\nkubeconfig = \"{path}\"\n{ports}\
         [kubernetes.lease]\nenabled = {by_lease}\n\
         [[kubernetes.pool]]\nname = \"shared\"\nlabels = {{ pool = \"shared\" }}\n\
         mode = \"headroom\"\nheadroom = {{ cpu = 0.05, memory = \"1GiB\" }}\n\
         [[kubernetes.pool]]\nname = \"resized\"\nlabels = {{ pool = \"resized\" }}\n\
         mode = \"resize\"\n"
    );
    folder.put("plugin.toml", file);
}

/// Ports at which nobody shows anything.
fn plain(permits: &str, extender: &str) -> String {
    format!("plain_permits = \"{permits}\"\nplain_extender = true\nextender = \"{extender}\"\n")
}

fn put_pair(folder: &Folder, pair: &Pair) {
    folder.put("tls.crt", &pair.certificate);
    folder.put("tls.key", &pair.key);
}
