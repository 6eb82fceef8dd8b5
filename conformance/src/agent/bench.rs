//! How an agent under test is started and ended, and what a case has at hand.

use super::Options;
use super::stage::Stage;
use crate::case::{Fault, Verdict};
use crate::versions::{INFORMANT, PLUGIN, Version};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an agent says, in its folder.
pub(super) const LOG: &str = "agent.log";

/// An agent that is asked to stop has this long.
const GRACE: Duration = Duration::from_secs(10);

/// Peers that wait for an agent, and the files that tell of them.
#[derive(Clone, Debug)]
pub struct Ready {
    /// A folder of its own, with `agent.toml` and `vms.d/a.toml`; it ends with the case.
    pub folder: PathBuf,
    /// The monitor of the VM.
    pub qmp: PathBuf,
    /// The informant of the VM.
    pub informant: SocketAddr,
    /// The plugin.
    pub plugin: SocketAddr,
}

/// Starts agents.
pub trait Start: Send + Sync {
    /// Starts one that manages the VM `default/a`, from 1 vCPU and 256 MiB to 4 vCPUs and 1 GiB,
    /// in units of 1 vCPU and 256 MiB.
    ///
    /// # Errors
    /// In words.
    fn start(&self, ready: &Ready) -> Result<Box<dyn Stop>, String>;
}

/// An agent that runs. It is to be gone when this value is dropped.
pub trait Stop {
    /// Asks it to stop, and waits until it did.
    fn stop(&mut self);

    /// How it ended by itself, if it did, and what it said last.
    fn ended(&mut self) -> Option<String>;
}

/// Starts an agent by a command of the shell, in the folder of the files.
#[derive(Clone, Debug)]
pub struct Shell(pub String);

/// The agents that a case starts, and in which versions they are spoken to.
pub(super) struct Bench {
    start: Arc<dyn Start>,
    /// Of the informant.
    pub(super) version: Version,
    /// Of the plugin.
    pub(super) plugin: Version,
    /// Whether the plugin takes no other version.
    strict: bool,
    /// Where what the agent says is kept.
    log: Option<PathBuf>,
}

// === impl Bench ===

impl Bench {
    /// An informant in this version, and a plugin that takes any.
    pub(super) fn with_informant(of: &Options, log: Option<PathBuf>, version: Version) -> Self {
        let (start, plugin) = (Arc::clone(&of.start), PLUGIN[PLUGIN.len() - 1]);
        Self { start, version, plugin, strict: false, log }
    }

    /// A plugin that takes only this version, and an informant in any.
    pub(super) fn with_plugin(of: &Options, log: Option<PathBuf>, plugin: Version) -> Self {
        let (start, version) = (Arc::clone(&of.start), INFORMANT[INFORMANT.len() - 1]);
        Self { start, version, plugin, strict: true, log }
    }

    /// Peers, and no agent yet.
    pub(super) fn set(&self) -> Result<Stage, Fault> {
        let stage = Stage::set(self.log.clone())?;
        let mut world = stage.world();
        world.version = self.version.number;
        // An informant that is not the point of the case speaks what the agent does.
        world.any_version = self.strict;
        world.plugin_only = self.strict.then_some(self.plugin.number);
        drop(world);
        Ok(stage)
    }

    /// Starts an agent among these peers.
    pub(super) fn play(&self, stage: &Stage) -> Verdict {
        let started = self.start.start(stage.ready());
        let agent = started.map_err(|why| Fault(format!("the agent was not started: {why}")))?;
        stage.enter(agent);
        Ok(())
    }
}

// === impl Shell ===

impl Start for Shell {
    fn start(&self, ready: &Ready) -> Result<Box<dyn Stop>, String> {
        let log = ready.folder.join(LOG);
        let said = File::create(&log).and_then(|said| Ok((said.try_clone()?, said)));
        let (out, err) = said.map_err(|error| format!("{}: {error}", log.display()))?;
        let child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec {}", self.0))
            .current_dir(&ready.folder)
            .env("WINDLASS_PLUGIN", format!("http://{}", ready.plugin))
            .env("WINDLASS_INFORMANT", ready.informant.to_string())
            .env("WINDLASS_QMP", &ready.qmp)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", self.0))?;
        Ok(Box::new(Running { child, log }))
    }
}

struct Running {
    child: Child,
    log: PathBuf,
}

impl Stop for Running {
    fn stop(&mut self) {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "TERM", &id]).status();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let said = std::fs::read(&self.log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last: String = last.unwrap_or("nothing").chars().take(400).collect();
        Some(format!("{status}; it said last: {last}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The files that tell an agent of its peers, in the forms of `windlass-agent`.
pub(super) fn write_files(ready: &Ready) -> std::io::Result<()> {
    let place = |path: &Path| path.display().to_string();
    let folder = place(&ready.folder);
    let agent = format!(
        "plugin = \"http://{}\"\nstate_dir = \"{folder}/state\"\nsocket = \"{folder}/host.sock\"\nvms_dir = \"{folder}/vms.d\"\n\
         admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\ncallback_listen = \"127.0.0.1\"\n\
         cpu_limit = \"trust\"\n[compute_unit]\ncpu = 1\nmemory = \"256MiB\"\n",
        ready.plugin
    );
    let vm = format!(
        "qmp = \"{}\"\ninformant = \"{}\"\nadvertise = \"127.0.0.1\"\n[min]\ncpu = 1\n\
         memory = \"256MiB\"\n[max]\ncpu = 4\nmemory = \"1GiB\"\n[scale_down]\ncpu = \"0s\"\n\
         memory = \"0s\"\n",
        place(&ready.qmp),
        ready.informant
    );
    std::fs::create_dir_all(ready.folder.join("vms.d"))?;
    std::fs::write(ready.folder.join("agent.toml"), agent)?;
    std::fs::write(ready.folder.join("vms.d/a.toml"), vm)
}
