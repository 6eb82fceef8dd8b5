//! A host in a folder of its own, and a machine that it can attach to.

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use windlass_lab::leash;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass");

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host and its folder. Both end with this value.
pub(crate) struct Host {
    folder: PathBuf,
    process: Option<Child>,
    admin: String,
}

// === impl Host ===

impl Host {
    /// A host for 4 vCPUs and 4 GiB, that runs.
    pub(crate) fn start() -> Self {
        let mut host = Self::prepare();
        host.run();
        host
    }

    /// A host that does not run yet.
    pub(crate) fn prepare() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-host-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("vms.d")).unwrap();
        let host = Self { folder, process: None, admin: String::new() };
        host.write_config("[node]\ncpu = 4\nmemory = \"4GiB\"\n");
        host
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write_config(&self, rest: &str) {
        let place = self.folder.display();
        let text = format!(
            "state_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
             socket = \"{place}/host.sock\"\nadmin = \"127.0.0.1:0\"\n{rest}"
        );
        fs::write(self.path("host.toml"), text).unwrap();
    }

    /// Starts the process and waits until it is ready.
    pub(crate) fn run(&mut self) {
        // A test that is killed leaves no host behind.
        let mut process = leash::command(PROGRAM);
        process
            .args(["host", "--config"])
            .arg(self.path("host.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.log_file());
        process.env("NOTIFY_SOCKET", self.path("notify.sock"));
        let process = self.process.insert(leash::spawn(process).unwrap());
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|l| sender.send(l)));
        let line = || said.recv_timeout(PATIENCE).expect("the host says that it is ready");
        assert!(line().starts_with("socket "));
        self.admin = line().strip_prefix("admin http://").unwrap().to_owned();
        assert_eq!(line(), "ready");
    }

    /// What it has logged, over all its starts.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn log_file(&self) -> File {
        OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap()
    }

    /// Ends the process as a crash would.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Ends the process as systemd would, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal("TERM");
        let process = self.process.as_mut().unwrap();
        let mut code = None;
        until("the host ends", || {
            code = process.try_wait().unwrap();
            code.is_some()
        });
        self.process = None;
        code.unwrap().code()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Puts a VM file in place at once.
    pub(crate) fn put(&self, vm: &str, text: &str) {
        let beside = self.path("vms.d/beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.path(&format!("vms.d/{vm}.toml"))).unwrap();
    }

    /// Runs a command of the command line against this host.
    pub(crate) fn windlass(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// The same, which is to go well, and its standard output.
    pub(crate) fn say(&self, args: &[&str]) -> String {
        let output = self.windlass(args);
        let said = String::from_utf8(output.stdout).unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {}\n{said}{wrong}", output.status);
        said
    }

    /// The same, which is to fail: its exit code and what it says.
    pub(crate) fn fail(&self, args: &[&str]) -> (i32, String) {
        let output = self.windlass(args);
        assert!(!output.status.success(), "{args:?} went well");
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// What the host says of itself and its VMs.
    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&self.say(&["top", "--output", "json"])).unwrap()
    }

    /// What the books have for a VM, in vCPUs and MiB.
    pub(crate) fn booked(&self, vm: &str) -> Option<(u64, u64)> {
        let state = self.state();
        let vms = state["node"]["vms"].as_array().unwrap();
        let booked = vms.iter().find(|booked| booked["name"]["name"] == vm)?;
        let reserved = &booked["reserved"];
        Some((reserved["cpu"].as_u64()? / 1000, reserved["mem"].as_u64()? >> 20))
    }

    /// Sends bytes to the socket as they are, and reads what comes until the end.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.path("host.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that has seen enough may close before it was told everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Connections to the socket that wait or are served.
    pub(crate) fn connections(&self) -> usize {
        let all = fs::read_to_string("/proc/net/unix").unwrap();
        let socket = self.path("host.sock").display().to_string();
        // One of them is where the host listens.
        all.lines().filter(|line| line.ends_with(&socket)).count().saturating_sub(1)
    }

    /// What the admin port answers at a path.
    pub(crate) fn admin(&self, path: &str) -> String {
        self.admin_asked("GET", path, "")
    }

    /// What it answers to a request to change something.
    pub(crate) fn admin_put(&self, path: &str, body: &str) -> String {
        self.admin_asked("PUT", path, body)
    }

    fn admin_asked(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.admin).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Memory that the process holds, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let id = self.process.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// A line of the shell, on a terminal.
    pub(crate) fn on_a_terminal(&self, line: &str) -> Command {
        let mut command = Command::new("script");
        command.args(["-qec", line, "/dev/null"]).env("WINDLASS_SOCKET", self.path("host.sock"));
        command
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).env("WINDLASS_SOCKET", self.path("host.sock"));
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A VM file for a machine whose informant is nowhere.
pub(crate) fn vm_file(monitor: &Path, informant: &str) -> String {
    format!(
        "qmp = \"{}\"\ninformant = \"{informant}\"\n[min]\ncpu = 1\nmemory = \"256MiB\"\n\
         [max]\ncpu = 4\nmemory = \"1GiB\"\n\
         [scale_down]\ncpu = \"0s\"\nmemory = \"0s\"\n",
        monitor.display()
    )
}

/// An answer of HTTP/1.1 with this body.
pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A guest whose informant says this to whatever it is asked; and where it listens.
pub(crate) fn informant(body: &'static str) -> String {
    let guest = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = guest.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in guest.incoming() {
            let mut client = client.unwrap();
            let mut head = [0; 1024];
            // A client that has left wants no answer.
            let _ = client.read(&mut head);
            let _ = client.write_all(ok(body).as_bytes());
        }
    });
    at
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
