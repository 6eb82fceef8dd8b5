//! A VM: its hypervisor, its kernel, its load. This is the truth that laws are checked against.

use crate::group::{self, Group};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_informant_core::wire::figures::{Cpus, Figures};
use windlass_informant_core::{Averages, Change, MachineSeen, Memory};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Moment, Promises, Resize, Resources, RunState, Seen,
    ShrinkCpu,
};

/// What a guest's kernel keeps and does not count in `MemTotal`.
const OVERHEAD: Bytes = Bytes::from_mib(38);
/// What a guest uses when nothing runs in it.
const IDLE_USE: Bytes = Bytes::from_mib(40);
/// Memory moves by this much at a time, this often.
const MOVES: Bytes = Bytes::from_mib(128);
const MOVES_EVERY: Duration = Duration::from_millis(100);
/// How often in a slow guest.
const MOVES_SLOWLY: Duration = Duration::from_millis(1_700);
const BLOCK: Bytes = Bytes::from_mib(2);
/// With less than this free, tasks wait for memory.
const STALLS_BELOW: Bytes = Bytes::from_mib(24);
/// What a guest that gives back a part keeps of it.
const KEPT: Bytes = Bytes::from_mib(64);

/// How a VM is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// Boot memory.
    pub boot: Bytes,
    /// Memory that can be added.
    pub addable: Bytes,
    /// vCPUs at boot.
    pub vcpus: u32,
    /// vCPUs at most.
    pub max_vcpus: u32,
    /// Whether vCPUs beyond those at boot can be taken out, and not only parked.
    pub removal: bool,
    /// Whether the process of its hypervisor has a group to itself, whose CPU can be limited.
    pub limits: bool,
}

/// A VM.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    spec: GuestSpec,
    /// The group of its hypervisor's process, if it has one to itself.
    pub(crate) group: Option<Group>,
    plugged: u32,
    online: BTreeSet<u32>,
    requested: Bytes,
    size: Bytes,
    /// Counts restarts of the guest.
    pub(crate) boot: u64,
    /// How it gives memory back that it agreed to be without.
    pub(crate) unplug: Unplug,
    /// Memory moves slowly.
    pub(crate) slow: bool,
    /// The guest's kernel brings no vCPU online.
    pub(crate) short_of_vcpus: bool,
    /// Its workload takes what is left as soon as the guest has agreed to less.
    pub(crate) rises: bool,
    pub(crate) driver: Driver,
    /// Whether its hypervisor runs it.
    pub(crate) state: RunState,
    /// Demand for CPU, in runnable tasks.
    load: f64,
    averages: [f64; 3],
    averaged_at: Moment,
    /// What the workload uses, beyond what is used when idle.
    used: Bytes,
    /// Times that what was in use did not fit.
    pub(crate) ooms: u64,
    /// The metrics lie or say nothing.
    pub(crate) muted: Option<Muted>,
}

/// How a guest gives memory back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unplug {
    /// All of it.
    #[default]
    Willing,
    /// A part of it.
    Partial,
    /// None.
    Stuck,
}

/// What a hypervisor makes of a resize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Does it.
    #[default]
    Honest,
    /// Refuses it.
    Refuses,
    /// Accepts it, and does nothing.
    Idle,
    /// Accepts it, and goes half of the way.
    Half,
    /// Takes it up a while later, and everything else after it; vCPUs go when the guest has
    /// let them go, long after the answer.
    Late,
    /// Does it twice.
    Twice,
}

/// How metrics are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Muted {
    /// No answer.
    Silent,
    /// Load is not among them.
    NoLoad,
    /// Memory is not among them.
    NoMemory,
    /// Load is NaN.
    NotANumber,
    /// Figures that cannot be: more available than there is, no end of load, and no end of vCPUs.
    Absurd,
}

// === impl Muted ===

impl Muted {
    /// Whether a figure that was missing before is missing still.
    pub(crate) fn goes_on(self, before: Self) -> bool {
        let load = |muted| muted != Self::NoMemory;
        let memory = |muted| !matches!(muted, Self::NoLoad | Self::NotANumber);
        load(self) && load(before) || memory(self) && memory(before)
    }
}

// === impl Guest ===

impl Guest {
    pub(crate) fn new(spec: GuestSpec, now: Moment) -> Self {
        Self {
            spec,
            group: spec.limits.then(Group::default),
            plugged: spec.vcpus,
            online: (0..spec.vcpus).collect(),
            requested: Bytes::ZERO,
            size: Bytes::ZERO,
            boot: 1,
            unplug: Unplug::Willing,
            slow: false,
            short_of_vcpus: false,
            rises: false,
            driver: Driver::Honest,
            state: RunState::Running,
            load: 0.0,
            averages: [0.0; 3],
            averaged_at: now,
            used: Bytes::ZERO,
            ooms: 0,
            muted: None,
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let (shrink_cpu, least) = match self.spec.removal {
            true => (ShrinkCpu::Removal, self.spec.vcpus),
            false => (ShrinkCpu::Parking, 1),
        };
        let whole = MilliCpu::from_cores(least.into());
        let limit_step = self.group.map(|_| group::STEP);
        Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            limit_step,
            memory_step: BLOCK,
            shrink_cpu,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: Resources::new(limit_step.unwrap_or(whole), self.spec.boot),
            max: Resources::new(
                MilliCpu::from_cores(self.spec.max_vcpus.into()),
                self.spec.boot.saturating_add(self.spec.addable),
            ),
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen {
            plugged: self.plugged(),
            limit: self.group.and_then(|group| group.limit()),
            found_limit: self.group.and_then(|group| group.found()),
            memory: MemorySeen { boot: self.spec.boot, requested: self.requested, size: self.size },
            state: self.state,
        }
    }

    pub(crate) fn online(&self) -> MilliCpu {
        MilliCpu::from_cores(self.online.len() as u64)
    }

    /// Whether vCPUs could be taken out: idle ones above those that are in use. Where the books
    /// have less than reaches up to those, nobody may ask for so many.
    pub(crate) fn has_idle_vcpus(&self, booked: Resources) -> bool {
        let used = self.online.last().map_or(0, |highest| highest + 1);
        let permitted = u64::from(used) <= booked.cpu.cores_up();
        self.spec.removal && permitted && self.plugged > used.max(self.spec.vcpus)
    }

    /// vCPUs that the guest uses and would lose.
    pub(crate) fn would_lose(&self, resize: Resize) -> usize {
        match resize {
            Resize::Cpu(count) => {
                self.online.iter().filter(|cpu| u64::from(**cpu) >= count.cores_up()).count()
            }
            // To go down to what somebody has set is no doing of the agent's.
            Resize::Limit(Some(limit))
                if limit < self.limited(self.plugged())
                    && self.seen().found_limit.is_none_or(|found| limit < found) =>
            {
                let left = usize::try_from(limit.cores_up()).unwrap_or(usize::MAX);
                self.online.len().saturating_sub(left)
            }
            Resize::Memory(_) | Resize::Limit(_) => 0,
        }
    }

    /// The hypervisor does as it is told, or says why not.
    pub(crate) fn resize(&mut self, resize: Resize) -> Result<(), &'static str> {
        let resize = match self.driver {
            Driver::Honest | Driver::Late | Driver::Twice => resize,
            Driver::Refuses => return Err("not today"),
            Driver::Idle => return Ok(()),
            Driver::Half => self.half(resize),
        };
        match resize {
            Resize::Cpu(count) => {
                let count = u32::try_from(count.cores_up()).unwrap_or(u32::MAX);
                let least = if self.spec.removal { self.spec.vcpus } else { self.plugged };
                if count > self.spec.max_vcpus || count < least {
                    return Err("no such number of vcpus");
                }
                self.plugged = count;
                self.online.retain(|cpu| *cpu < count);
            }
            Resize::Memory(total) => {
                let requested = total.saturating_sub(self.spec.boot);
                if requested > self.spec.addable || requested.round_down(BLOCK) != requested {
                    return Err("no such size");
                }
                self.requested = requested;
            }
            Resize::Limit(limit) => return self.group.as_mut().ok_or("no limit here")?.set(limit),
        }
        Ok(())
    }

    /// Half of the way to what was asked for, in the hypervisor's steps.
    fn half(&self, resize: Resize) -> Resize {
        match resize {
            Resize::Cpu(count) => {
                let (has, asked) = (u64::from(self.plugged), count.cores_up());
                Resize::Cpu(MilliCpu::from_cores(has.midpoint(asked)))
            }
            Resize::Memory(total) => {
                let has = self.spec.boot.saturating_add(self.requested);
                let half = has.bytes().midpoint(total.bytes());
                let above =
                    Bytes::from_bytes(half).saturating_sub(self.spec.boot).round_down(BLOCK);
                Resize::Memory(self.spec.boot.saturating_add(above))
            }
            Resize::Limit(limit) => {
                let half = |limit: MilliCpu| {
                    let has = self.limited(self.plugged()).milli();
                    let half = MilliCpu::from_milli(has.midpoint(limit.milli()));
                    half.round_down(group::STEP).max(group::STEP)
                };
                Resize::Limit(limit.map(half))
            }
        }
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.size != self.requested
    }

    /// The kernel moves memory one step. What is in use cannot be taken; that it was asked for
    /// is noted.
    pub(crate) fn move_memory(&mut self) {
        if self.size < self.requested {
            self.size = self.size.saturating_add(MOVES).min(self.requested);
            return;
        }
        let least = match self.unplug {
            Unplug::Willing => self.requested,
            Unplug::Partial => self.requested.saturating_add(KEPT).min(self.size),
            Unplug::Stuck => self.size,
        };
        let next = self.size.saturating_sub(MOVES).max(least);
        if self.total_at(next) >= self.in_use() {
            self.size = next;
        } else {
            self.ooms += 1;
            self.used = Bytes::ZERO;
        }
    }

    /// When memory moves again.
    pub(crate) const fn moves_every(&self) -> Duration {
        if self.slow { MOVES_SLOWLY } else { MOVES_EVERY }
    }

    /// vCPUs beyond this many are let go, at last.
    pub(crate) fn eject(&mut self, count: u32) {
        self.plugged = self.plugged.min(count);
        self.online.retain(|cpu| *cpu < count);
    }

    /// Whether vCPUs that are taken out go only when the guest has let them go.
    pub(crate) fn ejects_late(&self, resize: Resize) -> Option<u32> {
        let Resize::Cpu(count) = resize else { return None };
        let count = u32::try_from(count.cores_up()).unwrap_or(u32::MAX);
        let takes = count < self.plugged && count >= self.spec.vcpus && self.spec.removal;
        (self.driver == Driver::Late && takes).then_some(count)
    }

    /// The workload takes what is left.
    pub(crate) fn fill_up(&mut self) {
        self.used = self.total().saturating_sub(IDLE_USE);
    }

    pub(crate) fn demand(&mut self, now: Moment, load: f64) {
        self.average(now);
        self.load = load;
    }

    /// The workload takes or frees memory. What does not fit kills it.
    pub(crate) fn use_memory(&mut self, used: Bytes) {
        self.used = used;
        if self.in_use() > self.total() {
            self.ooms += 1;
            self.used = Bytes::ZERO;
        }
    }

    /// Whether this much more could be used now.
    pub(crate) fn fits(&self, used: Bytes) -> bool {
        IDLE_USE.saturating_add(used) <= self.total()
    }

    /// Its hypervisor has it in this state from here on. Load is averaged over its own time.
    pub(crate) fn runs_as(&mut self, now: Moment, state: RunState) {
        if self.state.executes() {
            self.average(now);
        }
        (self.state, self.averaged_at) = (state, now);
    }

    /// Everything in the guest ends; every vCPU comes back, memory follows later by itself.
    pub(crate) fn reboot(&mut self, now: Moment) {
        self.boot += 1;
        self.online = (0..self.plugged).collect();
        self.size = Bytes::ZERO;
        self.used = Bytes::ZERO;
        self.load = 0.0;
        self.averages = [0.0; 3];
        self.averaged_at = now;
    }

    /// Somebody in the guest brings every vCPU online.
    pub(crate) fn unpark(&mut self) {
        self.online = (0..self.plugged).collect();
    }

    pub(crate) fn memory(&self) -> Memory {
        let available = self.total().saturating_sub(self.in_use());
        Memory { total: self.total(), available, free: available, overhead: Some(OVERHEAD) }
    }

    pub(crate) fn machine(&self) -> MachineSeen {
        MachineSeen {
            present: (0..self.plugged).collect(),
            online: self.online.clone(),
            offline_blocks: BTreeSet::new(),
        }
    }

    /// The kernel does as the informant says.
    pub(crate) fn change(&mut self, change: &Change) -> bool {
        match change {
            Change::OnlineCpu(_) if self.short_of_vcpus => false,
            Change::OnlineCpu(cpu) if *cpu < self.plugged => {
                self.online.insert(*cpu);
                true
            }
            Change::OfflineCpu(cpu) if *cpu > 0 => self.online.remove(cpu),
            Change::OnlineCpu(_) | Change::OfflineCpu(_) => false,
            Change::AddedIsMovable
            | Change::OnlineMemory(_)
            | Change::Remember(_)
            | Change::Note(_) => true,
        }
    }

    /// Whether tasks wait for memory.
    pub(crate) fn stalls(&self) -> bool {
        self.memory().free < STALLS_BELOW
    }

    /// Tasks that run or wait.
    pub(crate) const fn tasks(&self) -> f64 {
        self.load
    }

    /// Load over short windows, as a sampler that never rests would have it.
    pub(crate) fn true_averages(&mut self, now: Moment) -> Averages {
        self.average(now);
        let [five, fifteen, _] = self.averages;
        averages(five, fifteen)
    }

    /// Whether an average over a short window is more than the load by what may decide on a unit.
    pub(crate) fn averages_are_high(&self, now: Moment) -> bool {
        let mut guest = self.clone();
        guest.average(now);
        let [five, fifteen, _] = guest.averages;
        five.max(fifteen) > guest.load + 0.000_5
    }

    /// What an informant with these averages serves.
    pub(crate) fn figures(&mut self, now: Moment, seconds: Averages) -> Option<Figures> {
        self.average(now);
        let [_, _, minute] = self.averages;
        let seen = self.machine();
        let mut figures = Figures {
            minutes: Some([minute; 3]),
            seconds,
            cpus: Some(Cpus::of(&seen.present, &seen.online)),
            memory: Some(self.memory()),
        };
        match self.muted {
            None => {}
            Some(Muted::Silent) => return None,
            Some(Muted::NoLoad) => {
                (figures.minutes, figures.seconds) = (None, Averages::default());
            }
            Some(Muted::NoMemory) => figures.memory = None,
            Some(Muted::NotANumber) => {
                figures.minutes = Some([f64::NAN; 3]);
                figures.seconds = averages(f64::NAN, f64::NAN);
            }
            Some(Muted::Absurd) => {
                figures.minutes = Some([1e300; 3]);
                figures.seconds = averages(f64::INFINITY, -1.0);
                figures.cpus = Some(Cpus { present: 1, online: usize::MAX, reach: 0 });
                let more = self.total().saturating_add(Bytes::from_gib(1));
                figures.memory = Some(Memory { available: more, ..self.memory() });
            }
        }
        Some(figures)
    }

    fn plugged(&self) -> MilliCpu {
        MilliCpu::from_cores(self.plugged.into())
    }

    fn total(&self) -> Bytes {
        self.total_at(self.size)
    }

    fn total_at(&self, size: Bytes) -> Bytes {
        self.spec.boot.saturating_add(size).saturating_sub(OVERHEAD)
    }

    /// What cannot be taken from the guest.
    pub(crate) fn in_use(&self) -> Bytes {
        IDLE_USE.saturating_add(self.used)
    }

    fn average(&mut self, now: Moment) {
        let seconds = now.since(self.averaged_at).as_secs_f64();
        for (average, window) in self.averages.iter_mut().zip([5.0, 15.0, 60.0]) {
            *average = self.load + (*average - self.load) * (-seconds / window).exp();
        }
        self.averaged_at = now;
    }
}

fn averages(five: f64, fifteen: f64) -> Averages {
    Averages { five_seconds: Some(five), fifteen_seconds: Some(fifteen) }
}
