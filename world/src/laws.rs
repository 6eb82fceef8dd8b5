//! What is checked against the truth, and when.
//!
//! Each check names the law of ARCHITECTURE.md that it is about. The world checks at the
//! moment something takes effect: growth when the hypervisor is told, the books after each
//! change of them, memory when it is asked back.

use std::fmt;
use std::time::Duration;
use windlass_agent_core::Action;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{AgentId, Bytes, Moment, Resize, Resources, VmName};

/// A consent may be acted on for this long after it was given: the ten seconds that it holds,
/// and the time that the order to the hypervisor may be on its way.
const CONSENT_LASTS: Duration = Duration::from_secs(15);

/// What a guest agreed to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consent {
    pub(crate) at: Moment,
    pub(crate) mem: Bytes,
    /// The session in which it was asked.
    pub(crate) to: AgentId,
}

/// A law of ARCHITECTURE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A VM never has more than the books say it may have.
    PermitBeforeGrowth,
    /// The books never promise more than the node has.
    BooksWithinTheNode,
    /// Memory is taken only as far as the guest agreed.
    ConsentBeforeShrinkage,
    /// The guest is told of memory only when it is there.
    TheWorldNotTheWish,
    /// A plan said twice is the same, and planning never runs away.
    PlansArePure,
}

/// A law was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub law: Law,
    /// When.
    pub at: Moment,
    /// By whom.
    pub vm: Option<VmName>,
    /// How.
    pub what: String,
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vm = self.vm.as_ref().map_or("the node", |vm| vm.name.as_str());
        write!(f, "{:?} at {} ms by {vm}: {}", self.law, self.at.millis(), self.what)
    }
}

/// Law 1, when the hypervisor is told to have more, or the guest to use more.
pub(crate) fn growth(booked: Resources, would_have: Resources) -> Option<String> {
    (!booked.covers(would_have)).then(|| format!("would have {would_have}, booked {booked}"))
}

/// Law 2, after the books changed: nothing is promised that was not there to promise.
pub(crate) fn books(room: Resources, before: Resources, after: Resources) -> Option<String> {
    let over = |room: u64, before: u64, after: u64| after > room && after > before;
    let broken = over(room.cpu.milli(), before.cpu.milli(), after.cpu.milli())
        || over(room.mem.bytes(), before.mem.bytes(), after.mem.bytes());
    broken.then(|| format!("promised {after} of {room}, before that {before}"))
}

/// Law 3, when an agent asks for memory to be taken: somebody agreed to it in the session that
/// it has.
pub(crate) fn agreed(
    action: Action,
    status: &VmStatus,
    session: Option<AgentId>,
    consents: &[Consent],
) -> Option<String> {
    let Action::Resize(Resize::Memory(total)) = action else { return None };
    let memory = status.seen?.memory;
    let less = total < memory.boot.saturating_add(memory.requested);
    let agreed = consents.iter().any(|consent| Some(consent.to) == session && consent.mem <= total);
    let stands = status.session == SessionState::Active && agreed;
    (less && !stands)
        .then(|| format!("takes memory down to {total} in {session:?}, consents {consents:?}"))
}

/// Law 3, when memory is asked back from the guest: somebody agreed to it, and lately.
pub(crate) fn shrinkage(
    now: Moment,
    consents: &[Consent],
    has: Bytes,
    asked: Bytes,
) -> Option<String> {
    let lately = |consent: &Consent| now.since(consent.at) <= CONSENT_LASTS;
    let agreed = consents.iter().any(|consent| lately(consent) && consent.mem <= asked);
    (asked < has && !agreed).then(|| format!("takes {has} down to {asked}, consents {consents:?}"))
}

/// An agent that asks for more resizes than this in a minute has run away: figures are read once
/// a second.
const MOST_RESIZES: usize = 120;
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Whether an agent runs away, when it asks for a resize.
pub(crate) fn hurry(resized: &[Moment]) -> Option<String> {
    (resized.len() > MOST_RESIZES)
        .then(|| format!("asks for {} resizes in a minute", resized.len()))
}

/// Law 4, when the guest is told what it has.
pub(crate) fn told(most_seen: Bytes, told: Bytes) -> Option<String> {
    (told > most_seen).then(|| format!("told of {told}, there is {most_seen}"))
}
