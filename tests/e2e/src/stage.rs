//! A host, its guests, and somebody who watches the laws.

use crate::host::Ground;
use crate::laws::{self, Rules, Seen, Watch};
use crate::programs::Programs;
use crate::quotas::{Covered, Quotas};
use crate::relay::Relay;
use crate::view::resources;
use crate::vm::GIB;
use crate::{Host, Setting, Spoken, View, Vm};
use anyhow::{Result, anyhow, ensure};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_lab::proxy::Proxy;
use windlass_lab::{Folder, Guest, Inside, wait};
use windlass_protocol::{Resources, Waiting};

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
    rules: Rules,
    /// Looks at the quotas of guests that have cgroups.
    quotas: Option<Quotas>,
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
    relay: Option<Relay>,
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
        let limit = if setting.trust { "trust" } else { "none" };
        let ground =
            Ground { limit: Some(limit), room: resources(setting.room), unit: Some(resources(1)) };
        Self::put(&ground, OFTEN, turn, vms).await
    }

    /// A host that is told nothing that has a default, and looks that are no load: waits until each
    /// VM has a session and figures. The node has room for this many GiB, and four vCPUs for each.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn with_defaults(gib: u32, vms: &[Vm]) -> Result<Self> {
        Self::plain(gib, turn, vms).await
    }

    /// A host whose node has this room, whose compute unit is this, and that limits VMs as it does when it is
    /// told nothing of that. With many guests, looks are seldom. The host is not started.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn limited(room: Resources, unit: Resources, vms: &[Vm]) -> Result<Self> {
        let ground = Ground { limit: None, room, unit: Some(unit) };
        let pace = if vms.len() > 2 { SELDOM } else { OFTEN };
        Self::put(&ground, pace, turn, vms).await
    }

    /// As [`Stage::limited`], for a host that is told how to limit VMs.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn limited_by(
        limit: &'static str,
        room: Resources,
        unit: Resources,
        vms: &[Vm],
    ) -> Result<Self> {
        let ground = Ground { limit: Some(limit), room, unit: Some(unit) };
        Self::put(&ground, OFTEN, turn, vms).await
    }

    /// As [`Stage::limited`], told nothing of compute units either, beside whatever else runs: its guests are
    /// idle most of the time.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn limited_beside_others(room: Resources, vms: &[Vm]) -> Result<Self> {
        let own = || turn_of("windlass-e2e-beside-limited.lock");
        let ground = Ground { limit: None, room, unit: None };
        Self::put(&ground, SELDOM, own, vms).await
    }

    /// As [`Stage::with_defaults`], beside whatever else runs: its guests are idle most of the time.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn beside_others(gib: u32, vms: &[Vm]) -> Result<Self> {
        Self::plain(gib, turn_beside_others, vms).await
    }

    async fn plain(gib: u32, turn: impl Turn, vms: &[Vm]) -> Result<Self> {
        let ground = Ground { limit: Some("none"), room: resources(gib * GIB), unit: None };
        let mut stage = Self::put(&ground, SELDOM, turn, vms).await?;
        stage.host.start().await?;
        for vm in vms {
            let ready = |view: &View| view.has_session() && view.has_figures();
            stage.until(vm.name, "session and figures", ready).await?;
        }
        Ok(stage)
    }

    async fn put(ground: &Ground, pace: Pace, turn: impl Turn, vms: &[Vm]) -> Result<Self> {
        let (programs, turn) = tokio::task::spawn_blocking(|| {
            let programs = Programs::find()?;
            anyhow::Ok((programs, turn()?))
        })
        .await??;
        let spoken = Spoken::of_run()?;
        let folder = Folder::create()?;
        let host = Host::set(&programs.windlass, folder.path(), ground)?;
        let mut actors = Vec::new();
        let guests = Guest::boot_all(&programs.lab, vms.iter().map(|vm| vm.spec(spoken))).await?;
        limited(&guests, spoken).await?;
        for (vm, guest) in vms.iter().zip(guests) {
            let path = folder.path().join(format!("{}.sock", vm.name));
            let proxy = if vm.proxied { Some(Proxy::start(&path, &guest.qmp())?) } else { None };
            let informant = guest.informant();
            let relay = if vm.relayed { Some(Relay::start(|_| informant).await?) } else { None };
            actors.push(Actor { vm: vm.clone(), guest: Arc::new(guest), proxy, relay });
        }
        let guests: Vec<_> = actors.iter().map(|actor| Arc::clone(&actor.guest)).collect();
        let parks = ground.limit == Some("trust") && spoken.parks();
        let limited =
            |guest: &&Arc<Guest>| guest.group().is_some() && ground.limit != Some("trust");
        let grouped: Vec<_> = guests.iter().filter(limited).collect();
        let quotas = match grouped.is_empty() {
            true => None,
            false => Some(Quotas::start(host.eye(), grouped.into_iter().cloned().collect())),
        };
        let rules = Rules { room: ground.room, trust: parks };
        let watch = Some(Watch::start(host.eye(), guests, rules, pace.laws));
        let stage = Self {
            host,
            actors,
            watch,
            rules,
            quotas,
            spoken,
            parks,
            pace,
            _folder: folder,
            _turn: turn,
        };
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

    /// Once the informant of a VM is asked for this, with these words in the request, loses its answer and all
    /// that follows until [`Stage::mend`].
    ///
    /// # Panics
    /// If no relay stands before the informant.
    pub fn lose_answer(&self, name: &str, path: &'static str, words: &str) {
        self.relay(name).trap(path, words);
    }

    /// Whether an answer was lost, and nothing passes between a VM's informant and the host.
    ///
    /// # Panics
    /// If no relay stands before the informant.
    pub fn has_lost(&self, name: &str) -> bool {
        self.relay(name).is_cut()
    }

    /// Makes the way to the informant of a VM whole.
    ///
    /// # Panics
    /// If no relay stands before it.
    pub fn mend(&self, name: &str) {
        self.relay(name).cut(false);
    }

    fn relay(&self, name: &str) -> &Relay {
        self.actor(name).relay.as_ref().expect("the VM is relayed")
    }

    /// Writes the file of a VM anew.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, vm: &Vm) -> Result<()> {
        let actor = self.actor(vm.name);
        let monitor =
            actor.proxy.as_ref().map_or_else(|| actor.guest.qmp(), |proxy| proxy.path().to_owned());
        let informant = actor.relay.as_ref().map_or_else(|| actor.guest.informant(), Relay::at);
        self.host.write(vm.name, &vm.text(informant, &monitor))
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

    /// Watches the laws from here on, and forgets what was seen: a node may begin with more than it has room for.
    pub async fn watch_anew(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.stop().await;
        }
        let guests = self.actors.iter().map(|actor| Arc::clone(&actor.guest)).collect();
        self.watch = Some(Watch::start(self.host.eye(), guests, self.rules, self.pace.laws));
    }

    /// Watches the laws no longer: what comes is to break them, where nobody enforces them. What was broken before
    /// that is found.
    ///
    /// # Errors
    /// Laws that were broken.
    pub async fn stop_watching(&mut self) -> Result<()> {
        self.no_breach()?;
        self.quotas = None;
        if let Some(watch) = self.watch.take() {
            let seen = watch.stop().await;
            ensure!(seen.breaches.is_empty(), "laws were broken: {:#?}", seen.breaches);
        }
        Ok(())
    }

    /// Ends the host in good order, and checks what was seen all the while. A test that was over soon
    /// waits here until the laws were looked at often enough.
    ///
    /// # Errors
    /// Laws that were broken; a panic in the host; an end in disorder.
    pub async fn close(mut self) -> Result<Seen> {
        let start = Instant::now();
        let Some(watch) = self.watch.take() else { return self.end(Seen::default()).await };
        while watch.seen().whole < self.pace.least && start.elapsed() < LIMIT {
            tokio::time::sleep(self.pace.conditions).await;
        }
        let seen = watch.stop().await;
        ensure!(seen.breaches.is_empty(), "laws were broken: {:#?}", seen.breaches);
        let covered = self.quotas.take().map(|quotas| quotas.seen()).unwrap_or_default();
        ensure!(covered.breaches.is_empty(), "quotas beyond the books: {:#?}", covered.breaches);
        let Seen { whole, partial, .. } = seen;
        ensure!(
            whole >= self.pace.least,
            "all answered in {whole} samples, and not all in {partial}"
        );
        self.end(seen).await
    }

    /// Ends the host in good order.
    async fn end(mut self, seen: Seen) -> Result<Seen> {
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

    /// What was found of quotas so far.
    pub fn covered(&self) -> Covered {
        self.quotas.as_ref().map(Quotas::seen).unwrap_or_default()
    }

    fn no_breach(&self) -> Result<()> {
        let breaches = self.seen().breaches;
        ensure!(breaches.is_empty(), "laws were broken: {breaches:#?}\n{}", self.host.last_words());
        let breaches = self.covered().breaches;
        ensure!(
            breaches.is_empty(),
            "quotas beyond the books: {breaches:#?}\n{}",
            self.host.last_words()
        );
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
pub(crate) trait Turn: FnOnce() -> Result<File> + Send + 'static {}

impl<F: FnOnce() -> Result<File> + Send + 'static> Turn for F {}

/// Waits for this test's turn: two guests under load are what two cores carry.
pub(crate) fn turn() -> Result<File> {
    turn_of("windlass-e2e.lock")
}

/// Waits for the turn of a test whose guests are idle most of the time.
pub(crate) fn turn_beside_others() -> Result<File> {
    turn_of("windlass-e2e-beside.lock")
}

fn turn_of(lock: &str) -> Result<File> {
    let path = std::env::temp_dir().join(lock);
    let file = File::options().create(true).append(true).open(&path)?;
    file.lock()?;
    Ok(file)
}
