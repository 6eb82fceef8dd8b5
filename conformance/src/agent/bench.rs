//! How an agent under test is started and ended, and what a case has at hand.

use super::stage::Stage;
use crate::case::Fault;
use crate::versions::{INFORMANT, PLUGIN, Version};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
}

// === impl Bench ===

impl Bench {
    /// An informant in this version, and a plugin that takes any.
    pub(super) fn with_informant(start: Arc<dyn Start>, version: Version) -> Self {
        Self { start, version, plugin: PLUGIN[PLUGIN.len() - 1], strict: false }
    }

    /// A plugin that takes only this version, and an informant in any.
    pub(super) fn with_plugin(start: Arc<dyn Start>, plugin: Version) -> Self {
        Self { start, version: INFORMANT[INFORMANT.len() - 1], plugin, strict: true }
    }

    /// Peers, and no agent yet.
    pub(super) fn set(&self) -> Result<Stage, Fault> {
        let stage = Stage::set()?;
        let mut world = stage.world();
        world.version = self.version.number;
        // An informant that is not the point of the case speaks what the agent does.
        world.any_version = self.strict;
        world.plugin_only = self.strict.then_some(self.plugin.number);
        drop(world);
        Ok(stage)
    }

    /// Starts an agent among these peers.
    pub(super) fn play(&self, stage: &Stage) -> Result<Box<dyn Stop>, Fault> {
        let started = self.start.start(stage.ready());
        started.map_err(|why| Fault(format!("the agent was not started: {why}")))
    }
}

// === impl Shell ===

impl Start for Shell {
    fn start(&self, ready: &Ready) -> Result<Box<dyn Stop>, String> {
        let child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec {}", self.0))
            .current_dir(&ready.folder)
            .env("WINDLASS_PLUGIN", format!("http://{}", ready.plugin))
            .env("WINDLASS_INFORMANT", ready.informant.to_string())
            .env("WINDLASS_QMP", &ready.qmp)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", self.0))?;
        Ok(Box::new(Running(child)))
    }
}

struct Running(Child);

impl Stop for Running {
    fn stop(&mut self) {
        let id = self.0.id().to_string();
        let _ = Command::new("kill").args(["-s", "TERM", &id]).status();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files that tell an agent of its peers, in the forms of `windlass-agent`.
pub(super) fn write_files(ready: &Ready) -> std::io::Result<()> {
    let place = |path: &Path| path.display().to_string();
    let folder = place(&ready.folder);
    let agent = format!(
        "plugin = \"http://{}\"\nstate_dir = \"{folder}/state\"\nvms_dir = \"{folder}/vms.d\"\n\
         admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\ncallback_listen = \"127.0.0.1\"\n\
         trust_guest_parking = true\n[compute_unit]\ncpu = 1\nmemory = \"256MiB\"\n",
        ready.plugin
    );
    let vm = format!(
        "qmp = \"{}\"\ninformant = \"{}\"\nadvertise = \"127.0.0.1\"\n[min]\ncpu = 1\n\
         memory = \"256MiB\"\n[max]\ncpu = 4\nmemory = \"1GiB\"\n",
        place(&ready.qmp),
        ready.informant
    );
    std::fs::create_dir_all(ready.folder.join("vms.d"))?;
    std::fs::write(ready.folder.join("agent.toml"), agent)?;
    std::fs::write(ready.folder.join("vms.d/a.toml"), vm)
}
