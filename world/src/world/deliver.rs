//! What happens next: to whom, and when that process can attend to it.

use super::World;
use crate::agent::Agent;
use crate::chance::Faults;
use crate::informant::InformantRun;
use crate::message::{Reply, Request};
use crate::process::Process;
use crate::queue::Happening;
use crate::vm::Vm;
use crate::vms::Id;
use windlass_agent_core::{Event, Failure};
use windlass_informant_core as informant;
use windlass_informant_core::wire::from_agent;
use windlass_protocol::{Moment, Peer};

/// Whose attention something needs.
#[derive(Clone, Copy)]
enum Needs {
    Agent,
    Informant,
    Host,
    /// Nobody but the guest's kernel.
    Guest,
    Nobody,
}

// === impl World ===

impl World {
    /// Of two agents the one that it is for comes to the front.
    pub(super) fn bring_to_front(&mut self, who: Id, happening: &Happening) {
        let Some(vm) = self.vms.get_mut(who).filter(|vm| vm.other.is_some()) else { return };
        match happening {
            Happening::Notice { epoch, .. }
            | Happening::AgentWakes { epoch }
            | Happening::Arrives { epoch, .. }
            | Happening::Answers { epoch, .. }
            | Happening::HangsUp { epoch, .. } => vm.front_of_run(*epoch),
            Happening::Calls { at, .. } => vm.front_at(*at),
            Happening::AgentStarts => vm.front_ended(),
            Happening::InformantWakes { .. }
            | Happening::InformantWaited { .. }
            | Happening::InformantSamples { .. }
            | Happening::KernelDoes { .. }
            | Happening::InformantHears { .. }
            | Happening::CallAnswers { .. }
            | Happening::CallHangsUp { .. }
            | Happening::InformantStarts { .. }
            | Happening::MemoryMoves { .. }
            | Happening::Ejects { .. }
            | Happening::RunsAgain { .. } => {}
        }
    }

    /// Whether the way that it would take is cut for that agent.
    fn is_cut(&self, who: Id, happening: &Happening) -> bool {
        let Some(vm) = self.vms.get(who) else { return false };
        match happening {
            Happening::Arrives {
                epoch,
                request: Request::Informant(..) | Request::Metrics,
                ..
            } => vm.cut_of_run(*epoch).out,
            Happening::Answers { epoch, peer: Peer::Informant | Peer::Metrics, .. } => {
                vm.cut_of_run(*epoch).into
            }
            Happening::Calls { at, .. } => vm.cut_at(*at).into,
            // Whoever was called is in front.
            Happening::CallAnswers { .. } => vm.front.cut.out,
            Happening::AgentStarts
            | Happening::Notice { .. }
            | Happening::AgentWakes { .. }
            | Happening::Arrives { .. }
            | Happening::Answers { .. }
            | Happening::HangsUp { .. }
            | Happening::InformantWakes { .. }
            | Happening::InformantWaited { .. }
            | Happening::InformantSamples { .. }
            | Happening::KernelDoes { .. }
            | Happening::InformantHears { .. }
            | Happening::CallHangsUp { .. }
            | Happening::InformantStarts { .. }
            | Happening::MemoryMoves { .. }
            | Happening::Ejects { .. }
            | Happening::RunsAgain { .. } => false,
        }
    }

    /// When whoever it is for can attend to it; at once, if nobody has to.
    pub(super) fn runs_at(&self, who: Id, happening: &Happening) -> Option<Moment> {
        let vm = self.vms.get(who)?;
        match happening.needs() {
            Needs::Agent => Some(vm.front.process.runs_at()),
            Needs::Informant => Some(vm.informant_process.runs_at()).max(self.stands_until(who)),
            Needs::Host => Some(self.nodes[vm.node].process.runs_at()),
            Needs::Guest => self.stands_until(who),
            Needs::Nobody => None,
        }
    }

    /// Somebody attends to it, which may take its time.
    pub(super) fn worked(&mut self, who: Id, happening: &Happening) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        match happening.needs() {
            Needs::Agent => vm.front.process.worked(now),
            Needs::Informant => vm.informant_process.worked(now),
            Needs::Host => self.nodes[vm.node].process.worked(now),
            Needs::Guest | Needs::Nobody => {}
        }
    }

    /// A request leaves.
    pub(super) fn ask(&mut self, who: Id, happening: Happening) {
        let faults = self.faults_of(who);
        self.transmit(who, happening, faults, faults.lose_request);
    }

    /// An answer leaves.
    pub(super) fn respond(&mut self, who: Id, happening: Happening) {
        let faults = self.faults_of(who);
        self.transmit(who, happening, faults, faults.lose_answer);
    }

    /// A message may be lost, and arrive twice.
    fn transmit(&mut self, who: Id, happening: Happening, faults: Faults, lose: u64) {
        if self.chance.happens(lose) || self.is_cut(who, &happening) {
            return;
        }
        // On one host a request for a permit is made in memory.
        let is_permit =
            matches!(&happening, Happening::Arrives { request: Request::Permit(_), .. });
        let once = is_permit && !self.setup.listed;
        if !once && self.chance.happens(faults.repeat) {
            let late = self.now.after(self.chance.delay(faults) * 3);
            self.queue.arrange(late, who, happening.clone());
        }
        let at = self.now.after(self.chance.delay(faults));
        self.queue.arrange(at, who, happening);
    }

    /// How unkind the network is to this VM.
    pub(super) fn faults_of(&self, who: Id) -> Faults {
        self.vms.get(who).and_then(|vm| vm.link).unwrap_or(self.faults)
    }

    pub(super) fn deliver(&mut self, who: Id, happening: Happening) {
        match happening {
            Happening::AgentStarts => {
                if self.vms.get(who).is_some_and(|vm| vm.front.agent.is_none()) {
                    self.start_agent(who);
                }
            }
            Happening::Notice { epoch, event } => {
                if self.agent(who, epoch).is_some() {
                    if let Some(vm) = self.vms.get_mut(who) {
                        vm.hears(self.now, &event);
                    }
                    self.learns_state(who, &event);
                    let is_told = matches!(event, Event::Told(_));
                    self.tell_agent(who, event);
                    if is_told {
                        self.update_books(who);
                    }
                    self.account(who, false);
                    self.pump_agent(who);
                }
            }
            Happening::AgentWakes { epoch } => {
                if let Some(agent) = self.agent(who, epoch) {
                    agent.alarm.rang();
                    self.pump_agent(who);
                }
            }
            Happening::Arrives { epoch, call, request } => self.arrive(who, epoch, call, request),
            Happening::Answers { epoch, call, peer, reply } => {
                self.answer(who, epoch, call, peer, reply);
            }
            Happening::HangsUp { epoch, call, peer } => {
                self.answer(who, epoch, call, peer, Reply::Failed(Failure::NoAnswer));
            }
            Happening::InformantWakes { epoch } => {
                if let Some(run) = self.informant(who, epoch) {
                    run.alarm.rang();
                    self.pump_informant(who);
                }
            }
            Happening::InformantWaited { epoch } => {
                if self.informant(who, epoch).is_some() {
                    self.pump_informant(who);
                }
            }
            Happening::InformantSamples { epoch } => self.informant_samples(who, epoch),
            Happening::KernelDoes { epoch, action } => self.kernel_does(who, epoch, action),
            Happening::InformantHears { epoch, event } => self.informant_hears(who, epoch, event),
            Happening::Calls { epoch, call, id, at, asked, body } => {
                self.agent_is_called(who, (epoch, call, id, at), asked, &body);
            }
            Happening::CallAnswers { epoch, call, id, status, body } => {
                self.call_ends(who, epoch, call, id, from_agent(id, status, &body.0));
            }
            Happening::CallHangsUp { epoch, call, id } => {
                let silence = informant::Event::Failed(id, informant::Failure::NoAnswer);
                self.call_ends(who, epoch, call, id, silence);
            }
            Happening::InformantStarts { boot } => {
                let vm = self.vms.get(who);
                if vm.is_some_and(|vm| vm.guest.boot == boot && vm.informant.is_none()) {
                    self.start_informant(who);
                }
            }
            Happening::MemoryMoves { boot } => self.memory_moves(who, boot),
            Happening::Ejects { boot, count } => self.ejects(who, boot, count),
            Happening::RunsAgain { until } => self.runs_again(who, until),
        }
    }

    pub(super) fn agent(&mut self, who: Id, epoch: u64) -> Option<&mut Agent> {
        let agent = self.vms.get_mut(who)?.front.agent.as_mut();
        agent.filter(|agent| agent.epoch == epoch)
    }

    pub(super) fn informant(&mut self, who: Id, epoch: u64) -> Option<&mut InformantRun> {
        let informant = self.vms.get_mut(who)?.informant.as_mut();
        informant.filter(|informant| informant.epoch == epoch)
    }

    /// Something that a process did takes effect. Says whether the process ended right after it.
    pub(super) fn ends_now(&mut self, who: Id, of: impl Fn(&mut Vm) -> &mut Process) -> bool {
        self.vms.get_mut(who).is_some_and(|vm| of(vm).ends_now())
    }
}

// === impl Happening ===

impl Happening {
    /// Whether a request for a permit arrives with it.
    pub(super) const fn is_permit(&self) -> bool {
        matches!(self, Self::Arrives { request: Request::Permit(_), .. })
    }

    const fn needs(&self) -> Needs {
        match self {
            Self::Notice { .. }
            | Self::AgentWakes { .. }
            | Self::Answers { .. }
            | Self::HangsUp { .. }
            | Self::Calls { .. } => Needs::Agent,
            Self::Arrives { request, .. } => match request.peer() {
                Peer::Informant | Peer::Metrics => Needs::Informant,
                Peer::Plugin => Needs::Host,
                Peer::Hypervisor => Needs::Nobody,
            },
            Self::InformantWakes { .. }
            | Self::InformantWaited { .. }
            | Self::InformantSamples { .. }
            | Self::InformantHears { .. }
            | Self::CallAnswers { .. }
            | Self::CallHangsUp { .. } => Needs::Informant,
            Self::KernelDoes { .. }
            | Self::InformantStarts { .. }
            | Self::MemoryMoves { .. }
            | Self::Ejects { .. } => Needs::Guest,
            Self::AgentStarts | Self::RunsAgain { .. } => Needs::Nobody,
        }
    }
}
