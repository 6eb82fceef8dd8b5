//! The informant as one value: agents, memory and machine, and the requests to them.
//!
//! - **Newest session counts.** Only the agent that registered last changes anything. A repeated request has
//!   no second effect and gets the same answer; an older request has no effect. Before v2.0, requests have
//!   neither number nor sender, so each counts as new.
//! - **Consent before shrinkage.** The guest agrees to a size only if its use fits, with a margin.

use crate::event::{Action, Ask, Event, Plan};
use crate::machine::Machine;
use crate::memory::Watch;
use crate::refusal::{Cause, Refusal};
use crate::registry::{PastAnswer, Registry, Verified, lease_of};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_protocol::informant::{
    self, AgentDesc, DownscaleResult, InformantDesc, ResourceMessage, Unregistered,
};
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::{AgentId, Moment, Resources};

/// The settings of an informant.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The versions that it speaks.
    pub versions: Versions<InformantVersion>,
    /// The port of its metrics.
    pub metrics_port: u16,
    /// vCPUs that an earlier informant parked since the guest booted.
    pub parked: BTreeSet<u32>,
    /// The longest remaining lease that an earlier informant may have given.
    pub leased: Duration,
}

/// The state of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The informant checks the agent's id, or prepares the machine.
    Pending,
    /// Registered: the answer to `/register`.
    Done(InformantDesc),
    /// It failed.
    Refused(Refusal),
}

/// One guest's informant.
#[derive(Clone, Debug)]
pub struct Informant {
    metrics_port: u16,
    registry: Registry,
    memory: Watch,
    machine: Machine,
}

/// The status of a stale request.
const STALE: &str = "stale";

impl Default for Settings {
    fn default() -> Self {
        let versions = InformantVersion::SPOKEN;
        Self {
            versions,
            metrics_port: informant::PORT,
            parked: BTreeSet::new(),
            leased: Duration::ZERO,
        }
    }
}

impl Informant {
    /// An informant without agents.
    pub fn new(settings: Settings) -> Self {
        Self {
            metrics_port: settings.metrics_port,
            registry: Registry::new(settings.versions, settings.leased),
            memory: Watch::default(),
            machine: Machine::new(settings.parked),
        }
    }

    /// `POST /register`: begins a registration; see [`Informant::registration`].
    ///
    /// # Errors
    /// The refusal.
    pub fn register(&mut self, desc: &AgentDesc) -> Result<(), Refusal> {
        let version = self.registry.begin(desc)?;
        self.machine.note(lease_of(version));
        self.machine.wake();
        Ok(())
    }

    /// The state of the registration under this id.
    pub fn registration(&self, id: AgentId) -> Registration {
        match self.registry.registration(id) {
            None => Registration::Pending,
            Some(Ok(version)) => {
                Registration::Done(InformantDesc { version, metrics_port: Some(self.metrics_port) })
            }
            Some(Err(refusal)) => Registration::Refused(refusal),
        }
    }

    /// `PUT /health-check`.
    ///
    /// # Errors
    /// No agent is registered under this id, or its version has no health checks.
    pub fn health_check(&mut self, now: Moment, id: AgentId) -> Result<(), Refusal> {
        self.registry.health_check(now, id)
    }

    /// `PUT /downscale`: whether the guest agrees to this size.
    ///
    /// # Errors
    /// The agent is not current. A refusal to shrink is an answer, not an error.
    pub fn downscale(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
    ) -> Result<DownscaleResult, Refusal> {
        self.downscale_judged(now, message, |result| result)
    }

    /// As [`Informant::downscale`], but `judge` may change the answer. It is only called for new requests.
    ///
    /// # Errors
    /// As [`Informant::downscale`].
    pub fn downscale_judged(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
        judge: impl FnOnce(DownscaleResult) -> DownscaleResult,
    ) -> Result<DownscaleResult, Refusal> {
        let alike = |given: &PastAnswer| matches!(given, PastAnswer::Downscale(_));
        let ResourceMessage { resources, id, sequence } = *message;
        if message.is_bare() {
            self.registry.verify_bare()?;
            return Ok(self.consent(now, resources, judge));
        }
        match self.registry.verify(id, sequence, alike)? {
            Verified::New => {}
            Verified::Again(PastAnswer::Downscale(result)) => return Ok(result),
            Verified::Again(PastAnswer::Upscale) | Verified::Stale => {
                return Ok(DownscaleResult { ok: false, status: STALE.to_owned() });
            }
        }
        let result = self.consent(now, resources, judge);
        self.registry.answered_request(id, sequence, PastAnswer::Downscale(result.clone()));
        Ok(result)
    }

    fn consent(
        &mut self,
        now: Moment,
        asked: Resources,
        judge: impl FnOnce(DownscaleResult) -> DownscaleResult,
    ) -> DownscaleResult {
        let result = judge(self.memory.consent(now, asked.mem));
        if result.ok {
            self.machine.allow_at_most(asked.cpu);
        }
        result
    }

    fn give(&mut self, now: Moment, size: Resources) {
        self.memory.given(now);
        self.machine.allow(size.cpu);
    }

    /// `PUT /upscale`: the guest has this size and may use it.
    ///
    /// # Errors
    /// The agent is not current.
    pub fn upscale(&mut self, now: Moment, message: &ResourceMessage) -> Result<(), Refusal> {
        self.upscale_then(now, message, || {})
    }

    /// As [`Informant::upscale`]; calls `then` if the request is new.
    ///
    /// # Errors
    /// As [`Informant::upscale`].
    pub fn upscale_then(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
        then: impl FnOnce(),
    ) -> Result<(), Refusal> {
        let alike = |given: &PastAnswer| matches!(given, PastAnswer::Upscale);
        let ResourceMessage { resources, id, sequence } = *message;
        if message.is_bare() {
            self.registry.verify_bare()?;
            self.give(now, resources);
            then();
            return Ok(());
        }
        match self.registry.verify(id, sequence, alike)? {
            Verified::New => {
                self.give(now, resources);
                self.registry.answered_request(id, sequence, PastAnswer::Upscale);
                then();
            }
            Verified::Again(_) | Verified::Stale => {}
        }
        Ok(())
    }

    /// `DELETE /unregister`.
    ///
    /// # Errors
    /// No agent is registered under this id, or it is registered at another address.
    pub fn unregister(&mut self, desc: &AgentDesc) -> Result<Unregistered, Refusal> {
        let was_active = self.registry.unregister(desc.agent_id, &desc.serve_addr)?;
        if self.registry.len() == 0 {
            self.machine.left_alone();
        }
        Ok(Unregistered { was_active })
    }

    /// Takes an event.
    pub fn observe(&mut self, now: Moment, event: Event) {
        self.registry.begins(now);
        match event {
            Event::Sampled(memory) => self.memory.sampled(now, memory),
            Event::Stalled => self.memory.stalled(now),
            Event::Stirred => self.machine.stirred(),
            Event::Sent(Action::Call { agent, ask, .. }) => {
                if ask == Ask::MoreMemory {
                    self.memory.asked(now);
                }
                if ask == Ask::Resume && self.registry.waits(agent) {
                    // The new agent starts from the online vCPUs, whatever another agent allowed.
                    self.machine.hold_back_rest();
                }
                self.registry.sent(now, agent, ask);
            }
            Event::Sent(action @ (Action::Look | Action::Do(_))) => self.machine.sent(action),
            Event::Answered { agent, by, sequence } => {
                self.registry.answered(now, agent, by, sequence);
            }
            Event::Failed(agent, failure) => self.registry.failed(now, agent, failure),
            Event::Seen(seen) => self.machine.seen(now, seen),
            Event::Done(done) => self.machine.done(now, done),
        }
        // The registration completes when the machine is ready.
        if self.registry.is_checked() && self.machine.settled(now) {
            self.registry.complete(now);
            self.machine.hold_back_rest();
        }
    }

    /// The plan at this moment.
    pub fn plan(&self, now: Moment) -> Plan {
        let mut plan = Plan::default();
        self.registry.plan(now, self.memory.want(now), &mut plan);
        self.machine.plan(now, &mut plan);
        plan
    }

    /// Whether all due changes of the machine were made or tried.
    pub fn settled(&self, now: Moment) -> bool {
        self.machine.settled(now)
    }

    /// The current agent.
    pub fn current(&self) -> Option<AgentId> {
        self.registry.current()
    }

    /// The version of the current agent's session.
    pub fn version(&self) -> Option<InformantVersion> {
        self.registry.version()
    }

    /// Whether an agent is registered under this id.
    pub fn is_registered(&self, id: AgentId) -> bool {
        self.registry.is_registered(id)
    }

    /// How many agents are registered.
    pub fn agents(&self) -> usize {
        self.registry.len()
    }

    /// How many registrations are in progress.
    pub fn joining(&self) -> usize {
        self.registry.joining()
    }

    /// The most recently removed agents, oldest first, with the causes.
    pub fn gone(&self) -> impl Iterator<Item = (AgentId, Cause)> {
        self.registry.gone()
    }

    /// The vCPU that is coming online; it counts as online.
    pub fn coming_online(&self) -> Option<u32> {
        self.machine.coming_online()
    }

    /// The parked vCPUs.
    pub fn parked(&self) -> &BTreeSet<u32> {
        self.machine.parked()
    }

    /// Whether the guest needs memory at once.
    pub fn urgent(&self, now: Moment) -> bool {
        self.memory.want(now).is_some()
    }
}
