//! A `windlass host` of a test's own: its folders, its process, its socket.

use crate::books::{Books, Keeper};
use crate::http;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use windlass_lab::leash;
use windlass_protocol::Resources;
use windlass_protocol::status::HostStatus;

/// How long a host may take to start, and to stop.
const LIMIT: Duration = Duration::from_secs(60);

/// How many call-back ports a host has: one for each VM.
const PORTS: u16 = 16;

/// Of a log, this much is shown when something went wrong.
const LAST_LINES: usize = 80;

/// What a host is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Room of the node, in compute units.
    pub room: u32,
    /// Whether `cpu_limit` is "trust", or else "none".
    pub trust: bool,
}

/// What a host's file says of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ground {
    /// `cpu_limit`, if it says it.
    pub(crate) limit: Option<&'static str>,
    /// Room of the node.
    pub(crate) room: Resources,
    /// The compute unit, if it names one.
    pub(crate) unit: Option<Resources>,
}

/// A host, running or not.
pub struct Host {
    binary: PathBuf,
    folder: PathBuf,
    process: Option<Child>,
    /// How often a process was started or ended.
    lives: Arc<AtomicU64>,
    /// Lines of the log that processes before this one wrote.
    lines_before: usize,
}

/// Somebody who asks a host for its state and notices when it is not the same process.
#[derive(Clone)]
pub(crate) struct Eye {
    socket: PathBuf,
    lives: Arc<AtomicU64>,
}

// === impl Eye ===

impl Keeper for Eye {
    async fn look(&self) -> Option<(u64, Books)> {
        let life = self.lives.load(Ordering::SeqCst);
        let state = state(&self.socket).await.ok()?;
        (life == self.lives.load(Ordering::SeqCst)).then(|| (life, Books::from(&state)))
    }
}

// === impl Host ===

impl Host {
    /// Writes its configuration; does not start it.
    pub(crate) fn set(binary: &Path, folder: &Path, ground: &Ground) -> Result<Self> {
        for name in ["vms.d", "state"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let ports = free_ports()?;
        let (first, last) = (ports.start(), ports.end());
        let Ground { limit, room, unit } = *ground;
        let place = folder.display();
        let mut text = format!(
            "state_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
             socket = \"{place}/host.sock\"\nadmin = \"127.0.0.1:0\"\n\
             callback_listen = \"127.0.0.1\"\n\
             callback_ports = \"{first}-{last}\"\n"
        );
        if let Some(limit) = limit {
            writeln!(text, "cpu_limit = {limit:?}")?;
        }
        for (table, size) in [("node", Some(room)), ("compute_unit", unit)] {
            let Some(Resources { cpu, mem }) = size else { continue };
            let (cpu, memory) = (cpu.milli(), mem.mib());
            writeln!(text, "[{table}]\ncpu = \"{cpu}m\"\nmemory = \"{memory}MiB\"")?;
        }
        fs::write(folder.join("host.toml"), text)?;
        Ok(Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            process: None,
            lives: Arc::default(),
            lines_before: 0,
        })
    }

    /// Writes or replaces a VM file.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join("vms.d").join(format!("{name}.toml"));
        let beside = path.with_extension("new");
        fs::write(&beside, text)?;
        Ok(fs::rename(beside, path)?)
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// If it ends, or says nothing in time; with its last words.
    pub async fn start(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the host runs already");
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let mut command = leash::command(&self.binary);
        command
            .args(["host", "--config"])
            .arg(self.folder.join("host.toml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.lives.fetch_add(1, Ordering::SeqCst);
        self.lines_before = self.log().lines().count();
        self.process = Some(leash::spawn(command)?);
        let start = Instant::now();
        loop {
            if self.state().await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.exited()? {
                bail!("the host ended: {status}\n{}", self.last_words());
            }
            ensure!(start.elapsed() < LIMIT, "the host does not answer\n{}", self.last_words());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the host does not run")?;
        self.lives.fetch_add(1, Ordering::SeqCst);
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Asks it to end with SIGTERM, and waits.
    ///
    /// # Errors
    /// If it does not end in time.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the host does not run")?;
        let asked = Command::new("kill").arg(process.id().to_string()).status()?;
        ensure!(asked.success(), "kill: {asked}");
        let start = Instant::now();
        loop {
            if let Some(status) = process.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > LIMIT {
                process.kill()?;
                process.wait()?;
                bail!("the host does not end when asked to\n{}", self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The id of its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// What it says of itself and its VMs.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn state(&self) -> Result<HostStatus> {
        state(&self.socket()).await
    }

    /// Runs a command of `windlass` against it, and gives what that prints.
    ///
    /// # Errors
    /// If the command fails; with what it said.
    pub fn command(&self, arguments: &[&str]) -> Result<String> {
        said(arguments, self.client(arguments).output()?)
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg("--socket").arg(self.socket()).stdin(Stdio::null());
        command
    }

    /// As [`Host::command`], which is to be answered within this time; says how long it took.
    ///
    /// # Errors
    /// If the command fails, or takes longer.
    pub async fn command_within(
        &self,
        limit: Duration,
        arguments: &[&str],
    ) -> Result<(String, Duration)> {
        let mut command = self.client(arguments);
        let start = Instant::now();
        let output = tokio::task::spawn_blocking(move || command.output());
        let late = || format!("no answer to {arguments:?} within {limit:?}\n{}", self.last_words());
        let output = timeout(limit, output).await.with_context(late)???;
        Ok((said(arguments, output)?, start.elapsed()))
    }

    /// Waits until it says that it is ready, at most for this long; says how long it took.
    ///
    /// # Errors
    /// Its last words.
    pub async fn ready_within(&self, limit: Duration) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let answer = match self.admin() {
                Some(admin) => http::get_tcp(admin, "/readyz").await.ok(),
                None => None,
            };
            let took = start.elapsed();
            if answer.is_some_and(|answer| answer.status == 200) {
                return Ok(took);
            }
            ensure!(took <= limit, "not ready within {limit:?}\n{}", self.last_words());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Where the process that runs serves `/readyz`, once it has said so.
    fn admin(&self) -> Option<SocketAddr> {
        let log = self.log();
        let said = log.lines().skip(self.lines_before);
        said.filter_map(|line| line.strip_prefix("admin http://")?.parse().ok()).last()
    }

    /// Asks it for its state until that is as wanted, at most for this long; says how long it took.
    /// A time without an answer counts.
    ///
    /// # Errors
    /// What it said last, and its last words.
    pub async fn until_within(
        &self,
        limit: Duration,
        what: &str,
        wanted: impl Fn(&HostStatus) -> bool,
    ) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let state = self.state().await;
            let took = start.elapsed();
            if took > limit {
                bail!("no {what} within {limit:?}: {state:#?}\n{}", self.last_words());
            }
            if state.as_ref().is_ok_and(&wanted) {
                eprintln!("    {:5.1} s  {what}", took.as_secs_f64());
                return Ok(took);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Somebody who looks at it.
    pub(crate) fn eye(&self) -> Eye {
        Eye { socket: self.socket(), lives: Arc::clone(&self.lives) }
    }

    /// The sum of the series of its metrics that begin with this: a name, or a name and labels.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn counted(&self, series: &str) -> Result<u64> {
        let admin = self.admin().context("the host has not said where it serves metrics")?;
        let page = http::get_tcp(admin, "/metrics").await?;
        ensure!(page.status == 200, "GET /metrics: {}", page.status);
        let found = page.body.lines().filter(|line| line.starts_with(series));
        let figures = found.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(figures.sum())
    }

    /// Where it keeps what outlives it.
    pub fn state_dir(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Where it serves.
    fn socket(&self) -> PathBuf {
        self.folder.join("host.sock")
    }

    /// Everything that it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The end of what it logged.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(match &mut self.process {
            Some(process) => process.try_wait()?,
            None => None,
        })
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("host.log")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.process.is_some() {
            // It may have ended by itself.
            let _ended = self.kill();
        }
    }
}

/// What a command printed that has ended.
fn said(arguments: &[&str], output: Output) -> Result<String> {
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "windlass {arguments:?}: {}: {words}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// What the host at this socket says.
async fn state(socket: &Path) -> Result<HostStatus> {
    let answer = http::get_unix(socket, "/v1/state").await?;
    ensure!(answer.status == 200, "GET /v1/state: {} {}", answer.status, answer.body);
    serde_json::from_str(&answer.body).with_context(|| answer.body.clone())
}

/// A range of ports that nobody has, different for tests that run at the same time.
pub(crate) fn free_ports() -> Result<RangeInclusive<u16>> {
    let start = u16::try_from(std::process::id() % 750)? * PORTS;
    (0..750)
        .map(|turn| 20_000 + (start + turn * PORTS) % (750 * PORTS))
        .map(|first| first..=first + PORTS - 1)
        .find(|range| range.clone().all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()))
        .context("no free call-back ports")
}
