//! A `windlass-plugin` and a `windlass-agent` of a test's own, with real guests between them.

use crate::Sight;
use crate::Spoken;
use crate::host::free_ports;
use crate::plugin::Plugin;
use crate::programs::{Programs, beside};
use crate::served::{Served, last_words};
use crate::stage::turn;
use crate::vm::{UNIT_MIB, Vm};
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use windlass_lab::{Folder, Guest};

/// How long a condition may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(180);

/// How often a condition is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// A plugin and an agent as processes, and guests.
pub struct Fleet {
    plugin: Plugin,
    agent: Served,
    guests: Vec<Guest>,
    folder: Folder,
    _turn: File,
}

// === impl Fleet ===

impl Fleet {
    /// Boots the guests, starts plugin and agent, and waits until every VM has a session and its
    /// one compute unit. The node has room for this many.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn set(room: u32, vms: &[Vm]) -> Result<Self> {
        let (programs, turn) =
            tokio::task::spawn_blocking(|| anyhow::Ok((Programs::find()?, turn()?))).await??;
        let spoken = Spoken::of_run()?;
        let folder = Folder::create()?;
        fs::create_dir_all(folder.path().join("vms.d"))?;
        let guests = Guest::boot_all(&programs.lab, vms.iter().map(|vm| vm.spec(spoken))).await?;
        for (vm, guest) in vms.iter().zip(&guests) {
            let file = folder.path().join("vms.d").join(format!("{}.toml", vm.name));
            fs::write(file, vm.text(guest.informant(), &guest.qmp()))?;
        }
        let plugin = Plugin::start(folder.path(), room, vms)?;
        let ports = free_ports()?;
        let ports = format!("callback_ports = \"{}-{}\"\n", ports.start(), ports.end());
        let text = told(folder.path(), plugin.permits(), &ports);
        let agent = Served::start(&beside("windlass-agent")?, folder.path(), "agent", &text)?;
        let fleet = Self { plugin, agent, guests, folder, _turn: turn };
        for vm in vms {
            let ready = |sight: &Sight| sight.mode() == "running" && sight.has(1);
            fleet.until(vm.name, "session at one unit", ready).await?;
        }
        Ok(fleet)
    }

    /// The guest of a VM.
    ///
    /// # Panics
    /// If there is no such VM.
    pub fn guest(&self, name: &str) -> &Guest {
        self.guests.iter().find(|guest| guest.name() == name).expect("the test has this VM")
    }

    /// One look at a VM.
    pub async fn look(&self, name: &str) -> Sight {
        Sight::of(self.guest(name), &self.plugin.eye(), Some(self.agent.dump_state)).await
    }

    /// Looks at a VM until it is as wanted.
    ///
    /// # Errors
    /// What was seen last, and the last words of both programs.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Sight) -> bool,
    ) -> Result<Sight> {
        let start = Instant::now();
        loop {
            let sight = self.look(name).await;
            if wanted(&sight) {
                eprintln!("    {:5.1} s  {name}: {what}", start.elapsed().as_secs_f64());
                return Ok(sight);
            }
            if start.elapsed() > LIMIT {
                let log = |name: &str| last_words(&self.folder.path().join(name));
                let (plugin, agent) = (log("plugin.log"), log("agent.log"));
                let seen = format!("{sight:#?}\nplugin: {plugin}\nagent: {agent}");
                return Err(anyhow!("no {what} of {name}; last seen: {seen}"));
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Ends both in good order.
    ///
    /// # Errors
    /// One of them did not, or panicked.
    pub async fn close(mut self) -> Result<()> {
        self.agent.stop().await.context("the agent ended badly")?;
        self.plugin.stop().await
    }
}

/// What an agent is told, with these lines of its own.
pub(crate) fn told(folder: &Path, permits: SocketAddr, own: &str) -> String {
    let place = folder.display();
    format!(
        "plugin = \"http://{permits}\"\nstate_dir = \"{place}/state\"\nsocket = \"{place}/host.sock\"\n\
         vms_dir = \"{place}/vms.d\"\nadmin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
         cpu_limit = \"trust\"\n{own}\
         [compute_unit]\ncpu = 1\nmemory = \"{UNIT_MIB}MiB\"\n"
    )
}
