//! Messages on their way, and what they do when they arrive.

use super::World;
use crate::agent::{Agent, Reply, deadline};
use crate::guest::MOVES_EVERY;
use crate::informant::InformantRun;
use crate::laws::{self, Law};
use crate::queue::Happening;
use std::time::Duration;
use windlass_agent_core::{Action, Call, CallAnswer, Event, Failure};
use windlass_informant_core as informant;
use windlass_protocol::{Peer, Resize, Resources, VmName};

/// Coarser than in a guest, to save time; enough of them fit the informant's window.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);

// === impl World ===

impl World {
    /// A request of the agent leaves.
    pub(super) fn send(&mut self, name: &VmName, action: Action) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(name) else { return };
        let Some(agent) = vm.agent.as_mut() else { return };
        if let Action::Register(id) = action {
            agent.session = Some(id);
        }
        let status = agent.scaler.status(now);
        let consents = vm.informant.as_ref().map_or(&vm.consents, |run| &run.consents);
        if matches!(action, Action::Resize(_)) {
            vm.resized.retain(|at| now.since(*at) < laws::MINUTE);
            vm.resized.push(now);
        }
        let hurry = laws::hurry(&vm.resized);
        let taken = laws::agreed(action, &status, agent.session, consents);
        agent.scaler.observe(now, Event::Sent(action));
        let (epoch, call) = (agent.epoch, agent.begin(action.peer()));
        let hangs_up = Happening::HangsUp { epoch, call, peer: action.peer() };
        self.queue.arrange(now.after(deadline(action)), name, hangs_up);
        self.broken(Law::ConsentBeforeShrinkage, Some(name), taken);
        self.broken(Law::PlansArePure, Some(name), hurry);
        let arrives = Happening::Arrives { epoch, call, action };
        self.transmit(name, arrives, self.faults.lose_request);
    }

    /// A message leaves, may be lost, and may arrive twice.
    fn transmit(&mut self, name: &VmName, happening: Happening, lose: u64) {
        if self.chance.happens(lose) {
            return;
        }
        // A monitor is a stream: what is said on it arrives once, and in order. A request to the
        // plugin has a connection to itself, and its wire (v2.0) has no number to know it by.
        let repeats = match &happening {
            Happening::Arrives { action, .. } => {
                !matches!(action.peer(), Peer::Hypervisor | Peer::Plugin)
            }
            Happening::AgentWakes { .. }
            | Happening::Answers { .. }
            | Happening::HangsUp { .. }
            | Happening::InformantWakes { .. }
            | Happening::InformantSamples { .. }
            | Happening::InformantAsks { .. }
            | Happening::InformantHears { .. }
            | Happening::InformantStarts { .. }
            | Happening::MemoryMoves { .. } => true,
        };
        if repeats && self.chance.happens(self.faults.repeat) {
            let late = self.now.after(self.chance.delay(self.faults) * 3);
            self.queue.arrange(late, name, happening.clone());
        }
        let at = self.now.after(self.chance.delay(self.faults));
        self.queue.arrange(at, name, happening);
    }

    pub(super) fn deliver(&mut self, name: &VmName, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::AgentWakes { epoch } => {
                let agent = self.agent(name, epoch);
                if agent.is_some_and(|agent| agent.alarm.rings(now)) {
                    self.pump_agent(name);
                }
            }
            Happening::Arrives { epoch, call, action } => self.arrive(name, epoch, call, action),
            Happening::Answers { epoch, call, reply } => self.answer(name, epoch, call, reply),
            Happening::HangsUp { epoch, call, peer } => {
                self.answer(name, epoch, call, Reply::Failed(peer, Failure::NoAnswer));
            }
            Happening::InformantWakes { epoch } => {
                let run = self.informant(name, epoch);
                if run.is_some_and(|run| run.alarm.rings(now)) {
                    self.pump_informant(name);
                }
            }
            Happening::InformantSamples { epoch } => self.informant_samples(name, epoch),
            Happening::InformantAsks { epoch, action } => self.informant_asks(name, epoch, action),
            Happening::InformantHears { epoch, event } => self.informant_hears(name, epoch, event),
            Happening::InformantStarts { boot } => {
                let vm = self.vms.get(name);
                if vm.is_some_and(|vm| vm.guest.boot == boot && vm.informant.is_none()) {
                    self.start_informant(name);
                }
            }
            Happening::MemoryMoves { boot } => self.memory_moves(name, boot),
        }
    }

    fn agent(&mut self, name: &VmName, epoch: u64) -> Option<&mut Agent> {
        let agent = self.vms.get_mut(name)?.agent.as_mut();
        agent.filter(|agent| agent.epoch == epoch)
    }

    fn informant(&mut self, name: &VmName, epoch: u64) -> Option<&mut InformantRun> {
        let informant = self.vms.get_mut(name)?.informant.as_mut();
        informant.filter(|informant| informant.epoch == epoch)
    }

    /// A request arrives, even if the agent that sent it is no more.
    fn arrive(&mut self, name: &VmName, epoch: u64, call: u64, action: Action) {
        if action.peer() == Peer::Hypervisor && !self.is_connected(name, epoch) {
            return;
        }
        // A permit's wire (v2.0) has no number to know an old request by: it ends with its agent.
        if action.peer() == Peer::Plugin && self.agent(name, epoch).is_none() {
            return;
        }
        let reply = match action {
            Action::Look => self.look(name),
            Action::Resize(resize) => self.resize(name, resize),
            Action::Measure => {
                let now = self.now;
                let vm = self.vms.get_mut(name).filter(|vm| vm.informant.is_some());
                let sample = vm.and_then(|vm| vm.guest.sample(now));
                sample.map(|sample| Reply::Event(Event::Measured(sample)))
            }
            Action::AskPlugin(wanted) => {
                let Some(node) = self.node_of(name) else { return };
                let (permit, broken) = self.nodes[node].request(self.now, name, wanted);
                if let Some((law, what)) = broken {
                    self.broken(law, Some(name), Some(what));
                }
                let unknown = Reply::Failed(Peer::Plugin, Failure::Refused(404));
                Some(permit.map_or(unknown, |permit| Reply::Event(Event::Permitted(permit))))
            }
            Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Upscale(..)
            | Action::Unregister(_) => return self.ask_informant(name, epoch, call, action),
        };
        if let Some(reply) = reply {
            self.transmit(name, Happening::Answers { epoch, call, reply }, self.faults.lose_answer);
        }
    }

    /// A monitor serves the newest connection; what an older one still had to say is dropped.
    fn is_connected(&mut self, name: &VmName, epoch: u64) -> bool {
        let Some(vm) = self.vms.get_mut(name) else { return false };
        vm.connected = vm.connected.max(epoch);
        vm.connected == epoch
    }

    /// What the books hold for a VM: its largest maximum while they have not heard of it.
    fn booked(&self, name: &VmName) -> Resources {
        let Some(vm) = self.vms.get(name) else { return Resources::ZERO };
        self.nodes[vm.node].booked(self.now, name).unwrap_or(vm.most)
    }

    fn look(&mut self, name: &VmName) -> Option<Reply> {
        let vm = self.vms.get(name).filter(|vm| !vm.deaf)?;
        Some(Reply::Event(Event::Seen(vm.guest.seen())))
    }

    fn resize(&mut self, name: &VmName, resize: Resize) -> Option<Reply> {
        let (now, trust) = (self.now, self.setup.trust_guest_parking);
        let booked = self.booked(name);
        let vm = self.vms.get_mut(name).filter(|vm| !vm.deaf)?;
        let (before, plugged) = (vm.guest.seen().memory, vm.guest.seen().plugged);
        let (had, has) = (vm.has(trust), vm.guest.seen().memory.present());
        // What a guest un-parked by itself, after it agreed, it may lose.
        let lost = if vm.unruly { 0 } else { vm.guest.would_lose(resize) };
        let lost = (lost > 0).then(|| format!("takes out {lost} vCPUs that the guest uses"));
        let done = vm.guest.resize(resize);
        // What is plugged comes online by itself; what was parked before stays so.
        if let (Resize::Cpu(count), Some(allowed)) = (resize, vm.allowed)
            && count > plugged
        {
            vm.allowed = Some(allowed.max(count));
        }
        let grew = vm.has(trust).max(had) != had;
        let unpermitted = laws::growth(booked, vm.has(trust)).filter(|_| grew);
        let consents = vm.informant.as_ref().map_or(&vm.consents, |informant| &informant.consents);
        let taken = match resize {
            Resize::Memory(total) if total < before.upper() => {
                laws::shrinkage(now, consents, has.min(before.lower().max(total)), total)
            }
            Resize::Memory(_) | Resize::Cpu(_) => None,
        };
        let boot = vm.guest.boot;
        // One that is at it already goes on towards the new size.
        let moves = vm.moves_in != Some(boot);
        vm.moves_in = Some(boot);
        self.broken(Law::PermitBeforeGrowth, Some(name), unpermitted);
        self.broken(Law::ConsentBeforeShrinkage, Some(name), taken);
        self.broken(Law::ConsentBeforeShrinkage, Some(name), lost.filter(|_| done.is_ok()));
        if moves {
            self.queue.arrange(now.after(MOVES_EVERY), name, Happening::MemoryMoves { boot });
        }
        self.stir(name);
        Some(match done {
            Ok(()) => Reply::Event(Event::Resized),
            Err(_) => Reply::Failed(Peer::Hypervisor, Failure::Refused(0)),
        })
    }

    /// The guest's kernel says that vCPUs or memory came or went.
    fn stir(&mut self, name: &VmName) {
        let Some(run) = self.vms.get(name).and_then(|vm| vm.informant.as_ref()) else { return };
        let stirred =
            Happening::InformantHears { epoch: run.epoch, event: informant::Event::Stirred };
        self.queue.arrange(self.now.after(Duration::from_millis(5)), name, stirred);
    }

    fn memory_moves(&mut self, name: &VmName, boot: u64) {
        let Some(vm) = self.vms.get_mut(name) else { return };
        if vm.guest.boot != boot || !vm.guest.is_moving() {
            vm.moves_in = vm.moves_in.filter(|moves_in| *moves_in != boot);
            return;
        }
        let (ooms, in_use) = (vm.guest.ooms, vm.guest.in_use());
        vm.guest.move_memory();
        let rose = in_use > vm.used_then;
        let killed =
            (vm.guest.ooms > ooms && !rose).then(|| "took memory that was in use".to_owned());
        let again = self.now.after(MOVES_EVERY);
        self.queue.arrange(again, name, Happening::MemoryMoves { boot });
        self.broken(Law::ConsentBeforeShrinkage, Some(name), killed);
    }

    fn answer(&mut self, name: &VmName, epoch: u64, call: u64, reply: Reply) {
        let now = self.now;
        if self.agent(name, epoch).is_none() {
            return;
        }
        let Some(vm) = self.vms.get_mut(name) else { return };
        let Some(agent) = vm.agent.as_mut() else { return };
        let Some(peer) = reply.peer() else { return };
        if !agent.finish(peer, call) {
            return;
        }
        let looked = matches!(reply, Reply::Event(Event::Seen(_)));
        agent.scaler.observe(now, reply.into_event());
        if let Some(upper) = agent.scaler.upper().filter(|_| looked) {
            self.nodes[vm.node].witness(&vm.info, upper);
        }
        self.pump_agent(name);
    }

    fn ask_informant(&mut self, name: &VmName, epoch: u64, call: u64, action: Action) {
        let now = self.now;
        let booked = self.booked(name);
        let Some(vm) = self.vms.get_mut(name) else { return };
        let Some(run) = &mut vm.informant else { return };
        let is_new = run.is_new(action);
        if matches!(action, Action::Downscale(..)) {
            // Memory is read when less of it is asked for.
            run.core.observe(now, informant::Event::Sampled(vm.guest.memory()));
        }
        let answer = run.hear(now, epoch, call, action);
        let agreed =
            matches!(answer, Some((_, _, Reply::Event(Event::Upscaled | Event::Agreed { .. }))));
        let heeded = is_new && agreed;
        let mut broken = None;
        if heeded {
            let seen = vm.guest.seen();
            match action {
                Action::Upscale(_, _, size) => {
                    let before = vm.allowed;
                    vm.allowed = Some(before.map_or(size.cpu, |allowed| allowed.max(size.cpu)));
                    let grew = before.is_some_and(|before| size.cpu > before);
                    let over = size.cpu.min(seen.plugged) > booked.cpu && grew;
                    broken = laws::told(seen.memory.present(), size.mem)
                        .map(|what| (Law::TheWorldNotTheWish, what))
                        .or_else(|| {
                            let what = format!("told to use {}, booked {booked}", size.cpu);
                            over.then_some((Law::PermitBeforeGrowth, what))
                        });
                }
                Action::Downscale(_, _, size) => {
                    // It takes away, and never allows more than before; and it ends the wish to
                    // un-park, so what is parked stays so.
                    let before = vm.allowed.unwrap_or(size.cpu);
                    vm.allowed = Some(before.min(size.cpu));
                    vm.keep_parked();
                    vm.used_then = vm.guest.in_use();
                }
                Action::Look
                | Action::Resize(_)
                | Action::Measure
                | Action::AskPlugin(_)
                | Action::Register(_)
                | Action::CheckHealth(_)
                | Action::Unregister(_) => {}
            }
        }
        if let Some((law, what)) = broken {
            self.broken(law, Some(name), Some(what));
        }
        if let Some((epoch, call, reply)) = answer {
            self.transmit(name, Happening::Answers { epoch, call, reply }, self.faults.lose_answer);
        }
        self.pump_informant(name);
    }

    /// Carries out what the informant plans.
    pub(super) fn pump_informant(&mut self, name: &VmName) {
        let now = self.now;
        for _ in 0..super::MOST_PLANS {
            let Some(vm) = self.vms.get_mut(name) else { return };
            let Some(run) = &mut vm.informant else { return };
            vm.parked.clone_from(run.core.parked());
            let registered = run.registered();
            if !registered.is_empty() {
                // What could not be brought online by now waits for the new agent's word.
                vm.keep_parked();
            }
            for (epoch, call, reply) in registered {
                let answers = Happening::Answers { epoch, call, reply };
                self.queue.arrange(now.after(Duration::from_millis(1)), name, answers);
            }
            let Some(run) = &mut vm.informant else { return };
            let plan = run.core.plan(now);
            let epoch = run.epoch;
            if plan.actions.is_empty() {
                let soon = now.after(Duration::from_millis(1));
                let wake_at = plan.wake_at.map(|at| at.max(soon));
                if let Some(at) = wake_at.filter(|at| run.alarm.set(*at)) {
                    self.queue.arrange(at, name, Happening::InformantWakes { epoch });
                }
                return;
            }
            for action in plan.actions {
                run.core.observe(now, informant::Event::Sent(action.clone()));
                let at = now.after(Duration::from_millis(1));
                self.queue.arrange(at, name, Happening::InformantAsks { epoch, action });
            }
        }
        let what = Some("an informant that plans without end".to_owned());
        self.broken(Law::PlansArePure, Some(name), what);
    }

    fn informant_samples(&mut self, name: &VmName, epoch: u64) {
        let now = self.now;
        if self.informant(name, epoch).is_none() {
            return;
        }
        let Some(vm) = self.vms.get_mut(name) else { return };
        let Some(run) = &mut vm.informant else { return };
        run.core.observe(now, informant::Event::Sampled(vm.guest.memory()));
        let again = now.after(SAMPLE_EVERY);
        self.queue.arrange(again, name, Happening::InformantSamples { epoch });
        self.pump_informant(name);
    }

    fn informant_asks(&mut self, name: &VmName, epoch: u64, action: informant::Action) {
        let now = self.now;
        if self.informant(name, epoch).is_none() {
            return;
        }
        let Some(vm) = self.vms.get_mut(name) else { return };
        let event = match action {
            informant::Action::Look => informant::Event::Seen(Some(vm.guest.machine())),
            informant::Action::Do(change) => informant::Event::Done(vm.guest.change(&change)),
            informant::Action::Call { agent: id, ask, .. } => {
                let call = match ask {
                    informant::Ask::Id => Call::Id,
                    informant::Ask::Suspend => Call::Suspend(id),
                    informant::Ask::Resume => Call::Resume(id),
                    informant::Ask::MoreMemory => {
                        Call::MoreResources { expected: id, cpu: false, memory: true }
                    }
                };
                let answer = vm.agent.as_mut().map(|agent| agent.scaler.call(now, call));
                self.pump_agent(name);
                match answer {
                    Some(CallAnswer::Ours(by, sequence)) => {
                        informant::Event::Answered { agent: id, by, sequence }
                    }
                    Some(CallAnswer::Unknown) => {
                        informant::Event::Failed(id, informant::Failure::Refused(404))
                    }
                    Some(CallAnswer::NotNow) => {
                        informant::Event::Failed(id, informant::Failure::Refused(400))
                    }
                    None => informant::Event::Failed(id, informant::Failure::NoAnswer),
                }
            }
        };
        let at = now.after(Duration::from_millis(1));
        self.queue.arrange(at, name, Happening::InformantHears { epoch, event });
    }

    fn informant_hears(&mut self, name: &VmName, epoch: u64, event: informant::Event) {
        let now = self.now;
        if self.informant(name, epoch).is_none() {
            return;
        }
        if let Some(run) = self.vms.get_mut(name).and_then(|vm| vm.informant.as_mut()) {
            run.core.observe(now, event);
        }
        self.pump_informant(name);
    }
}
