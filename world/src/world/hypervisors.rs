//! Hypervisors: what they have, what they are asked for, and how their guests follow.

use super::{ON_ITS_WAY, World};
use crate::chance::Faults;
use crate::guest::Driver;
use crate::informant::InformantRun;
use crate::laws::{self, Law};
use crate::message::{Order, Reply, Request};
use crate::queue::Happening;
use crate::vm::Monitor;
use crate::vms::Id;
use std::time::Duration;
use windlass_agent_core::{Action, Event, Failure};
use windlass_informant_core as informant;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{Bytes, Mode, Peer, Resize, Resources};

/// What a guest has to spare, at the least, when it agrees to have less memory.
const TO_SPARE: Bytes = Bytes::from_mib(96);

/// What an agent sent last is taken up within this, if its monitor keeps the time that hand-over
/// counts on.
const SENT_LAST: Duration = Duration::from_secs(2);

// === impl World ===

impl World {
    /// A request to the monitor leaves: it arrives in order, if at all.
    pub(super) fn ask_monitor(&mut self, who: Id, epoch: u64, call: u64, order: Order) {
        let faults = self.faults_of(who);
        if self.chance.happens(faults.lose_request) {
            return;
        }
        let sent = self.now.after(self.chance.delay(faults));
        let Some(vm) = self.vms.get_mut(who) else { return };
        let mut at = sent.max(vm.front.monitor.arrives);
        if vm.guest.driver == Driver::Late && matches!(order.action, Action::Resize(_)) {
            at = at.after(Duration::from_millis(200 + self.chance.below(9_000)));
        }
        vm.front.monitor.arrives = at;
        let request = Request::Monitor(order);
        self.queue.arrange(at, who, Happening::Arrives { epoch, call, request });
    }

    /// The monitor says something: it arrives in order; an answer may be lost.
    pub(super) fn monitor_says(&mut self, who: Id, happening: Happening) {
        let faults = self.faults_of(who);
        let answers = matches!(happening, Happening::Answers { .. });
        if answers && self.chance.happens(faults.lose_answer) {
            return;
        }
        let at = self.now.after(self.chance.delay(faults));
        let Some(vm) = self.vms.get_mut(who) else { return };
        vm.front.monitor.says = vm.front.monitor.says.max(at);
        self.queue.arrange(vm.front.monitor.says, who, happening);
    }

    /// Each monitor says something unasked.
    pub(super) fn monitors_notice(&mut self, who: Id, event: Event) {
        self.for_each_agent(who, |world, who| world.monitor_notices(who, event.clone()));
    }

    /// For each of two agents, or the one that there is.
    pub(super) fn for_each_agent(&mut self, who: Id, mut happens: impl FnMut(&mut Self, Id)) {
        happens(self, who);
        if self.vms.get(who).is_some_and(|vm| vm.other.is_some()) {
            self.turn_round(who);
            happens(self, who);
            self.turn_round(who);
        }
    }

    fn turn_round(&mut self, who: Id) {
        if let Some(vm) = self.vms.get_mut(who) {
            vm.turn_round();
        }
    }

    /// The monitor says something unasked, once it says anything.
    fn monitor_notices(&mut self, who: Id, event: Event) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        if vm.front.monitor.deaf {
            vm.front.monitor.held.push(event);
        } else if let Some(epoch) = vm.front.agent.as_ref().map(|agent| agent.epoch) {
            self.monitor_says(who, Happening::Notice { epoch, event });
        }
    }

    /// The monitor answers again, or does not.
    pub(super) fn set_deaf(&mut self, who: Id, deaf: bool) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        vm.front.monitor.deaf = deaf;
        if !deaf {
            for event in std::mem::take(&mut vm.front.monitor.held) {
                self.monitor_notices(who, event);
            }
        }
    }

    /// The connection breaks and is made again: what was on its way is lost. Nobody can say
    /// whether the guest restarted meanwhile, so its agent takes it to have.
    pub(super) fn reconnect(&mut self, who: Id) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(agent) = &vm.front.agent else { return };
        let (epoch, peer) = (agent.epoch, Peer::Hypervisor);
        let Monitor { serves, connection, .. } = vm.front.monitor;
        vm.front.monitor = Monitor { serves, connection: connection + 1, ..Monitor::default() };
        if let Some(call) = agent.waits_for(peer) {
            let reply = Reply::Failed(Failure::NoAnswer);
            self.queue.arrange(now, who, Happening::Answers { epoch, call, peer, reply });
        }
        let can = vm.guest.capabilities();
        self.notify(who, Event::Attached(can));
        self.notify(who, Event::Reset);
    }

    /// A monitor serves the newest connection; what an older one still had to say is dropped.
    pub(super) fn is_connected(&mut self, who: Id, epoch: u64) -> bool {
        let Some(vm) = self.vms.get_mut(who) else { return false };
        if vm.left_with_monitor(epoch) {
            return true;
        }
        let in_front = vm.front.agent.as_ref().is_some_and(|agent| agent.epoch == epoch);
        if vm.other.is_some() && !in_front {
            return false;
        }
        vm.front.monitor.serves = vm.front.monitor.serves.max(epoch);
        vm.front.monitor.serves == epoch
    }

    /// What the books hold for a VM: its largest maximum while they have not heard of it.
    pub(super) fn booked(&self, who: Id) -> Resources {
        let Some(vm) = self.vms.get(who) else { return Resources::ZERO };
        self.nodes[vm.node].booked(&vm.info.name).unwrap_or(vm.most)
    }

    /// The hypervisor does as it is told, if it listens.
    pub(super) fn obey(&mut self, who: Id, epoch: u64, order: Order) -> Option<Reply> {
        let vm = self.vms.get(who).filter(|vm| !vm.front.monitor.deaf)?;
        // What an agent sent from which another may have taken over takes effect within two seconds,
        // or not at all.
        let passed = vm.left_with_monitor(epoch) || vm.other.is_some();
        let late = passed && self.now.since(order.sent) > SENT_LAST;
        if order.connection < vm.front.monitor.connection || late {
            return None;
        }
        let Action::Resize(resize) = order.action else {
            if let Some(vm) = self.vms.get_mut(who) {
                vm.guest.look();
            }
            return Some(Reply::Event(Event::Seen(self.vms.get(who)?.guest.seen())));
        };
        let twice = vm.guest.driver == Driver::Twice;
        let reply = self.resize(who, resize, order);
        if twice {
            let _ = self.resize(who, resize, order);
        }
        Some(reply)
    }

    fn resize(&mut self, who: Id, resize: Resize, order: Order) -> Reply {
        let (now, trust) = (self.now, self.setup.trust_guest_parking);
        let booked = self.booked(who);
        let refused = Reply::Failed(Failure::Refused(0));
        let Some(vm) = self.vms.get_mut(who) else { return refused };
        let (before, plugged) = (vm.guest.seen().memory, vm.guest.seen().plugged);
        let (had, has) = (vm.has(trust), vm.guest.seen().memory.present());
        // What a guest un-parked by itself after it agreed, or at a word that came late, or got back
        // by a restart of which nobody had heard, it may lose.
        let strayed = order.sent <= vm.strayed_at.after(FIGURES_LAST);
        let its_own = vm.unruly || order.unheard || order.sent <= vm.booted_at || strayed;
        let lost = if its_own { 0 } else { vm.guest.would_lose(resize) };
        let lost = (lost > 0).then(|| format!("takes out {lost} vCPUs that the guest uses"));
        if let Some(count) = vm.guest.ejects_late(resize) {
            let boot = vm.guest.boot;
            let late = Duration::from_millis(500 + self.chance.below(20_000));
            self.queue.arrange(now.after(late), who, Happening::Ejects { boot, count });
            self.broken(Law::ConsentBeforeShrinkage, Some(who), lost);
            return Reply::Event(Event::Resized);
        }
        let limit = vm.guest.group;
        let done = vm.guest.resize(resize);
        self.met.limit_set(resize, limit, vm.guest.group, done.is_ok());
        // What is plugged may come online by itself, unless an agent has counted; what was parked
        // before stays so.
        let counted = vm.informant.as_ref().is_some_and(InformantRun::is_counted);
        if let (Resize::Cpu(count), Some(allowed), false) = (resize, vm.allowed, counted)
            && count > plugged
        {
            vm.allowed = Some(allowed.max(count));
        }
        let grew = vm.has(trust).max(had) != had;
        // What was sent before its agent could know that its limit is gone brings more than it was to.
        if grew && order.sent <= vm.loosened_at.after(ON_ITS_WAY) {
            vm.loose_since = Some(now);
        }
        let tame = !vm.unruly && vm.loose_since.is_none();
        let unpermitted = laws::growth(booked, vm.has(trust)).filter(|_| grew && tame);
        let taken = match resize {
            Resize::Memory(total) if total < has.min(before.lower()) && !order.agreed => {
                Some(format!("takes {has} down to {total}, and nobody had agreed to it"))
            }
            Resize::Memory(_) | Resize::Cpu(_) | Resize::Limit(_) => None,
        };
        let boot = vm.guest.boot;
        // One that is at it already goes on towards the new size.
        let moves = vm.moves_in != Some(boot);
        vm.moves_in = Some(boot);
        let next = now.after(vm.guest.moves_every());
        self.broken(Law::PermitBeforeGrowth, Some(who), unpermitted);
        self.broken(Law::ConsentBeforeShrinkage, Some(who), taken);
        self.broken(Law::ConsentBeforeShrinkage, Some(who), lost.filter(|_| done.is_ok()));
        if moves {
            self.queue.arrange(next, who, Happening::MemoryMoves { boot });
        }
        // A guest does not feel its limit.
        if !matches!(resize, Resize::Limit(_)) {
            self.stir(who);
        }
        match done {
            Ok(()) => Reply::Event(Event::Resized),
            Err(_) => refused,
        }
    }

    /// The guest has let vCPUs go, at last; by now it may use them again.
    pub(super) fn ejects(&mut self, who: Id, boot: u64, count: u32) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        if vm.guest.boot == boot {
            vm.guest.eject(count);
            self.stir(who);
            self.monitors_notice(who, Event::Changed);
        }
    }

    /// The guest's kernel says that vCPUs or memory came or went.
    fn stir(&mut self, who: Id) {
        let Some(run) = self.vms.get(who).and_then(|vm| vm.informant.as_ref()) else { return };
        let stirred =
            Happening::InformantHears { epoch: run.epoch, event: informant::Event::Stirred };
        self.queue.arrange(self.now.after(Duration::from_millis(5)), who, stirred);
    }

    pub(super) fn memory_moves(&mut self, who: Id, boot: u64) {
        let (now, calm) = (self.now, self.is_calm(who));
        let Some(vm) = self.vms.get_mut(who) else { return };
        if vm.guest.boot != boot || !vm.guest.is_moving() {
            vm.moves_in = vm.moves_in.filter(|moves_in| *moves_in != boot);
            return;
        }
        let (ooms, in_use, had) = (vm.guest.ooms, vm.guest.in_use(), vm.guest.seen().memory);
        vm.guest.move_memory();
        let has = vm.guest.seen().memory;
        // What it uses more than when it agreed, beyond the least that it keeps to spare, is its
        // own doing.
        let rose = in_use >= vm.used_then.saturating_add(TO_SPARE);
        let killed =
            (vm.guest.ooms > ooms && !rose).then(|| "took memory that was in use".to_owned());
        let requested = has.boot.saturating_add(has.requested);
        let agreed = vm.consents().iter().any(|consent| consent.holds(now, requested));
        let unagreed = calm && !agreed && has.size < had.size && vm.front.heard.mode == Mode::Act;
        vm.unagreed_since = unagreed.then(|| vm.unagreed_since.unwrap_or(now));
        let going = laws::going(now, vm.unagreed_since);
        let (again, there) = (now.after(vm.guest.moves_every()), !vm.guest.is_moving());
        self.queue.arrange(again, who, Happening::MemoryMoves { boot });
        if there {
            self.monitors_notice(who, Event::Changed);
        }
        self.broken(Law::ConsentBeforeShrinkage, Some(who), killed);
        self.broken(Law::ConsentBeforeShrinkage, Some(who), going);
    }

    /// Whether nothing keeps the agent from speaking to the monitor.
    pub(crate) fn is_calm(&self, who: Id) -> bool {
        let Some(vm) = self.vms.get(who) else { return false };
        let process = &vm.front.process;
        vm.front.agent.is_some()
            && vm.other.is_none()
            && process.runs_at() <= self.now
            && process.slow.is_zero()
            && !vm.front.monitor.deaf
            && vm.guest.driver == Driver::Honest
            && vm.guest.state.may_resize()
            && self.faults_of(who) == Faults::default()
    }
}
