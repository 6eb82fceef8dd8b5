//! What happened, and which parts hear of it.
//!
//! Of several agents of one VM one acts: it asks for permits and sizes, and speaks to the guest about
//! them. Which, the informant says; for how long, the session's lease. What was allowed, agreed and
//! permitted ends when this agent stops acting, and when it begins to.

use super::Scaler;
use super::informant::AfterFailure;
use crate::event::{Action, Call, CallAnswer, Event, Failure};
use crate::resize_outcomes::Aim;
use std::time::Duration;
use windlass_protocol::timing::PERMIT_OUTLIVES_SIGHT;
use windlass_protocol::{Moment, Peer, Resize, Resources, Seen};
use windlass_scaling::stabilization::Move;

// === impl Scaler ===

impl Scaler {
    pub(super) fn heard(&mut self, now: Moment, event: Event) {
        match event {
            Event::Told(info) => {
                self.orders.told(info);
                if self.orders.observes() {
                    self.permit.forget();
                }
            }
            Event::FiguresMoved { elsewhere } => {
                self.signals.moved(now, elsewhere);
                self.stabilizer.keep(now);
                // An agent that acted alone by these figures may act no more, and nothing else would
                // end what it was permitted.
                if !self.acts(now) {
                    self.permit.forget();
                }
            }
            Event::InformantMoved => {
                // A session with the informant of before is of no use.
                if !self.informant.session.is_absent() {
                    self.end_session();
                }
                self.informant.session.begins_anew();
            }
            Event::Ordered(order) => self.orders.ordered(order),
            Event::Attached(can) => self.hypervisor.attached(can),
            Event::Sent(action) => self.sent(now, action),
            Event::Failed(peer, failure) => self.failed(now, peer, failure),
            Event::Reset => self.reset(now),
            Event::Changed => self.hypervisor.must_look(),
            Event::HostMemory(available) => self.hypervisor.host_has(available),
            Event::Seen(seen) => {
                if self.hypervisor.answered(now) == Some(Action::Look) {
                    self.sees(now, seen);
                }
            }
            Event::Resized => _ = self.hypervisor.answered(now),
            Event::Measured(sample) => {
                if self.signals.answered(sample) {
                    self.size.report(sample.online);
                    self.orders.measured(sample.by_minutes);
                    let window = self.orders.info().load_window;
                    self.signals.measured(sample, self.size.is_giving(), window);
                }
            }
            Event::Permitted(permit) => self.permitted(now, permit),
            Event::MustStay(permit) => {
                self.permit.stays(now);
                self.permitted(now, permit);
            }
            Event::Registered { .. }
            | Event::Healthy
            | Event::Agreed { .. }
            | Event::Declined { .. }
            | Event::Upscaled
            | Event::Unregistered => self.informant_answered(now, event),
        }
    }

    pub(super) fn called(&mut self, now: Moment, call: Call) -> CallAnswer {
        let was_active = self.informant.session.is_active();
        let may_be_old = self.hypervisor.may_have_waited(now, &self.size);
        let answer = self.informant.session.call(now, call, may_be_old);
        match (was_active, self.informant.session.is_active()) {
            (true, false) => self.stop_acting(),
            (false, true) => self.prepare_to_act(),
            (true, true) | (false, false) => {}
        }
        if let (Call::MoreResources { cpu, memory, .. }, CallAnswer::Ours(..)) = (call, answer) {
            self.called_for_more(now, cpu, memory);
        }
        answer
    }

    fn called_for_more(&mut self, now: Moment, cpu: bool, memory: bool) {
        let base = self.guest.told().or(self.size.seen().map(|seen| seen.upper()));
        // Before anything was said of vCPUs, it counts with those that it uses.
        let base = base.map(|base| match base.cpu.is_zero() {
            true => Resources { cpu: self.size.usable().unwrap_or(base.cpu), ..base },
            false => base,
        });
        // A guest that takes its word back, or is asked back what it has not given yet.
        let asked_back = self.guest.consent(now).map(|size| size.mem);
        let using = self.using();
        let gives = using.zip(asked_back).is_some_and(|(has, left)| left < has.mem);
        if memory && (gives || self.size.unplugging().is_some()) {
            self.guest.takes_word_back(now, &mut self.jitter);
        }
        self.guest.called_for_more(now, base, cpu, memory);
    }

    fn sent(&mut self, now: Moment, action: Action) {
        match action {
            Action::Look => self.hypervisor.look_sent(now),
            Action::Resize(resize) => {
                let aim = self.aim(now, resize);
                self.note_resize(now, resize, aim);
                self.journal.sent(action, None, aim == Aim::CallOff);
                self.hypervisor.resize_sent(aim, resize);
                self.size.sent(resize);
                self.guest.resize_sent(resize);
            }
            Action::Measure => {
                let period = self.settings.periods.metrics;
                self.signals.sent(now, self.size.is_giving(), period, &mut self.jitter);
            }
            Action::AskPlugin(asking) => self.permit.sent(now, asking),
            Action::Upscale(_, _, told) => {
                let using = self.using();
                if self.orders.follows_load() && using.is_some_and(|has| has.cpu < told.cpu) {
                    self.stabilizer.cpu_moved(now, Move::Grew);
                }
                self.journal.sent(action, self.size.online(), false);
                self.size.allow(told.cpu);
                self.guest.upscale_sent();
                self.informant.sent(now, action);
            }
            Action::Downscale(..) => {
                self.guest.downscale_sent(now, self.size.plugging());
                self.informant.sent(now, action);
            }
            Action::Register(_) | Action::CheckHealth(_) | Action::Unregister(_) => {
                self.informant.sent(now, action);
            }
        }
    }

    /// Remembers that the VM is about to grow, or to lose what it has, to follow its load.
    fn note_resize(&mut self, now: Moment, resize: Resize, aim: Aim) {
        if !self.orders.follows_load() {
            return;
        }
        match (resize, aim) {
            (Resize::Cpu(_), Aim::Grow) => self.stabilizer.cpu_moved(now, Move::Grew),
            // Fewer vCPUs count when the guest agrees to them: those that go are idle.
            (Resize::Cpu(_), Aim::Shrink) | (Resize::Limit(_), _) | (_, Aim::CallOff) => {}
            (Resize::Memory(_), Aim::Grow) => self.stabilizer.memory_moved(now, Move::Grew),
            (Resize::Memory(_), Aim::Shrink) => {
                let [_, bounded] = self.target_at(now).is_bounded();
                if !bounded {
                    self.stabilizer.memory_moved(now, Move::Shrank);
                }
                self.stabilizer.memory_leaves(now, true);
            }
        }
    }

    /// The hypervisor was looked at.
    fn sees(&mut self, now: Moment, seen: Seen) {
        let unseen = self.size.seen_at().map_or(Duration::ZERO, |at| now.since(at));
        let settled = self.hypervisor.look_settles() || self.size.is_shown_in(seen);
        self.hypervisor.looked(now, seen, unseen, settled);
        if unseen >= PERMIT_OUTLIVES_SIGHT {
            self.permit.forget();
        }
        let fresh = self.hypervisor.is_fresh();
        if fresh {
            self.permit.sees();
        }
        self.size.see(self.hypervisor.tells_of(now), seen, settled);
        let leaves = self.memory_leaves(now);
        self.stabilizer.memory_leaves(now, leaves);
        let acts = self.acts(now);
        self.signals.sees_state(now, seen.state.executes(), acts);
        if settled && self.hypervisor.judge(now, seen, &mut self.jitter) {
            self.guest.gave_memory();
        }
        if !self.informant.session.is_absent() && fresh {
            self.guest.finds(seen);
        }
    }

    fn permitted(&mut self, now: Moment, permit: Resources) {
        if let Some(asked) = self.permit.permitted(now, permit, &mut self.jitter) {
            self.journal.permitted(asked, permit);
        }
    }

    fn informant_answered(&mut self, now: Moment, event: Event) {
        let Some(action) = self.informant.answered(now) else { return };
        match (event, action) {
            (Event::Registered { version, metrics_port }, Action::Register(_)) => {
                self.hypervisor.session_begins();
                self.informant.session.registered(now, version, &mut self.jitter);
                self.stabilizer.keep(now);
                self.guest.registered(metrics_port);
                // It may have been told to run already.
                self.prepare_to_act();
            }
            (Event::Agreed { status }, Action::Downscale(_, _, target)) => {
                let has = self.using().unwrap_or(target);
                let [bounded, _] = self.target_at(now).is_bounded();
                if target.cpu < has.cpu && self.orders.follows_load() && !bounded {
                    self.stabilizer.cpu_moved(now, Move::Shrank);
                }
                let cpu = self.guest.agreed(now, target, has, &mut self.jitter);
                if self.size.agreed(cpu) {
                    // A report that was asked for before says nothing of it.
                    self.signals.read_anew(now);
                }
                self.journal.consented(target, true, &status, self.size.online());
            }
            (Event::Declined { status }, Action::Downscale(_, _, target)) => {
                let has = self.using().unwrap_or(target);
                self.guest.declined(now, target, has, &mut self.jitter);
                self.journal.consented(target, false, &status, None);
            }
            (Event::Upscaled, Action::Upscale(_, _, told)) => self.guest.upscaled(now, told),
            (Event::Healthy, Action::CheckHealth(_)) => {
                self.informant.healthy(now, &mut self.jitter);
            }
            (Event::Unregistered, Action::Unregister(_)) => self.has_left(),
            // Anything else answers nothing.
            (_, _) => {}
        }
    }

    fn failed(&mut self, now: Moment, peer: Peer, failure: Failure) {
        if peer == Peer::Informant
            && failure == Failure::NoAnswer
            && self.informant.is_asked_to_shrink()
        {
            self.guest.downscale_unanswered();
        }
        let jitter = &mut self.jitter;
        match peer {
            Peer::Plugin => self.permit.failed(now, failure, jitter),
            Peer::Hypervisor => self.hypervisor.failed(now, jitter),
            Peer::Metrics => self.signals.failed(now, jitter),
            Peer::Informant => match self.informant.failed(now, failure, jitter) {
                AfterFailure::Stands => {}
                AfterFailure::Stopped => self.stop_acting(),
                AfterFailure::Left => self.has_left(),
            },
        }
    }

    /// The guest restarted: nothing is known of it until it says so again.
    fn reset(&mut self, now: Moment) {
        self.end_session();
        self.informant.session.begins_anew();
        self.hypervisor.forget_outcomes();
        self.size.rebooted();
        self.signals.forget();
        self.stabilizer.keep(now);
        self.journal.interrupted(now);
    }

    fn end_session(&mut self) {
        self.informant.ends();
        self.stop_acting();
    }

    /// The agent has taken its leave. A VM that it lets go stays as it left it.
    fn has_left(&mut self) {
        let size = self.size.clone();
        self.end_session();
        if self.orders.releases() {
            self.size = size;
        }
    }

    /// Another agent may act from here on: what was allowed, agreed and permitted says nothing any
    /// more, and every plugged vCPU may be in use.
    fn stop_acting(&mut self) {
        self.guest.session_ended();
        self.size.unattended();
        self.permit.forget();
    }

    /// The agent is to act, or is about to be told so. Another agent may have changed everything, and a
    /// guest that restarted unheard has lost memory.
    fn prepare_to_act(&mut self) {
        self.guest.session_ended();
        self.size.unattended();
        self.size.registered();
        self.signals.disregard();
        self.permit.waits_for_a_look();
        self.hypervisor.must_look();
    }
}
