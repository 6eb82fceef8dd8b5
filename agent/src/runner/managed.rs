//! A VM that is attached to and acted on: its scaler, and the requests that it asked for.

use super::guest::Guest;
use super::lines::Lines;
use super::monitor::{Monitor, Wanted};
use crate::address;
use crate::callback::Waiting as Calling;
use crate::config::{LEAVE_TIME, Silence};
use crate::errors::Errors;
use crate::informant::Informant;
use crate::metrics::Presence;
use crate::shared::Shared;
use crate::told::{Standing, Told};
use crate::view::{Heard, Session};
use crate::{plugin, scrape};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use tokio::sync::{oneshot, watch};
use tracing::{debug, info, warn};
use windlass_agent_core::{
    Action, Call, CallAnswer, Charge, Event, Failure, Order, Scaler, Settings,
};
use windlass_drivers::{Attach, Notice};
use windlass_protocol::status::VmStatus;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{
    Capabilities, Decision, Mode, Moment, Outcome, Peer, PluginVersion, Resources, RunState, VmInfo,
};
use windlass_scaling::Sample;

/// A VM that is attached to and acted on.
pub(super) struct Managed {
    shared: Arc<Shared>,
    file: VmFile,
    port: watch::Receiver<Option<u16>>,
    scaler: Scaler,
    order: Order,
    pub(super) lines: Lines,
    guest: Guest,
    /// For the plugin's wire, which carries the two kernel averages.
    sample: Option<Sample>,
    errors: Errors,
    /// What the VM had when the plugin was last asked.
    asked: Option<Resources>,
    /// The size that its informant agreed to or was told of last, or that it found.
    agreed: Option<Resources>,
    /// The size that it is asked for or told of.
    saying: Option<Resources>,
    /// Answers to `/suspend` that wait until nothing is under way.
    held: Vec<(oneshot::Sender<CallAnswer>, CallAnswer)>,
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
        file: VmFile,
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
        let mut scaler = Scaler::new(file.info.clone(), settings, now);
        scaler.observe(now, Event::FiguresMoved { elsewhere: file.metrics.is_some() });
        Self {
            scaler,
            shared,
            file,
            port,
            order: Order::Follow,
            lines: Lines::default(),
            guest: Guest::default(),
            sample: None,
            errors: Errors::default(),
            asked: None,
            agreed: None,
            saying: None,
            held: Vec::new(),
            announced: None,
            unreachable: false,
            since: now,
            silent: None,
            flapping: None,
            leave_by: None,
        }
    }

    /// Takes over what was told.
    pub(super) fn told<A>(&mut self, now: Moment, told: &Told<A>, stopping: bool) {
        let leaving = stopping || told.standing == Standing::Removed;
        let order = if leaving { Order::Release(None) } else { told.order };
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
        let Some(file) = told.file.as_ref().filter(|file| **file != self.file).cloned() else {
            return;
        };
        let old = std::mem::replace(&mut self.file, file);
        if old.info != self.file.info {
            info!("told what the vm should be");
            self.scaler.observe(now, Event::Told(self.file.info.clone()));
        }
        if (old.informant, old.advertise) != (self.file.informant, self.file.advertise) {
            info!(informant = %self.file.informant, "told where the informant is");
            self.scaler.observe(now, Event::InformantMoved);
        }
        if old.metrics != self.file.metrics {
            let elsewhere = self.file.metrics.is_some();
            info!(elsewhere, "told where metrics are read");
            self.sample = None;
            self.scaler.observe(now, Event::FiguresMoved { elsewhere });
        }
    }

    /// Plans, and starts what is planned.
    pub(super) fn turn<A: Attach>(&mut self, now: Moment, monitor: &mut Monitor<A>) -> Progress {
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
                self.start(action, monitor);
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
        self.errors.heard(now, &event);
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
            self.guest.restarted();
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
            (false, true) => info!("qemu runs the vm as usual again"),
            (false, false) => info!(why = state.describe(), "nothing is resized for now"),
        }
    }

    /// The connection was lost and made again. Nobody can say whether the guest restarted
    /// meanwhile, so it is taken to have.
    pub(super) fn attached_again(&mut self, now: Moment, capabilities: Capabilities) {
        info!("attached to QEMU again");
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

    /// Answers the informant at once, but for `/suspend`, and that a session is not there: after
    /// these, no request that was sent before may still take effect.
    pub(super) fn called(&mut self, now: Moment, calling: Calling) {
        let answer = self.scaler.call(now, calling.call);
        debug!(call = ?calling.call, ?answer, "called");
        if matches!(calling.call, Call::Resume(_)) {
            // Another agent may have said what it may use meanwhile.
            self.agreed = self.scaler.upper();
        }
        match (calling.call, answer) {
            (Call::Suspend(_), CallAnswer::Ours(..))
            | (_, CallAnswer::Unknown | CallAnswer::Other(_)) => {
                self.held.push((calling.answer, answer));
            }
            (Call::Suspend(_) | Call::Id | Call::Resume(_) | Call::MoreResources { .. }, _) => {
                // Whoever asked may have hung up.
                let _ = calling.answer.send(answer);
            }
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
        &self.file.info
    }

    pub(super) fn counts_on_a_permit(&self) -> bool {
        self.scaler.relies_on_a_permit()
    }

    fn start<A: Attach>(&mut self, action: Action, monitor: &mut Monitor<A>) {
        if let Some(wanted) = Wanted::of(action) {
            monitor.start(wanted);
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
                let from = address::metrics(&self.file, self.scaler.metrics_port());
                let (guest, clock) = (self.guest.at(from), self.shared.clock);
                lines.start(peer, scrape::read(guest, clock, times.metrics));
            }
            Action::AskPlugin(asking) => {
                self.asked = self.scaler.upper();
                if let Some(had) = self.asked {
                    self.shared.metrics.reference.asked(had, asking.resources);
                }
                let (shared, info) = (self.shared.clone(), self.file.info.clone());
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
                let guest = self.guest.at(self.file.informant);
                let informant = Informant { guest, callback, times };
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
        let found = address::callback(&self.file, port);
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
        let silent = self.file.info.mode == Mode::Act
            && self.scaler.run_state().executes()
            && now.since(self.since) >= grace
            && now.since(self.scaler.silent_since()) >= after;
        if !silent {
            if self.silent.take().is_some() {
                info!("informant is heard again");
            }
        } else if self.silent.is_none() {
            warn!(informant = %self.file.informant, "informant is silent; no memory is taken back");
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
        self.held.retain(|(answer, _)| !answer.is_closed());
        if self.scaler.is_quiet() {
            for (answer, said) in self.held.drain(..) {
                let _ = answer.send(said);
            }
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
            goal = %decision.goal, from = %decision.from, signal = decision.reason.signal.as_str(),
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
