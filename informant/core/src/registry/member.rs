//! One agent: what it was told last, what is under way with it, which numbers it used.
//!
//! ```text
//!            /id answered            sent /resume          answered, or it asks us
//!  Joining ───────────────► Suspended ──────────► Resuming ──────────────────────► Running
//!                               ▲  ▲                 ▲ │                              │
//!                               │  └── answered ──┐  │ │ a newer one is there         │
//!                               │                 │  │ ▼                              │
//!                               └──────────────── Suspending ◄── sent, no answer ─────┘
//! ```
//!
//! `Resuming` and `Suspending` are the states in which both outcomes are possible: the agent
//! may be running or not. They end with an answer, also with the refusal that the reference
//! gives to a command that it had already followed.

use crate::event::{Ask, Failure};
use crate::refusal::Cause;
use std::net::SocketAddr;
use std::time::Duration;
use windlass_protocol::timing::{
    CALL_LEASE_GIVEN, CHECK_EVERY, CHECK_SPREAD, HEARD_LATE, LEASE_GIVEN, RESUME_MAY_BE_OLD,
};
use windlass_protocol::{AgentId, InformantVersion, Moment, Sequence};

/// An agent that fails this many times in a row is let go of.
const FAILURES: u8 = 3;

/// After a failure an agent is left alone for this long, so that three failures in a row are
/// not one short outage.
const REST: Duration = Duration::from_millis(250);

/// The reference's agent refuses `/resume`, and starts all over, until it has read the answer
/// to its `/register`. So it is given this long to read it.
const RESUME_AFTER: Duration = Duration::from_millis(100);

/// The status with which the reference refuses to wait because it does so already.
const WAITS_ALREADY: u16 = 400;

/// One agent.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: AgentId,
    /// What is spoken with it.
    pub(crate) version: InformantVersion,
    pub(crate) addr: SocketAddr,
    /// The address as the agent wrote it, which `/unregister` must repeat.
    pub(crate) announced: String,
    pub(crate) stage: Stage,
    line: CallState,
    /// In a row.
    failures: u8,
    check_at: Moment,
    /// Until when it may act, if it was told to run.
    leased: Moment,
    /// When it was last told to wait.
    waits_at: Moment,
    /// The highest number among its answers to our calls.
    answers: Sequence,
    /// The highest number among its `/downscale` and `/upscale`, and what was answered.
    pub(crate) request: Option<Numbered>,
}

/// How far the session is. See the module's drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Registering; `checked` once it has said who it is.
    Joining { checked: bool },
    /// Told to wait, or not told anything yet; it may be resumed from this moment on.
    Suspended { from: Moment },
    /// Told to run, and has not answered. `lost` if an earlier word may have reached it.
    Resuming { lost: bool },
    /// It is the one that counts.
    Running,
    /// Told to wait, and did not answer.
    Suspending,
}

/// The last numbered request, and the answer to it.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) sequence: Sequence,
    pub(crate) answer: PastAnswer,
}

/// An answer that can be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PastAnswer {
    /// To `/downscale`.
    Downscale { ok: bool, status: String },
    /// To `/upscale`.
    Upscale,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Idle,
    Busy(Ask),
    Resting { until: Moment },
}

/// What is to become of a member after an answer or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop(Cause),
}

/// For how long an agent may act without hearing of us, once it was told to run.
pub(crate) fn lease_of(version: InformantVersion) -> Duration {
    if version.checks_health() { LEASE_GIVEN } else { CALL_LEASE_GIVEN }
}

// === impl Member ===

impl Member {
    pub(crate) fn new(
        id: AgentId,
        version: InformantVersion,
        addr: SocketAddr,
        announced: String,
    ) -> Self {
        Self {
            id,
            version,
            addr,
            announced,
            stage: Stage::Joining { checked: false },
            line: CallState::Idle,
            failures: 0,
            check_at: Moment::default(),
            leased: Moment::default(),
            waits_at: Moment::default(),
            answers: Sequence::ZERO,
            request: None,
        }
    }

    /// Whether it has registered.
    pub(crate) fn joined(&self) -> bool {
        !matches!(self.stage, Stage::Joining { .. })
    }

    /// Whether a call to it is under way.
    pub(crate) const fn is_called(&self) -> bool {
        matches!(self.line, CallState::Busy(_))
    }

    /// Whether it may be acting on this VM, as far as we know.
    pub(crate) fn may_run(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Resuming { .. } => true,
            // It was told, and if it does not answer, its lease runs out.
            Stage::Suspending | Stage::Suspended { .. } | Stage::Joining { .. } => false,
        }
    }

    /// Until when it may act.
    pub(crate) fn leased(&self) -> Moment {
        self.leased
    }

    /// Its health check is answered: it may act on.
    pub(crate) fn checked(&mut self, now: Moment) {
        match self.stage {
            Stage::Running | Stage::Resuming { .. } | Stage::Suspending => {
                self.leased = now.after(LEASE_GIVEN);
            }
            Stage::Joining { .. } | Stage::Suspended { .. } => {}
        }
    }

    /// The registration is complete.
    pub(crate) fn join(&mut self, now: Moment) {
        self.stage = Stage::Suspended { from: now.after(RESUME_AFTER) };
        self.check_later(now);
    }

    /// What to ask it now. `newest`: it is the one that should run; `free`: no other may be
    /// running; `want`: memory is wanted, and may be asked for from that moment on.
    pub(crate) fn next(
        &self,
        now: Moment,
        newest: bool,
        free: bool,
        want: Option<Moment>,
    ) -> Result<Ask, Option<Moment>> {
        match self.line {
            CallState::Busy(_) => return Err(None),
            CallState::Resting { until } if until > now => return Err(Some(until)),
            CallState::Resting { .. } | CallState::Idle => {}
        }
        let (ask, from) = match (self.stage, newest) {
            (Stage::Joining { checked: false }, _) => return Ok(Ask::Id),
            (Stage::Joining { checked: true }, _) => return Err(None),
            (Stage::Running | Stage::Resuming { .. } | Stage::Suspending, false) => {
                return Ok(Ask::Suspend);
            }
            (Stage::Resuming { .. }, true) if free => return Ok(Ask::Resume),
            (Stage::Suspending, true) if free => {
                (Ask::Resume, self.waits_at.after(RESUME_MAY_BE_OLD + HEARD_LATE))
            }
            (Stage::Suspended { from }, true) if free => (Ask::Resume, from),
            (Stage::Running, true) => match want.filter(|_| self.version.asks_for_more()) {
                Some(from) if from < self.check_at => (Ask::MoreMemory, from),
                Some(_) | None => (Ask::Id, self.check_at),
            },
            (Stage::Resuming { .. } | Stage::Suspending, true) | (Stage::Suspended { .. }, _) => {
                (Ask::Id, self.check_at)
            }
        };
        if from > now { Err(Some(from)) } else { Ok(ask) }
    }

    /// From here on the call may take effect.
    pub(crate) fn sent(&mut self, now: Moment, ask: Ask) {
        self.line = CallState::Busy(ask);
        match (ask, self.stage) {
            (Ask::Resume, _) => self.leased = now.after(lease_of(self.version)),
            (Ask::Suspend, _) => self.waits_at = now,
            (_, Stage::Joining { .. } | Stage::Suspended { .. }) => {}
            (Ask::Id | Ask::MoreMemory, _) if !self.version.checks_health() => {
                self.leased = now.after(CALL_LEASE_GIVEN);
            }
            (Ask::Id | Ask::MoreMemory, _) => {}
        }
        if ask == Ask::Resume {
            self.stage = match self.stage {
                Stage::Suspended { .. } | Stage::Joining { .. } => Stage::Resuming { lost: false },
                Stage::Suspending => Stage::Resuming { lost: true },
                known @ (Stage::Resuming { .. } | Stage::Running) => known,
            };
        }
    }

    /// It answered with status 200.
    pub(crate) fn answered(&mut self, now: Moment, by: AgentId, sequence: Sequence) -> Verdict {
        let CallState::Busy(ask) = self.line else { return Verdict::Keep };
        if by != self.id {
            return Verdict::Drop(Cause::OtherId(by));
        }
        if sequence <= self.answers {
            return self.failure(now, ask, Cause::OldSequence(sequence.number()));
        }
        self.answers = sequence;
        self.line = CallState::Idle;
        self.failures = 0;
        self.check_later(now);
        self.stage = match (ask, self.stage) {
            (Ask::Id, Stage::Joining { .. }) => Stage::Joining { checked: true },
            (Ask::Suspend, _) => {
                self.leased = now;
                Stage::Suspended { from: now.after(RESUME_MAY_BE_OLD) }
            }
            (Ask::Resume, _) => Stage::Running,
            (Ask::Id | Ask::MoreMemory, stage) => stage,
        };
        Verdict::Keep
    }

    /// The call to it failed.
    pub(crate) fn failed(&mut self, now: Moment, failure: Failure) -> Verdict {
        let CallState::Busy(ask) = self.line else { return Verdict::Keep };
        let cause = Cause::Failed(failure);
        match (failure, ask, self.stage) {
            // It is not the agent that we know.
            (Failure::Refused(404), ..) => Verdict::Drop(cause),
            // It had followed an earlier word whose answer was lost.
            (Failure::Refused(_), Ask::Resume, Stage::Resuming { lost: true } | Stage::Running) => {
                self.settle(now, Stage::Running)
            }
            // The same; but what it says is no more than that, so its lease runs on.
            (Failure::Refused(WAITS_ALREADY), Ask::Suspend, _) => {
                self.settle(now, Stage::Suspended { from: now.after(RESUME_MAY_BE_OLD) })
            }
            // Somebody on the way refused: it may not have heard.
            (Failure::Refused(_), Ask::Suspend, _) => self.failure(now, ask, cause),
            // It does not run, though we thought so: told again.
            (Failure::Refused(_), Ask::MoreMemory, _) => {
                self.stage = Stage::Resuming { lost: true };
                self.failure(now, ask, cause)
            }
            (Failure::Refused(_), Ask::Id | Ask::Resume, _) => self.failure(now, ask, cause),
            (Failure::NoAnswer, ..) => self.failure(now, ask, cause),
        }
    }

    /// It asks us for something that only a running agent asks: so it was resumed, even if
    /// its answer to that has not come yet.
    pub(crate) fn heard_from(&mut self) {
        if let Stage::Resuming { .. } = self.stage {
            self.stage = Stage::Running;
        }
    }

    fn settle(&mut self, now: Moment, stage: Stage) -> Verdict {
        self.stage = stage;
        self.line = CallState::Resting { until: now.after(REST) };
        Verdict::Keep
    }

    fn failure(&mut self, now: Moment, ask: Ask, cause: Cause) -> Verdict {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES || !self.joined() {
            return Verdict::Drop(cause);
        }
        self.line = CallState::Resting { until: now.after(REST) };
        let lost = matches!(cause, Cause::Failed(Failure::NoAnswer));
        self.stage = match (ask, self.stage) {
            (Ask::Suspend, Stage::Running | Stage::Resuming { .. }) => Stage::Suspending,
            (Ask::Resume, Stage::Resuming { lost: before }) => {
                Stage::Resuming { lost: before || lost }
            }
            (Ask::Id | Ask::MoreMemory | Ask::Suspend | Ask::Resume, stage) => stage,
        };
        // One that fails is asked again soon: three in a row, not three checks in a row.
        self.check_at = now.after(REST);
        Verdict::Keep
    }

    fn check_later(&mut self, now: Moment) {
        let spread = self.id.uuid().as_u128() % CHECK_SPREAD.as_millis();
        let spread = Duration::from_millis(u64::try_from(spread).unwrap_or(0));
        self.check_at = now.after(CHECK_EVERY).after(spread);
    }
}
