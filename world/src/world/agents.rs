//! Agents: what they send, what reaches them, and what their informant asks of them.

use super::{MOST_PLANS, World};
use crate::agent::{Agent, Asked, Called};
use crate::laws::{self, Law};
use crate::message::{Body, Reply, Request};
use crate::node::{PermitAsked, Requested};
use crate::promises::Present;
use crate::queue::Happening;
use crate::vm::Vm;
use crate::vms::Id;
use std::net::SocketAddr;
use std::time::Duration;
use windlass_agent_core::wire::{UNSAID, call_answer, called};
use windlass_agent_core::{Action, BooksUpdate, Call, CallAnswer, Event, Times};
use windlass_protocol::informant::Endpoint;
use windlass_protocol::{AgentId, Mode, Peer, Resources};

/// A plan to do nothing is asked for a second time once in so many events; others always.
const PURE_EVERY: u64 = 8;
/// An agent that ended is started again after this, and up to so much more.
const STARTS_AGAIN: Duration = Duration::from_millis(200);
const STARTS_LATER_MS: u64 = 4_000;

// === impl World ===

impl World {
    /// Carries out what the agent plans.
    pub(crate) fn pump_agent(&mut self, who: Id) {
        let now = self.now;
        for _ in 0..MOST_PLANS {
            let Some(vm) = self.vms.get_mut(who) else { return };
            let Some(agent) = &mut vm.front.agent else { return };
            let clock = vm.front.process.clock(now);
            vm.decisions.extend(agent.scaler.drain_decisions());
            let plan = agent.scaler.plan(clock);
            let asked_again = !plan.actions.is_empty() || self.events.is_multiple_of(PURE_EVERY);
            let pure = !asked_again || plan == agent.scaler.plan(clock);
            let idle = plan.actions.is_empty() && asked_again;
            let late = idle.then(|| agent.scaler.plan(laws::just_before(plan.wake_at, clock)));
            let late = late.and_then(|late| laws::late(&late.actions));
            let epoch = agent.epoch;
            self.broken(Law::PlansArePure, Some(who), (!pure).then(|| "two plans".to_owned()));
            self.broken(Law::PlansArePure, Some(who), late);
            let Some(vm) = self.vms.get_mut(who) else { return };
            let Some(agent) = &mut vm.front.agent else { return };
            if plan.actions.is_empty() {
                if let Some(at) = plan.wake_at {
                    let (at, wakes) = (vm.front.process.when(at), Happening::AgentWakes { epoch });
                    self.queue.wake(&mut agent.alarm, at, who, wakes);
                }
                return self.answer_held(who);
            }
            for action in plan.actions {
                self.send(who, action);
                if self.ends_now(who, |vm| &mut vm.front.process) {
                    return self.crash_agent(who);
                }
            }
        }
        let what = Some(format!("{MOST_PLANS} plans without time going by"));
        self.broken(Law::NoBusyLoop, Some(who), what);
    }

    /// Something reaches the agent.
    pub(super) fn tell_agent(&mut self, who: Id, event: Event) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(agent) = vm.front.agent.as_mut() else { return };
        self.met.agent_hears(&agent.scaler, &event);
        agent.scaler.observe(vm.front.process.clock(now), event);
    }

    /// Somebody tells the agent something.
    pub(crate) fn notify(&mut self, who: Id, event: Event) {
        let agent = self.vms.get(who).and_then(|vm| vm.front.agent.as_ref());
        if let Some(epoch) = agent.map(|agent| agent.epoch) {
            self.queue.arrange(self.now, who, Happening::Notice { epoch, event });
        }
    }

    /// The host keeps account of what the VM may have by now.
    pub(super) fn account(&mut self, who: Id, looked: bool) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        let clock = vm.front.process.clock(self.now);
        let Some(agent) = &vm.front.agent else { return };
        // Of two agents the one that acts speaks to the books, also when the other one is gone.
        let two = vm.other.is_some() || !vm.ended.is_empty();
        // What it saw before may be what there was before the other one acted.
        let knows = agent.scaler.acts(clock) && (looked || vm.front.heard.mode == Mode::Act);
        if two && !knows {
            return;
        }
        let Some(due) = BooksUpdate::due(&agent.scaler, looked, vm.front.account) else { return };
        vm.front.account = Some(due.upper());
        let node = &mut self.nodes[vm.node];
        if let Some(agent) = vm.front.agent.as_mut().filter(|agent| !agent.entered) {
            agent.entered = true;
            node.enter(&vm.front.heard, due.upper());
        }
        match due {
            BooksUpdate::Witnessed(upper) => node.witness(&mut self.met, &vm.info.name, upper),
            BooksUpdate::Counted(upper) => node.count(&mut self.met, &vm.info.name, upper),
        }
    }

    /// The agent was told what the VM should be: the books hear it, if they know of the VM.
    pub(super) fn update_books(&mut self, who: Id) {
        let Some(vm) = self.vms.get(who) else { return };
        if vm.front.agent.as_ref().is_some_and(|agent| agent.entered) {
            self.nodes[vm.node].update(&vm.front.heard);
        }
    }

    /// The agent ends between two effects, and is started again.
    pub(super) fn crash_agent(&mut self, who: Id) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        vm.front.agent = None;
        let later = Duration::from_millis(self.chance.below(STARTS_LATER_MS));
        let at = self.now.after(STARTS_AGAIN + later);
        self.tell(|| "the agent ends".to_owned());
        self.queue.arrange(at, who, Happening::AgentStarts);
    }

    /// A request of the agent leaves.
    fn send(&mut self, who: Id, action: Action) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(agent) = vm.front.agent.as_mut() else { return };
        if let Action::Register(id) = action {
            agent.session = Some(id);
        }
        if let (Action::AskPlugin(_), Some(upper)) = (action, agent.scaler.upper()) {
            agent.found = upper;
        }
        let mut hurry = None;
        if matches!(action, Action::Resize(_)) {
            vm.resized.retain(|at| now.since(*at) < laws::MINUTE);
            vm.resized.push(now);
            hurry = laws::hurry(&vm.resized);
        }
        self.moves += u64::from(moves(action));
        let order = vm.order_of(now, action);
        let misused = vm.misused_limit(now, action);
        let missing = laws::missing(now, vm.muted_since);
        let missing = missing.filter(|_| vm.shrinks_by_figures(now, action));
        let Some(agent) = vm.front.agent.as_mut() else { return };
        let (epoch, call) = (agent.epoch, agent.next_call());
        let clock = vm.front.process.clock(now);
        let reading = agent.scaler.fresh_reading(clock);
        let request = Request::of(action, &vm.info, reading, vm.speaks.agent, vm.front.address);
        let hangs_up = Happening::HangsUp { epoch, call, peer: action.peer() };
        let limit = Times::USUAL.limit(action);
        let limit = limit.unwrap_or(vm.guest.capabilities().promises.answers_within);
        let hangs_up = self.queue.arrange(now.after(limit), who, hangs_up);
        agent.begin(call, Asked { action, at: clock, hangs_up });
        self.left_alone(who, action);
        self.tell_agent(who, Event::Sent(action));
        self.broken(Law::NoBusyLoop, Some(who), hurry);
        if let Some((law, what)) = misused {
            self.broken(law, Some(who), Some(what));
        }
        let missing = missing.map(|what| format!("{what}: {action:?}"));
        self.broken(Law::MissingIsNotZero, Some(who), missing);
        match request {
            Some(request) => self.ask(who, Happening::Arrives { epoch, call, request }),
            None if action.peer() == Peer::Hypervisor => self.ask_monitor(who, epoch, call, order),
            None => {
                let (peer, reply) = (action.peer(), Reply::Failed(UNSAID));
                self.queue.arrange(now, who, Happening::Answers { epoch, call, peer, reply });
            }
        }
    }

    /// A request arrives, even if the agent that sent it is no more.
    pub(super) fn arrive(&mut self, who: Id, epoch: u64, call: u64, request: Request) {
        let peer = request.peer();
        if peer == Peer::Hypervisor && !self.is_connected(who, epoch) {
            return;
        }
        // On one host a request for a permit is made in memory: it ends when its agent gives it up, or
        // ends itself. Over a network it arrives all the same.
        let in_memory = peer == Peer::Plugin && !self.setup.listed;
        let waits = |agent: &mut Agent| agent.waits_for(peer) == Some(call);
        let waits = self.agent(who, epoch).is_some_and(waits);
        if in_memory && !waits {
            return;
        }
        let reply = match request {
            Request::Monitor(order) => {
                if let Some(reply) = self.obey(who, epoch, order) {
                    self.monitor_says(who, Happening::Answers { epoch, call, peer, reply });
                }
                return;
            }
            Request::Metrics => self.measure(who),
            Request::Permit(Body(body)) => self.permit(who, &body, waits),
            Request::Informant(endpoint, Body(body)) => {
                return self.ask_informant(who, epoch, call, endpoint, &body);
            }
        };
        if let Some(reply) = reply {
            self.respond(who, Happening::Answers { epoch, call, peer, reply });
        }
    }

    /// The books are asked for a permit.
    fn permit(&mut self, who: Id, body: &[u8], waits: bool) -> Option<Reply> {
        let (unit, vm) = (self.setup.unit, self.vms.get(who)?);
        let (node, name) = (vm.node, &vm.info.name);
        let here = self.here(node);
        let host = &mut self.nodes[node];
        if self.now < host.up_at {
            return None;
        }
        let Requested { status, body, version, broken } = host.request(
            &mut self.met,
            self.now,
            PermitAsked { vm: name, body, waits },
            &here,
            unit,
        );
        if let (Some(version), Some(vm)) = (version, self.vms.get_mut(who)) {
            vm.spoken = version;
        }
        self.broken(Law::BooksWithinTheNode, Some(who), broken);
        if self.nodes[node].process.ends_now() {
            self.crash_host(node);
            return None;
        }
        Some(Reply::Http(status, Body(body)))
    }

    /// The VMs of this node.
    fn here(&self, node: usize) -> Vec<Present> {
        let trust = self.setup.trust_guest_parking;
        let present = |vm: &Vm| {
            let plugged = vm.has(false);
            let plugged = vm.front.agent.as_ref().map_or(plugged, |agent| plugged.max(agent.found));
            let plugged = Resources { mem: plugged.mem.round_up(vm.info.memory_slot), ..plugged };
            Present { vm: vm.info.name.clone(), has: vm.has(trust), plugged }
        };
        self.vms.iter().map(|(_, vm)| vm).filter(|vm| vm.node == node).map(present).collect()
    }

    pub(super) fn answer(&mut self, who: Id, epoch: u64, call: u64, peer: Peer, reply: Reply) {
        let Some(agent) = self.agent(who, epoch) else { return };
        let Some(Asked { action, at, hangs_up }) = agent.finish(peer, call) else { return };
        self.queue.cancel(hangs_up);
        let Some(vm) = self.vms.get_mut(who) else { return };
        let event = reply.event(action, &vm.info, vm.speaks.agent, at);
        if let (Event::Healthy, Action::CheckHealth(session)) = (&event, action)
            && let Some(agent) = &mut vm.front.agent
        {
            agent.lease.healthy(call, session, at);
        }
        let looked = matches!(event, Event::Seen(_));
        self.learns_state(who, &event);
        self.tell_agent(who, event);
        if self.ends_now(who, |vm| &mut vm.front.process) {
            return self.crash_agent(who);
        }
        self.account(who, looked);
        self.pump_agent(who);
    }

    /// A call of the informant arrives: its run, its number, and whom it means.
    pub(super) fn agent_is_called(
        &mut self,
        who: Id,
        (epoch, call, id, at): (u64, u64, AgentId, SocketAddr),
        asked: Endpoint,
        body: &Body,
    ) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(agent) = vm.front.agent.as_mut().filter(|_| vm.front.address == at) else {
            // Nobody listens there: the informant learns it at once.
            self.queue.arrange(
                now.after(Duration::from_millis(1)),
                who,
                Happening::CallHangsUp { epoch, call, id },
            );
            return;
        };
        let asked = match called(asked.method, asked.path, &body.0) {
            Ok(asked) => asked,
            Err(uncalled) => {
                let (status, body) = (uncalled.status(), Body(uncalled.body()));
                return self.respond(who, Happening::CallAnswers { epoch, call, id, status, body });
            }
        };
        self.met.agent_is_called(&agent.scaler, asked);
        let answer = agent.scaler.call(vm.front.process.clock(now), asked);
        let now_due = agent.held.take(asked, Called { epoch, call, id }, answer);
        if matches!(
            (asked, answer),
            (Call::MoreResources { memory: true, .. }, CallAnswer::Ours(..))
        ) {
            // A guest that needs more takes back what it agreed to.
            vm.end_consents(id);
        }
        if let Some((called, answer)) = now_due {
            self.answer_call(who, called, answer);
        }
        if self.ends_now(who, |vm| &mut vm.front.process) {
            return self.crash_agent(who);
        }
        self.account(who, false);
        self.pump_agent(who);
    }

    fn answer_held(&mut self, who: Id) {
        let Some(agent) = self.vms.get_mut(who).and_then(|vm| vm.front.agent.as_mut()) else {
            return;
        };
        for (called, answer) in agent.held.due(&agent.scaler) {
            self.answer_call(who, called, answer);
        }
    }

    fn answer_call(&mut self, who: Id, called: Called, answer: CallAnswer) {
        let Called { epoch, call, id } = called;
        let (status, body) = call_answer(answer);
        let answers = Happening::CallAnswers { epoch, call, id, status, body: Body(body) };
        self.respond(who, answers);
    }
}

/// Whether it changes something, or is to.
const fn moves(action: Action) -> bool {
    match action {
        Action::Resize(_) | Action::Register(_) | Action::Downscale(..) | Action::Upscale(..) => {
            true
        }
        Action::Look
        | Action::Measure
        | Action::AskPlugin(_)
        | Action::CheckHealth(_)
        | Action::Unregister(_) => false,
    }
}
