//! A host in a folder of its own, and a machine that it can attach to.

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use windlass_testkit::http::{self, Server};
use windlass_testkit::wait::PATIENCE;
pub(crate) use windlass_testkit::wait::until;
use windlass_testkit::{Folder, Process};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass");

/// A host and its folder. Both end with this value.
pub(crate) struct Host {
    process: Option<Process>,
    admin: String,
    folder: Folder,
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
        let folder = Folder::create().unwrap();
        fs::create_dir(folder.at("vms.d")).unwrap();
        let host = Self { process: None, admin: String::new(), folder };
        host.write_config("[node]\ncpu = 4\nmemory = \"4GiB\"\n");
        host
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }

    pub(crate) fn write_config(&self, rest: &str) {
        let place = self.folder.path().display();
        let text = format!(
            "state_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
             socket = \"{place}/host.sock\"\nadmin = \"127.0.0.1:0\"\n{rest}"
        );
        fs::write(self.path("host.toml"), text).unwrap();
    }

    /// Starts the process and waits until it is ready.
    pub(crate) fn run(&mut self) {
        let process = Process::start(PROGRAM, |host| {
            host.args(["host", "--config"]).arg(self.path("host.toml")).stderr(self.log_file());
            host.env("NOTIFY_SOCKET", self.path("notify.sock"));
        });
        let line = || process.out().next_line().expect("the host says that it is ready");
        assert!(line().starts_with("socket "));
        self.admin = line().strip_prefix("admin http://").unwrap().to_owned();
        assert_eq!(line(), "ready");
        self.process = Some(process);
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
        self.process.take().unwrap().kill();
    }

    /// Ends the process as systemd would, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.process.take().unwrap().stop().code()
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.as_ref().unwrap().signal(signal);
    }

    /// Puts a VM file in place at once.
    pub(crate) fn put(&self, vm: &str, text: &str) {
        self.folder.put(&format!("vms.d/{vm}.toml"), text);
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
        let stream = UnixStream::connect(self.path("host.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        http::raw(stream, bytes)
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
        let request = http::request(method, path, body);
        http::raw(http::connect(&self.admin), request.as_bytes())
    }

    /// Memory that the process holds, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        self.process.as_ref().unwrap().resident() / 1024
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
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
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

/// A guest whose informant says this to whatever it is asked; and where it listens.
pub(crate) fn informant(body: &'static str) -> (Server, String) {
    let guest = Server::start(move |_| http::answer(200, body));
    let at = guest.address().to_string();
    (guest, at)
}
