//! The informant as one value: agents, memory and machine, and what is asked of them.
//!
//! - **Newest session counts.** Only the agent that registered last changes anything; a
//!   request said twice has the effect of once, and the same answer; an older one has none. Before
//!   v2.0 requests have no number and no sender: each is examined anew.
//! - **Consent before shrinkage.** Nothing is agreed to that would not fit, with a margin.

use crate::event::{Action, Ask, Event, Plan};
use crate::machine::Machine;
use crate::memory::{Consent, Watch};
use crate::refusal::{Cause, Refusal};
use crate::registry::{PastAnswer, Registry, Verified, lease_of};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_protocol::informant::{
    self, AgentDesc, DownscaleResult, InformantDesc, ResourceMessage, Unregistered,
};
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::{AgentId, Moment, Resources};

/// What the informant knows from the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The versions that agents are spoken to in.
    pub versions: Versions<InformantVersion>,
    /// The port at which its metrics are read.
    pub metrics_port: u16,
    /// vCPUs that an earlier informant parked since the guest booted.
    pub parked: BTreeSet<u32>,
    /// For how long an agent of an earlier informant may still act.
    pub leased: Duration,
}

/// How far a registration is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The agent is being asked who it is, or the machine is being prepared.
    Pending,
    /// Registered: the answer to `/register`.
    Done(InformantDesc),
    /// It came to nothing.
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

/// The status of a request that is older than one that was answered.
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
    /// An informant that nobody has registered with.
    pub fn new(settings: Settings) -> Self {
        Self {
            metrics_port: settings.metrics_port,
            registry: Registry::new(settings.versions, settings.leased),
            memory: Watch::default(),
            machine: Machine::new(settings.parked),
        }
    }

    /// `POST /register`: begins; [`Informant::registration`] says when it is done.
    ///
    /// # Errors
    /// With the words and the status of the answer.
    pub fn register(&mut self, desc: &AgentDesc) -> Result<(), Refusal> {
        let version = self.registry.begin(desc)?;
        self.machine.note(lease_of(version));
        self.machine.wake();
        Ok(())
    }

    /// How far the registration under this id is.
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
    /// Nobody is registered under this id, or its version has no health checks.
    pub fn health_check(&mut self, now: Moment, id: AgentId) -> Result<(), Refusal> {
        self.registry.health_check(now, id)
    }

    /// `PUT /downscale`: whether the guest can live with this.
    ///
    /// # Errors
    /// The agent is not the one that counts. A refusal to shrink is an answer, not an error.
    pub fn downscale(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
    ) -> Result<DownscaleResult, Refusal> {
        self.downscale_judged(now, message, |result| result)
    }

    /// As [`Informant::downscale`], where somebody else has the last word: `judge` hears what
    /// would be answered, and says what is. It hears of new requests only: to others it makes
    /// no difference.
    ///
    /// # Errors
    /// As [`Informant::downscale`].
    pub fn downscale_judged(
        &mut self,
        now: Moment,
        message: &ResourceMessage,
        judge: impl FnOnce(DownscaleResult) -> DownscaleResult,
    ) -> Result<DownscaleResult, Refusal> {
        let alike = |given: &PastAnswer| matches!(given, PastAnswer::Downscale { .. });
        let ResourceMessage { resources, id, sequence } = *message;
        if message.is_bare() {
            self.registry.verify_bare()?;
            return Ok(self.consent(now, resources, judge));
        }
        match self.registry.verify(id, sequence, alike)? {
            Verified::New => {}
            Verified::Again(PastAnswer::Downscale { ok, status }) => {
                return Ok(DownscaleResult { ok, status });
            }
            Verified::Again(PastAnswer::Upscale) | Verified::Stale => {
                return Ok(DownscaleResult { ok: false, status: STALE.to_owned() });
            }
        }
        let DownscaleResult { ok, status } = self.consent(now, resources, judge);
        let given = PastAnswer::Downscale { ok, status: status.clone() };
        self.registry.answered_request(id, sequence, given);
        Ok(DownscaleResult { ok, status })
    }

    fn consent(
        &mut self,
        now: Moment,
        asked: Resources,
        judge: impl FnOnce(DownscaleResult) -> DownscaleResult,
    ) -> DownscaleResult {
        let Consent { ok, status } = self.memory.consent(now, asked.mem);
        let result = judge(DownscaleResult { ok, status });
        if result.ok {
            self.machine.allow_at_most(asked.cpu);
        }
        result
    }

    fn give(&mut self, now: Moment, size: Resources) {
        self.memory.given(now);
        self.machine.allow(size.cpu);
    }

    /// `PUT /upscale`: the guest has this, and may use it.
    ///
    /// # Errors
    /// The agent is not the one that counts.
    pub fn upscale(&mut self, now: Moment, message: &ResourceMessage) -> Result<(), Refusal> {
        self.upscale_then(now, message, || {})
    }

    /// As [`Informant::upscale`], where somebody else follows: `then` is called if the request
    /// is new.
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
    /// Nobody is registered under this id, or at another address.
    pub fn unregister(&mut self, desc: &AgentDesc) -> Result<Unregistered, Refusal> {
        let was_active = self.registry.unregister(desc.agent_id, &desc.serve_addr)?;
        if self.registry.len() == 0 {
            self.machine.left_alone();
        }
        Ok(Unregistered { was_active })
    }

    /// Takes note of what happened.
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
                    // It counts with what is online now, whatever another one allowed since.
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
        // An agent learns that it is registered once the guest is ready to follow it.
        if self.registry.is_checked() && self.machine.settled(now) {
            self.registry.complete(now);
            self.machine.hold_back_rest();
        }
    }

    /// What to do now.
    pub fn plan(&self, now: Moment) -> Plan {
        let mut plan = Plan::default();
        self.registry.plan(now, self.memory.want(now), &mut plan);
        self.machine.plan(now, &mut plan);
        plan
    }

    /// Whether what was last allowed has been carried out in the guest, or tried.
    pub fn settled(&self, now: Moment) -> bool {
        self.machine.settled(now)
    }

    /// The agent that counts.
    pub fn current(&self) -> Option<AgentId> {
        self.registry.current()
    }

    /// The version that the agent that counts is spoken to in.
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

    /// How many agents are registering, and were not checked yet.
    pub fn joining(&self) -> usize {
        self.registry.joining()
    }

    /// The latest agents that were let go of, oldest first, and why.
    pub fn gone(&self) -> impl Iterator<Item = (AgentId, Cause)> {
        self.registry.gone()
    }

    /// The vCPU that is being brought online: to those who count vCPUs, it is.
    pub fn coming_online(&self) -> Option<u32> {
        self.machine.coming_online()
    }

    /// vCPUs that were parked.
    pub fn parked(&self) -> &BTreeSet<u32> {
        self.machine.parked()
    }

    /// Whether memory is urgent.
    pub fn urgent(&self, now: Moment) -> bool {
        self.memory.want(now).is_some()
    }
}
