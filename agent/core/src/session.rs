//! One agent with one informant: which id counts, and whether it does.
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
//! Law 6, the newest session counts: each attempt to register has an id of its own, so a lost
//! answer cannot be taken for a later one, and an informant that kept the old id drops it when
//! it asks. A call that names another id changes nothing. No end of a session is final.
//!
//! The version that the informant chose says what the session can do ([`InformantVersion`]).
//! Where the agent cannot ask whether it stands (below v1.2) it listens: the informant's own
//! checks keep it, and silence ends it.

use crate::event::{Call, CallAnswer, NotNow};
use crate::rest::{Jitter, Rest};
use std::time::Duration;
use windlass_protocol::status::SessionState;
use windlass_protocol::{AgentId, Generation, InformantVersion, Moment, Sequence};

/// How often a session is checked.
const HEALTH_EVERY: Duration = Duration::from_secs(5);
/// Checks without an answer that end a session.
const SILENCES: u32 = 3;
/// Where a session cannot be checked, the informant's own checks keep it, one in ten seconds:
/// without a word for this long, three were lost and it is over.
const UNHEARD: Duration = Duration::from_secs(35);
/// Registered, and not told that it counts: after this, a new session is tried.
const UNRESUMED: Duration = Duration::from_secs(30);

/// The session of one VM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    seed: u64,
    generation: Generation,
    state: State,
    /// What is spoken, or was in the last session.
    version: InformantVersion,
    sequence: Sequence,
    /// When the informant last said anything.
    heard_at: Moment,
    health_at: Moment,
    silences: u32,
    /// After a session that an informant opened and then refused to serve.
    rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Opening { resumed: bool },
    Registered { since: Moment },
    Active,
    Suspended,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            generation: Generation::default(),
            state: State::Absent,
            version: InformantVersion::V2_0,
            heard_at: Moment::default(),
            sequence: Sequence::ZERO,
            health_at: Moment::default(),
            silences: 0,
            rest: Rest::new(Duration::from_secs(1), Duration::from_secs(60)),
        }
    }

    pub(crate) fn status(&self) -> SessionState {
        match self.state {
            State::Absent | State::Opening { .. } => SessionState::Absent,
            State::Registered { .. } => SessionState::Registered,
            State::Active => SessionState::Active,
            State::Suspended => SessionState::Suspended,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.state == State::Suspended
    }

    /// The id of this session; none while there is none.
    pub(crate) fn id(&self) -> Option<AgentId> {
        (!self.is_absent()).then(|| self.id_of(self.generation))
    }

    /// The id that the next attempt to register will have.
    pub(crate) fn next_id(&self) -> AgentId {
        self.id_of(self.generation.next())
    }

    /// When the next attempt may be made.
    pub(crate) fn opens_at(&self) -> Moment {
        self.rest.ends().unwrap_or_default()
    }

    /// The number that the next size will have; zero where sizes have none.
    pub(crate) fn next_sequence(&self) -> Sequence {
        if self.numbers_sizes() { self.sequence.next() } else { Sequence::ZERO }
    }

    /// Whether sizes that are said say whose they are and which, or did in the last session.
    pub(crate) fn numbers_sizes(&self) -> bool {
        self.version.numbers_sizes()
    }

    /// When the next check is due; `None` where there is nothing to check.
    pub(crate) fn health_due(&self) -> Option<Moment> {
        match self.state {
            State::Absent | State::Opening { .. } => None,
            State::Registered { .. } | State::Active | State::Suspended => {
                self.version.checks_health().then_some(self.health_at)
            }
        }
    }

    /// When a session is given up: one that was never resumed, or that nothing is heard in.
    pub(crate) fn gives_up_at(&self) -> Option<Moment> {
        let unheard = (!self.version.checks_health()).then(|| self.heard_at.after(UNHEARD));
        match self.state {
            State::Registered { since } => {
                let unresumed = since.after(UNRESUMED);
                Some(unheard.map_or(unresumed, |unheard| unheard.min(unresumed)))
            }
            State::Active | State::Suspended => unheard,
            State::Absent | State::Opening { .. } => None,
        }
    }

    pub(crate) fn opening(&mut self) {
        self.generation = self.generation.next();
        self.state = State::Opening { resumed: false };
        self.sequence = Sequence::ZERO;
        self.silences = 0;
    }

    /// A size leaves.
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
            | State::Suspended) => other,
        };
        self.heard(now, jitter);
    }

    /// The informant answered something.
    pub(crate) fn heard(&mut self, now: Moment, jitter: &mut Jitter) {
        self.silences = 0;
        self.heard_at = now;
        self.health_at = now.after(jitter.around(HEALTH_EVERY));
    }

    /// The informant did not answer. Returns whether that ends the session.
    pub(crate) fn silent(&mut self) -> bool {
        self.silences += 1;
        self.silences >= SILENCES || matches!(self.state, State::Opening { .. })
    }

    pub(crate) fn end(&mut self) {
        self.state = State::Absent;
    }

    /// The informant refused a request of an open session, which is over.
    pub(crate) fn refused(&mut self, now: Moment, jitter: &mut Jitter) {
        self.rest.failed(now, jitter);
    }

    /// The informant did what sessions are for, or it is another since a restart of the guest.
    pub(crate) fn forget_refusals(&mut self) {
        self.rest.succeeded();
    }

    /// Answers the informant. Saying the same twice gets the same answer, with a new number.
    pub(crate) fn call(&mut self, now: Moment, call: Call) -> CallAnswer {
        let Some(id) = self.id() else { return CallAnswer::Unknown };
        let expected = match call {
            Call::Id => id,
            Call::Resume(expected)
            | Call::Suspend(expected)
            | Call::MoreResources { expected, .. } => expected,
        };
        if expected != id {
            return CallAnswer::Other(expected);
        }
        let version = self.version;
        match (call, self.state) {
            // The informant may say so before its answer to the registration is read.
            (Call::Resume(_), State::Opening { .. }) => {
                self.state = State::Opening { resumed: true };
            }
            (Call::Resume(_), _) => self.state = State::Active,
            (Call::Suspend(_), State::Opening { .. }) => {
                return CallAnswer::NotNow(NotNow::SuspendsUnregistered);
            }
            (Call::Suspend(_), _) => self.state = State::Suspended,
            (Call::MoreResources { .. }, State::Active) if !version.asks_for_more() => {
                return CallAnswer::NotNow(NotNow::MoreUnknown(version));
            }
            (Call::MoreResources { .. }, State::Active) | (Call::Id, _) => {}
            (Call::MoreResources { .. }, State::Suspended) => {
                return CallAnswer::NotNow(NotNow::MoreSuspended);
            }
            (Call::MoreResources { .. }, State::Registered { .. } | State::Opening { .. }) => {
                return CallAnswer::NotNow(NotNow::MoreUnconfirmed);
            }
            (Call::MoreResources { .. }, State::Absent) => return CallAnswer::Unknown,
        }
        self.heard_at = now;
        self.sequence = self.sequence.next();
        CallAnswer::Ours(id, self.sequence)
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
