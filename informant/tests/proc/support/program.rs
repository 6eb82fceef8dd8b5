//! The real program, at work on a tree and a free port of the loopback.

use super::client::{Answer, request};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Killed when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) addr: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// Starts the one that was built with the tests.
    pub(crate) fn start(root: &Path, more: &[&str]) -> Self {
        let Some(program) = option_env!("CARGO_BIN_EXE_windlass-informant") else {
            panic!("these are the tests of another program");
        };
        Self::start_at(Path::new(program), root, more)
    }

    /// Starts this one, and waits until it serves.
    pub(crate) fn start_at(program: &Path, root: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--root"])
            .arg(root)
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let addr = loop {
            let line = lines.next().expect("it says where it serves").unwrap();
            if let Some((_, addr)) = line.split_once("serving on ") {
                break addr.parse().unwrap();
            }
        };
        let said = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                log.lock().unwrap().push(line);
            }
        });
        Self { child, addr, said }
    }

    /// What its log has had since it began to serve, without the program's name.
    pub(crate) fn said(&self) -> Vec<String> {
        let line = |line: &String| line.trim_start_matches("windlass-informant: ").to_owned();
        self.said.lock().unwrap().iter().map(line).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        request(self.addr, method, path, body.as_bytes())
    }

    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let page = self.ask("GET", "/metrics", "").body;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    }

    /// Asks nicely, and waits for the end.
    pub(crate) fn terminate(mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition, generously.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
