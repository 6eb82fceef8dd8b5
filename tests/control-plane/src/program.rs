//! A running program of the control plane, which writes its log into a file.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use windlass_testkit::Process;

/// Lines of a log that are shown when its program fails.
const TAIL: usize = 30;

/// A program. It ends with its value, and with the test.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    process: Process,
    log: PathBuf,
}

// === impl Program ===

impl Program {
    /// Starts a program, with a log in this folder.
    pub(crate) fn start(
        name: &'static str,
        folder: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        Self::logging(name, folder.join(format!("{name}.log")), args)
    }

    /// Starts a program, with this log.
    pub(crate) fn logging(
        name: &'static str,
        log: PathBuf,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let file = File::create(&log).unwrap();
        let process = Process::start(crate::programs::path(name), |command| {
            command.args(args).stdout(file.try_clone().unwrap()).stderr(Stdio::from(file));
        });
        Self { name, process, log }
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends it a signal: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// That it has ended, how, and what it said last; nothing while it runs.
    pub fn complaint(&mut self) -> Option<String> {
        let status = self.process.ended()?;
        Some(format!("{} has ended ({status}):\n{}", self.name, self.tail()))
    }

    /// The last lines of its log.
    pub fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
        format!("  {last}\n  ({})", self.log.display())
    }
}

/// So many ports that are free.
///
/// Another process may take a port before a program does: the caller then tries again.
pub(crate) fn ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
