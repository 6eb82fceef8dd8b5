//! A host, its guests, and somebody who watches the laws.

use crate::laws::{self, Seen, Watch};
use crate::programs::Programs;
use crate::vm::{GIB, UNIT_MIB};
use crate::{Host, Setting, Spoken, View, Vm};
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_lab::proxy::Proxy;
use windlass_lab::{Folder, Guest, Inside, wait};
use windlass_protocol::Waiting;

/// How long a condition may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(180);

/// How often is looked.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// At a condition.
    conditions: Duration,
    /// At the laws.
    laws: Duration,
    /// Fewer samples of the laws in which all answered show nothing; a guest that boots, and a host
    /// that was killed, do not answer for a while.
    least: u64,
}

/// As often as two guests under load can answer.
const OFTEN: Pace = Pace { conditions: Duration::from_millis(200), laws: laws::EVERY, least: 10 };

/// Where a look, which is work for a guest, is not to show in its load.
const SELDOM: Pace =
    Pace { conditions: Duration::from_secs(2), laws: Duration::from_secs(2), least: 3 };

/// A host, its guests, and somebody who watches the laws.
pub struct Stage {
    /// The host.
    pub host: Host,
    actors: Vec<Actor>,
    watch: Option<Watch>,
    spoken: Spoken,
    parks: bool,
    pace: Pace,
    _folder: Folder,
    _turn: File,
}

struct Actor {
    vm: Vm,
    guest: Arc<Guest>,
    proxy: Option<Proxy>,
}

// === impl Stage ===

impl Stage {
    /// Boots the guests, starts the host, and waits until every VM that is acted on has a
    /// session and its one compute unit.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn set(setting: Setting, vms: &[Vm]) -> Result<Self> {
        let mut stage = Self::boot(setting, vms).await?;
        stage.host.start().await?;
        for vm in vms {
            if vm.mode == "act" {
                let ready = |view: &View| view.has_session() && view.has(1);
                stage.until(vm.name, "session at one unit", ready).await?;
            } else {
                stage.until(vm.name, "sight of it", |view| view.vm.is_some()).await?;
            }
        }
        Ok(stage)
    }

    /// As [`Stage::set`], with the host not started.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn boot(setting: Setting, vms: &[Vm]) -> Result<Self> {
        Self::put(setting, Some(UNIT_MIB), OFTEN, turn, vms).await
    }

    /// A host that is told nothing that has a default, and looks that are no load: waits until each
    /// VM has a session and figures. The node has room for this many GiB, and four vCPUs for each.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn with_defaults(gib: u32, vms: &[Vm]) -> Result<Self> {
        Self::plain(gib, turn, vms).await
    }

    /// As [`Stage::with_defaults`], beside whatever else runs: its guests are idle most of the time.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn beside_others(gib: u32, vms: &[Vm]) -> Result<Self> {
        let own = || turn_of("windlass-e2e-beside.lock");
        Self::plain(gib, own, vms).await
    }

    async fn plain(gib: u32, turn: impl Turn, vms: &[Vm]) -> Result<Self> {
        let setting = Setting { room: gib * GIB, trust: false };
        let mut stage = Self::put(setting, None, SELDOM, turn, vms).await?;
        stage.host.start().await?;
        for vm in vms {
            let ready = |view: &View| view.has_session() && view.has_figures();
            stage.until(vm.name, "session and figures", ready).await?;
        }
        Ok(stage)
    }

    async fn put(
        setting: Setting,
        unit_mib: Option<u32>,
        pace: Pace,
        turn: impl Turn,
        vms: &[Vm],
    ) -> Result<Self> {
        let (programs, turn) = tokio::task::spawn_blocking(|| {
            let programs = Programs::find()?;
            anyhow::Ok((programs, turn()?))
        })
        .await??;
        let spoken = Spoken::of_run()?;
        let folder = Folder::create()?;
        let host = Host::set(&programs.windlass, folder.path(), setting, unit_mib)?;
        let mut actors = Vec::new();
        let guests = Guest::boot_all(&programs.lab, vms.iter().map(|vm| vm.spec(spoken))).await?;
        limited(&guests, spoken).await?;
        for (vm, guest) in vms.iter().zip(guests) {
            let path = folder.path().join(format!("{}.sock", vm.name));
            let proxy = if vm.proxied { Some(Proxy::start(&path, &guest.qmp())?) } else { None };
            actors.push(Actor { vm: vm.clone(), guest: Arc::new(guest), proxy });
        }
        let guests = actors.iter().map(|actor| Arc::clone(&actor.guest)).collect();
        let parks = setting.trust && spoken.parks();
        let binding = Setting { trust: parks, ..setting };
        let watch = Some(Watch::start(host.eye(), guests, binding, pace.laws));
        let stage = Self { host, actors, watch, spoken, parks, pace, _folder: folder, _turn: turn };
        for actor in &stage.actors {
            stage.write(&actor.vm)?;
        }
        Ok(stage)
    }

    /// What its guests speak.
    pub fn spoken(&self) -> Spoken {
        self.spoken
    }

    /// The guest of a VM.
    ///
    /// # Panics
    /// If there is no such VM.
    pub fn guest(&self, name: &str) -> &Guest {
        &self.actor(name).guest
    }

    /// The proxy before a VM's monitor.
    ///
    /// # Panics
    /// If it has none.
    pub fn proxy(&self, name: &str) -> &Proxy {
        self.actor(name).proxy.as_ref().expect("the VM is proxied")
    }

    /// Writes the file of a VM anew.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, vm: &Vm) -> Result<()> {
        let actor = self.actor(vm.name);
        let monitor =
            actor.proxy.as_ref().map_or_else(|| actor.guest.qmp(), |proxy| proxy.path().to_owned());
        self.host.write(vm.name, &vm.text(actor.guest.informant(), &monitor))
    }

    /// One look at a VM.
    pub async fn view(&self, name: &str) -> View {
        let state = self.host.state().await.ok();
        laws::view(self.guest(name), self.parks, state.as_ref()).await
    }

    /// Looks at a VM until it is as wanted. Fails at once when a law is broken.
    ///
    /// # Errors
    /// What was seen last, and the host's last words.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl FnMut(&View) -> bool,
    ) -> Result<View> {
        self.until_within(LIMIT, name, what, wanted).await.map(|(view, _)| view)
    }

    /// As [`Stage::until`], at most for this long; says how long it took.
    ///
    /// # Errors
    /// As [`Stage::until`].
    pub async fn until_within(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        mut wanted: impl FnMut(&View) -> bool,
    ) -> Result<(View, Duration)> {
        let start = Instant::now();
        loop {
            let view = self.view(name).await;
            if wanted(&view) {
                let took = start.elapsed();
                eprintln!("    {:5.1} s  {name}: {what}", took.as_secs_f64());
                return Ok((view, took));
            }
            self.no_breach()?;
            if start.elapsed() > limit {
                let (log, serial) = (self.host.last_words(), self.guest(name).serial());
                let seen = format!("{view:#?}\nhost: {log}\nguest: {serial}");
                return Err(anyhow!("no {what} of {name}; last seen: {seen}"));
            }
            tokio::time::sleep(self.pace.conditions).await;
        }
    }

    /// Asks the host until it says that a VM waits for something of this kind. Unlike
    /// [`Stage::until`] it does not wait for a guest that is too busy to answer.
    ///
    /// # Errors
    /// What the host said last.
    pub async fn until_waits(&self, name: &str, kind: impl Fn(&Waiting) -> bool) -> Result<()> {
        let start = Instant::now();
        loop {
            let state = self.host.state().await?;
            let view = View::of(name, self.parks, Some(&state), None, None);
            if view.waits(&kind) {
                return Ok(());
            }
            ensure!(start.elapsed() < LIMIT, "{name} does not wait for that: {view:#?}");
            tokio::time::sleep(OFTEN.conditions).await;
        }
    }

    /// Looks at a VM for so long, and fails as soon as it is not as it should stay.
    ///
    /// # Errors
    /// What was seen, and the host's last words.
    pub async fn stays(
        &self,
        name: &str,
        what: &str,
        time: Duration,
        wanted: impl Fn(&View) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < time {
            let view = self.view(name).await;
            let log = || self.host.last_words();
            ensure!(wanted(&view), "{name} did not keep: {what}; seen: {view:#?}\n{}", log());
            self.no_breach()?;
            tokio::time::sleep(self.pace.conditions).await;
        }
        eprintln!("    {:5.1} s  {name}: {what}, kept", start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Ends the host in good order, and checks what was seen all the while. A test that was over soon
    /// waits here until the laws were looked at often enough.
    ///
    /// # Errors
    /// Laws that were broken; a panic in the host; an end in disorder.
    pub async fn close(mut self) -> Result<Seen> {
        let start = Instant::now();
        while self.seen().whole < self.pace.least && start.elapsed() < LIMIT {
            tokio::time::sleep(self.pace.conditions).await;
        }
        let watch = self.watch.take().context("a stage is closed once")?;
        let seen = watch.stop().await;
        ensure!(seen.breaches.is_empty(), "laws were broken: {:#?}", seen.breaches);
        let Seen { whole, partial, .. } = seen;
        ensure!(
            whole >= self.pace.least,
            "all answered in {whole} samples, and not all in {partial}"
        );
        let status = self.host.stop().await?;
        ensure!(status.success(), "the host ended with {status}\n{}", self.host.last_words());
        let log = self.host.log();
        ensure!(!log.contains("panicked at"), "the host panicked\n{log}");
        Ok(seen)
    }

    /// What the watch has seen so far.
    fn seen(&self) -> Seen {
        self.watch.as_ref().map(Watch::seen).unwrap_or_default()
    }

    fn no_breach(&self) -> Result<()> {
        let breaches = self.seen().breaches;
        ensure!(breaches.is_empty(), "laws were broken: {breaches:#?}\n{}", self.host.last_words());
        Ok(())
    }

    fn actor(&self, name: &str) -> &Actor {
        self.actors.iter().find(|actor| actor.vm.name == name).expect("the test has this VM")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the host's last words:\n{}", self.host.last_words());
        }
    }
}

/// Waits until the informant of every guest runs, limited to what it is to speak.
async fn limited(guests: &[Guest], spoken: Spoken) -> Result<()> {
    for guest in guests {
        let limited = |inside: &Inside| {
            inside.informant.is_some() && inside.informant_versions == spoken.limit()
        };
        wait::until("informant of the run's version", LIMIT, || guest.inside(), limited).await?;
    }
    Ok(())
}

/// How a test waits for its turn. Blocks.
trait Turn: FnOnce() -> Result<File> + Send + 'static {}

impl<F: FnOnce() -> Result<File> + Send + 'static> Turn for F {}

/// Waits for this test's turn: two guests under load are what two cores carry.
pub(crate) fn turn() -> Result<File> {
    turn_of("windlass-e2e.lock")
}

fn turn_of(lock: &str) -> Result<File> {
    let path = std::env::temp_dir().join(lock);
    let file = File::options().create(true).append(true).open(&path)?;
    file.lock()?;
    Ok(file)
}
