//! A program that a test starts. It ends with its value, and with the test however that ends.

use crate::{leash, wait};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

/// A process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    out: Lines,
    err: Lines,
}

/// What a process says on one of its pipes, line by line. Its clones read the same lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

#[derive(Debug, Default)]
struct Heard {
    lines: Vec<String>,
    /// How many of them a reader has taken.
    taken: usize,
    ended: bool,
}

// === impl Process ===

impl Process {
    /// Starts a program. Without `set`, it has no arguments and no input, says on a pipe what it
    /// says on its standard output, and the rest where the test does.
    pub fn start(program: impl AsRef<OsStr>, set: impl FnOnce(&mut Command)) -> Self {
        let mut command = leash::command(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        set(&mut command);
        let mut child = leash::spawn(command).unwrap();
        let out = child.stdout.take().map_or_else(Lines::none, Lines::of);
        let err = child.stderr.take().map_or_else(Lines::none, Lines::of);
        Self { child, out, err }
    }

    /// What it says on its standard output, if that is a pipe.
    pub fn out(&self) -> &Lines {
        &self.out
    }

    /// What it says on its standard error, if that is a pipe.
    pub fn err(&self) -> &Lines {
        &self.err
    }

    /// Writes a line to its standard input, which must be a pipe.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal: `TERM`, `STOP`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Ends it as a crash would, if it has not ended by itself.
    pub fn kill(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }

    /// Ends it as systemd would, and says how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> ExitStatus {
        wait::until_some("the process ends", || self.ended())
    }

    /// Bytes of memory that it holds.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            for line in self.out.all().into_iter().chain(self.err.all()) {
                eprintln!("{line}");
            }
        }
    }
}

// === impl Lines ===

impl Lines {
    /// Reads to the end, on a thread, so that the process never waits for its reader.
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let reader = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                reader.tell(|heard| heard.lines.push(line));
            }
            reader.tell(|heard| heard.ended = true);
        });
        lines
    }

    fn none() -> Self {
        let lines = Self::default();
        lines.tell(|heard| heard.ended = true);
        lines
    }

    fn tell(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.heard.0.lock().unwrap());
        self.heard.1.notify_all();
    }

    /// The next line, once it is there, or nothing at the end.
    pub fn next_line(&self) -> Option<String> {
        let (heard, changed) = &*self.heard;
        let waits = |heard: &mut Heard| heard.taken == heard.lines.len() && !heard.ended;
        let heard = heard.lock().unwrap();
        let (mut heard, late) = changed.wait_timeout_while(heard, wait::PATIENCE, waits).unwrap();
        assert!(!late.timed_out(), "the process says no more than {:?}", heard.lines);
        let line = heard.lines.get(heard.taken).cloned()?;
        heard.taken += 1;
        Some(line)
    }

    /// Takes lines up to the first in which these words are, and gives what follows them.
    pub fn after(&self, words: &str) -> String {
        while let Some(line) = self.next_line() {
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
        }
        panic!("no {words:?} in {:?}", self.all());
    }

    /// All lines so far, taken or not.
    pub fn all(&self) -> Vec<String> {
        self.heard.0.lock().unwrap().lines.clone()
    }

    /// All lines, once the pipe is closed.
    pub fn to_end(&self) -> Vec<String> {
        while self.next_line().is_some() {}
        self.all()
    }
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -s {name} {process}: {sent}");
}

/// Runs a program that is to fail: its exit code and what it says on its standard error.
pub fn fail(program: impl AsRef<OsStr>, args: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = Command::new(program).args(args).output().unwrap();
    assert!(!status.success(), "{args:?} went well");
    (status.code().unwrap(), String::from_utf8_lossy(&stderr).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_says_is_read_line_by_line() {
        let shell = Process::start("sh", |sh| {
            sh.args(["-c", "echo one; echo at: two; echo three; echo four >&2; sleep 600"])
                .stderr(Stdio::piped());
        });
        assert_eq!(shell.out().after("at: "), "two");
        assert_eq!(shell.out().next_line().as_deref(), Some("three"));
        assert_eq!((shell.out().all().len(), shell.err().after("fo")), (3, "ur".to_owned()));
    }

    #[test]
    fn a_process_ends_with_its_value_even_if_it_is_stopped() {
        let process = Process::start("sleep", |sleep| {
            sleep.arg("600");
        });
        let place = format!("/proc/{}", process.id());
        process.signal("STOP");
        drop(process);
        assert!(!std::path::Path::new(&place).exists());
    }

    #[test]
    fn a_process_that_is_asked_to_end_says_how_it_ended() {
        let mut shell = Process::start("sh", |sh| {
            sh.args(["-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"]);
        });
        assert_eq!((shell.out().next_line().unwrap().as_str(), shell.ended()), ("up", None));
        assert_eq!(
            (shell.stop().code(), shell.out().to_end().pop()),
            (Some(7), Some("bye".into()))
        );
        assert_eq!(fail("sh", &["-c", "echo no >&2; exit 3"]), (3, "no\n".to_owned()));
    }
}
