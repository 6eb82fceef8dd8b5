//! A `windlass-plugin` and a `windlass-agent` of a test's own, with real guests between them.

use crate::host::free_ports;
use crate::http;
use crate::programs::{Programs, beside};
use crate::stage::turn;
use crate::vm::{UNIT_MIB, Vm};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windlass_lab::{Folder, Guest, Inside, Outside, leash};

/// How long a condition may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(180);

/// How often a condition is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// A plugin and an agent as processes, and guests.
pub struct Fleet {
    plugin: Served,
    agent: Served,
    guests: Vec<Guest>,
    folder: Folder,
    _turn: File,
}

/// What is seen of one VM. What does not answer is `None`.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What the plugin's books have: vCPUs, and compute units' shares of memory.
    pub booked: Option<(u64, u64)>,
    /// What the agent's state says of it.
    pub pod: Value,
    /// What QEMU says that it has.
    pub outside: Option<Outside>,
    /// What the guest's kernel says that it has.
    pub inside: Option<Inside>,
}

/// A process that said where it serves.
struct Served {
    process: Child,
    dump_state: SocketAddr,
    permits: Option<SocketAddr>,
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
        let folder = Folder::create()?;
        fs::create_dir_all(folder.path().join("vms.d"))?;
        let guests = Guest::boot_all(&programs.lab, vms.iter().map(Vm::spec)).await?;
        for (vm, guest) in vms.iter().zip(&guests) {
            let file = folder.path().join("vms.d").join(format!("{}.toml", vm.name));
            fs::write(file, vm.text(guest, &guest.qmp()))?;
        }
        let list = listed(room, vms);
        let plugin = Served::start(&beside("windlass-plugin")?, folder.path(), "plugin", &list)?;
        let permits = plugin.permits.context("the plugin says where it serves permits")?;
        let text = told(folder.path(), permits)?;
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
        let guest = self.guest(name);
        let (plugin, agent) =
            (http::dump(self.plugin.dump_state).await, http::dump(self.agent.dump_state).await);
        let of = |list: &Value, key: &str| -> Value {
            let found = list
                .as_array()
                .and_then(|list| list.iter().find(|one| one[key]["name"] == name).cloned());
            found.unwrap_or_default()
        };
        let booked = plugin.ok().and_then(|dump| {
            let pod = of(&dump["state"]["nodes"][0]["value"]["pods"], "key");
            let of = |axis: &str| pod["value"][axis]["reserved"].as_u64();
            // Slots of half a unit.
            of("vCPU").zip(of("memSlots")).map(|(cpu, slots)| (cpu, slots / 2))
        });
        let pod = agent.map(|dump| of(&dump["pods"], "podName")).unwrap_or_default();
        let (outside, inside) = (guest.outside().await.ok(), guest.inside().await.ok());
        Sight { booked, pod, outside, inside }
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
        for (name, served) in [("agent", &mut self.agent), ("plugin", &mut self.plugin)] {
            served.stop().await.with_context(|| format!("the {name} ended badly"))?;
            let log = fs::read_to_string(self.folder.path().join(format!("{name}.log")))?;
            ensure!(!log.contains("panicked at"), "the {name} panicked\n{log}");
        }
        Ok(())
    }
}

// === impl Sight ===

impl Sight {
    /// Whether guest, hypervisor and the plugin's books agree that it has this many compute units.
    pub fn has(&self, units: u32) -> bool {
        let memory = u64::from(units * UNIT_MIB) << 20;
        let settled = |o: &Outside| o.memory() == memory && o.upper_memory() == memory;
        let online = self.inside.as_ref().and_then(|inside| inside.cpus_online);
        online == Some(units)
            && self.outside.as_ref().is_some_and(settled)
            && self.booked == Some((units.into(), units.into()))
    }

    /// The mode of the agent's session, in the reference's words; empty without one.
    pub fn mode(&self) -> &str {
        self.pod["runner"]["server"]["mode"].as_str().unwrap_or_default()
    }
}

// === impl Served ===

impl Served {
    fn start(program: &Path, folder: &Path, name: &str, text: &str) -> Result<Self> {
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, text)?;
        let mut command = leash::command(program);
        command
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join(format!("{name}.log")))?);
        let mut process = leash::spawn(command)?;
        let out = process.stdout.take().context("standard output is a pipe")?;
        let (mut dump_state, mut permits) = (None, None);
        for line in BufReader::new(out).lines() {
            let line = line?;
            match line.split_once(" http://") {
                Some(("dump-state", at)) => dump_state = Some(at.parse()?),
                Some(("permits", at)) => permits = Some(at.parse()?),
                Some(_) => {}
                None => break,
            }
        }
        let log = || last_words(&folder.join(format!("{name}.log")));
        let dump_state = dump_state.with_context(|| format!("{name} did not start: {}", log()))?;
        Ok(Self { process, dump_state, permits })
    }

    async fn stop(&mut self) -> Result<()> {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status()?;
        ensure!(asked.success(), "kill: {asked}");
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "{status}");
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                bail!("it does not end when asked to");
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

fn listed(room: u32, vms: &[Vm]) -> String {
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [compute_unit]\ncpu = 1\nmemory = \"{UNIT_MIB}MiB\"\n\
         [[node]]\nname = \"node\"\ncpu = {room}\nmemory = \"{}MiB\"\n",
        room * UNIT_MIB
    );
    for Vm { name, boot, most, most_cpus, .. } in vms {
        text += &format!(
            "[[vm]]\nname = \"{name}\"\nnode = \"node\"\n\
             min = {{ cpu = 1, memory = \"{}MiB\" }}\n\
             max = {{ cpu = {most_cpus}, memory = \"{}MiB\" }}\n",
            boot * UNIT_MIB,
            most * UNIT_MIB
        );
    }
    text
}

fn told(folder: &Path, permits: SocketAddr) -> Result<String> {
    let ports = free_ports()?;
    let (place, first, last) = (folder.display(), ports.start(), ports.end());
    Ok(format!(
        "plugin = \"http://{permits}\"\nstate_dir = \"{place}/state\"\n\
         vms_dir = \"{place}/vms.d\"\nadmin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
         callback_ports = \"{first}-{last}\"\ntrust_guest_parking = true\n\
         [compute_unit]\ncpu = 1\nmemory = \"{UNIT_MIB}MiB\"\n"
    ))
}

fn last_words(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
