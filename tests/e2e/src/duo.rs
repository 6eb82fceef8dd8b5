//! One guest, one plugin, and two agents that both would act on it.
//!
//! Each agent has a monitor of its own, with a proxy before it that writes down what changes the
//! VM, and a relay each way between it and the informant. All the time it is looked whether one
//! acted that was not to; and the laws are watched as everywhere.

use crate::acts::{self, Act, What, Who};
use crate::laws::{self, Seen, Watch};
use crate::plugin::Plugin;
use crate::programs::Programs;
use crate::rival::{Rival, Way};
use crate::stage::turn;
use crate::vm::Vm;
use crate::{Setting, Sight, Spoken};
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_lab::{Folder, Guest};

/// How long a condition may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(180);

/// How often a condition is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// Room of the node, in compute units.
const ROOM: u32 = 4;

/// A guest with two agents.
pub struct Duo {
    start: Instant,
    spoken: Spoken,
    rivals: [Rival; 2],
    plugin: Plugin,
    guest: Arc<Guest>,
    watch: Option<Watch>,
    _folder: Folder,
    _turn: File,
}

// === impl Duo ===

impl Duo {
    /// Boots the guest, starts the plugin, and prepares an agent for each of these, which are the
    /// same VM as the old one and the new one would have it. Neither is started.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn set(old: Vm, new: Vm) -> Result<Self> {
        let (programs, turn) =
            tokio::task::spawn_blocking(|| anyhow::Ok((Programs::find()?, turn()?))).await??;
        let folder = Folder::create()?;
        let spoken = Spoken::of_run()?;
        let spec = Vm { monitors: 2, ..old.clone() }.spec(spoken);
        let guest = Arc::new(Guest::boot(&programs.lab, spec).await?);
        let plugin = Plugin::start(folder.path(), ROOM, std::slice::from_ref(&new))?;
        let permits = plugin.permits();
        let place = |name| folder.path().join(name);
        let rivals = [
            Rival::set(Who::Old, old, &guest, place("old"), permits).await?,
            Rival::set(Who::New, new, &guest, place("new"), permits).await?,
        ];
        let rules = Setting { room: ROOM, trust: spoken.parks() }.into();
        let watch = Some(Watch::start(plugin.eye(), vec![Arc::clone(&guest)], rules, laws::EVERY));
        let start = Instant::now();
        Ok(Self { start, spoken, rivals, plugin, guest, watch, _folder: folder, _turn: turn })
    }

    /// Whether guest, hypervisor and books agree that it has this many compute units: the books
    /// keep parked vCPUs where sizes have no number.
    pub fn has(&self, sight: &Sight, units: u32) -> bool {
        if self.spoken.parks() { sight.has(units) } else { sight.uses(units) }
    }

    /// What the guest speaks.
    pub fn spoken(&self) -> Spoken {
        self.spoken
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Starts an agent.
    ///
    /// # Errors
    /// If it runs, or does not come to serve.
    pub fn start(&mut self, who: Who) -> Result<()> {
        self.rivals[who as usize].start()
    }

    /// Kills an agent as a crash would.
    ///
    /// # Errors
    /// If it does not run.
    pub fn kill(&mut self, who: Who) -> Result<()> {
        self.rivals[who as usize].kill()
    }

    /// Has an agent stand still.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self, who: Who) -> Result<()> {
        self.rivals[who as usize].pause(true)
    }

    /// Has an agent go on.
    ///
    /// # Errors
    /// If it does not run.
    pub fn go_on(&self, who: Who) -> Result<()> {
        self.rivals[who as usize].pause(false)
    }

    /// Ends an agent in good order.
    ///
    /// # Errors
    /// If it does not run, or ends in disorder.
    pub async fn stop(&mut self, who: Who) -> Result<()> {
        self.rivals[who as usize].stop().await
    }

    /// Tells an agent to have at least this much, in compute units.
    ///
    /// # Errors
    /// If the file of its VM cannot be written.
    pub fn want(&self, who: Who, least: u32) -> Result<()> {
        let rival = &self.rivals[who as usize];
        rival.write(&Vm { least, ..rival.vm().clone() })
    }

    /// Nothing passes here any more, between an agent and the guest.
    pub fn cut(&self, who: Who, way: Way) {
        self.rivals[who as usize].cut(way, true);
    }

    /// Everything passes again.
    pub fn mend(&self, who: Who) {
        for way in [Way::Calls, Way::Requests] {
            self.rivals[who as usize].cut(way, false);
        }
    }

    /// Looks at the VM until it is as wanted, with the agent's eyes where these are asked for.
    /// Fails at once when a law is broken.
    ///
    /// # Errors
    /// What was seen last, and the agents' last words.
    pub async fn until(
        &self,
        who: Who,
        what: &str,
        wanted: impl Fn(&Sight) -> bool,
    ) -> Result<Sight> {
        let (start, eye) = (Instant::now(), self.plugin.eye());
        loop {
            let agent = self.rivals[who as usize].dump_state();
            let sight = Sight::of(&self.guest, &eye, agent).await;
            self.no_breach()?;
            if wanted(&sight) {
                eprintln!("    {:5.1} s  {who}: {what}", start.elapsed().as_secs_f64());
                return Ok(sight);
            }
            if start.elapsed() > LIMIT {
                let seen = format!("{sight:#?}\n{}", self.last_words());
                return Err(anyhow!("no {what} of {who}; last seen: {seen}"));
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Waits until an agent was told to run more than `before` times, and gives how long after the
    /// last word with the other one that was: its last health check that was answered, or
    /// `/resume`.
    ///
    /// # Errors
    /// If it is not told; and if a law is broken.
    pub async fn until_resumed(&self, who: Who, before: usize) -> Result<Duration> {
        let start = Instant::now();
        loop {
            self.no_breach()?;
            let acts = self.acts();
            let mut resumed = acts.iter().filter(|act| act.who == who && act.what == What::Resumed);
            if let Some(resumed) = resumed.nth(before) {
                let spoken = |act: &&Act| {
                    let word = matches!(act.what, What::Checked | What::Resumed);
                    act.who != who && act.at < resumed.at && word
                };
                let last = acts.iter().rfind(spoken).context("the other one was never told")?;
                let wait = resumed.at.duration_since(last.at);
                eprintln!("    {:5.1} s  {who}: told to run", start.elapsed().as_secs_f64());
                return Ok(wait);
            }
            ensure!(start.elapsed() < LIMIT, "{who} is not told to run\n{}", self.last_words());
            tokio::time::sleep(EVERY).await;
        }
    }

    /// How often an agent was told to run.
    pub fn resumed(&self, who: Who) -> usize {
        let is = |act: &&Act| act.who == who && act.what == What::Resumed;
        self.acts().iter().filter(is).count()
    }

    /// Ends what runs in good order, and checks what was seen all the while.
    ///
    /// # Errors
    /// Laws that were broken; a panic; an end in disorder.
    pub async fn close(mut self) -> Result<()> {
        let watch = self.watch.take().context("a duo is closed once")?;
        let Seen { whole, partial, breaches } = watch.stop().await;
        ensure!(breaches.is_empty(), "laws were broken: {breaches:#?}");
        ensure!(whole > 0, "all answered in none of {partial} samples");
        // The one that counts first would have the other take over.
        for rival in self.rivals.iter_mut().filter(|rival| rival.runs()) {
            rival.stop().await?;
        }
        self.plugin.stop().await?;
        let acts = self.acts();
        eprintln!("    {}", acts::tenures(&acts, self.start));
        let breaches = self.breaches(&acts);
        ensure!(breaches.is_empty(), "two acted: {breaches:#?}\n{acts:#?}");
        Ok(())
    }

    /// All that both were told, said and did, in its order.
    fn acts(&self) -> Vec<Act> {
        let mut acts: Vec<Act> = self.rivals.iter().flat_map(Rival::acts).collect();
        acts.sort_by_key(|act| act.at);
        acts
    }

    /// Without leases two may act for a while; the laws hold all the same.
    fn breaches(&self, acts: &[Act]) -> Vec<String> {
        if self.spoken.leases() { acts::breaches(acts) } else { Vec::new() }
    }

    fn no_breach(&self) -> Result<()> {
        let breaches = self.watch.as_ref().map(Watch::seen).unwrap_or_default().breaches;
        ensure!(breaches.is_empty(), "laws were broken: {breaches:#?}\n{}", self.last_words());
        let acts = self.acts();
        let breaches = self.breaches(&acts);
        let told = || acts::tenures(&acts, self.start);
        ensure!(breaches.is_empty(), "two acted: {breaches:#?}\n{}\n{}", told(), self.last_words());
        Ok(())
    }

    fn last_words(&self) -> String {
        self.rivals.iter().map(Rival::last_words).collect::<Vec<_>>().join("\n")
    }
}
