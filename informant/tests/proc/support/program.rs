//! The real program, at work on a tree and a free port of the loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use windlass_testkit::Process;
use windlass_testkit::http::{self, Answer};

/// Killed when dropped.
pub(crate) struct Program {
    process: Process,
    pub(crate) addr: SocketAddr,
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
        let process = Process::start(program, |command| {
            command.args(["--listen", "127.0.0.1:0", "--root"]).arg(root).args(more);
            command.stderr(Stdio::piped());
        });
        let addr = process.err().after("serving on ").parse().unwrap();
        Self { process, addr }
    }

    /// What its log has had since it began to serve, without the program's name.
    pub(crate) fn said(&self) -> Vec<String> {
        let lines = self.process.err().all().into_iter();
        let lines = lines.skip_while(|line| !line.contains("serving on ")).skip(1);
        lines.map(|line| line.trim_start_matches("windlass-informant: ").to_owned()).collect()
    }

    pub(crate) fn resident(&self) -> u64 {
        self.process.resident()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        ask(self.addr, method, path, body)
    }

    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let page = self.ask("GET", "/metrics", "").body;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    }

    /// Asks nicely, and waits for the end.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.process.stop()
    }
}

/// One request; the end of the answer's last line is left out.
pub(crate) fn ask(addr: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    let mut answer = http::ask(addr, method, path, body);
    answer.body.truncate(answer.body.trim_end().len());
    answer
}
