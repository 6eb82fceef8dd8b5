//! One registered agent: its stage, the call in progress, and the numbers of its messages.
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
//! In `Resuming` and `Suspending` both outcomes are possible: the agent may be running or not. An answer ends
//! these states; so does the refusal with which the reference answers a repeated command.

use crate::event::{Ask, Failure};
use crate::refusal::Cause;
use std::net::SocketAddr;
use std::time::Duration;
use windlass_protocol::informant::DownscaleResult;
use windlass_protocol::timing::{
    CALL_LEASE_GIVEN, CHECK_EVERY, CHECK_SPREAD, HEARD_LATE, LEASE_GIVEN, RESUME_MAY_BE_OLD,
};
use windlass_protocol::{AgentId, InformantVersion, Moment, Sequence};

/// The informant removes an agent after this many failures in a row.
const FAILURES: u8 = 3;

/// The wait after a failure, so that one short outage does not cause three failures in a row.
const REST: Duration = Duration::from_millis(250);

/// The time for an agent to read the answer to its `/register`. Until then the reference's agent refuses
/// `/resume` and starts over.
const RESUME_AFTER: Duration = Duration::from_millis(100);

/// The status with which the reference's agent refuses `/suspend` because it is suspended already.
const WAITS_ALREADY: u16 = 400;

/// One agent.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: AgentId,
    /// The version of its session.
    pub(crate) version: InformantVersion,
    pub(crate) addr: SocketAddr,
    /// The address as the agent wrote it, which `/unregister` must repeat.
    pub(crate) announced: String,
    pub(crate) stage: Stage,
    line: CallState,
    /// Failures in a row.
    failures: u8,
    check_at: Moment,
    /// When its lease expires.
    pub(crate) leased: Moment,
    /// When it was last suspended.
    waits_at: Moment,
    /// The highest number among its answers to our calls.
    answers: Sequence,
    /// Its `/downscale` or `/upscale` with the highest number, and the answer.
    pub(crate) request: Option<(Sequence, PastAnswer)>,
}

/// The stage of a session. See the module's drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Registering; `checked` once it has confirmed its id.
    Joining { checked: bool },
    /// Suspended, or not resumed yet; the informant may resume it from this moment on.
    Suspended { from: Moment },
    /// `/resume` was sent but not answered. `lost`: an earlier call without an answer may have reached it.
    Resuming { lost: bool },
    /// It has confirmed `/resume`.
    Running,
    /// `/suspend` was sent but not answered.
    Suspending,
}

/// An earlier answer, for repeated requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PastAnswer {
    /// To `/downscale`.
    Downscale(DownscaleResult),
    /// To `/upscale`.
    Upscale,
}

/// The state of calls to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Idle,
    Busy(Ask),
    Resting { until: Moment },
}

/// The length of the lease in this version.
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

    /// Whether a call to it is in progress.
    pub(crate) const fn is_called(&self) -> bool {
        matches!(self.line, CallState::Busy(_))
    }

    /// Whether it may be acting on this VM.
    pub(crate) fn may_run(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Resuming { .. } => true,
            // It was suspended; without an answer, its lease expires.
            Stage::Suspending | Stage::Suspended { .. } | Stage::Joining { .. } => false,
        }
    }

    /// Renews the lease when its health check is answered.
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

    /// The next call to it. `newest`: this agent should run; `free`: no other agent may be running; `want`:
    /// the guest wants memory, and may ask for it from that moment on.
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

    /// It answered with status 200. An error says why the informant removes it.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        by: AgentId,
        sequence: Sequence,
    ) -> Result<(), Cause> {
        let CallState::Busy(ask) = self.line else { return Ok(()) };
        if by != self.id {
            return Err(Cause::OtherId(by));
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
        Ok(())
    }

    /// The call to it failed. An error says why the informant removes it.
    pub(crate) fn failed(&mut self, now: Moment, failure: Failure) -> Result<(), Cause> {
        let CallState::Busy(ask) = self.line else { return Ok(()) };
        let cause = Cause::Failed(failure);
        match (failure, ask, self.stage) {
            // Another agent listens at this address.
            (Failure::Refused(404), ..) => return Err(cause),
            // It had followed an earlier call whose answer was lost.
            (Failure::Refused(_), Ask::Resume, Stage::Resuming { lost: true } | Stage::Running) => {
                self.settle(now, Stage::Running);
            }
            // The same, but this answer does not end its lease.
            (Failure::Refused(WAITS_ALREADY), Ask::Suspend, _) => {
                self.settle(now, Stage::Suspended { from: now.after(RESUME_MAY_BE_OLD) });
            }
            // It does not run, against expectation: resume it again.
            (Failure::Refused(_), Ask::MoreMemory, _) => {
                self.stage = Stage::Resuming { lost: true };
                return self.failure(now, ask, cause);
            }
            // A proxy may have refused a `/suspend`, so the agent may not know.
            (Failure::Refused(_), Ask::Id | Ask::Suspend | Ask::Resume, _)
            | (Failure::NoAnswer, ..) => return self.failure(now, ask, cause),
        }
        Ok(())
    }

    /// It sent a request that only a running agent sends, so it was resumed, even without its answer.
    pub(crate) fn heard_from(&mut self) {
        if let Stage::Resuming { .. } = self.stage {
            self.stage = Stage::Running;
        }
    }

    fn settle(&mut self, now: Moment, stage: Stage) {
        self.stage = stage;
        self.line = CallState::Resting { until: now.after(REST) };
    }

    fn failure(&mut self, now: Moment, ask: Ask, cause: Cause) -> Result<(), Cause> {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES || !self.joined() {
            return Err(cause);
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
        // After a failure the next check comes soon: three failures need no three periods.
        self.check_at = now.after(REST);
        Ok(())
    }

    fn check_later(&mut self, now: Moment) {
        let spread = self.id.uuid().as_u128() % CHECK_SPREAD.as_millis();
        let spread = Duration::from_millis(u64::try_from(spread).unwrap_or(0));
        self.check_at = now.after(CHECK_EVERY).after(spread);
    }
}
