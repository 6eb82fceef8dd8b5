//! The registered agents, and which of them is current.
//!
//! Each agent registers under its own id. The agent that registered last becomes current: the informant
//! suspends the others (`/suspend`) before it resumes the new agent (`/resume`). The others stay registered;
//! when the current agent goes, the newest of them takes its place. The informant checks each agent
//! periodically. It removes an agent after three failures in a row, and at once if another id answers.
//!
//! Only the agent with the lease acts. From v1.2 on the informant gives it the lease for ten seconds after its
//! last `/resume` or answered `/health-check`; our agent uses eight of them. If the former agent has not confirmed its `/suspend`, the informant resumes the next
//! agent when the former lease has expired. This also holds for leases of removed agents, and for leases
//! that an earlier informant gave.
//!
//! - **Newest session counts.** A request of another agent changes nothing. A repeated request has no second
//!   effect and gets the same answer.

mod member;

pub(crate) use member::{PastAnswer, lease_of};

use crate::event::{Action, Ask, Failure, Plan};
use crate::refusal::{Cause, Refusal, shortened};
use member::{Member, Stage};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use windlass_protocol::informant::{AgentDesc, ResourceMessage};
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::{AgentId, Moment, Sequence};

/// The most registered agents; beyond, the informant removes the oldest. One agent is current and one takes
/// over; the rest is room for restarts.
pub const AGENTS: usize = 8;

/// The most registrations in progress. An unconfirmed registration never displaces a confirmed agent.
pub const JOINING: usize = 8;

/// The agents, oldest first, including those that are still joining.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    /// Our versions.
    versions: Versions<InformantVersion>,
    members: Vec<Member>,
    /// Agents removed during a call to them: the result of that call is stale, even if the same id has
    /// registered again.
    left: Vec<AgentId>,
    /// The longest remaining lease that an earlier informant may have given, counted from the start.
    inherited: Duration,
    /// When the last lease of a removed agent expires.
    leased: Moment,
    /// The most recently removed agents, with the causes; bounded.
    gone: VecDeque<(AgentId, SocketAddr, Cause)>,
}

/// How to treat a `/downscale` or an `/upscale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// It is new: carry it out.
    New,
    /// It is a repetition, with this answer.
    Again(PastAnswer),
    /// It is older than an answered request.
    Stale,
}

impl Registry {
    /// A registry without agents.
    pub(crate) fn new(versions: Versions<InformantVersion>, inherited: Duration) -> Self {
        let (members, left, gone) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { versions, members, left, inherited, leased: Moment::default(), gone }
    }

    /// Starts the clock of the inherited lease, once.
    pub(crate) fn begins(&mut self, now: Moment) {
        if !self.inherited.is_zero() {
            self.leased = now.after(std::mem::take(&mut self.inherited));
        }
    }

    /// Begins a registration and returns its version. The informant then asks the agent for its id.
    pub(crate) fn begin(&mut self, desc: &AgentDesc) -> Result<InformantVersion, Refusal> {
        let (ours, theirs) = (self.versions, desc.versions);
        let version = ours.latest_shared(theirs).ok_or(Refusal::Versions { ours, theirs })?;
        let id = desc.agent_id;
        if id.is_zero() {
            return Err(Refusal::BadId(id));
        }
        if self.member(id).is_some() {
            return Err(Refusal::Duplicate(id));
        }
        let addr = callable(&desc.serve_addr)
            .ok_or_else(|| Refusal::BadAddress(shortened(&desc.serve_addr)))?;
        if self.joining() >= JOINING {
            return Err(Refusal::Busy(JOINING));
        }
        self.gone.retain(|(gone, ..)| *gone != id);
        self.members.push(Member::new(id, version, addr, desc.serve_addr.clone()));
        Ok(version)
    }

    /// The result of a registration; `None` while it is in progress.
    pub(crate) fn registration(&self, id: AgentId) -> Option<Result<InformantVersion, Refusal>> {
        if let Some(member) = self.member(id) {
            return member.joined().then_some(Ok(member.version));
        }
        let known = self.gone.iter().find(|(gone, ..)| *gone == id);
        Some(Err(known.map_or(Refusal::Unknown(id), |(_, addr, cause)| Refusal::Unchecked {
            addr: addr.to_string(),
            agent: id,
            cause: *cause,
        })))
    }

    /// Whether a registration has been checked and can complete.
    pub(crate) fn is_checked(&self) -> bool {
        self.members.iter().any(|member| member.stage == Stage::Joining { checked: true })
    }

    /// Completes the checked registrations.
    pub(crate) fn complete(&mut self, now: Moment) {
        while let Some(at) =
            self.members.iter().position(|m| m.stage == Stage::Joining { checked: true })
        {
            // The newest agent is the last to complete, as in the reference.
            let mut member = self.members.remove(at);
            member.join(now);
            self.members.push(member);
        }
        while self.members.iter().filter(|member| member.joined()).count() > AGENTS {
            let Some(oldest) = self.members.iter().position(Member::joined) else { return };
            self.leave(oldest, Cause::Crowded);
        }
    }

    /// Ends a session at its agent's request; returns whether it was current.
    pub(crate) fn unregister(&mut self, id: AgentId, announced: &str) -> Result<bool, Refusal> {
        let Some(at) = self.members.iter().position(|m| m.id == id && m.joined()) else {
            return Err(Refusal::NotRegistered(id));
        };
        if self.members[at].announced != announced {
            return Err(Refusal::OtherAddress(shortened(announced)));
        }
        let was_active = self.current() == Some(id);
        self.leave(at, Cause::Unregistered);
        Ok(was_active)
    }

    /// Whether an agent is registered under this id.
    pub(crate) fn health_check(&mut self, now: Moment, id: AgentId) -> Result<(), Refusal> {
        match self.member_mut(id) {
            Some(member) if member.joined() && !member.version.checks_health() => {
                Err(Refusal::NoHealthChecks(member.version))
            }
            Some(member) if member.joined() => {
                member.checked(now);
                Ok(())
            }
            Some(_) | None => Err(Refusal::Unknown(id)),
        }
    }

    /// How to treat a request. One without session and number is new, if the current agent's version has
    /// neither.
    pub(crate) fn verify(&mut self, message: &ResourceMessage) -> Result<Verified, Refusal> {
        let ResourceMessage { id, sequence, .. } = *message;
        let bare = message.is_bare();
        let current = self.current().and_then(|id| self.member_mut(id));
        let member = current
            .filter(|member| if bare { !member.version.numbers_sizes() } else { member.id == id })
            .ok_or(Refusal::NotActive(id))?;
        member.heard_from();
        let mark = member.request.as_ref().map_or(Sequence::ZERO, |(last, _)| *last);
        Ok(match &member.request {
            _ if bare || sequence > mark => Verified::New,
            Some((last, answer)) if *last == sequence => Verified::Again(answer.clone()),
            Some(_) | None => Verified::Stale,
        })
    }

    /// Keeps the answer to a request, for repetitions. A request without session and number has none.
    pub(crate) fn answered_request(&mut self, message: &ResourceMessage, answer: PastAnswer) {
        if let Some(member) = self.member_mut(message.id) {
            member.request = Some((message.sequence, answer));
        }
    }

    /// The current agent: the newest, once it was resumed. Its predecessor is no longer current, even if it
    /// does not know that yet.
    pub(crate) fn current(&self) -> Option<AgentId> {
        let newest = self.members.iter().rfind(|member| member.joined());
        newest.filter(|member| member.may_run()).map(|member| member.id)
    }

    /// Whether this agent is suspended, or was not resumed yet.
    pub(crate) fn waits(&self, id: AgentId) -> bool {
        self.member(id).is_some_and(|member| matches!(member.stage, Stage::Suspended { .. }))
    }

    pub(crate) fn len(&self) -> usize {
        self.members.iter().filter(|member| member.joined()).count()
    }

    pub(crate) fn joining(&self) -> usize {
        self.members.iter().filter(|member| !member.joined()).count()
    }

    pub(crate) fn gone(&self) -> impl Iterator<Item = (AgentId, Cause)> {
        self.gone.iter().map(|(id, _, cause)| (*id, *cause))
    }

    pub(crate) fn sent(&mut self, now: Moment, agent: AgentId, ask: Ask) {
        if let Some(member) = self.member_mut(agent) {
            member.sent(now, ask);
        }
        if ask == Ask::Resume {
            self.remove_unconfirmed(agent);
        }
    }

    pub(crate) fn answered(
        &mut self,
        now: Moment,
        agent: AgentId,
        by: AgentId,
        sequence: Sequence,
    ) {
        self.conclude(agent, |member| member.answered(now, by, sequence));
    }

    pub(crate) fn failed(&mut self, now: Moment, agent: AgentId, failure: Failure) {
        self.conclude(agent, |member| member.failed(now, failure));
    }

    /// Plans calls. `want`: the guest wants memory, and may ask for it from that moment on.
    pub(crate) fn plan(&self, now: Moment, want: Option<Moment>, plan: &mut Plan) {
        let newest = self.members.iter().rfind(|member| member.joined()).map(|member| member.id);
        for member in self.members.iter().filter(|member| !self.left.contains(&member.id)) {
            let is_newest = newest == Some(member.id);
            let others = || self.members.iter().filter(|other| other.id != member.id);
            let leased = others().map(|other| other.leased).fold(self.leased, Moment::max);
            let free = others().all(|other| !other.may_run()) && leased <= now;
            if is_newest && leased > now {
                plan.wake(leased);
            }
            match member.next(now, is_newest, free, want) {
                Ok(ask) => {
                    plan.actions.push(Action::Call { agent: member.id, at: member.addr, ask });
                }
                Err(Some(at)) => plan.wake(at),
                Err(None) => {}
            }
        }
    }

    /// Removes agents that have not confirmed their `/suspend` when the next agent is resumed.
    fn remove_unconfirmed(&mut self, next: AgentId) {
        let deaf = |member: &Member| member.id != next && member.stage == Stage::Suspending;
        while let Some(at) = self.members.iter().position(deaf) {
            self.leave(at, Cause::Failed(Failure::NoAnswer));
        }
    }

    fn conclude(&mut self, agent: AgentId, tell: impl FnOnce(&mut Member) -> Result<(), Cause>) {
        if let Some(at) = self.left.iter().position(|left| *left == agent) {
            self.left.remove(at);
            return;
        }
        let Some(at) = self.members.iter().position(|member| member.id == agent) else { return };
        if let Err(cause) = tell(&mut self.members[at]) {
            self.let_go(at, cause);
        }
    }

    /// Removes an agent, even during a call to it.
    fn leave(&mut self, at: usize, cause: Cause) {
        if self.members[at].is_called() {
            self.left.push(self.members[at].id);
        }
        self.let_go(at, cause);
    }

    fn let_go(&mut self, at: usize, cause: Cause) {
        let member = self.members.remove(at);
        let waits = match cause {
            // The address has no such agent, or the agent unregistered.
            Cause::Unregistered | Cause::OtherId(_) | Cause::Failed(Failure::Refused(404)) => true,
            Cause::Failed(_) | Cause::OldSequence(_) | Cause::Crowded => false,
        };
        if !waits {
            self.leased = self.leased.max(member.leased);
        }
        if self.gone.len() >= AGENTS + JOINING {
            self.gone.pop_front();
        }
        self.gone.push_back((member.id, member.addr, cause));
    }

    fn member(&self, id: AgentId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    fn member_mut(&mut self, id: AgentId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }
}

/// A valid address for calls: a literal unicast address with a port. Names are invalid: a name could make
/// the guest call another machine.
fn callable(text: &str) -> Option<SocketAddr> {
    let addr: SocketAddr = text.parse().ok()?;
    let broadcast = match addr.ip() {
        IpAddr::V4(ip) => ip.is_broadcast(),
        IpAddr::V6(_) => false,
    };
    let one = !addr.ip().is_unspecified() && !addr.ip().is_multicast() && !broadcast;
    (addr.port() != 0 && one).then_some(addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_unicast_address_can_be_called() {
        for good in ["10.0.2.2:10310", "127.0.0.1:1", "[fd00::1]:80"] {
            assert!(callable(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "10.0.2.2",
            "10.0.2.2:0",
            "0.0.0.0:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "localhost:80",
            "http://10.0.2.2:80",
            "10.0.2.2:70000",
            "[ff02::1]:80",
            "[::]:80",
        ] {
            assert!(callable(bad).is_none(), "{bad}");
        }
    }
}
