//! The loop of one VM: plan, report `Sent`, start the I/O, wait for what happens first.
//!
//! ```text
//!             attached, managed                    let go, or its file is gone
//!   Absent ───────────────────► Managed ───────────────────────────► Counted
//!     ▲  │ attached, let go        │ the VM is gone                   │  ▲
//!     │  └─────────────────────────┼──────────────────────────────────┼──┘
//!     └────────────────────────────┴──────────────────────────────────┘
//! ```
//!
//! One task owns one `Scaler`; nothing is locked while anything is waited for. What is under
//! way when a phase ends is hung up by dropping it. A VM that is gone stays watched for, as
//! long as its file is there.

mod lines;
mod managed;
mod monitor;

use crate::callback::{Calls, Waiting as Call};
use crate::ledger::NodeEvent;
use crate::metrics::Presence;
use crate::node::{Shared, Standing, Told};
use managed::{Managed, Progress};
use monitor::{Happening, Monitor, Wanted};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_agent_core::{CallAnswer, Event};
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Capabilities, Decision, Moment, Peer, Resources, Seen, VmName};

/// How often a VM that is only counted is looked at, beside its notices.
const COUNT_EVERY: Duration = Duration::from_secs(3);
/// The longest wait of the loop: what people read is never older.
const TURN: Duration = Duration::from_secs(1);

/// What a runner starts with.
pub(crate) struct Start<A> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) vm: VmName,
    pub(crate) told: watch::Receiver<Told<A>>,
    pub(crate) calls: Calls,
    /// The port at which its informant calls back; `None` if none was to be had.
    pub(crate) port: Option<u16>,
    pub(crate) view: Arc<Mutex<View>>,
    pub(crate) stop: CancellationToken,
    /// What the VM had when it was last seen, before a restart of this process.
    pub(crate) last: Option<Resources>,
}

/// What people can read of a runner without waiting for it.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// `None` while the VM is not there, or is not managed.
    pub(crate) status: Option<VmStatus>,
    /// The decision under way.
    pub(crate) open: Option<Decision>,
    /// The last size that is known, also of a VM that is only counted.
    pub(crate) upper: Option<Resources>,
}

/// What the runner is doing for the VM.
enum Phase {
    /// Not attached: there is no VM, or it cannot be reached.
    Absent,
    Managed(Box<Managed>),
    Counted {
        look_at: Moment,
    },
}

/// Why a runner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process stops.
    Stopped,
    /// The VM is gone and its file too.
    Removed,
}

impl<A> Clone for Start<A> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            vm: self.vm.clone(),
            told: self.told.clone(),
            calls: self.calls.clone(),
            port: self.port,
            view: self.view.clone(),
            stop: self.stop.clone(),
            last: self.last,
        }
    }
}

struct Runner<A: Attach> {
    shared: Arc<Shared>,
    vm: VmName,
    told: watch::Receiver<Told<A>>,
    calls: mpsc::Receiver<Call>,
    port: Option<u16>,
    view: Arc<Mutex<View>>,
    stop: CancellationToken,
    monitor: Monitor<A>,
    /// Of which `Told::reach` the monitor is.
    reach: u64,
    phase: Phase,
    /// Set while the ledger has the VM.
    entered: Option<Presence>,
    /// Whether there is a VM was found out at least once.
    sought: bool,
    /// The VM was let go as it was ordered.
    let_go: bool,
    stopping: bool,
    upper: Option<Resources>,
}

/// Runs until the process stops, or the VM and its file are gone.
pub(crate) async fn run<A: Attach>(start: Start<A>) -> End {
    Runner::new(start).run().await
}

// === impl Runner ===

impl<A: Attach> Runner<A> {
    fn new(start: Start<A>) -> Self {
        let (attach, reach) = {
            let told = start.told.borrow();
            (told.attach.clone(), told.reach)
        };
        Self {
            monitor: Monitor::new(attach, seed()),
            calls: start.calls.open(),
            shared: start.shared,
            vm: start.vm,
            told: start.told,
            port: start.port,
            view: start.view,
            stop: start.stop,
            reach,
            phase: Phase::Absent,
            entered: None,
            sought: false,
            let_go: false,
            stopping: false,
            upper: start.last,
        }
    }

    async fn run(&mut self) -> End {
        // Nobody may be given what this VM had, even before it answers.
        if let Some(upper) = self.upper {
            self.count(upper);
        }
        loop {
            let now = self.shared.clock.now();
            let wake = match self.turn(now) {
                Ok(wake) => wake.min(now.after(TURN)),
                Err(end) => {
                    self.publish(now);
                    return end;
                }
            };
            self.publish(now);
            tokio::select! {
                () = self.stop.cancelled(), if !self.stopping => self.stopping = true,
                happening = self.monitor.next() => self.happened(happening),
                event = lines::next(&mut self.phase) => self.heard(event),
                Some(call) = self.calls.recv() => self.called(call),
                // The sender lives as long as the agent; if it goes, the process stops.
                Ok(()) = self.told.changed() => {}
                () = self.shared.clock.sleep_until(wake) => {}
            }
        }
    }

    /// Does what is due now, and says when to look again.
    fn turn(&mut self, now: Moment) -> Result<Moment, End> {
        self.follow(now);
        let standing = self.told.borrow().standing;
        match &mut self.phase {
            Phase::Absent if self.stopping => Err(End::Stopped),
            // Whether there is a VM at all has to be known before it is forgotten.
            Phase::Absent
                if standing == Standing::Removed && self.entered.is_none() && self.sought =>
            {
                Err(End::Removed)
            }
            Phase::Absent => Ok(now.after(TURN)),
            Phase::Counted { .. } if self.stopping => Err(End::Stopped),
            Phase::Counted { look_at } => {
                if *look_at <= now {
                    *look_at = now.after(COUNT_EVERY);
                    self.monitor.start(Wanted::Look);
                }
                Ok(*look_at)
            }
            Phase::Managed(managed) => {
                let progress = managed.turn(now, &mut self.monitor);
                match progress {
                    Progress::Waits(wake) => Ok(wake),
                    Progress::Left if self.stopping => Err(End::Stopped),
                    Progress::Left => {
                        info!("vm let go, and counted from here on");
                        self.let_go = true;
                        self.begin_counting(now);
                        Ok(now)
                    }
                }
            }
        }
    }

    /// Makes the phase fit what was told.
    fn follow(&mut self, now: Moment) {
        let (reach, standing) = {
            let told = self.told.borrow_and_update();
            (told.reach, told.standing)
        };
        if reach != self.reach {
            info!("vm is reached another way");
            self.reach = reach;
            self.monitor = Monitor::new(self.told.borrow().attach.clone(), seed());
            self.phase = Phase::Absent;
        }
        match standing {
            Standing::Managed => {
                self.let_go = false;
                if matches!(self.phase, Phase::Counted { .. }) {
                    // To be managed, what can be done with it has to be asked again.
                    self.monitor = Monitor::new(self.told.borrow().attach.clone(), seed());
                    (self.phase, self.entered) = (Phase::Absent, None);
                }
            }
            Standing::Released | Standing::Removed => {}
        }
        let Phase::Managed(managed) = &mut self.phase else { return };
        let updated = managed.told(now, &self.told.borrow(), self.stopping);
        if let Some(info) = updated.filter(|_| self.entered.is_some()) {
            self.shared.ledger.note(NodeEvent::Updated { info: Box::new(info) });
        }
    }

    fn happened(&mut self, happening: Happening) {
        let now = self.shared.clock.now();
        self.sought = true;
        match happening {
            Happening::Attached(capabilities) => self.attached(now, capabilities),
            Happening::Answered(event) => self.heard(event),
            Happening::Noticed(notice) => self.noticed(now, notice),
            Happening::Unreachable(error) => self.unreachable(&error),
            Happening::Gone(error) => self.gone(now, &error),
        }
    }

    fn attached(&mut self, now: Moment, capabilities: Capabilities) {
        let told = self.told.borrow();
        let file = match (&told.file, told.standing) {
            (Some(file), Standing::Managed) => Some(file.clone()),
            (Some(file), Standing::Released) if !self.let_go => Some(file.clone()),
            (_, Standing::Managed | Standing::Released | Standing::Removed) => None,
        };
        drop(told);
        match (&mut self.phase, file) {
            (Phase::Managed(managed), _) => managed.attached_again(now, capabilities),
            (Phase::Absent | Phase::Counted { .. }, Some(file)) => {
                info!("attached to the hypervisor");
                let mut managed = Managed::new(self.shared.clone(), file, self.port, seed(), now);
                managed.hear(now, Event::Attached(capabilities));
                self.phase = Phase::Managed(Box::new(managed));
            }
            (Phase::Absent | Phase::Counted { .. }, None) => self.begin_counting(now),
        }
    }

    fn heard(&mut self, event: Event) {
        let now = self.shared.clock.now();
        match &mut self.phase {
            Phase::Managed(managed) => {
                let unseen = matches!(event, Event::Failed(Peer::Hypervisor, _));
                let looked = matches!(event, Event::Seen(_));
                managed.hear(now, event);
                match managed.upper() {
                    Some(upper) if looked || self.upper != Some(upper) => self.witness(upper),
                    Some(_) => {}
                    None if unseen => self.enter_unseen(),
                    None => {}
                }
            }
            Phase::Counted { .. } => {
                if let Event::Seen(seen) = event {
                    self.count(Seen::upper(seen));
                }
            }
            Phase::Absent => {}
        }
    }

    fn noticed(&mut self, now: Moment, notice: Notice) {
        match &mut self.phase {
            Phase::Managed(managed) => managed.noticed(now, notice),
            Phase::Counted { look_at } => *look_at = now,
            Phase::Absent => {}
        }
    }

    fn unreachable(&mut self, error: &DriverError) {
        self.shared.metrics.lost();
        if self.entered.is_some() {
            debug!(%error, "hypervisor cannot be reached");
        } else {
            warn!(%error, "hypervisor cannot be reached; the vm counts with the most it may have");
            self.enter_unseen();
        }
    }

    fn gone(&mut self, now: Moment, error: &DriverError) {
        if let Phase::Managed(managed) = &mut self.phase {
            managed.interrupted(now);
        }
        if self.entered.is_some() {
            info!(why = %error, "vm is gone");
            self.shared.metrics.gone();
            self.shared.ledger.note(NodeEvent::Left { vm: self.vm.clone() });
        }
        (self.entered, self.upper, self.phase) = (None, None, Phase::Absent);
    }

    fn called(&mut self, call: Call) {
        let now = self.shared.clock.now();
        match &mut self.phase {
            Phase::Managed(managed) => managed.called(now, call),
            Phase::Absent | Phase::Counted { .. } => drop(call.answer.send(CallAnswer::Unknown)),
        }
    }

    fn begin_counting(&mut self, now: Moment) {
        if let Phase::Managed(managed) = &self.phase {
            self.upper = managed.upper().or(self.upper);
            self.monitor.disregard();
        }
        self.phase = Phase::Counted { look_at: now };
        if let Some(upper) = self.upper {
            self.count(upper);
        }
    }

    /// The VM was seen, and permits are asked for it, or it is only watched.
    fn witness(&mut self, upper: Resources) {
        let Phase::Managed(managed) = &self.phase else { return };
        self.upper = Some(upper);
        if self.entered.is_none() {
            self.entered = Some(self.shared.metrics.present());
            let info = Box::new(managed.info().clone());
            self.shared.ledger.note(NodeEvent::Entered { info, upper: Some(upper) });
        }
        if managed.asks_for_permits() {
            let vm = self.vm.clone();
            self.shared.ledger.note(NodeEvent::Witnessed { vm, upper });
        } else {
            self.count(upper);
        }
    }

    fn count(&mut self, upper: Resources) {
        self.upper = Some(upper);
        self.entered.get_or_insert_with(|| self.shared.metrics.present());
        self.shared.ledger.note(NodeEvent::Counted { vm: self.vm.clone(), upper });
    }

    /// The VM is there and was never seen: it counts with the most that it may have.
    fn enter_unseen(&mut self) {
        let info = self.told.borrow().file.as_ref().map(|file| Box::new(file.info.clone()));
        if let (None, Some(info)) = (&self.entered, info) {
            self.entered = Some(self.shared.metrics.present());
            self.shared.ledger.note(NodeEvent::Entered { info, upper: None });
        }
    }

    fn publish(&mut self, now: Moment) {
        let (status, open) = match &mut self.phase {
            Phase::Managed(managed) => managed.publish(now),
            Phase::Absent | Phase::Counted { .. } => (None, None),
        };
        let status = status.or_else(|| self.unseen_status());
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        *view = View { status, open, upper: self.upper };
    }

    /// What is known of a VM that is there, is to be managed, and cannot be reached.
    fn unseen_status(&self) -> Option<VmStatus> {
        let told = self.told.borrow();
        let file = told.file.as_ref().filter(|_| told.standing == Standing::Managed)?;
        let unreached = matches!(self.phase, Phase::Absent) && self.entered.is_some();
        unreached.then(|| managed::unseen(&file.info))
    }
}

/// Spreads the periods of many VMs, and makes the ids of their sessions differ.
fn seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}
