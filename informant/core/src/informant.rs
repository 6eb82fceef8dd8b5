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
use windlass_protocol::{AgentId, Moment};

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
    pub fn register(&mut self, desc: &AgentDesc) -> Result<(), Refusal> {
        let version = self.registry.begin(desc)?;
        self.machine.wake(lease_of(version));
        Ok(())
    }

    /// The answer to the `/register` under this id; `None` while the informant checks the agent's id, or
    /// prepares the machine.
    pub fn registration(&self, id: AgentId) -> Option<Result<InformantDesc, Refusal>> {
        let metrics_port = Some(self.metrics_port);
        let done = self.registry.registration(id)?;
        Some(done.map(|version| InformantDesc { version, metrics_port }))
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
    pub fn downscale_judged(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
        judge: impl FnOnce(DownscaleResult) -> DownscaleResult,
    ) -> Result<DownscaleResult, Refusal> {
        match self.registry.verify(message)? {
            Verified::New => {}
            Verified::Again(PastAnswer::Downscale(result)) => return Ok(result),
            Verified::Again(PastAnswer::Upscale) | Verified::Stale => {
                return Ok(DownscaleResult { ok: false, status: STALE.to_owned() });
            }
        }
        let result = judge(self.memory.consent(now, message.resources.mem));
        if result.ok {
            self.machine.allow_at_most(message.resources.cpu);
        }
        self.registry.answered_request(message, PastAnswer::Downscale(result.clone()));
        Ok(result)
    }

    /// `PUT /upscale`: the guest has this size and may use it.
    ///
    /// # Errors
    /// The agent is not current.
    pub fn upscale(&mut self, now: Moment, message: &ResourceMessage) -> Result<(), Refusal> {
        self.upscale_then(now, message, || {})
    }

    /// As [`Informant::upscale`]; calls `then` if the request is new.
    pub fn upscale_then(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
        then: impl FnOnce(),
    ) -> Result<(), Refusal> {
        if self.registry.verify(message)? == Verified::New {
            self.memory.given(now);
            self.machine.allow(message.resources.cpu);
            self.registry.answered_request(message, PastAnswer::Upscale);
            then();
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
            Event::Stirred => self.machine.must_look(),
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
