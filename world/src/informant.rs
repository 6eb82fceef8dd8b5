//! The shell of an informant: answers an agent's requests, carries out what the core plans.

use crate::agent::Reply;
use crate::laws::Consent;
use crate::queue::Alarm;
use std::collections::{BTreeMap, BTreeSet};
use windlass_agent_core::{Action, Event, Failure};
use windlass_informant_core::{Informant, Refusal, Registration, Settings};
use windlass_protocol::informant::{AgentDesc, ResourceMessage};
use windlass_protocol::version::InformantVersion;
use windlass_protocol::{AgentId, Moment, Peer, Sequence};

/// Where agents say they listen; nobody connects to it here.
const ADDRESS: &str = "10.0.2.2:10310";
const METRICS_PORT: u16 = 10301;

/// One run of the informant.
#[derive(Clone, Debug)]
pub(crate) struct InformantRun {
    pub(crate) core: Informant,
    /// Counts runs over the VM's life.
    pub(crate) epoch: u64,
    /// Registrations that wait for their answer, with the call to answer.
    registering: Vec<(AgentId, u64, u64)>,
    /// What was agreed to and not yet ended, by this run or an earlier.
    pub(crate) consents: Vec<Consent>,
    /// The number of each agent's last request: what is not above it has no effect.
    marks: BTreeMap<AgentId, Sequence>,
    /// When it is next woken.
    pub(crate) alarm: Alarm,
}

/// What to answer now, and to which call of which agent's run.
pub(crate) type Answer = (u64, u64, Reply);

// === impl InformantRun ===

impl InformantRun {
    pub(crate) fn new(epoch: u64, parked: BTreeSet<u32>, consents: Vec<Consent>) -> Self {
        Self {
            core: Informant::new(Settings { metrics_port: METRICS_PORT, parked }),
            epoch,
            registering: Vec::new(),
            consents,
            marks: BTreeMap::new(),
            alarm: Alarm::default(),
        }
    }

    /// Whether a request that is answered has an effect: one that came before has none.
    pub(crate) fn is_new(&self, action: Action) -> bool {
        match action {
            Action::Downscale(id, sequence, _) | Action::Upscale(id, sequence, _) => {
                self.marks.get(&id).is_none_or(|mark| sequence > *mark)
            }
            Action::Look
            | Action::Resize(_)
            | Action::Measure
            | Action::AskPlugin(_)
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Unregister(_) => true,
        }
    }

    /// A request of an agent arrives.
    pub(crate) fn hear(
        &mut self,
        now: Moment,
        agent_epoch: u64,
        call: u64,
        action: Action,
    ) -> Option<Answer> {
        let reply = match action {
            Action::Register(id) => match self.core.register(&desc(id)) {
                Ok(()) => {
                    self.registering.push((id, agent_epoch, call));
                    return None;
                }
                Err(refusal) => refused(&refusal),
            },
            Action::CheckHealth(id) => match self.core.health_check(id) {
                Ok(()) => Reply::Event(Event::Healthy),
                Err(refusal) => refused(&refusal),
            },
            Action::Downscale(id, sequence, resources) => {
                self.downscale(now, &ResourceMessage { resources, id, sequence })
            }
            Action::Upscale(id, sequence, resources) => {
                let is_new = self.is_new(action);
                match self.core.upscale(now, &ResourceMessage { resources, id, sequence }) {
                    Ok(()) => {
                        if is_new {
                            self.consents.clear();
                            self.marks.insert(id, sequence);
                        }
                        Reply::Event(Event::Upscaled)
                    }
                    Err(refusal) => refused(&refusal),
                }
            }
            Action::Unregister(id) => match self.core.unregister(&desc(id)) {
                Ok(_) => Reply::Event(Event::Unregistered),
                Err(refusal) => refused(&refusal),
            },
            Action::Look | Action::Resize(_) | Action::Measure | Action::AskPlugin(_) => {
                return None;
            }
        };
        Some((agent_epoch, call, reply))
    }

    /// Registrations that are done.
    pub(crate) fn registered(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        let core = &self.core;
        self.registering.retain(|&(id, epoch, call)| {
            let reply = match core.registration(id) {
                Registration::Pending => return true,
                Registration::Done(desc) => Reply::Event(Event::Registered {
                    metrics_port: desc.metrics_port.unwrap_or(METRICS_PORT),
                }),
                Registration::Refused(refusal) => refused(&refusal),
            };
            answers.push((epoch, call, reply));
            false
        });
        answers
    }

    fn downscale(&mut self, now: Moment, message: &ResourceMessage) -> Reply {
        let ResourceMessage { resources, id, sequence } = *message;
        let is_new = self.is_new(Action::Downscale(id, sequence, resources));
        let result = match self.core.downscale(now, message) {
            Ok(result) => result,
            Err(refusal) => return refused(&refusal),
        };
        if is_new {
            self.marks.insert(id, sequence);
        }
        if !result.ok {
            return Reply::Event(Event::Declined { status: result.status });
        }
        if is_new {
            self.consents.push(Consent { at: now, mem: resources.mem, to: id });
        }
        Reply::Event(Event::Agreed { status: result.status })
    }
}

fn desc(id: AgentId) -> AgentDesc {
    AgentDesc { agent_id: id, serve_addr: ADDRESS.to_owned(), versions: InformantVersion::SPOKEN }
}

fn refused(refusal: &Refusal) -> Reply {
    Reply::Failed(Peer::Informant, Failure::Refused(refusal.status()))
}
