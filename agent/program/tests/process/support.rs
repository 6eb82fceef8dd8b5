//! An agent and a plugin as processes, in folders of their own.

use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use windlass_testkit::{http, process};

const AGENT: &str = env!("CARGO_BIN_EXE_windlass-agent");

/// A folder of a test's own, with one for VM files in it.
pub(crate) struct Folder(windlass_testkit::Folder);

/// A process that says which addresses it serves.
pub(crate) struct Process {
    running: Option<process::Process>,
    log: PathBuf,
    notify: PathBuf,
    program: PathBuf,
    config: PathBuf,
}

/// A plugin that runs. It ends with the value.
pub(crate) struct Plugin {
    process: Process,
    folder: Folder,
    permits: String,
    dumps: String,
}

/// An agent that runs. It ends with the value.
pub(crate) struct Agent {
    process: Process,
    dumps: String,
    pub(crate) admin: String,
}

// === impl Folder ===

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = windlass_testkit::Folder::create().unwrap();
        fs::create_dir(folder.at("vms.d")).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.at(name)
    }

    /// Puts a file in place at once.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.0.put(name, text);
    }

    /// Puts a VM file in place.
    pub(crate) fn put(&self, vm: &str, text: &str) {
        self.write(&format!("vms.d/{vm}.toml"), text);
    }

    pub(crate) fn remove(&self, vm: &str) {
        fs::remove_file(self.path(&format!("vms.d/{vm}.toml"))).unwrap();
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn new(program: PathBuf, folder: &Folder, config: &str) -> Self {
        let [log, notify, config] = ["log", "notify.sock", config].map(|name| folder.path(name));
        Self { running: None, log, notify, program, config }
    }

    /// Starts it, and gives what it serves, by name, once it is ready.
    pub(crate) fn start(&mut self) -> Vec<(String, String)> {
        let log = fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let process = process::Process::start(&self.program, |command| {
            command.env("K8S_NODE_NAME", "n1").env("NOTIFY_SOCKET", &self.notify);
            command.env("WINDLASS_LOG", "info,windlass_agent_billing=debug");
            command.args([Path::new("--config"), &self.config]).stderr(log);
        });
        let lines = std::iter::from_fn(|| process.out().next_line());
        let lines: Vec<String> = lines.take_while(|line| line != "ready").collect();
        let served = |line: &String| {
            let (name, at) = line.split_once(' ').unwrap();
            (name.to_owned(), at.trim_start_matches("http://").to_owned())
        };
        assert!(lines.len() > 1, "it is not ready: {}", self.log());
        self.running = Some(process);
        lines.iter().map(served).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    fn signal(&self, signal: &str) {
        self.running.as_ref().unwrap().signal(signal);
    }
}

// === impl Plugin ===

impl Plugin {
    pub(crate) fn start(list: &str) -> Self {
        let folder = Folder::new();
        let process = Process::new(plugin_program(), &folder, "plugin.toml");
        let none = String::new;
        let mut plugin = Self { process, folder, permits: none(), dumps: none() };
        plugin.permits = "127.0.0.1:0".to_owned();
        plugin.write(list);
        plugin.restart();
        // From here on at the same address.
        plugin.write(list);
        plugin
    }

    pub(crate) fn write(&self, list: &str) {
        let text = format!(
            "listen = \"{}\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
             compute_unit = {{ cpu = 1, memory = \"256MiB\" }}\n{list}",
            self.permits
        );
        self.folder.write("plugin.toml", &text);
    }

    pub(crate) fn restart(&mut self) {
        let served = self.process.start();
        self.permits = of(&served, "permits");
        self.dumps = of(&served, "dump-state");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// What the books have for a VM: vCPUs, and slots of 128 MiB.
    pub(crate) fn booked(&self, vm: &str) -> Option<(u64, u64)> {
        let dump = get(&self.dumps, "/", "{}");
        let dump: Value = serde_json::from_str(&dump).unwrap();
        let pods = dump["state"]["nodes"][0]["value"]["pods"].as_array()?.clone();
        let pod = pods.into_iter().find(|pod| pod["key"]["name"] == vm)?;
        let of = |axis: &str| pod["value"][axis]["reserved"].as_u64();
        of("vCPU").zip(of("memSlots"))
    }
}

// === impl Agent ===

impl Agent {
    /// An agent for the VM files of this folder.
    pub(crate) fn start(folder: &Folder, plugin: &Plugin) -> Self {
        Self::start_with(folder, plugin, "")
    }

    /// The same, with more in its configuration.
    pub(crate) fn start_with(folder: &Folder, plugin: &Plugin, more: &str) -> Self {
        Self::start_at(folder, &plugin.permits, more)
    }

    /// The same, with a plugin at this address.
    pub(crate) fn start_at(folder: &Folder, plugin: &str, more: &str) -> Self {
        Self::start_to(folder, &format!("http://{plugin}"), more)
    }

    /// The same, with a plugin at this URL.
    pub(crate) fn start_to(folder: &Folder, plugin: &str, more: &str) -> Self {
        let place = folder.0.path().display();
        let text = format!(
            "plugin = \"{plugin}\"\nstate_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
             socket = \"{place}/host.sock\"\n\
             admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\ncpu_limit = \"trust\"\n\
             compute_unit = {{ cpu = 1, memory = \"256MiB\" }}\n{more}"
        );
        folder.write("agent.toml", &text);
        let process = Process::new(AGENT.into(), folder, "agent.toml");
        let mut agent = Self { process, dumps: String::new(), admin: String::new() };
        agent.restart();
        agent
    }

    pub(crate) fn restart(&mut self) {
        let served = self.process.start();
        (self.dumps, self.admin) = (of(&served, "dump-state"), of(&served, "admin"));
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Ends it as systemd would, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.process.running.take().unwrap().stop().code()
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// How many lines of its log say this.
    pub(crate) fn logged(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    /// What the state says of a VM.
    pub(crate) fn pod(&self, vm: &str) -> Value {
        let dump: Value = serde_json::from_str(&get(&self.dumps, "/", "{}")).unwrap();
        let pods = dump["pods"].as_array().unwrap();
        pods.iter().find(|pod| pod["podName"]["name"] == vm).cloned().unwrap_or_default()
    }

    /// Slots of 128 MiB that a VM may have as it was last seen.
    pub(crate) fn slots(&self, vm: &str) -> Option<u64> {
        self.pod(vm)["runner"]["vm"]["mem"]["use"].as_u64()
    }

    pub(crate) fn metrics(&self) -> String {
        get(&self.admin, "/metrics", "")
    }
}

/// A VM file for a machine and a guest.
pub(crate) fn vm_file(monitor: &Path, informant: SocketAddr) -> String {
    format!(
        "qmp = \"{}\"\ninformant = \"{informant}\"\nadvertise = \"127.0.0.1\"\n\
         load_window = \"5s\"\n[min]\ncpu = 1\nmemory = \"256MiB\"\n\
         [max]\ncpu = 2\nmemory = \"1GiB\"\n\
         [scale_down]\ncpu = \"0s\"\nmemory = \"0s\"\n",
        monitor.display()
    )
}

/// Runs the agent, which is to fail: its exit code and what it says.
pub(crate) fn fail(args: &[&str]) -> (i32, String) {
    process::fail(AGENT, args)
}

/// Runs the agent with this configuration, and its standard output there, until it says that it is
/// ready; ends it then, as systemd would. Its exit code and what it says.
pub(crate) fn speaks_to(out: impl Into<Stdio>, config: &Path) -> (i32, String) {
    let mut process = process::Process::start(AGENT, |agent| {
        agent.args([Path::new("--config"), config]).stdout(out).stderr(Stdio::piped());
    });
    let ready = |line: String| line.ends_with(" ready");
    while process.err().next_line().is_some_and(|line| !ready(line)) {}
    // It may have ended by itself.
    let code = process.ended().unwrap_or_else(|| process.stop()).code().unwrap();
    (code, process.err().to_end().join("\n"))
}

/// The plugin lies beside the agent, where a build of the workspace puts it.
pub(crate) fn plugin_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let program = Path::new(AGENT).with_file_name("windlass-plugin");
        if !program.is_file() {
            let target = program.ancestors().nth(2).unwrap();
            let status = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--package", "windlass-plugin-program"])
                .env("CARGO_TARGET_DIR", target)
                .status()
                .unwrap();
            assert!(status.success(), "the plugin was not built: {status}");
        }
        program
    };
    BUILT.get_or_init(find).clone()
}

/// What is served by this name.
pub(crate) fn of(served: &[(String, String)], name: &str) -> String {
    served.iter().find(|(what, _)| what == name).expect(name).1.clone()
}

fn get(at: &str, path: &str, body: &str) -> String {
    http::ask(at, "GET", path, body).body
}
