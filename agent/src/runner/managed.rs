//! A VM that is attached to and acted on: its scaler, and the requests that it asked for.

use super::connections::Connections;
use super::hypervisor::{Hypervisor, Wanted};
use super::lines::Lines;
use crate::address;
use crate::callback::Waiting as Calling;
use crate::config::{LEAVE_TIME, Silence};
use crate::errors::Errors;
use crate::informant::Informant;
use crate::metrics::Presence;
use crate::shared::Shared;
use crate::view::{Heard, Session};
use crate::{plugin, scrape};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use tokio::sync::{oneshot, watch};
use tracing::{debug, info, warn};
use windlass_agent_core::{
    Action, BooksUpdate, Call, CallAnswer, Charge, Desired, Event, Failure, HeldAnswers, Order,
    Scaler, Settings, Standing, Vm,
};
use windlass_drivers::Notice;
use windlass_protocol::status::VmStatus;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{
    Capabilities, Decision, Mode, Moment, Outcome, Peer, PluginVersion, Resources, RunState, VmInfo,
};
use windlass_scaling::Sample;

/// A VM that is attached to and acted on.
pub(super) struct Managed {
    shared: Arc<Shared>,
    vm: Vm,
    port: watch::Receiver<Option<u16>>,
    scaler: Scaler,
    order: Order,
    pub(super) lines: Lines,
    connections: Connections,
    /// For the plugin's wire, which carries the two kernel averages.
    sample: Option<Sample>,
    errors: Errors,
    /// What the VM had when the plugin was last asked.
    asked: Option<Resources>,
    /// The size that its informant agreed to or was told of last, or that it found.
    agreed: Option<Resources>,
    /// The size that it is asked for or told of.
    saying: Option<Resources>,
    /// Answers that wait until nothing is under way.
    held: HeldAnswers<oneshot::Sender<CallAnswer>>,
    /// Where its informant was last told to call back.
    announced: Option<SocketAddr>,
    /// No local address leads to its informant, and that was said.
    unreachable: bool,
    /// When it was taken up.
    since: Moment,
    /// Counts while its informant is silent.
    silent: Option<Presence>,
    /// Counts while it grows and shrinks again and again.
    flapping: Option<Presence>,
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
        let (unit, trust_guest_parking) = (config.unit, config.trust_guest_parking);
        let settings = Settings {
            unit,
            trust_guest_parking,
            plugin_versions: PluginVersion::SPOKEN,
            seed,
            periods: config.periods,
        };
        let mut scaler = Scaler::new(vm.info.clone(), settings, now);
        scaler.observe(now, Event::FiguresMoved { elsewhere: vm.guest.metrics.is_some() });
        Self {
            scaler,
            shared,
            vm,
            port,
            order: Order::Follow,
            lines: Lines::default(),
            connections: Connections::default(),
            sample: None,
            errors: Errors::default(),
            asked: None,
            agreed: None,
            saying: None,
            held: HeldAnswers::default(),
            announced: None,
            unreachable: false,
            since: now,
            silent: None,
            flapping: None,
            leave_by: None,
        }
    }

    /// Takes over how things should be.
    pub(super) fn told(&mut self, now: Moment, desired: &Desired, stopping: bool) {
        let leaving = stopping || desired.standing == Standing::Removed;
        let order = if leaving { Order::Release(None) } else { desired.order };
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
        }
        if before.metrics != guest.metrics {
            let elsewhere = guest.metrics.is_some();
            info!(elsewhere, "told where metrics are read");
            self.sample = None;
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
                self.start(action, hypervisor);
            }
            plan = self.scaler.plan(now);
        }
        self.answer_held();
        if self.scaler.is_released(now) || self.leave_by.is_some_and(|by| now >= by) {
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
        if let Event::Measured(sample) = &event {
            self.sample = Some(*sample);
        }
        if let (Event::Permitted(permit), Some(had)) = (&event, self.asked) {
            self.shared.metrics.reference.accepted(had, *permit);
        }
        self.answered_size(&event);
        debug!(?event, "heard");
        let takes = takes_version(&event);
        if event == Event::Reset {
            self.connections.guest_restarted();
        }
        let silent = event == Event::Failed(Peer::Plugin, Failure::NoAnswer);
        if silent || takes.is_some() {
            self.shared.refusals.answers(now, !silent, || self.shared.permits.place());
        }
        self.scaler.observe(now, event);
        let (refusals, permits) = (&self.shared.refusals, &self.shared.permits);
        match takes {
            Some(false) if self.scaler.plugin_takes_no_version() => {
                refusals.takes_none(PluginVersion::SPOKEN, &permits.place());
            }
            Some(true) => refusals.takes(|| permits.place()),
            Some(false) | None => {}
        }
        self.says_state(state);
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

    /// The connection was lost and made again. Nobody can say whether the guest restarted
    /// meanwhile, so it is taken to have.
    pub(super) fn attached_again(&mut self, now: Moment, capabilities: Capabilities) {
        info!("attached again");
        self.hear(now, Event::Attached(capabilities));
        self.hear(now, Event::Reset);
    }

    pub(super) fn noticed(&mut self, now: Moment, notice: Notice) {
        match notice {
            Notice::Reset => {
                info!("the guest restarted");
                self.shared.metrics.reset();
                self.sample = None;
                self.hear(now, Event::Reset);
            }
            Notice::Changed => self.hear(now, Event::Changed),
        }
    }

    /// Answers the informant, at once or as soon as it can.
    pub(super) fn called(&mut self, now: Moment, calling: Calling) {
        let answer = self.scaler.call(now, calling.call);
        debug!(call = ?calling.call, ?answer, "called");
        if matches!(calling.call, Call::Resume(_)) {
            // Another agent may have said what it may use meanwhile.
            self.agreed = self.scaler.upper();
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

    pub(super) fn publish(&mut self, now: Moment) -> (Option<VmStatus>, Option<Decision>) {
        self.keep_decisions(now);
        self.count_silence(now);
        self.count_flapping(now);
        (Some(self.scaler.status(now)), self.scaler.open_decision().cloned())
    }

    pub(super) fn upper(&self) -> Option<Resources> {
        self.scaler.upper()
    }

    /// What its hypervisor can do.
    pub(super) fn capabilities(&self) -> Option<Capabilities> {
        self.scaler.capabilities()
    }

    /// What is billed of it.
    pub(super) fn charge(&self, now: Moment) -> Charge {
        self.scaler.charge(now)
    }

    /// Whether its informant is silent for longer than it may.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.is_some()
    }

    /// What was last heard of the guest.
    pub(super) fn heard(&self) -> Heard {
        let at = Some(self.scaler.heard_at()).filter(|at| *at > self.since);
        let session = |(id, sequence)| Session { id, sequence, callback: self.announced };
        Heard {
            at,
            version: at.map(|_| self.scaler.version()),
            session: self.scaler.numbered().map(session),
            metrics_port: self.scaler.metrics_port(),
            sample: self.sample,
        }
    }

    pub(super) fn errors(&self) -> Errors {
        self.errors.clone()
    }

    pub(super) fn info(&self) -> &VmInfo {
        &self.vm.info
    }

    /// What the ledger is to hear, of which it heard `last`.
    pub(super) fn account(&self, looked: bool, last: Option<Resources>) -> Option<BooksUpdate> {
        BooksUpdate::due(&self.scaler, looked, last)
    }

    fn start(&mut self, action: Action, hypervisor: &mut Hypervisor) {
        if let Some(wanted) = Wanted::of(action) {
            hypervisor.start(wanted);
            return;
        }
        let callback = match action {
            Action::Register(_) | Action::Unregister(_) => self.callback(),
            Action::Look
            | Action::Resize(_)
            | Action::Measure
            | Action::AskPlugin(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Upscale(..) => None,
        };
        if matches!(action, Action::Register(_)) {
            self.announced = callback;
        }
        if let Action::Downscale(_, _, said) | Action::Upscale(_, _, said) = action {
            self.says_size(said);
        }
        let times = self.shared.config.times;
        let (peer, lines) = (action.peer(), &mut self.lines);
        match action {
            Action::Look | Action::Resize(_) => {}
            Action::Measure => {
                let from = address::metrics(&self.vm.guest, self.scaler.metrics_port());
                let (from, clock) = (self.connections.to(from), self.shared.clock);
                lines.start(peer, scrape::read(from, clock, times.metrics));
            }
            Action::AskPlugin(asking) => {
                self.asked = self.scaler.upper();
                if let Some(had) = self.asked {
                    self.shared.metrics.reference.asked(had, asking.resources);
                }
                let (shared, info) = (self.shared.clone(), self.vm.info.clone());
                // The guest's load of long ago is not its load.
                let sample =
                    self.sample.filter(|s| self.shared.clock.now().since(s.at) < FIGURES_LAST);
                lines.start(peer, async move {
                    let (permits, sample) = (shared.permits.as_ref(), sample.as_ref());
                    let refusals = &shared.refusals;
                    plugin::ask(permits, &info, &asking, sample, times.permit, refusals).await
                });
            }
            Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Upscale(..)
            | Action::Unregister(_) => {
                let counts = self.shared.metrics.reference.clone();
                let at = self.connections.to(self.vm.guest.informant);
                let informant = Informant { at, callback, times };
                lines.start(peer, async move { informant.ask(action, &counts).await });
            }
        }
    }

    /// The informant is asked for this size, or told of it.
    fn says_size(&mut self, said: Resources) {
        self.saying = Some(said);
        if let Some(had) = self.agreed {
            self.shared.metrics.reference.said_to_informant(had, said);
        }
    }

    /// What became of the size that was said. A new informant finds what there is.
    fn answered_size(&mut self, event: &Event) {
        if matches!(event, Event::Registered { .. }) {
            self.agreed = self.scaler.upper();
        }
        if !matches!(event, Event::Agreed { .. } | Event::Upscaled) {
            return;
        }
        if let Some(said) = self.saying.take()
            && let Some(had) = self.agreed.replace(said)
        {
            self.shared.metrics.reference.informant_approved(had, said);
        }
    }

    /// Where the informant calls back, if it can.
    fn callback(&mut self) -> Option<SocketAddr> {
        let port = (*self.port.borrow())?;
        let found = address::callback(&self.vm.guest, port);
        let lost = found.is_err();
        if let Err(error) = &found
            && !self.unreachable
        {
            warn!(%error, "no local address leads to the informant");
        }
        self.unreachable = lost;
        found.ok()
    }

    /// A VM that is only watched speaks to no informant.
    fn count_silence(&mut self, now: Moment) {
        let Silence { after, grace } = self.shared.config.silence;
        // A guest that stands still says nothing, and that is no fault of its informant.
        let silent = self.vm.info.mode == Mode::Act
            && self.scaler.run_state().executes()
            && now.since(self.since) >= grace
            && now.since(self.scaler.silent_since()) >= after;
        if !silent {
            if self.silent.take().is_some() {
                info!("informant is heard again");
            }
        } else if self.silent.is_none() {
            warn!(informant = %self.vm.guest.informant, "informant is silent; no memory is taken back");
            self.silent = Some(self.shared.metrics.reference.silent());
        }
    }

    fn count_flapping(&mut self, now: Moment) {
        if !self.scaler.is_flapping(now) {
            if self.flapping.take().is_some() {
                info!("no longer flapping");
            }
        } else if self.flapping.is_none() {
            warn!("flapping: it grew soon after it shrank, again and again; it is kept for longer");
            self.flapping = Some(self.shared.metrics.flapping());
        }
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
        let mut history = self.shared.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.add(now, decision);
    }
}

/// Whether this says that the plugin takes the version that was stated.
fn takes_version(event: &Event) -> Option<bool> {
    if let Event::Failed(peer, failure) = event {
        return match failure {
            Failure::Version => Some(false),
            Failure::Refused(_) | Failure::Moving => (*peer == Peer::Plugin).then_some(true),
            Failure::NoAnswer => None,
        };
    }
    matches!(event, Event::Permitted(_) | Event::MustStay(_)).then_some(true)
}
