//! The scaling decision for one VM, as a value.
//!
//! A [`Scaler`] is told what happened ([`Scaler::observe`]), answers the guest's informant
//! ([`Scaler::call`]) and is asked what to do ([`Scaler::plan`]). It never waits, sends or
//! reads a clock; the shell in `windlass-agent` does, and reports back. `plan` depends on the
//! state and on `now` alone, so a plan that is lost is made again.
//!
//! ```text
//!   grow:    plugin permits ─► hypervisor plugs ─► it is seen ─► informant is told
//!   shrink:  informant consents (parks vCPUs) ─► hypervisor takes memory ─► seen ─► plugin told
//! ```
//!
//! These laws hold in every reachable state; `tests/laws.rs` looks for a counterexample.
//!
//! - **Permit before growth.** The VM never has more than the books say it may have.
//! - **Consent before shrinkage.** Its memory never goes below what its informant agreed to.
//! - **The world, not the wish.** What it has is what its driver last saw; the guest is told of
//!   memory only when it is there.
//! - **Missing is not zero.** What is not known never shrinks it.
//! - **Fail static.** When a peer is gone, nothing happens that it had to agree to, and all else
//!   goes on.
//! - **A kind world gets its goal.** Growth goes there at once, shrinking one compute unit at a
//!   time.

mod anew;
mod books;
mod charge;
mod counts;
mod goal;
mod grow;
mod guest;
mod permit;
mod plan;
mod reading;
mod running;
mod runs;
mod shrink;
mod sight;
mod status;

use crate::event::{Action, Call, CallAnswer, Event, Failure, Order};
use crate::holding::Holding;
use crate::journal::Journal;
use crate::line::Lines;
use crate::rest::Jitter;
use crate::session::Session;
use crate::settings::Settings;
use crate::spoken::Spoken;
use crate::trials::{Aim, Tally, Trials};
use guest::Guest;
use permit::Permit;
use reading::Reading;
use runs::Runs;
use sight::Sight;
use windlass_protocol::status::SessionState;
use windlass_protocol::{
    AgentId, Bytes, Capabilities, Decision, Mode, Moment, Peer, Resize, Resources, Sequence,
    VmInfo, VmName,
};
use windlass_scaling::{Rest, Sample};

/// The status of a size whose agent does not count.
const NOT_ACTIVE: u16 = 400;

/// One VM.
#[derive(Clone, Debug)]
pub struct Scaler {
    settings: Settings,
    info: VmInfo,
    order: Order,
    can: Option<Capabilities>,
    sample: Option<Sample>,
    reading: Reading,
    rest: Rest,
    runs: Runs,
    /// When a sample was last complete.
    complete_at: Option<Moment>,
    host_available: Option<Bytes>,
    holding: Holding,
    permit: Permit,
    spoken: Spoken,
    session: Session,
    guest: Guest,
    lines: Lines,
    trials: Trials,
    tally: Tally,
    sight: Sight,
    /// Since when the hypervisor is seen again, where it was not for so long that calls of this session
    /// may have waited.
    sees_again_since: Option<Moment>,
    measure_at: Moment,
    /// Whether the guest's figures are read elsewhere than where its informant says.
    figures_elsewhere: bool,
    jitter: Jitter,
    journal: Journal,
}

// === impl Scaler ===

impl Scaler {
    /// A VM of which nothing is known but what it should be.
    pub fn new(info: VmInfo, settings: Settings, now: Moment) -> Self {
        let mut jitter = Jitter::new(settings.seed);
        let measure_at = now.after(jitter.within(settings.periods.metrics));
        let mut rest = Rest::default();
        rest.keep(now);
        Self {
            session: Session::new(settings.seed, settings.periods, now),
            journal: Journal::new(info.name.clone()),
            settings,
            info,
            order: Order::Follow,
            can: None,
            sample: None,
            reading: Reading::default(),
            rest,
            runs: Runs::default(),
            complete_at: None,
            host_available: None,
            holding: Holding::default(),
            permit: Permit::default(),
            spoken: Spoken::new(settings.plugin_versions),
            guest: Guest::default(),
            lines: Lines::new(settings.periods.register_retry),
            trials: Trials::new(),
            tally: Tally::default(),
            sight: Sight::Due,
            measure_at,
            sees_again_since: None,
            figures_elsewhere: false,
            jitter,
        }
    }

    /// Takes note of what happened.
    pub fn observe(&mut self, now: Moment, event: Event) {
        match event {
            Event::Told(info) => {
                self.info = info;
                if self.info.mode == Mode::Observe {
                    self.rest_from_asking();
                }
            }
            Event::FiguresMoved { elsewhere } => self.figures_moved(now, elsewhere),
            Event::InformantMoved => self.informant_moved(),
            Event::Ordered(order) => self.order = order,
            Event::Attached(can) => {
                self.can = Some(can);
                self.trials = Trials::new();
                self.must_look();
            }
            Event::Sent(action) => self.sent(now, action),
            Event::Failed(peer, failure) => self.failed(now, peer, failure),
            Event::Reset => self.reset(now),
            Event::Changed => self.must_look(),
            Event::HostMemory(available) => self.host_available = available,
            Event::Seen(_)
            | Event::Resized
            | Event::Measured(_)
            | Event::Permitted(_)
            | Event::MustStay(_)
            | Event::Registered { .. }
            | Event::Healthy
            | Event::Agreed { .. }
            | Event::Declined { .. }
            | Event::Upscaled
            | Event::Unregistered => self.answered(now, event),
        }
        self.keep_journal(now);
    }

    /// Answers a call of the informant.
    pub fn call(&mut self, now: Moment, call: Call) -> CallAnswer {
        let counted = self.session.is_active();
        let answer = self.session.call(now, call, self.may_have_waited(now));
        match (counted, self.session.is_active()) {
            (true, false) => self.stop_counting(),
            (false, true) => self.count_again(),
            (true, true) | (false, false) => {}
        }
        if let (Call::MoreResources { cpu, memory, .. }, CallAnswer::Ours(..)) = (call, answer) {
            let base = self.guest.told().or(self.holding.seen().map(|seen| seen.upper()));
            // Before anything was said of vCPUs, it counts with those that it uses.
            let base = base.map(|base| match base.cpu.is_zero() {
                true => Resources { cpu: self.holding.usable().unwrap_or(base.cpu), ..base },
                false => base,
            });
            // A guest that takes its word back, or is asked back what it has not given yet.
            let asked_back = self.guest.consent(now).map(|size| size.mem);
            let gives = self.using().zip(asked_back).is_some_and(|(has, left)| left < has.mem);
            if memory && (gives || self.holding.unplugging().is_some()) {
                self.guest.takes_word_back(now, &mut self.jitter);
            }
            self.guest.called_for_more(now, base, cpu, memory);
        }
        self.keep_journal(now);
        answer
    }

    /// Which VM this is.
    pub fn name(&self) -> &VmName {
        &self.info.name
    }

    /// The most that the VM may have: what the books must cover. `None` before it was seen.
    pub fn upper(&self) -> Option<Resources> {
        self.holding.upper(self.trusts_parking())
    }

    /// Whether a vCPU that the guest has parked counts as given back.
    ///
    /// A size without a number may come late, and un-park what was parked since: where sizes
    /// have none (below v2.0), every plugged vCPU counts.
    pub fn trusts_parking(&self) -> bool {
        self.settings.trust_guest_parking && self.session.numbers_sizes()
    }

    /// The port at which the guest's metrics are read, once its informant has said so.
    pub fn metrics_port(&self) -> Option<u16> {
        self.guest.metrics_port()
    }

    /// Whether a size was ordered to be let go with, and the VM may be let go now.
    pub fn let_go(&self, now: Moment) -> bool {
        matches!(self.order, Order::Release(_))
            && self.calling_off(now).is_none()
            && self.session.is_absent()
            && !self.holding.is_open()
            && self.is_where_released()
    }

    /// How the session with the informant stands.
    pub fn session(&self) -> SessionState {
        self.session.status()
    }

    /// The session's id, and the last number that was said in it; from the first request on, also
    /// before that is answered.
    pub fn numbered(&self) -> Option<(AgentId, Sequence)> {
        self.session.id().map(|id| (id, self.session.last_sequence()))
    }

    /// Whether the hypervisor was looked at since it was last asked for a size.
    pub fn is_settled(&self) -> bool {
        !self.holding.is_open()
    }

    /// The decisions closed since the last call.
    pub fn drain_decisions(&mut self) -> Vec<Decision> {
        self.journal.drain()
    }

    /// What became of the resizes that were judged since the last call.
    pub fn drain_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// The decision under way.
    pub fn open_decision(&self) -> Option<&Decision> {
        self.journal.open()
    }

    fn sent(&mut self, now: Moment, action: Action) {
        let online = self.holding.online();
        self.note_move(now, action);
        let calls_off = self.calling_off(now).map(Action::Resize) == Some(action);
        self.journal.sent(action, online, calls_off);
        self.lines.to_mut(action.peer()).sent(action);
        match action {
            Action::Look => self.sight = self.sight.looking(),
            Action::Resize(resize) => {
                self.trials.sent(self.aim(resize, calls_off), resize);
                self.holding.sent(resize);
                self.guest.resize_sent(resize);
                self.must_look();
            }
            Action::Measure => {
                self.reading.asked(now, self.holding.is_giving());
                let wait = self.jitter.around(self.settings.periods.metrics);
                self.measure_at = now.after(wait);
            }
            Action::AskPlugin(asking) => {
                self.spoken.sent(now, asking.version);
                self.permit.asked(asking.resources);
            }
            Action::Register(_) => self.session.opening(),
            Action::CheckHealth(_) => self.session.checking(now),
            Action::Unregister(_) => self.session.leaving(),
            Action::Downscale(..) => {
                self.session.sized();
                self.guest.downscale_sent(now, self.holding.plugging());
            }
            Action::Upscale(_, _, size) => {
                self.session.sized();
                self.holding.allow(size.cpu);
                self.guest.upscale_sent();
            }
        }
    }

    fn aim(&self, resize: Resize, calls_off: bool) -> Aim {
        let shrinks = match resize {
            Resize::Cpu(count) => self.holding.plugged_high().is_some_and(|has| count < has),
            Resize::Memory(total) => self.holding.requested().is_some_and(|has| total < has),
        };
        match (calls_off, shrinks) {
            (true, _) => Aim::CallOff,
            (false, true) => Aim::Shrink,
            (false, false) => Aim::Grow,
        }
    }

    fn answered(&mut self, now: Moment, event: Event) {
        let Some(peer) = event.peer() else { return };
        // A VM that is to be moved is moved whoever asks: this is so in an old answer, too.
        if matches!(event, Event::MustStay(_)) {
            self.permit.stays(now);
        }
        let Some(action) = self.lines.to_mut(peer).answered() else { return };
        if peer == Peer::Informant {
            self.session.answered(now);
        }
        if matches!(action, Action::Downscale(..) | Action::Upscale(..)) {
            self.session.forget_refusals();
        }
        match (event, action) {
            (Event::Seen(seen), Action::Look) => {
                self.sees_after(now);
                self.sight = self.sight.seen();
                if self.sight == Sight::Fresh {
                    self.permit.sees();
                }
                self.holding.see(now, seen);
                let leaves = self.memory_leaves(now);
                self.rest.memory_leaves(now, leaves);
                self.sees_state(now);
                if self.trials.see(now, seen, &mut self.jitter, &mut self.tally) {
                    self.guest.gave_memory();
                }
                if !self.session.is_absent() && self.sight == Sight::Fresh {
                    self.guest.finds(seen);
                }
            }
            (Event::Measured(sample), Action::Measure) => self.measured(sample),
            (Event::Permitted(permit) | Event::MustStay(permit), Action::AskPlugin(asked)) => {
                self.plugin_permits(now, asked, permit);
            }
            (Event::Registered { version, metrics_port }, Action::Register(_)) => {
                self.sees_again_since = None;
                self.session.registered(now, version, &mut self.jitter);
                self.rest.keep(now);
                self.guest.registered(metrics_port);
                // It may have been told to run already.
                self.count_again();
            }
            (Event::Agreed { status }, Action::Downscale(_, _, target)) => {
                let has = self.using().unwrap_or(target);
                self.note_parking(now, target, has);
                let cpu = self.guest.agreed(now, target, has, &mut self.jitter);
                if self.holding.agreed(cpu) {
                    self.lines.metrics.disregard();
                    self.measure_at = now;
                }
                self.journal.consented(target, true, &status, self.holding.online());
            }
            (Event::Declined { status }, Action::Downscale(_, _, target)) => {
                let has = self.using().unwrap_or(target);
                self.guest.declined(now, target, has, &mut self.jitter);
                self.journal.consented(target, false, &status, None);
            }
            (Event::Upscaled, Action::Upscale(_, _, size)) => self.guest.upscaled(now, size),
            (Event::Healthy, Action::CheckHealth(_)) => {
                self.session.healthy();
                self.session.check_later(now, &mut self.jitter);
            }
            (Event::Unregistered, Action::Unregister(_)) => self.has_left(),
            // That a resize was taken up is not that it had an effect; anything else answers
            // nothing.
            (_, _) => {}
        }
    }

    fn failed(&mut self, now: Moment, peer: Peer, failure: Failure) {
        if self.tries_another_version(peer, failure) {
            return;
        }
        if failure == Failure::Moving {
            self.permit.stays(now);
        }
        let action = self.lines.to_mut(peer).failed(now, &mut self.jitter);
        let Some(action) = action else { return };
        if let (Action::Downscale(..), Failure::NoAnswer) = (action, failure) {
            self.guest.downscale_unanswered();
        }
        match (action, failure) {
            (Action::Unregister(_), _) => self.has_left(),
            (Action::Downscale(..) | Action::Upscale(..), Failure::Refused(NOT_ACTIVE)) => {
                self.stop_counting();
                self.session.unheeded(now);
            }
            (Action::Register(_), Failure::Refused(_)) => {
                self.session.answered(now);
                self.end_session();
            }
            (_, Failure::Refused(status)) if peer == Peer::Informant => {
                self.end_session();
                self.session.refused(now, status, &mut self.jitter);
            }
            (_, Failure::NoAnswer) if peer == Peer::Informant && self.session.silent() => {
                self.end_session();
            }
            (_, Failure::NoAnswer | Failure::Refused(_) | Failure::Version | Failure::Moving) => {}
        }
    }

    /// What was seen before this is old: a look that is under way says nothing of it.
    fn must_look(&mut self) {
        self.sight = Sight::Due;
    }

    /// What the VM uses now: vCPUs without the parked ones, and the memory it may have.
    fn using(&self) -> Option<Resources> {
        let upper = self.upper()?;
        Some(Resources { cpu: self.holding.usable()?, mem: upper.mem })
    }

    /// Whether nothing is to move, by a person's word, for a move to another node, or because the
    /// hypervisor does not run the VM.
    fn is_held(&self, now: Moment) -> bool {
        !self.run_state().may_resize()
            || self.order == Order::Freeze
            || self.info.paused_until.is_some_and(|until| now < until)
            || self.permit.stays_until(now).is_some()
    }

    fn keep_journal(&mut self, now: Moment) {
        self.note_goal(now);
        let (Some(goal), Some(has)) = (self.goal(now), self.using()) else { return };
        self.journal.keep(now, &self.info, goal, has);
    }
}
