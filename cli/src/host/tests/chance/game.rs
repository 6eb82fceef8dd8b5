//! One world: what is done in it, step by step.

use super::draw::{self, Knob, PLACES, Step, Text, VMS};
use super::machines::{Machines, Way};
use crate::host::config::HostConfig;
use crate::host::tests::stage::{FakeDisk, Stage};
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use windlass_agent_host::checked_attach::CheckedAttach;
use windlass_agent_host::controller::Ways;
use windlass_drivers_fake::Lost;
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;
use windlass_world::Chance;

/// Things that happen in one world.
const STEPS: usize = 40;
/// Until a host that starts follows its VM files, however its disk is.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
/// An order is answered within this: 15 s until it is taken up, and what it takes to write it down.
const ANSWERED_WITHIN: Duration = Duration::from_secs(21);
/// Two ports for three VMs.
const PORTS: std::ops::RangeInclusive<u16> = 21_001..=21_002;
/// The port that says that a world has its address.
const CLAIM: u16 = 21_000;
/// A network that no packet goes to: whoever connects is told so at once.
const NOWHERE: &str = "255.255.255.255";

/// One world.
pub(super) struct Game {
    pub(super) chance: Chance,
    pub(super) machines: Machines,
    pub(super) disk: FakeDisk,
    pub(super) stage: Option<Stage>,
    /// What a valid file of each VM says, while it has one.
    pub(super) files: [Option<Text>; VMS],
    pub(super) log: Vec<String>,
    pub(super) start: Instant,
    /// When each VM was last taken up: until it is looked for, it counts.
    pub(super) taken_up: [Instant; VMS],
    clock: Clock,
    /// Holds the address at which this world's call-back servers listen: no other world does.
    claim: TcpListener,
    seed: u64,
    starts: u64,
}

// === impl Game ===

impl Game {
    /// What happened, and what was wrong.
    pub(super) fn play(seed: u64) -> (Vec<String>, Result<(), String>) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let mut game = Self::new(seed);
            let outcome = game.run().await;
            let outcome = outcome.map_err(|why| format!("{} s: {why}", game.now().as_secs_f64()));
            (game.log, outcome)
        })
    }

    fn new(seed: u64) -> Self {
        let claim = claim();
        Self {
            chance: Chance::new(seed),
            machines: Machines::default(),
            disk: FakeDisk::default(),
            stage: None,
            files: [None; VMS],
            log: Vec::new(),
            start: Instant::now(),
            taken_up: [Instant::now(); VMS],
            clock: Clock::starting_at(Moment::from_millis(1_795_255_200_000)),
            claim,
            seed,
            starts: 0,
        }
    }

    async fn run(&mut self) -> Result<(), String> {
        for vm in 0..VMS {
            if self.chance.happens(80) {
                let units = 1 + self.chance.below(3);
                self.machines.begin(&monitor(vm, 0), units);
                let text = draw::text(&mut self.chance, 0);
                self.write(vm, text);
            }
        }
        self.begin().await?;
        for _ in 0..STEPS {
            let (step, wait) = draw::step(&mut self.chance);
            self.note(format!("{step:?}"));
            self.step(step).await?;
            self.judge().await?;
            sleep(wait).await;
            self.judge().await?;
        }
        self.judge_at_rest().await
    }

    /// Starts a host.
    async fn begin(&mut self) -> Result<(), String> {
        let mut basics = HostConfig::from_text("").unwrap().basics;
        basics.callback_listen = self.claim.local_addr().unwrap().ip();
        basics.callback_ports = PORTS;
        self.starts += 1;
        self.taken_up = [Instant::now(); VMS];
        let mut agent = basics.agent();
        agent.seed = self.seed ^ self.starts << 32;
        agent.meminfo = "../agent/tests/meminfo".into();
        let (machines, clock) = (self.machines.clone(), self.clock);
        let ways: Ways = Box::new(move |name, known, findings| {
            let (machines, monitor) = (machines.clone(), known.monitor.clone());
            let way = Way { machines, monitor, removal: known.vcpu_removal };
            CheckedAttach::by(name, way, findings, clock)
        });
        let mut stage = Stage::told(&self.disk, clock, basics, agent, ways);
        let begun = timeout(BEGINS_WITHIN, stage.run()).await;
        self.stage = Some(stage);
        begun.map_err(|_| "the host does not begin".to_owned())?.map_err(|_| "it ended".to_owned())
    }

    /// Ends the host: every connection with it.
    pub(super) async fn end(&mut self) -> Result<(), String> {
        if let Some(stage) = self.stage.take() {
            stage.end().await?;
        }
        match self.machines.all().iter().any(|machine| machine.is_connected()) {
            true => Err("a host that has ended is connected".to_owned()),
            false => Ok(()),
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Begins(vm, place, units) => self.machines.begin(&monitor(vm, place), units),
            Step::Ends(vm, place) => self.machines.end(&monitor(vm, place)),
            Step::Slow(vm, place, slow) => {
                let slow = Duration::from_millis(slow);
                self.machines.with(&monitor(vm, place), |place| place.slow = slow);
            }
            Step::Turns(vm, place, knob) => self.turn(vm, place, knob),
            Step::Writes(vm, text) => self.write(vm, text),
            Step::Garbles(vm) => {
                self.files[vm] = None;
                self.disk.papers().files.insert(name(vm), "min = ?".to_owned());
            }
            Step::Removes(vm) => {
                self.files[vm] = None;
                self.disk.papers().files.remove(&name(vm));
            }
            Step::Pauses(vm, seconds) => {
                let until = self.clock.now().after(Duration::from_secs(seconds));
                let until = crate::explain::instant(until);
                self.order(
                    &format!("vm/{}/pause", name(vm)),
                    &format!("{{\"until\":\"{until}\"}}"),
                )
                .await?;
            }
            Step::Resumes(vm) => {
                self.taken_up[vm] = Instant::now();
                self.order(&format!("vm/{}/resume", name(vm)), "").await?;
            }
            Step::Releases(vm, size) => {
                let said = size.map(|units| (units * 1_000, units * 512 * 1024 * 1024));
                let body = said.map(|(cpu, mem)| format!("{{\"cpu\":{cpu},\"mem\":{mem}}}"));
                let body = body.unwrap_or_else(|| "{}".to_owned());
                self.order(&format!("vm/{}/release", name(vm)), &body).await?;
            }
            Step::Freezes(true) => self.order("freeze", "").await?,
            Step::Freezes(false) => self.order("thaw", "").await?,
            Step::Restarts => {
                self.end().await?;
                self.begin().await?;
            }
            Step::DiskHangs(kind, true) => self.disk.hold(kind),
            Step::DiskHangs(kind, false) => self.disk.let_go(kind),
            Step::DiskFull(full) => self.disk.papers().is_full = full,
        }
        Ok(())
    }

    /// Turns a machine, if there is one.
    fn turn(&self, vm: usize, place: usize, knob: Knob) {
        let Some(machine) = self.machines.at(&monitor(vm, place)) else { return };
        match knob {
            Knob::Hangs(true) => machine.hold(),
            Knob::Hangs(false) => machine.let_go(),
            Knob::Mute => machine.hold_commands(),
            Knob::HangsUp => machine.hang_up(),
            Knob::Taken(taken) => machine.set_taken(taken),
            Knob::Reboots => machine.reset(),
            Knob::Booted => machine.boot(),
            Knob::Refuses(refuses) => machine.set_refusal(refuses.then_some("not today")),
            Knob::Loses(true) => machine.lose_next_answer(Lost::Done),
            Knob::Loses(false) => machine.lose_next_answer(Lost::Undone),
        }
    }

    pub(super) fn write(&mut self, vm: usize, text: Text) {
        (self.files[vm], self.taken_up[vm]) = (Some(text), Instant::now());
        let Text { place, least, most, observes, removal, figures_elsewhere, priority } = text;
        let port = 9_000 + vm;
        let metrics = if figures_elsewhere {
            format!("metrics = \"{NOWHERE}:{port}\"\n")
        } else {
            String::new()
        };
        let mode = if observes { "observe" } else { "act" };
        let file = format!(
            "qmp = \"{}\"\ninformant = \"{NOWHERE}:{port}\"\nadvertise = \"127.0.0.1\"\n{metrics}\
             mode = \"{mode}\"\nvcpu_removal = {removal}\npriority = {priority}\n\
             [min]\ncpu = {least}\nmemory = \"{}MiB\"\n[max]\ncpu = {most}\nmemory = \"{}MiB\"\n\
             [scale_down]\ncpu = \"0s\"\nmemory = \"0s\"\n",
            monitor(vm, place).display(),
            least * 512,
            most * 512,
        );
        self.disk.papers().files.insert(name(vm), file);
    }

    /// Gives an order; it is done or refused in time.
    async fn order(&mut self, path: &str, body: &str) -> Result<(), String> {
        let path = format!("/v1/{path}");
        let (status, answer) = self.ask("POST", &path, body).await?;
        self.note(format!("{status} {}", answer["message"]));
        match status {
            200 | 400 | 404 | 409 | 503 | 507 => Ok(()),
            500 if answer["code"] == "not-kept" => Ok(()),
            _ => Err(format!("{path}: {status} {answer}")),
        }
    }

    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, Value), String> {
        let stage = self.stage.as_ref().unwrap();
        let answered = timeout(ANSWERED_WITHIN, stage.ask(method, path, body)).await;
        answered.map_err(|_| format!("{path} is not answered"))
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn note(&mut self, what: String) {
        self.log.push(format!("{:>8.3} {what}", self.now().as_secs_f64()));
    }
}

/// A loopback address that no other world has, of this process or another.
fn claim() -> TcpListener {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(509);
        let number = number.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let part = |number: u32| u8::try_from(number % 250 + 1).unwrap();
        let ip = Ipv4Addr::new(127, part(number / 62_500), part(number / 250), part(number));
        if let Ok(claim) = TcpListener::bind((ip, CLAIM)) {
            return claim;
        }
    }
}

/// Where a monitor of a VM may be.
pub(super) fn monitor(vm: usize, place: usize) -> PathBuf {
    assert!(place < PLACES);
    PathBuf::from(format!("/fake/{}-{place}.sock", name(vm)))
}

pub(super) fn name(vm: usize) -> String {
    format!("vm{vm}")
}
