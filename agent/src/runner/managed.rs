//! A VM that is attached to and acted on: its scaler, and the requests that it asked for.

mod requests;
mod view;

use super::alarms::Alarms;
use super::connections::Connections;
use super::hypervisor::Hypervisor;
use super::in_flight::InFlight;
use super::session_log::{self, SessionLog};
use super::size_changes::SizeChanges;
use crate::callback::PendingCall;
use crate::config::LEAVE_TIME;
use crate::errors::Errors;
use crate::lock::lock;
use crate::plugin::NOT_NOW;
use crate::shared::Shared;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
use tracing::{debug, info, warn};
use windlass_agent_core::{
    Action, BooksUpdate, Call, CallAnswer, Desired, Event, Failure, HeldAnswers, Lifecycle, Order,
    Scaler, Settings, Vm,
};
use windlass_drivers::Notice;
use windlass_protocol::{
    Capabilities, Decision, LimitCounts, Mode, Moment, Outcome, Peer, PluginVersion, Resources,
    RunState, VmInfo,
};

/// A VM that is attached to and acted on.
pub(crate) struct Managed {
    shared: Arc<Shared>,
    vm: Vm,
    port: watch::Receiver<Option<u16>>,
    scaler: Scaler,
    order: Order,
    pub(super) in_flight: InFlight,
    connections: Connections,
    errors: Errors,
    sizes: SizeChanges,
    session_log: SessionLog,
    /// Answers that wait until nothing is under way.
    held: HeldAnswers<oneshot::Sender<CallAnswer>>,
    /// Where its informant was last told to call back.
    announced: Option<SocketAddr>,
    /// No local address leads to its informant, and that was said.
    unreachable: bool,
    /// When it was taken up.
    since: Moment,
    alarms: Alarms,
    /// How the host's limit held the VM up, as of the last look.
    limit_counts: Option<LimitCounts>,
    /// It is let go or observed with its limit, and that was said.
    left_limit: bool,
    /// After this the VM is left, whatever is still under way.
    leave_by: Option<Moment>,
}

/// How far a turn came.
pub(super) enum Progress {
    /// Until something happens, or this moment where there is one.
    Waits(Option<Moment>),
    /// The VM is let go.
    Left,
}

// === impl Managed ===

impl Managed {
    pub(super) fn new(
        shared: Arc<Shared>,
        vm: Vm,
        port: watch::Receiver<Option<u16>>,
        seed: u64,
        now: Moment,
    ) -> Self {
        let config = &shared.config;
        let settings = Settings {
            unit: config.unit,
            cpu_limit: config.cpu_limit,
            plugin_versions: PluginVersion::SPOKEN,
            seed,
            periods: config.periods,
        };
        let mut scaler = Scaler::new(vm.info.clone(), settings, now);
        scaler.observe(now, Event::FiguresMoved { elsewhere: vm.guest.metrics.is_some() });
        Self {
            scaler,
            sizes: SizeChanges::new(shared.metrics.reference.clone()),
            shared,
            vm,
            port,
            order: Order::Follow,
            in_flight: InFlight::default(),
            connections: Connections::default(),
            errors: Errors::default(),
            session_log: SessionLog::default(),
            held: HeldAnswers::default(),
            announced: None,
            unreachable: false,
            since: now,
            alarms: Alarms::default(),
            limit_counts: None,
            left_limit: false,
            leave_by: None,
        }
    }

    /// Takes over how things should be.
    pub(super) fn told(&mut self, now: Moment, desired: &Desired, stopping: bool) {
        let leaving = stopping || desired.lifecycle == Lifecycle::Removed;
        let order = match leaving {
            true if stopping => Order::Leave,
            true => Order::Release(None),
            false => desired.order,
        };
        if leaving {
            self.leave_by.get_or_insert(now.after(LEAVE_TIME));
        } else {
            self.leave_by = None;
        }
        if order != self.order {
            if !leaving {
                info!(%order, "ordered");
            }
            self.order = order;
            self.scaler.observe(now, Event::Ordered(order));
        }
        let Some(vm) = desired.vm.as_ref().filter(|vm| **vm != self.vm).cloned() else {
            return;
        };
        let old = std::mem::replace(&mut self.vm, vm);
        let (before, guest) = (old.guest, self.vm.guest);
        if old.info != self.vm.info {
            info!("told what the vm should be");
            self.scaler.observe(now, Event::Told(self.vm.info.clone()));
        }
        if (before.informant, before.advertise) != (guest.informant, guest.advertise) {
            info!(informant = %guest.informant, "told where the informant is");
            self.scaler.observe(now, Event::InformantMoved);
            self.says_session(now, Some("the informant is elsewhere".to_owned()));
        }
        if before.metrics != guest.metrics {
            let elsewhere = guest.metrics.is_some();
            info!(elsewhere, "told where metrics are read");
            self.scaler.observe(now, Event::FiguresMoved { elsewhere });
        }
    }

    /// Plans, and starts what is planned.
    pub(super) fn turn(&mut self, now: Moment, hypervisor: &mut Hypervisor) -> Progress {
        let available = self.shared.host_memory.available(now);
        self.scaler.observe(now, Event::HostMemory(available));
        let mut plan = self.scaler.plan(now);
        // What was sent may make something else due at once; each peer is asked once at most.
        for _ in 0..4 {
            if plan.actions.is_empty() {
                break;
            }
            for action in plan.actions {
                debug!(?action, "acting");
                self.scaler.observe(now, Event::Sent(action));
                if matches!(action, Action::Unregister(_)) {
                    self.says_leave(now);
                }
                self.start(action, hypervisor);
            }
            plan = self.scaler.plan(now);
        }
        self.answer_held();
        self.says_limit(now);
        let late = self.leave_by.is_some_and(|by| now >= by) && !self.scaler.is_lifting(now);
        if self.scaler.is_released(now) || late {
            return Progress::Left;
        }
        let wake = [plan.wake_at, self.leave_by].into_iter().flatten().min();
        Progress::Waits(wake)
    }

    /// Something happened. Whatever is due because of it is done in the next turn.
    pub(super) fn hear(&mut self, now: Moment, event: Event) {
        let state = self.scaler.run_state();
        self.shared.metrics.heard(&event);
        let promises = self.scaler.capabilities().map(|can| can.promises);
        let answers_within = promises.map(|promises| promises.answers_within).unwrap_or_default();
        self.errors.heard(now, &event, answers_within);
        self.sizes.heard(&event, self.scaler.upper());
        debug!(?event, "heard");
        let takes = takes_version(&event);
        let why = session_log::why(&event);
        if event == Event::Reset {
            self.connections.guest_restarted();
        }
        let silent = is_silence(&event);
        if silent || takes.is_some() {
            self.shared.plugin.answers(now, !silent);
        }
        self.scaler.observe(now, event);
        self.says_session(now, why);
        match takes {
            Some(false) if self.scaler.plugin_takes_no_version() => self.shared.plugin.takes_none(),
            Some(true) => self.shared.plugin.takes(),
            Some(false) | None => {}
        }
        self.says_state(state);
    }

    /// Takes in how the host's limit held the VM up.
    pub(super) fn limited(&mut self, counts: Option<LimitCounts>) {
        let before = std::mem::replace(&mut self.limit_counts, counts);
        let Some((before, counts)) = before.zip(counts) else { return };
        self.shared.metrics.limited(before, counts);
        if counts.resets > before.resets {
            warn!("somebody took the limit of the vm's cpu away: it is set again");
        }
    }

    /// Says once that a limit stays that nobody will raise.
    fn says_limit(&mut self, now: Moment) {
        let leaves = self.scaler.leaves_a_limit(now);
        let said = std::mem::replace(&mut self.left_limit, leaves);
        if leaves && !said {
            warn!("the vm keeps its limit: there was no room for it without, or no session");
        }
    }

    /// Says once that the session is lost, and once that there is one again.
    fn says_session(&mut self, now: Moment, why: Option<String>) {
        self.session_log.look(now, self.scaler.has_session(), why);
    }

    /// The agent takes its leave of the informant: it is done with the VM, or gives up a session in which it was not told to run.
    fn says_leave(&mut self, now: Moment) {
        let is_done = matches!(self.order, Order::Release(_) | Order::Leave)
            || self.vm.info.mode == Mode::Observe;
        if is_done {
            self.session_log.left();
        } else {
            self.says_session(now, Some("the informant says nothing more in it".to_owned()));
        }
    }

    /// Says once that the VM is not run as usual, and once that it is again.
    fn says_state(&self, before: RunState) {
        let state = self.scaler.run_state();
        match (before == state, state.may_resize()) {
            (true, _) => {}
            (false, true) => info!("the hypervisor runs the vm as usual again"),
            (false, false) => info!(why = state.describe(), "nothing is resized for now"),
        }
    }

    /// The connection was lost and made again. The guest may have restarted meanwhile, so the agent takes
    /// it for restarted.
    pub(super) fn attached_again(&mut self, now: Moment, capabilities: Capabilities) {
        info!("attached again");
        self.hear(now, Event::Attached(capabilities));
        self.hear(now, Event::Reset);
    }

    pub(super) fn noticed(&mut self, now: Moment, notice: Notice) {
        match notice {
            Notice::Reset => {
                info!("the guest restarted");
                self.shared.metrics.resets.inc();
                self.hear(now, Event::Reset);
            }
            Notice::Changed => self.hear(now, Event::Changed),
        }
    }

    /// Answers the informant, at once or as soon as it can.
    pub(super) fn called(&mut self, now: Moment, calling: PendingCall) {
        let answer = self.scaler.call(now, calling.call);
        debug!(call = ?calling.call, ?answer, "called");
        if matches!(calling.call, Call::Resume(_)) {
            // Another agent may have said what it may use meanwhile.
            self.sizes.finds(self.scaler.upper());
        }
        if let Some((to, answer)) = self.held.take(calling.call, calling.answer, answer) {
            // The informant may have hung up.
            let _ = to.send(answer);
        }
    }

    /// The VM went away in the middle of whatever was decided.
    pub(super) fn interrupted(&mut self, now: Moment) {
        self.keep_decisions(now);
        if let Some(open) = self.scaler.open_decision().cloned() {
            self.keep(now, Decision { outcome: Outcome::Interrupted { at: now }, ..open });
        }
    }

    /// Writes down what was decided, and counts what lasts.
    pub(super) fn take_note(&mut self, now: Moment) {
        self.keep_decisions(now);
        self.alarms.check(now, self.since, &self.vm, &self.scaler, &self.shared);
    }

    pub(super) fn upper(&self) -> Option<Resources> {
        self.scaler.upper()
    }

    pub(super) fn info(&self) -> &Arc<VmInfo> {
        &self.vm.info
    }

    /// What the ledger is to hear, of which it heard `last`.
    pub(super) fn account(
        &self,
        looked: bool,
        last: Option<Resources>,
    ) -> Option<(Arc<VmInfo>, BooksUpdate)> {
        Some((self.vm.info.clone(), BooksUpdate::due(&self.scaler, looked, last)?))
    }

    fn answer_held(&mut self) {
        self.held.retain(|to| !to.is_closed());
        for (to, answer) in self.held.due(&self.scaler) {
            let _ = to.send(answer);
        }
    }

    fn keep_decisions(&mut self, now: Moment) {
        for decision in self.scaler.drain_decisions() {
            self.keep(now, decision);
        }
        self.shared.metrics.judged(self.scaler.drain_tally());
    }

    fn keep(&self, now: Moment, decision: Decision) {
        info!(
            goal = %decision.goal, from = %decision.from, signal = decision.reason.signal.to_string(),
            outcome = %decision.outcome, "decision closed"
        );
        self.shared.metrics.decided(&decision);
        lock(&self.shared.history).add(now, decision);
    }
}

/// Whether the plugin gave no answer, or says that it grants nothing at this moment.
fn is_silence(event: &Event) -> bool {
    matches!(event, Event::Failed(Peer::Plugin, Failure::NoAnswer | Failure::Refused(NOT_NOW)))
}

/// Whether this says that the plugin takes the version that was stated.
fn takes_version(event: &Event) -> Option<bool> {
    if let Event::Failed(peer, failure) = event {
        return match failure {
            Failure::Version => Some(false),
            Failure::NoAnswer | Failure::Refused(NOT_NOW) => None,
            Failure::Refused(_) | Failure::Moving => (*peer == Peer::Plugin).then_some(true),
        };
    }
    matches!(event, Event::Permitted(_) | Event::MustStay(_)).then_some(true)
}
