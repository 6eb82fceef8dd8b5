//! The connection to one hypervisor: made, lost, made again.
//!
//! ```text
//!                attached                    act
//!   Attaching ─────────────► Idle ─────────────────► Acting
//!      ▲  ▲ │ gone, unreachable:  │ the connection ended │
//!      │  └─┘ wait, try again     │                      │ broken, silent thrice
//!      └──────────────────────────┴──────────────────────┘
//! ```
//!
//! One request at a time. What is asked for while there is no connection is not kept for
//! later, but for a look: the plan that asked for it is older than the connection.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};
use windlass_agent_core::{Event, Failure};
use windlass_drivers::any::{AnyAttach, AnyDriver};
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_kit::backoff::Backoff;
use windlass_protocol::{Capabilities, LimitCounts, Peer, Resize};

/// Between attempts to attach. Its end is how soon a VM that comes back is found.
const ATTACHING: Backoff =
    Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(2) };

/// A connection that did not last this long was as good as none: the next attempt waits longer.
const LASTING: Duration = Duration::from_secs(5);

/// Requests without an answer, in a row, after which the connection is made anew.
const SILENCES: u32 = 3;

/// What a hypervisor's refusal is reported as: its errors have no numbers.
const REFUSED: u16 = 400;
/// What a request without a connection is reported as.
const UNCONNECTED: u16 = 503;

/// The connection to one hypervisor.
pub(crate) struct Hypervisor {
    attach: AnyAttach,
    seed: u64,
    state: State,
    /// Attempts to attach that failed, or did not last, in a row.
    attempts: u32,
    attached_at: Option<Instant>,
    /// Requests that were not answered, in a row.
    silences: u32,
    /// A look was asked for, and starts when it can.
    look_wanted: bool,
    /// The caller of the request under way is gone.
    disregarded: bool,
    /// Known, and not yet reported.
    owed: Option<Event>,
    /// Why a resize was last refused, if it was not carried out since.
    refused: Option<String>,
    /// How the host's limit held the VM up, as of the last look.
    limit_counts: Option<LimitCounts>,
}

/// What came of waiting.
#[derive(Debug)]
pub(crate) enum Happening {
    /// There is a connection, the first or a new one.
    Attached(Capabilities),
    /// The answer to what was asked.
    Answered(Event),
    /// Said unasked.
    Noticed(Notice),
    /// There is no VM.
    Gone(DriverError),
    /// There is one, and it cannot be reached now.
    Unreachable(DriverError),
}

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Attached = Result<(AnyDriver, mpsc::Receiver<Notice>), DriverError>;

enum State {
    Attaching(Waiting<Attached>),
    Idle {
        driver: AnyDriver,
        notices: mpsc::Receiver<Notice>,
    },
    Acting {
        work: Waiting<(AnyDriver, Result<Event, DriverError>)>,
        notices: mpsc::Receiver<Notice>,
        /// Whether notices can still come.
        open: bool,
    },
    /// For the moment in which one state becomes the next.
    Between,
}

// === impl Hypervisor ===

impl Hypervisor {
    pub(crate) fn new(attach: AnyAttach, seed: u64) -> Self {
        Self::starting_in(Duration::ZERO, attach, seed)
    }

    /// The same, whose first attempt to attach begins after a wait.
    pub(crate) fn starting_in(wait: Duration, attach: AnyAttach, seed: u64) -> Self {
        let mut hypervisor = Self {
            attach,
            seed,
            state: State::Between,
            attempts: 0,
            attached_at: None,
            silences: 0,
            look_wanted: false,
            disregarded: false,
            owed: None,
            refused: None,
            limit_counts: None,
        };
        hypervisor.attach_after(wait);
        hypervisor
    }

    /// How it is reached.
    pub(crate) fn way(&self) -> &AnyAttach {
        &self.attach
    }

    /// How the host's limit held the VM up, as of the last look; `None` where there is no limit.
    pub(crate) fn limit_counts(&self) -> Option<LimitCounts> {
        self.limit_counts
    }

    /// Starts a look or a resize. Exactly one answer follows, unless the VM is gone.
    pub(crate) fn start(&mut self, action: Wanted) {
        match (std::mem::replace(&mut self.state, State::Between), action) {
            (State::Idle { driver, notices }, action) => {
                let work = Box::pin(carry_out(driver, action));
                self.state = State::Acting { work, notices, open: true };
            }
            (busy, Wanted::Look) => {
                self.look_wanted = true;
                self.state = busy;
            }
            (busy, Wanted::Resize(_)) => {
                self.owed = Some(failed(Failure::Refused(UNCONNECTED)));
                self.state = busy;
            }
        }
    }

    /// The caller is gone: the answer to the request under way is not reported.
    pub(crate) fn disregard(&mut self) {
        self.disregarded = matches!(self.state, State::Acting { .. });
        self.look_wanted = false;
        self.owed = None;
    }

    /// Waits for the next thing to happen. Can be dropped and called again at any time.
    pub(crate) async fn next(&mut self) -> Happening {
        loop {
            if let Some(event) = self.owed.take() {
                return Happening::Answered(event);
            }
            match &mut self.state {
                State::Attaching(attempt) => {
                    let result = attempt.as_mut().await;
                    return self.attached(result);
                }
                State::Idle { notices, .. } => match notices.recv().await {
                    Some(notice) => return Happening::Noticed(notice),
                    None => self.attach_again(),
                },
                State::Acting { work, notices, open } => tokio::select! {
                    biased;
                    notice = notices.recv(), if *open => match notice {
                        Some(notice) => return Happening::Noticed(notice),
                        None => *open = false,
                    },
                    (driver, result) = work.as_mut() => {
                        if let Some(happening) = self.worked(driver, result) {
                            return happening;
                        }
                    }
                },
                // Only between two statements of the methods below, which do not wait.
                State::Between => self.attach_again(),
            }
        }
    }

    fn attached(&mut self, result: Attached) -> Happening {
        match result {
            Ok((driver, notices)) => {
                (self.attached_at, self.silences) = (Some(Instant::now()), 0);
                let capabilities = driver.capabilities();
                self.state = State::Idle { driver, notices };
                self.look_if_wanted();
                Happening::Attached(capabilities)
            }
            Err(error) => self.not_there(error),
        }
    }

    fn worked(
        &mut self,
        driver: AnyDriver,
        result: Result<Event, DriverError>,
    ) -> Option<Happening> {
        let State::Acting { notices, .. } = std::mem::replace(&mut self.state, State::Between)
        else {
            return None;
        };
        let event = match result {
            Ok(event) => {
                self.silences = 0;
                if event == Event::Resized {
                    self.refused = None;
                }
                event
            }
            Err(error @ DriverError::Gone { .. }) => return Some(self.not_there(error)),
            Err(DriverError::Refused { command, reason }) => {
                self.silences = 0;
                self.refusal(command, reason);
                failed(Failure::Refused(REFUSED))
            }
            Err(error @ DriverError::Partly { .. }) => {
                debug!(%error, "the hypervisor did a part of it");
                self.silences = 0;
                failed(Failure::NoAnswer)
            }
            Err(error @ DriverError::NoAnswer { .. }) => {
                debug!(%error, "the hypervisor did not answer");
                self.silences += 1;
                failed(Failure::NoAnswer)
            }
            Err(
                error @ (DriverError::Taken { .. }
                | DriverError::Silent { .. }
                | DriverError::Stopped { .. }
                | DriverError::Broken(_)),
            ) => {
                debug!(%error, "the connection to the hypervisor broke");
                self.silences = SILENCES;
                failed(Failure::NoAnswer)
            }
        };
        self.limit_counts = driver.limit_counts();
        let disregarded = std::mem::take(&mut self.disregarded);
        if self.silences >= SILENCES {
            drop(driver);
            self.attach_again();
        } else {
            self.state = State::Idle { driver, notices };
            self.look_if_wanted();
        }
        (!disregarded).then_some(Happening::Answered(event))
    }

    /// Says each new refusal once: it is asked again and again.
    fn refusal(&mut self, command: &str, reason: String) {
        if self.refused.as_ref() == Some(&reason) {
            debug!(command, reason, "the hypervisor refused again");
        } else {
            warn!(command, reason, "the hypervisor refused");
            self.refused = Some(reason);
        }
    }

    fn not_there(&mut self, error: DriverError) -> Happening {
        // A VM that went away after a while is soon looked for again; one that was not there,
        // after a longer and longer wait.
        self.attach_again();
        let looked = std::mem::take(&mut self.look_wanted);
        if matches!(error, DriverError::Gone { .. }) {
            return Happening::Gone(error);
        }
        if looked {
            self.owed = Some(failed(Failure::NoAnswer));
        }
        Happening::Unreachable(error)
    }

    fn look_if_wanted(&mut self) {
        if std::mem::take(&mut self.look_wanted) {
            self.start(Wanted::Look);
        }
    }

    fn attach_again(&mut self) {
        let lasted = self.attached_at.take().is_some_and(|since| since.elapsed() >= LASTING);
        self.attempts = if lasted { 0 } else { self.attempts.saturating_add(1) };
        (self.silences, self.disregarded) = (0, false);
        self.attach_after(ATTACHING.wait(self.attempts, self.seed));
    }

    fn attach_after(&mut self, rest: Duration) {
        let attach = self.attach.clone();
        // What was connected is dropped first: a hypervisor serves one client at a time.
        self.state = State::Between;
        self.state = State::Attaching(Box::pin(async move {
            tokio::time::sleep(rest).await;
            attach.attach().await
        }));
    }
}

/// What happens at a hypervisor, if there is one.
pub(crate) async fn next(hypervisor: &mut Option<Hypervisor>) -> Happening {
    match hypervisor {
        Some(hypervisor) => hypervisor.next().await,
        None => std::future::pending().await,
    }
}

/// What can be asked of a hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Look,
    Resize(Resize),
}

async fn carry_out(
    mut driver: AnyDriver,
    wanted: Wanted,
) -> (AnyDriver, Result<Event, DriverError>) {
    let result = match wanted {
        Wanted::Look => driver.see().await.map(Event::Seen),
        Wanted::Resize(resize) => driver.resize(resize).await.map(|()| Event::Resized),
    };
    (driver, result)
}

fn failed(failure: Failure) -> Event {
    Event::Failed(Peer::Hypervisor, failure)
}

#[cfg(test)]
mod tests;
