//! What is going to happen, in order of time; at the same time, in order of arrangement.

use crate::message::{Body, Reply, Request};
use crate::vms::Id;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use windlass_agent_core::Event;
use windlass_informant_core::{Action as InformantAction, Event as InformantEvent};
use windlass_protocol::informant::Endpoint;
use windlass_protocol::{AgentId, Moment, Peer};

/// Something that is going to happen to one VM.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// An agent starts, if there is none.
    AgentStarts,
    /// Something that needs no answer reaches the agent.
    Notice { epoch: u64, event: Event },
    /// The agent plans again.
    AgentWakes { epoch: u64 },
    /// A request of the agent arrives.
    Arrives { epoch: u64, call: u64, request: Request },
    /// An answer reaches the agent.
    Answers { epoch: u64, call: u64, peer: Peer, reply: Reply },
    /// The agent hangs up.
    HangsUp { epoch: u64, call: u64, peer: Peer },
    /// The informant plans again.
    InformantWakes { epoch: u64 },
    /// The informant has waited long enough for its guest.
    InformantWaited { epoch: u64 },
    /// The informant reads its figures.
    InformantSamples { epoch: u64 },
    /// The guest's kernel does as the informant says.
    KernelDoes { epoch: u64, action: InformantAction },
    /// Something that needs no agent reaches the informant.
    InformantHears { epoch: u64, event: InformantEvent },
    /// A call of the informant arrives at the agent.
    Calls { epoch: u64, call: u64, id: AgentId, at: SocketAddr, asked: Endpoint, body: Body },
    /// An answer of the agent reaches the informant.
    CallAnswers { epoch: u64, call: u64, id: AgentId, status: u16, body: Body },
    /// The informant hangs up.
    CallHangsUp { epoch: u64, call: u64, id: AgentId },
    /// An informant starts in the guest.
    InformantStarts { boot: u64 },
    /// The guest's kernel gives or takes memory.
    MemoryMoves { boot: u64 },
    /// The guest has let vCPUs go, at last.
    Ejects { boot: u64, count: u32 },
    /// The hypervisor runs the VM again, if that is still to be at this moment.
    RunsAgain { until: Moment },
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<(Moment, u64), (Id, Box<Happening>)>,
    arranged: u64,
}

/// Where something stands in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(Moment, u64);

/// When somebody is woken next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm(Option<Place>);

// === impl Place ===

impl Place {
    /// When it happens.
    pub(crate) const fn at(self) -> Moment {
        self.0
    }
}

// === impl Alarm ===

impl Alarm {
    /// It has rung.
    pub(crate) fn rang(&mut self) {
        self.0 = None;
    }
}

// === impl Queue ===

impl Queue {
    pub(crate) fn arrange(&mut self, at: Moment, who: Id, happening: Happening) -> Place {
        self.arranged += 1;
        let place = Place(at, self.arranged);
        self.entries.insert((at, self.arranged), (who, Box::new(happening)));
        place
    }

    /// Has an alarm ring then, unless it rings earlier.
    pub(crate) fn wake(&mut self, alarm: &mut Alarm, at: Moment, who: Id, happening: Happening) {
        if alarm.0.is_some_and(|set| set.at() <= at) {
            return;
        }
        let place = self.arrange(at, who, happening);
        if let Some(before) = alarm.0.replace(place) {
            self.cancel(before);
        }
    }

    /// It does not happen any more.
    pub(crate) fn cancel(&mut self, place: Place) {
        self.entries.remove(&(place.0, place.1));
    }

    /// What happens next, if that is not after `until`.
    pub(crate) fn next(&mut self, until: Moment) -> Option<(Place, Id, Happening)> {
        let next = self.entries.first_entry()?;
        let (at, number) = *next.key();
        if at > until {
            return None;
        }
        let (who, happening) = next.remove();
        Some((Place(at, number), who, *happening))
    }

    /// It happens later, and still before what was arranged after it for that moment.
    pub(crate) fn defer(&mut self, place: Place, at: Moment, who: Id, happening: Happening) {
        self.entries.insert((at, place.1), (who, Box::new(happening)));
    }

    /// What was put off until `from` for somebody happens at `to` already.
    pub(crate) fn hasten(&mut self, who: Id, from: Moment, to: Moment) {
        let late = self.entries.range((from, 0)..=(from, u64::MAX));
        let late: Vec<_> = late.filter(|(_, (of, _))| *of == who).map(|(key, _)| *key).collect();
        for key in late {
            if let Some(entry) = self.entries.remove(&key) {
                self.entries.insert((to, key.1), entry);
            }
        }
    }

    /// These do not happen.
    pub(crate) fn drop_all(&mut self, these: impl Fn(Id, &Happening) -> bool) {
        self.entries.retain(|_, (who, happening)| !these(*who, happening));
    }

    /// How much is arranged.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets what was arranged for a VM that is gone.
    pub(crate) fn forget(&mut self, who: Id) {
        self.entries.retain(|_, (of, _)| *of != who);
    }
}
