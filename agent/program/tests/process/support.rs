//! An agent and a plugin as processes, in folders of their own.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const AGENT: &str = env!("CARGO_BIN_EXE_windlass-agent");

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder of a test's own, removed with the value.
pub(crate) struct Folder(PathBuf);

/// A process that says which addresses it serves.
struct Process {
    child: Option<Child>,
    folder: PathBuf,
    program: PathBuf,
    config: PathBuf,
}

/// A plugin that runs. It ends with the value.
pub(crate) struct Plugin {
    folder: Folder,
    process: Process,
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
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-agent-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("vms.d")).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Puts a file in place at once.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let beside = self.path("beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.path(name)).unwrap();
    }

    /// Puts a VM file in place.
    pub(crate) fn put(&self, vm: &str, text: &str) {
        self.write(&format!("vms.d/{vm}.toml"), text);
    }

    pub(crate) fn remove(&self, vm: &str) {
        fs::remove_file(self.path(&format!("vms.d/{vm}.toml"))).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// === impl Process ===

impl Process {
    fn new(program: PathBuf, folder: &Folder, config: &str) -> Self {
        Self { child: None, folder: folder.0.clone(), program, config: folder.path(config) }
    }

    /// Starts it, and gives what it serves, by name, once it is ready.
    fn start(&mut self) -> Vec<(String, String)> {
        let log = self.folder.join("log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let mut child = Command::new(&self.program)
            .env("K8S_NODE_NAME", "n1")
            .env("NOTIFY_SOCKET", self.folder.join("notify.sock"))
            .args([Path::new("--config"), &self.config])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.child = Some(child);
        let lines: Vec<String> = lines.map(Result::unwrap).take_while(|l| l != "ready").collect();
        let served = |line: &String| {
            let (name, at) = line.split_once(" http://").unwrap();
            (name.to_owned(), at.to_owned())
        };
        assert!(lines.len() > 1, "it is not ready: {}", self.log());
        lines.iter().map(served).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

// === impl Plugin ===

impl Plugin {
    pub(crate) fn start(list: &str) -> Self {
        let folder = Folder::new();
        let process = Process::new(plugin_program(), &folder, "plugin.toml");
        let none = String::new;
        let mut plugin = Self { folder, process, permits: none(), dumps: none() };
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
        let place = folder.0.display();
        let text = format!(
            "plugin = \"http://{plugin}\"\nstate_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
             admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\ntrust_guest_parking = true\n\
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
        self.signal("TERM");
        self.process.child.take().unwrap().wait().unwrap().code()
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
    let Output { status, stderr, .. } = Command::new(AGENT).args(args).output().unwrap();
    (status.code().unwrap(), String::from_utf8_lossy(&stderr).into_owned())
}

/// Runs the agent with this configuration, and its standard output there, until it says that it is
/// ready; ends it then, as systemd would. Its exit code and what it says.
pub(crate) fn speaks_to(out: impl Into<Stdio>, config: &Path) -> (i32, String) {
    let mut command = Command::new(AGENT);
    command.args([Path::new("--config"), config]).stdin(Stdio::null()).stdout(out);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(" ready\n") && log.read_line(&mut said).unwrap() > 0 {}
    let pid = child.id().to_string();
    // It may have ended by itself.
    let _ = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status();
    log.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code().unwrap(), said)
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The plugin lies beside the agent, where a build of the workspace puts it.
fn plugin_program() -> PathBuf {
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

fn of(served: &[(String, String)], name: &str) -> String {
    served.iter().find(|(what, _)| what == name).expect(name).1.clone()
}

fn get(at: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}
