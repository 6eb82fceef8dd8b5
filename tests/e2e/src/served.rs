//! A program that says on its standard output where it serves.

use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windlass_lab::leash;

/// How long it may take to end.
const LIMIT: Duration = Duration::from_secs(60);

/// How often it is looked whether it has.
const EVERY: Duration = Duration::from_millis(100);

/// Of a log, this much is shown when something went wrong.
const LAST_LINES: usize = 40;

/// A process that said where it serves.
pub(crate) struct Served {
    process: Child,
    log: PathBuf,
    /// Where its state is dumped.
    pub(crate) dump_state: SocketAddr,
    /// Where it serves permits, if it does.
    pub(crate) permits: Option<SocketAddr>,
    /// Where it serves a scheduler, if it does.
    pub(crate) extender: Option<SocketAddr>,
}

// === impl Served ===

impl Served {
    /// Starts a program with this configuration, and waits until it serves. Blocks.
    pub(crate) fn start(program: &Path, folder: &Path, name: &str, text: &str) -> Result<Self> {
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, text)?;
        let log = folder.join(format!("{name}.log"));
        let mut command = leash::command(program);
        command
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log)?);
        let mut process = leash::spawn(command)?;
        let out = process.stdout.take().context("standard output is a pipe")?;
        let (mut dump_state, mut permits, mut extender) = (None, None, None);
        for line in BufReader::new(out).lines() {
            let line = line?;
            let (what, at) = line.split_once("://").unwrap_or_default();
            match what.split_once(' ').unwrap_or_default().0 {
                "dump-state" => dump_state = Some(at.parse()?),
                "permits" => permits = Some(at.parse()?),
                "extender" => extender = Some(at.parse()?),
                _ if line == "ready" => break,
                _ => {}
            }
        }
        let words = || last_words(&log);
        let dump_state =
            dump_state.with_context(|| format!("{name} did not start: {}", words()))?;
        Ok(Self { process, log, dump_state, permits, extender })
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Sends it a signal, as `kill` names it.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status()?;
        ensure!(sent.success(), "kill {signal}: {sent}");
        Ok(())
    }

    /// Asks it to end, and waits.
    ///
    /// # Errors
    /// It did not, or in disorder, or it has panicked.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.signal("-TERM")?;
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                let log = fs::read_to_string(&self.log)?;
                ensure!(status.success() && !log.contains("panicked at"), "{status}\n{log}");
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                bail!("it does not end when asked to\n{}", last_words(&self.log));
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// The end of a log.
pub(crate) fn last_words(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
