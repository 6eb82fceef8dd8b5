//! A driver in memory, for tests.
//!
//! A [`FakeVm`] is both the VM and the way to reach it: a test keeps a clone and turns its
//! knobs while the code under test drives it through [`Attach`] and [`Driver`]. As with QEMU, it
//! serves one client at a time: a second is turned away, and counted, until the first driver is dropped or its
//! connection ends. It has no clock: what a real guest does in its own time (give memory back, boot after a reset)
//! it does when it is looked at, or when the test says so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Resize, RunState, Seen, ShrinkCpu,
};

/// Room for notices that the agent has not taken yet; the last place is kept for [`Notice::Reset`].
const NOTICES: usize = 16;

/// A VM in memory. Clones are the same VM.
#[derive(Clone, Debug)]
pub struct FakeVm {
    place: String,
    /// Beside the place, what tells one way to the VM from another.
    way: u32,
    state: Arc<Mutex<State>>,
    held: Arc<watch::Sender<Held>>,
}

/// A connection to a [`FakeVm`].
#[derive(Debug)]
pub struct FakeDriver {
    vm: FakeVm,
    connection: u64,
}

/// How the guest gives memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplug {
    /// As soon as it is asked.
    AtOnce,
    /// At most this much each time that the VM is looked at.
    Slow(Bytes),
    /// Never, though the hypervisor takes the request.
    Stuck,
}

/// What happened to a command whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It was never carried out.
    Undone,
    /// It was carried out.
    Done,
}

#[derive(Debug)]
struct State {
    capabilities: Capabilities,
    seen: Seen,
    unplug: Unplug,
    rebooting: bool,
    refusal: Option<String>,
    lost: Option<Lost>,
    reach: Reach,
    /// Attempts to connect.
    tried: usize,
    /// Those of them that came while another client had the monitor.
    turned_away: usize,
    connection: u64,
    /// While there is a client.
    notices: Option<mpsc::Sender<Notice>>,
    asked: Vec<Resize>,
    looks: usize,
}

/// Which answers are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    Nothing,
    Commands,
    Everything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Free,
    Taken,
    Gone,
}

// === impl FakeVm ===

impl FakeVm {
    /// A VM of this size, which can do this much and answers at once.
    pub fn new(capabilities: Capabilities, seen: Seen) -> Self {
        let state = State {
            capabilities,
            seen,
            unplug: Unplug::AtOnce,
            rebooting: false,
            refusal: None,
            lost: None,
            reach: Reach::Free,
            tried: 0,
            turned_away: 0,
            connection: 0,
            notices: None,
            asked: Vec::new(),
            looks: 0,
        };
        let (place, held) = ("fake".to_owned(), Arc::new(watch::Sender::new(Held::Nothing)));
        Self { place, way: 0, state: Arc::new(Mutex::new(state)), held }
    }

    /// It is reached there.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// It is reached in this way, which is another than those of other numbers.
    #[must_use]
    pub fn by_way(self, way: u32) -> Self {
        Self { way, ..self }
    }

    /// How the guest gives memory back from here on.
    pub fn set_unplug(&self, unplug: Unplug) {
        self.lock().unplug = unplug;
    }

    /// Refuses each resize with these words; `None` ends that.
    pub fn set_refusal(&self, words: Option<&str>) {
        self.lock().refusal = words.map(str::to_owned);
    }

    /// The next command gets no answer, and its connection ends with that.
    pub fn lose_next_answer(&self, lost: Lost) {
        self.lock().lost = Some(lost);
    }

    /// Holds all answers back, after the commands took effect, until [`FakeVm::let_go`].
    pub fn hold(&self) {
        self.held.send_replace(Held::Everything);
    }

    /// The same, but for attempts to connect.
    pub fn hold_commands(&self) {
        self.held.send_replace(Held::Commands);
    }

    /// Lets held answers go.
    pub fn let_go(&self) {
        self.held.send_replace(Held::Nothing);
    }

    /// The guest restarts: it has its boot memory only, until [`FakeVm::boot`].
    pub fn reset(&self) {
        let mut state = self.lock();
        state.rebooting = true;
        state.seen.memory.size = Bytes::ZERO;
        state.notify(Notice::Reset);
    }

    /// The guest has booted, and takes what it may have.
    pub fn boot(&self) {
        let mut state = self.lock();
        state.rebooting = false;
        state.seen.memory.size = state.seen.memory.requested;
        state.notify(Notice::Changed);
    }

    /// Whether it restarted and has not booted since.
    pub fn is_rebooting(&self) -> bool {
        self.lock().rebooting
    }

    /// Another program changes the size.
    pub fn set_seen(&self, seen: Seen) {
        let mut state = self.lock();
        state.seen = seen;
        state.notify(Notice::Changed);
    }

    /// The hypervisor stops the guest, runs it again, or begins to hand it over.
    pub fn set_run_state(&self, run: RunState) {
        let mut state = self.lock();
        state.seen.state = run;
        state.notify(Notice::Changed);
    }

    /// The VM ends; its connection too.
    pub fn end(&self) {
        let mut state = self.lock();
        state.reach = Reach::Gone;
        state.hang_up();
    }

    /// Another client takes the monitor at the next attempt to connect, or gives it up.
    pub fn set_taken(&self, taken: bool) {
        self.lock().reach = if taken { Reach::Taken } else { Reach::Free };
    }

    /// The connection breaks; the VM goes on.
    pub fn hang_up(&self) {
        self.lock().hang_up();
    }

    /// What the VM has, without looking through a driver.
    pub fn seen(&self) -> Seen {
        self.lock().seen
    }

    /// Each resize that reached the VM, refused ones too.
    pub fn asked(&self) -> Vec<Resize> {
        self.lock().asked.clone()
    }

    /// Attempts to connect, whatever came of them.
    pub fn tried(&self) -> usize {
        self.lock().tried
    }

    /// Attempts to connect while another client had the monitor.
    pub fn turned_away(&self) -> usize {
        self.lock().turned_away
    }

    /// Whether a client is connected.
    pub fn is_connected(&self) -> bool {
        self.lock().notices.is_some()
    }

    /// How often it was looked at.
    pub fn looks(&self) -> usize {
        self.lock().looks
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> DriverError {
        DriverError::Gone { place: self.place.clone(), why: "the fake has ended".to_owned() }
    }

    /// Waits until answers of this kind are not held back.
    async fn answer(&self, kind: Held) {
        let mut held = self.held.subscribe();
        // An error would say that the sender is gone, and this is it.
        held.wait_for(|held| *held < kind).await.expect("the sender is in self");
    }
}

impl Attach for FakeVm {
    type Driver = FakeDriver;

    fn place(&self) -> String {
        self.place.clone()
    }

    fn is_same_way(&self, other: &Self) -> bool {
        (&self.place, self.way) == (&other.place, other.way)
    }

    async fn attach(&self) -> Result<(FakeDriver, mpsc::Receiver<Notice>), DriverError> {
        self.lock().tried += 1;
        self.answer(Held::Everything).await;
        let mut state = self.lock();
        let taken = || DriverError::Taken { place: self.place.clone() };
        match state.reach {
            Reach::Gone => return Err(self.gone()),
            Reach::Taken => return Err(taken()),
            Reach::Free if state.notices.is_some() => {
                state.turned_away += 1;
                return Err(taken());
            }
            Reach::Free => {}
        }
        let (notices, receiver) = mpsc::channel(NOTICES);
        state.connection += 1;
        state.notices = Some(notices);
        Ok((FakeDriver { vm: self.clone(), connection: state.connection }, receiver))
    }
}

// === impl FakeDriver ===

impl FakeDriver {
    fn reach(&self) -> Result<MutexGuard<'_, State>, DriverError> {
        let state = self.vm.lock();
        if state.reach == Reach::Gone {
            return Err(self.vm.gone());
        }
        if state.notices.is_none() || state.connection != self.connection {
            return Err(DriverError::Broken("the connection has ended".to_owned()));
        }
        Ok(state)
    }
}

impl Driver for FakeDriver {
    fn capabilities(&self) -> Capabilities {
        self.vm.lock().capabilities
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        let seen = {
            let mut state = self.reach()?;
            state.looks += 1;
            if state.lost.take().is_some() {
                return Err(state.lose("see"));
            }
            state.guest_goes_on();
            state.seen
        };
        self.vm.answer(Held::Commands).await;
        drop(self.reach()?);
        Ok(seen)
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        let outcome = {
            let mut state = self.reach()?;
            state.asked.push(resize);
            match state.lost.take() {
                Some(Lost::Undone) => return Err(state.lose("resize")),
                Some(Lost::Done) => {
                    // The driver does not learn the outcome.
                    let _ = state.resize(resize);
                    return Err(state.lose("resize"));
                }
                None => state.resize(resize),
            }
        };
        self.vm.answer(Held::Commands).await;
        drop(self.reach()?);
        outcome
    }
}

/// The VM is free for the next client.
impl Drop for FakeDriver {
    fn drop(&mut self) {
        let mut state = self.vm.lock();
        if state.connection == self.connection {
            state.hang_up();
        }
    }
}

// === impl State ===

impl State {
    fn notify(&self, notice: Notice) {
        let Some(notices) = &self.notices else { return };
        if notice == Notice::Reset || notices.capacity() > 1 {
            // Full: a reset is among those that the agent has not taken yet.
            let _ = notices.try_send(notice);
        }
    }

    fn hang_up(&mut self) {
        self.notices = None;
    }

    fn lose(&mut self, command: &'static str) -> DriverError {
        self.hang_up();
        DriverError::NoAnswer { command, limit: Duration::ZERO }
    }

    fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        if let Some(words) = &self.refusal {
            return Err(refused(words));
        }
        let Capabilities {
            cpu_step,
            limit_step,
            memory_step,
            shrink_cpu,
            shrink_memory,
            min,
            max,
            ..
        } = self.capabilities;
        match resize {
            Resize::Cpu(cpu) => {
                if cpu > max.cpu || cpu.round_down(cpu_step) != cpu {
                    return Err(refused("no such number of vcpus"));
                }
                let removal = shrink_cpu == ShrinkCpu::Removal && cpu >= min.cpu;
                if cpu < self.seen.plugged && !removal {
                    return Err(refused("vcpus cannot be removed"));
                }
                self.seen.plugged = cpu;
            }
            Resize::Memory(memory) => {
                let boot = self.seen.memory.boot;
                let extra = memory.saturating_sub(boot);
                let shrinks = extra < self.seen.memory.requested;
                if memory < boot || memory > max.mem || extra.round_down(memory_step) != extra {
                    return Err(refused("no such size"));
                }
                if shrinks && !shrink_memory {
                    return Err(refused("memory cannot be given back"));
                }
                self.seen.memory.requested = extra;
                self.guest_follows();
            }
            Resize::Limit(limit) => {
                if limit_step.is_none() {
                    return Err(refused("this driver sets no limit"));
                }
                let found = self.seen.found_limit;
                let within = |limit: MilliCpu| found.map_or(limit, |found| limit.min(found));
                self.seen.limit = limit.map_or(found, |limit| Some(within(limit)));
            }
        }
        self.notify(Notice::Changed);
        Ok(())
    }

    /// What the guest does at once.
    fn guest_follows(&mut self) {
        let MemorySeen { requested, size, .. } = self.seen.memory;
        let at_once = size < requested || self.unplug == Unplug::AtOnce;
        if at_once && !self.rebooting && self.seen.state.executes() {
            self.seen.memory.size = requested;
        }
    }

    /// What the guest does from one look to the next.
    fn guest_goes_on(&mut self) {
        self.guest_follows();
        let MemorySeen { requested, size, .. } = self.seen.memory;
        if let Unplug::Slow(step) = self.unplug
            && size > requested
            && self.seen.state.executes()
        {
            self.seen.memory.size = size.saturating_sub(step).max(requested);
        }
    }
}

fn refused(words: &str) -> DriverError {
    DriverError::Refused { command: "resize", reason: words.to_owned() }
}
