//! One agent with one informant: which id counts, and whether the informant lets the agent run.
//!
//! ```text
//!            Register sent        200 answered           /resume
//!   Absent ───────────────► Opening ─────────► Registered ─────────► Active
//!     ▲                        │ /resume (early): Active once answered   │ ▲
//!     │ refused, silent, reset │                                /suspend │ │ /resume
//!     └────────────────────────┴──────────────────────────── Suspended ◄─┘ │
//!                                                                 └────────┘
//! ```
//!
//! An active session is not yet a leased one. From v1.2 on the lease lasts for eight seconds after the
//! agent sent a health check that was answered, and that it sent after it was told to run. So two agents
//! never act: an informant that cannot tell one to wait lets its lease run out before it tells the next
//! to run. Before v1.2 the lease lasts for 13 seconds after the informant's last call. A guest that
//! restarts forgets all leases: an agent that may have missed that acts no more, whatever its lease says.
//!
//! Law 6, the newest session counts: each attempt to register has an id of its own, so a lost
//! answer cannot be taken for a later one, and an informant that kept the old id drops it when
//! it asks. A call that names another id changes nothing. No end of a session is final.
//!
//! The version that the informant chose says what the session can do ([`InformantVersion`]).
//! Where the agent cannot ask whether it stands (below v1.2) it listens: the informant's own
//! checks keep it, and silence ends it.

mod calls;

use crate::backoff::{Backoff, Jitter};
use crate::settings::Periods;
use std::time::Duration;
use windlass_protocol::status::SessionState;
use windlass_protocol::timing::{CALL_LEASE_USED, INFORMANT_GONE, LEASE_USED};
use windlass_protocol::{AgentId, Generation, InformantVersion, Moment, Sequence};

/// The longest wait after an informant refused what it had opened, where the first is no longer: without a session its VM does not
/// grow. Each wait is spread by a tenth.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// The status of a request in a session that the informant does not know.
const NOT_FOUND: u16 = 404;
/// Checks without an answer that end a session.
const SILENCES: u32 = 3;
/// Registered, and not told that it counts: after this, a new session is tried.
const UNRESUMED: Duration = Duration::from_secs(30);

/// The session of one VM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    seed: u64,
    periods: Periods,
    generation: Generation,
    state: State,
    /// What is spoken, or was in the last session.
    version: InformantVersion,
    sequence: Sequence,
    /// When the informant last said anything.
    heard_at: Moment,
    /// When it last called, in this session.
    called_at: Moment,
    /// When a check was sent that is under way, or was answered last, since it was told to run.
    checked_at: Option<Moment>,
    /// When the check that was answered last had been sent, since it was told to run.
    leased_at: Option<Moment>,
    health_at: Moment,
    silences: u32,
    /// After a session that an informant opened and then refused to serve.
    rest: Backoff,
    /// When the last session was opened.
    began_at: Option<Moment>,
    /// Whether there ever was one.
    has_been: bool,
    /// Whether a request to be registered got no answer, since the informant was last heard.
    is_unanswered: bool,
    /// Whether it was told to wait, and not to run since.
    waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Opening {
        resumed: bool,
    },
    Registered {
        since: Moment,
    },
    Active,
    Suspended {
        since: Moment,
    },
    /// It has said that it goes, and acts no more.
    Leaving,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(seed: u64, periods: Periods, now: Moment) -> Self {
        let Periods { session_retry, .. } = periods;
        Self {
            seed,
            periods,
            generation: Generation::default(),
            state: State::Absent,
            version: InformantVersion::V2_0,
            heard_at: now,
            called_at: now,
            checked_at: None,
            leased_at: None,
            sequence: Sequence::ZERO,
            health_at: Moment::default(),
            silences: 0,
            rest: Backoff::new(session_retry, LONGEST_REST.max(session_retry)),
            began_at: None,
            has_been: false,
            is_unanswered: false,
            waits: false,
        }
    }

    pub(crate) fn status(&self) -> SessionState {
        match self.state {
            State::Absent | State::Opening { .. } => SessionState::Absent,
            State::Registered { .. } => SessionState::Registered,
            State::Active | State::Leaving => SessionState::Active,
            State::Suspended { .. } => SessionState::Suspended,
        }
    }

    /// Whether it is open on both sides.
    pub(crate) const fn stands(&self) -> bool {
        match self.state {
            State::Registered { .. } | State::Active | State::Suspended { .. } => true,
            State::Absent | State::Opening { .. } | State::Leaving => false,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }

    /// Whether the informant ever took this agent on.
    pub(crate) fn has_been(&self) -> bool {
        self.has_been
    }

    /// Whether the last word was to wait: another agent is there, also when the session is over.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.state, State::Suspended { .. })
    }

    /// Until when the lease lasts, as far as is known now.
    pub(crate) fn leased_until(&self) -> Option<Moment> {
        match self.state {
            State::Active if self.version.checks_health() => {
                self.leased_at.map(|at| at.after(LEASE_USED))
            }
            State::Active => Some(self.called_at.after(CALL_LEASE_USED)),
            State::Absent
            | State::Opening { .. }
            | State::Registered { .. }
            | State::Suspended { .. }
            | State::Leaving => None,
        }
    }

    /// Whether the informant lets this agent act, and no other.
    pub(crate) fn is_leased(&self, now: Moment) -> bool {
        self.leased_until().is_some_and(|until| now < until)
    }

    /// When the informant last said anything; at first, when the agent began.
    pub(crate) fn heard_at(&self) -> Moment {
        self.heard_at
    }

    /// The id of this session; `None` without a session.
    pub(crate) fn id(&self) -> Option<AgentId> {
        (!self.is_absent()).then(|| self.id_of(self.generation))
    }

    /// The last number that was said in it, in answers and sizes together.
    pub(crate) fn last_sequence(&self) -> Sequence {
        self.sequence
    }

    /// The id that the next attempt to register will have.
    pub(crate) fn next_id(&self) -> AgentId {
        self.id_of(self.generation.next())
    }

    /// When the next attempt may be made.
    pub(crate) fn opens_at(&self) -> Moment {
        let gap = self.began_at.map(|at| at.after(self.periods.session_gap));
        self.rest.ends().max(gap).unwrap_or_default()
    }

    /// The number that the next size will have; zero where sizes have none.
    pub(crate) fn next_sequence(&self) -> Sequence {
        if self.numbers_sizes() { self.sequence.next() } else { Sequence::ZERO }
    }

    pub(crate) fn version(&self) -> InformantVersion {
        self.version
    }

    /// Whether sizes that are said say whose they are and which, or did in the last session.
    pub(crate) fn numbers_sizes(&self) -> bool {
        self.version.numbers_sizes()
    }

    /// When the next check is due; `None` where there is nothing to check.
    pub(crate) fn health_due(&self) -> Option<Moment> {
        match self.state {
            State::Absent | State::Opening { .. } => None,
            State::Registered { .. } | State::Active | State::Suspended { .. } => {
                self.version.checks_health().then_some(self.health_at)
            }
            State::Leaving => None,
        }
    }

    /// When a session is given up: one that was never resumed, or that nothing is heard in. While
    /// its guest stood still, until then, nothing could be heard.
    pub(crate) fn gives_up_at(&self, stood_until: Option<Moment>) -> Option<Moment> {
        let from = |at: Moment| at.max(stood_until.unwrap_or_default());
        let unheard =
            (!self.version.checks_health()).then(|| from(self.heard_at).after(INFORMANT_GONE));
        match self.state {
            State::Registered { since } => {
                let unresumed = from(since).after(UNRESUMED);
                Some(unheard.map_or(unresumed, |unheard| unheard.min(unresumed)))
            }
            State::Active | State::Suspended { .. } => unheard,
            State::Absent | State::Opening { .. } | State::Leaving => None,
        }
    }

    pub(crate) fn opening(&mut self) {
        self.generation = self.generation.next();
        self.state = State::Opening { resumed: false };
        self.sequence = Sequence::ZERO;
        self.silences = 0;
        (self.checked_at, self.leased_at) = (None, None);
    }

    pub(crate) fn checking(&mut self, now: Moment) {
        self.checked_at = Some(now);
    }

    /// The informant answered a check: the session stands.
    pub(crate) fn healthy(&mut self) {
        if self.state == State::Active {
            self.leased_at = self.checked_at.max(self.leased_at);
        }
    }

    /// The informant does not heed this agent, which may be registered: another agent takes over, or
    /// the word to run is on its way.
    pub(crate) fn unheeded(&mut self, now: Moment) {
        self.answered(now);
        self.state = State::Registered { since: now };
        (self.leased_at, self.waits) = (None, true);
    }

    pub(crate) fn leaving(&mut self) {
        self.state = State::Leaving;
        self.leased_at = None;
    }

    pub(crate) fn sized(&mut self) {
        if self.numbers_sizes() {
            self.sequence = self.sequence.next();
        }
    }

    pub(crate) fn registered(
        &mut self,
        now: Moment,
        version: InformantVersion,
        jitter: &mut Jitter,
    ) {
        self.version = version;
        self.state = match self.state {
            State::Opening { resumed: true } => State::Active,
            State::Opening { resumed: false } => State::Registered { since: now },
            other @ (State::Absent
            | State::Registered { .. }
            | State::Active
            | State::Suspended { .. }
            | State::Leaving) => other,
        };
        self.answered(now);
        (self.began_at, self.has_been) = (Some(now), true);
        // One that was told to run already has it confirmed at once.
        self.check_later(now, jitter);
        if self.is_active() {
            (self.health_at, self.waits) = (now, false);
        }
    }

    pub(crate) fn answered(&mut self, now: Moment) {
        (self.silences, self.is_unanswered) = (0, false);
        self.heard_at = now;
    }

    /// Whether the informant did not answer when it was last asked for a session.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// The next check is due a while after the last one.
    pub(crate) fn check_later(&mut self, now: Moment, jitter: &mut Jitter) {
        let wait = self.periods.health.min(Periods::LONGEST_HEALTH);
        self.health_at = now.after(jitter.around(wait));
    }

    /// The informant did not answer. Returns whether that ends the session.
    pub(crate) fn silent(&mut self) -> bool {
        self.silences += 1;
        let opening = matches!(self.state, State::Opening { .. });
        self.is_unanswered |= opening;
        opening || self.silences >= SILENCES
    }

    pub(crate) fn end(&mut self) {
        self.state = State::Absent;
        self.leased_at = None;
    }

    /// The informant refused a request of an open session, which is over. One that does not know
    /// the session has restarted, as a rule: it is registered with at once, unless it did so before.
    pub(crate) fn refused(&mut self, now: Moment, status: u16, jitter: &mut Jitter) {
        self.answered(now);
        self.rest.failed(now, jitter);
        if status == NOT_FOUND && self.rest.failures() == 1 {
            self.rest.lift();
        }
    }

    /// The informant did what sessions are for.
    pub(crate) fn forget_refusals(&mut self) {
        self.rest.succeeded();
    }

    /// It is another one since a restart of the guest.
    pub(crate) fn begins_anew(&mut self) {
        self.rest.succeeded();
        self.began_at = None;
    }

    /// Ids differ by VM (its seed) and by generation, and look like any other random UUID.
    fn id_of(&self, generation: Generation) -> AgentId {
        let mut mix = Jitter::new(self.seed ^ generation.number().rotate_left(32));
        let bits = (u128::from(mix.next()) << 64) | u128::from(mix.next());
        let version = 0x4_u128 << 76;
        let variant = 0x2_u128 << 62;
        AgentId::from_u128(bits & !(0xF_u128 << 76) & !(0x3_u128 << 62) | version | variant)
    }
}
