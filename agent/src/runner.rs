//! The loop of one VM: plan, report `Sent`, start the I/O, wait for what happens first.
//!
//! ```text
//!             attached, managed                    let go, or declared no more
//!   Absent ───────────────────► Managed ───────────────────────────► Counted
//!     ▲  │ attached, let go        │ the VM is gone                   │  ▲
//!     │  └─────────────────────────┼──────────────────────────────────┼──┘
//!     └────────────────────────────┴──────────────────────────────────┘
//! ```
//!
//! One task drives one `Scaler`, which others only read; nothing is locked while anything is waited
//! for. What is under way when a phase ends is hung up by dropping it. A VM that is gone stays watched for, as
//! long as it is declared.

mod account;
mod alarms;
mod connections;
mod hypervisor;
mod in_flight;
mod managed;
mod phase;
mod reaching;
mod session_log;
mod size_changes;

pub(crate) use account::Booked;
pub(crate) use phase::{DesiredState, Doing, End, Start};

use crate::callback::PendingCall as Call;
use crate::lock::lock;
use crate::shared::Shared;
use account::Account;
use hypervisor::{Happening, Hypervisor, Wanted};
use managed::Progress;
use phase::Phase;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_agent_core::{CallAnswer, Event, Lifecycle};
use windlass_drivers::Notice;
use windlass_protocol::timing::LOOK_EVERY;
use windlass_protocol::{Moment, Peer};

/// How often a VM that is only counted is looked at, beside its notices.
const COUNT_EVERY: Duration = Duration::from_secs(3);
/// The longest wait of the loop: what lasts too long is noticed no later than this. A VM that is managed is looked at as often.
const TURN: Duration = LOOK_EVERY;
/// Timers of all VMs end at multiples of this, so that the process wakes once for several VMs. Milliseconds.
const TOGETHER: u64 = 25;

struct Runner {
    shared: Arc<Shared>,
    told: watch::Receiver<DesiredState>,
    calls: mpsc::Receiver<Box<Call>>,
    port: watch::Receiver<Option<u16>>,
    doing: Arc<Mutex<Doing>>,
    stop: CancellationToken,
    account: Account,
    hypervisor: Hypervisor,
    /// Where the hypervisor is declared to be, if that is elsewhere and no VM was found there yet.
    other: Option<Hypervisor>,
    /// Which `DesiredState::reach` was followed.
    reach: u64,
    phase: Phase,
    /// Whether there is a VM was found out at least once.
    sought: bool,
    /// The VM was let go as it was ordered.
    let_go: bool,
    stopping: bool,
}

/// Runs until the process stops, or the VM is gone and declared no more.
pub(crate) async fn run(start: Start) -> End {
    Runner::new(start).run().await
}

// === impl Runner ===

impl Runner {
    fn new(start: Start) -> Self {
        let (attach, reach, managed) = {
            let told = start.told.borrow();
            (told.attach.clone(), told.reach, told.desired.lifecycle == Lifecycle::Managed)
        };
        let mut account = Account::open(start.shared.clone(), start.vm.clone(), start.booked);
        // What it had may be given to no other, also before it answers.
        if let Some(upper) = account.upper().filter(|_| !managed) {
            account.counted(upper);
        }
        Self {
            account,
            hypervisor: Hypervisor::starting_in(
                start.shared.waits_to_start(),
                attach,
                start.shared.seed(),
            ),
            other: None,
            calls: start.calls.open(),
            shared: start.shared,
            told: start.told,
            port: start.port,
            doing: start.doing,
            stop: start.stop,
            reach,
            phase: Phase::Absent,
            sought: false,
            let_go: false,
            stopping: false,
        }
    }

    async fn run(&mut self) -> End {
        let watchdog = &self.shared.config.watchdog;
        let pulse = watchdog.watch(format!("runner of vm {}", self.account.vm()));
        loop {
            pulse.at("its plan to be made");
            let now = self.shared.clock.now();
            let wake = match self.turn(now) {
                Ok(wake) => wake.min(now.after(TURN)),
                Err(end) => {
                    self.show(now);
                    return end;
                }
            };
            self.show(now);
            pulse.turn("what happens next");
            // In a fixed order, so that what a seed plays can be played again. Nothing is starved: what
            // comes first comes over connections, and pauses for each answer; what was told is
            // followed in every turn.
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !self.stopping => self.stopping = true,
                happening = self.hypervisor.next() => self.happened(happening),
                happening = hypervisor::next(&mut self.other) => self.found(happening),
                event = self.phase.next() => self.heard(event),
                Some(call) = self.calls.recv() => self.called(*call),
                // The sender lives as long as the agent; if it goes, the process stops.
                Ok(()) = self.told.changed() => {}
                () = self.shared.clock.sleep_until(together(wake)) => {}
            }
        }
    }

    /// Does what is due now, and says when to look again.
    fn turn(&mut self, now: Moment) -> Result<Moment, End> {
        self.follow(now);
        let lifecycle = self.told.borrow().desired.lifecycle;
        match &mut self.phase {
            Phase::Absent if self.stopping => Err(End::Stopped),
            // Whether there is a VM at all has to be known before it is forgotten.
            Phase::Absent
                if lifecycle == Lifecycle::Removed && !self.account.is_present() && self.sought =>
            {
                Err(End::Removed)
            }
            Phase::Absent => Ok(now.after(TURN)),
            Phase::Counted { .. } if self.stopping => Err(End::Stopped),
            Phase::Counted { look_at } => {
                if *look_at <= now {
                    *look_at = now.after(COUNT_EVERY);
                    self.hypervisor.start(Wanted::Look);
                }
                Ok(*look_at)
            }
            Phase::Managed(managed) => {
                let progress = lock(managed).turn(now, &mut self.hypervisor);
                match progress {
                    Progress::Waits(wake) => Ok(wake.unwrap_or(now.after(TURN))),
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
        let (reach, lifecycle) = {
            let told = self.told.borrow_and_update();
            (told.reach, told.desired.lifecycle)
        };
        if reach != self.reach {
            self.reach = reach;
            self.seek(now);
        }
        if lifecycle == Lifecycle::Managed {
            self.let_go = false;
            if matches!(self.phase, Phase::Counted { .. }) {
                // To be managed, what can be done with it has to be asked again.
                let attach = self.hypervisor.way().clone();
                self.reach_anew(now, attach);
            }
        }
        let told = self.told.borrow();
        if let Some(mut managed) = self.phase.managed() {
            managed.told(now, &told.desired, self.stopping);
        }
        if let Some(vm) = &told.desired.vm {
            self.account.updated(&vm.info);
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

    fn heard(&mut self, event: Event) {
        let now = self.shared.clock.now();
        match &mut self.phase {
            Phase::Managed(managed) => {
                let unseen = matches!(event, Event::Failed(Peer::Hypervisor, _));
                let looked = matches!(event, Event::Seen(_));
                let unknown = {
                    let mut managed = lock(managed);
                    managed.hear(now, event);
                    if looked {
                        managed.limited(self.hypervisor.limit_counts());
                    }
                    (unseen && managed.upper().is_none()).then(|| managed.info().clone())
                };
                if let Some(info) = unknown {
                    self.account.unseen(&info);
                }
                self.keep_account(looked);
            }
            Phase::Counted { .. } => {
                if let Event::Seen(seen) = event {
                    self.account.counted(seen.upper());
                }
            }
            Phase::Absent => {}
        }
    }

    /// Tells the ledger what a VM that is managed may have, after a look or where that changed.
    fn keep_account(&mut self, looked: bool) {
        let last = self.account.upper();
        let due = self.phase.managed().and_then(|managed| managed.account(looked, last));
        if let Some((info, due)) = due {
            self.account.seen(&info, due);
        }
    }

    fn noticed(&mut self, now: Moment, notice: Notice) {
        match &mut self.phase {
            Phase::Managed(managed) => lock(managed).noticed(now, notice),
            Phase::Counted { look_at } => *look_at = now,
            Phase::Absent => {}
        }
        self.keep_account(false);
    }

    fn called(&mut self, call: Call) {
        let now = self.shared.clock.now();
        match &mut self.phase {
            Phase::Managed(managed) => lock(managed).called(now, call),
            Phase::Absent | Phase::Counted { .. } => drop(call.answer.send(CallAnswer::Unknown)),
        }
        self.keep_account(false);
    }

    fn begin_counting(&mut self, now: Moment) {
        let mut upper = self.account.upper();
        if let Some(managed) = self.phase.managed() {
            upper = managed.upper().or(upper);
            self.hypervisor.disregard();
        }
        self.phase = Phase::Counted { look_at: now };
        match upper {
            Some(upper) => self.account.counted(upper),
            // A VM that is there counts, also before it says what it has.
            None => {
                if let Some(vm) = &self.told.borrow().desired.vm {
                    self.account.unseen(&vm.info);
                }
            }
        }
    }

    /// Shows what the runner is doing.
    fn show(&self, now: Moment) {
        if let Some(mut managed) = self.phase.managed() {
            managed.take_note(now);
        }
        *lock(&self.doing) = self.phase.doing(self.sought);
    }
}

/// The first moment at which timers end that is not before this one.
fn together(wake: Moment) -> Moment {
    Moment::from_millis(wake.millis().div_ceil(TOGETHER).saturating_mul(TOGETHER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_end_together_and_never_early() {
        let ends = |millis| together(Moment::from_millis(millis)).millis();
        assert_eq!([0, 1, 24, 25, 26, 50].map(ends), [0, 25, 25, 25, 50, 50]);
    }
}
