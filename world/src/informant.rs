//! The shell of an informant: answers an agent's requests, carries out what the core plans.

use crate::laws::Consent;
use crate::message::{Body, Reply};
use crate::queue::{Alarm, Place};
use std::collections::BTreeMap;
use windlass_informant_core::wire::{Answer, Request, Unanswered};
use windlass_informant_core::{Informant, Load, Settings};
use windlass_protocol::informant::{DownscaleResult, ResourceMessage};
use windlass_protocol::{AgentId, Moment, Sequence};

/// One run of the informant.
#[derive(Clone, Debug)]
pub(crate) struct InformantRun {
    pub(crate) core: Informant,
    pub(crate) load: Load,
    /// Counts runs over the VM's life.
    pub(crate) epoch: u64,
    /// Registrations that wait for their answer.
    registering: Vec<(AgentId, To)>,
    /// Answers that wait until the guest has followed, or for this moment.
    following: Vec<(Moment, To, Reply)>,
    /// What was agreed to and not yet ended, by this run or an earlier.
    pub(crate) consents: Vec<Consent>,
    /// The number of each agent's last request: what is not above it has no effect.
    marks: BTreeMap<AgentId, Sequence>,
    /// Who registered last.
    pub(crate) newest: Option<AgentId>,
    /// The call under way to each agent. An answer to any other is not reported.
    calls: BTreeMap<AgentId, (u64, Place)>,
    last_call: u64,
    /// When it is next woken.
    pub(crate) alarm: Alarm,
}

/// Whom an answer is for: the run of the agent, and its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To {
    pub(crate) epoch: u64,
    pub(crate) call: u64,
}

/// What an informant makes of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It agrees to everything, and does nothing for it.
    AgreesToAll,
    /// It answers with something that is no answer.
    Garbage,
    /// It asks for memory all the time.
    Shouts,
}

// === impl InformantRun ===

impl InformantRun {
    pub(crate) fn new(epoch: u64, settings: Settings, consents: Vec<Consent>) -> Self {
        Self {
            core: Informant::new(settings),
            load: Load::default(),
            epoch,
            registering: Vec::new(),
            following: Vec::new(),
            consents,
            marks: BTreeMap::new(),
            newest: None,
            calls: BTreeMap::new(),
            last_call: 0,
            alarm: Alarm::default(),
        }
    }

    /// The number of the next call.
    pub(crate) fn next_call(&mut self) -> u64 {
        self.last_call += 1;
        self.last_call
    }

    /// A call to an agent begins, which is hung up at that place of the queue.
    pub(crate) fn begin(&mut self, agent: AgentId, call: u64, hangs_up: Place) {
        self.calls.insert(agent, (call, hangs_up));
    }

    /// Where this call to `agent` is hung up, if it is the one that is waited for; it is so once.
    pub(crate) fn finish(&mut self, agent: AgentId, call: u64) -> Option<Place> {
        let (_, hangs_up) = *self.calls.get(&agent).filter(|(number, _)| *number == call)?;
        self.calls.remove(&agent);
        Some(hangs_up)
    }

    /// Whether an agent has counted the guest's vCPUs, and added ones wait for its word.
    pub(crate) fn is_counted(&self) -> bool {
        self.newest.is_some()
    }

    /// Whether a request is of somebody else than the newest, who is registered still.
    pub(crate) fn is_of_old(&self, request: &Request) -> bool {
        let (Request::Downscale(message) | Request::Upscale(message)) = request else {
            return false;
        };
        // Below v2.0 nobody says who it is: it is of the agent that counts.
        let other = |newest: &AgentId| !message.is_bare() && *newest != message.id;
        let newer = self.newest.filter(other);
        newer.is_some_and(|newest| matches!(self.core.registration(newest), Some(Ok(_))))
    }

    /// Whether a request that is answered has an effect: one that came before has none, if that
    /// can be told.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        match request {
            Request::Downscale(message) | Request::Upscale(message) if message.is_bare() => true,
            Request::Downscale(message) | Request::Upscale(message) => {
                self.marks.get(&message.id).is_none_or(|mark| message.sequence > *mark)
            }
            Request::Register(_) | Request::HealthCheck(_) | Request::Unregister(_) => true,
        }
    }

    /// A request of an agent arrives; `clock` is what the guest's clock shows. `None`: it is
    /// answered later.
    ///
    /// # Errors
    /// With the answer of a request that is not carried out.
    pub(crate) fn hear(
        &mut self,
        now: Moment,
        clock: Moment,
        to: To,
        asker: Option<AgentId>,
        request: &Request,
    ) -> Result<Option<Answer>, Unanswered> {
        let is_new = self.is_new(request);
        Ok(Some(match request {
            Request::Register(desc) => {
                self.core.register(desc)?;
                self.registering.push((desc.agent_id, to));
                return Ok(None);
            }
            Request::HealthCheck(id) => {
                self.core.health_check(clock, *id)?;
                Answer::Healthy
            }
            Request::Downscale(message) => {
                let result = self.core.downscale(clock, message)?;
                if is_new {
                    self.mark(message);
                }
                self.agreed(now, asker, message, is_new && result.ok);
                Answer::Downscaled(result)
            }
            Request::Upscale(message) => {
                self.core.upscale(clock, message)?;
                if is_new {
                    self.consents.clear();
                    self.mark(message);
                }
                Answer::Upscaled
            }
            Request::Unregister(desc) => {
                let unregistered = self.core.unregister(desc)?;
                self.newest = self.newest.filter(|_| self.core.agents() > 0);
                Answer::Unregistered(unregistered)
            }
        }))
    }

    /// It says that it agreed though it does not, and that is what everybody goes by. Says whether
    /// that is a lie.
    pub(crate) fn agree_to(
        &mut self,
        now: Moment,
        asker: Option<AgentId>,
        request: &Request,
        answer: &mut Answer,
    ) -> bool {
        let (Request::Downscale(message), Answer::Downscaled(result)) = (request, answer) else {
            return false;
        };
        if result.ok {
            return false;
        }
        *result = DownscaleResult { ok: true, status: "gladly".to_owned() };
        self.agreed(now, asker, message, true);
        true
    }

    /// It agreed to a size, in the session of who asked: one that a message does not name is that
    /// of its sender.
    fn agreed(
        &mut self,
        now: Moment,
        asker: Option<AgentId>,
        message: &ResourceMessage,
        agreed: bool,
    ) {
        if agreed {
            let of = if message.is_bare() { asker } else { None };
            let to = of.unwrap_or(message.id);
            self.consents.push(Consent { at: now, mem: message.resources.mem, to });
        }
    }

    fn mark(&mut self, message: &ResourceMessage) {
        if !message.is_bare() {
            self.marks.insert(message.id, message.sequence);
        }
    }

    /// The answer waits until the guest has followed, or for this moment.
    pub(crate) fn answer_later(&mut self, by: Moment, to: To, reply: Reply) {
        self.following.push((by, to, reply));
    }

    /// Answers to registrations that are done.
    pub(crate) fn registered(&mut self) -> Vec<(To, Reply)> {
        let core = &self.core;
        let mut answers = Vec::new();
        let mut newest = self.newest;
        self.registering.retain(|(id, to)| {
            let Some(registration) = core.registration(*id) else { return true };
            let reply = match registration {
                Ok(desc) => {
                    newest = Some(*id);
                    reply(Ok(&Answer::Registered(desc)))
                }
                Err(refusal) => reply(Err(&refusal.into())),
            };
            answers.push((*to, reply));
            false
        });
        self.newest = newest;
        answers
    }

    /// Answers that wait no longer; `clock` is what the guest's clock shows.
    pub(crate) fn followed(&mut self, now: Moment, clock: Moment) -> Vec<(To, Reply)> {
        if self.following.is_empty() {
            return Vec::new();
        }
        let settled = self.core.settled(clock);
        let over = |(by, ..): &mut (Moment, To, Reply)| settled || *by <= now;
        self.following.extract_if(.., over).map(|(_, to, reply)| (to, reply)).collect()
    }
}

/// Status and body of an answer.
pub(crate) fn reply(answer: Result<&Answer, &Unanswered>) -> Reply {
    match answer {
        Ok(answer) => Reply::Http(200, Body(answer.encode())),
        Err(unanswered) => Reply::Http(unanswered.status(), Body(unanswered.encode())),
    }
}
