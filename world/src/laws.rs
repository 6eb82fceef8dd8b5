//! What is checked against the truth, and when.
//!
//! Each check names the law of ARCHITECTURE.md that it is about. The world checks at the
//! moment something takes effect: growth when the hypervisor is told, the books after each
//! change of them, memory when it is asked back.

use std::fmt;
use std::time::Duration;
use windlass_protocol::timing::{CONSENT_LASTS, FIGURES_LAST};
use windlass_protocol::{AgentId, Bytes, Moment, Resources, VmName};

/// A shrink of memory is called off so soon after its consent ended, if nothing is in the way.
const CALLED_OFF_AFTER: Duration = Duration::from_secs(20);

/// What a guest agreed to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consent {
    pub(crate) at: Moment,
    pub(crate) mem: Bytes,
    /// The session in which it was asked.
    pub(crate) to: AgentId,
}

/// What is judged here: laws of ARCHITECTURE.md, and what else holds in every world.
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
    /// What is not known shrinks nobody.
    MissingIsNotZero,
    /// If peers answer, what is missing is set again.
    AKindWorldGetsItsGoal,
    /// Nobody is heeded whose session is not the newest.
    NewestSessionCounts,
    /// A VM that its hypervisor does not run as usual is not resized.
    StoppedIsLeftAlone,
    /// A plan said twice is the same, and stays so until the moment that it names.
    PlansArePure,
    /// Nobody runs away.
    NoBusyLoop,
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

// === impl Consent ===

impl Consent {
    /// Whether it agrees, at this moment, to `total`.
    pub(crate) fn holds(&self, now: Moment, total: Bytes) -> bool {
        now.since(self.at) <= CONSENT_LASTS && self.mem <= total
    }
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

/// Whether somebody agreed, in this session and just now, that the VM has no more than `total`.
pub(crate) fn agreed(
    now: Moment,
    session: Option<AgentId>,
    consents: &[Consent],
    total: Bytes,
) -> bool {
    let mut ours = consents.iter().filter(|consent| Some(consent.to) == session);
    ours.any(|consent| consent.holds(now, total))
}

/// Law 3, while memory goes: nobody has agreed to it for so long, and nothing was in the way of
/// calling it off.
pub(crate) fn going(now: Moment, unagreed: Option<Moment>) -> Option<String> {
    let since = unagreed.filter(|since| now.since(*since) > CALLED_OFF_AFTER)?;
    Some(format!("memory goes that nobody has agreed to for {:?}", now.since(since)))
}

/// Law 5, when a guest is asked to have less: its figures are known. Figures are as old as the request
/// for them, so none is younger than the moment from which on they are missing.
pub(crate) fn missing(now: Moment, since: Option<Moment>) -> Option<String> {
    let for_long = since.is_some_and(|since| now.since(since) > FIGURES_LAST);
    for_long.then(|| "is asked to have less, by figures that are missing".to_owned())
}

/// A plan that names no moment holds for at least so long.
const IDLE: Duration = Duration::from_secs(3_600);

/// The last moment at which a plan still holds that is to be made anew at `wake_at`.
pub(crate) fn just_before(wake_at: Option<Moment>, now: Moment) -> Moment {
    let last = wake_at.map(|at| Moment::from_millis(at.millis().saturating_sub(1)));
    last.unwrap_or(now.after(IDLE)).max(now)
}

/// Whether a plan to do nothing has these actions before the moment that it names.
pub(crate) fn late<A: fmt::Debug>(actions: &[A]) -> Option<String> {
    actions.first().map(|action| format!("wakes when this is due for long: {action:?}"))
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
