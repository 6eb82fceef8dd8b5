//! Records the ceilings of VMs, ahead of the answers that need them.
//!
//! One task owns the writes, whatever becomes of the requests that wait for them. A VM has at most one write under
//! way, and all together a few; no lock is held across one. Its outcome goes to the books before any request goes on.
//! While the API server does not answer, one write at a time finds out whether it does again, and with each that fails
//! all that was proposed meanwhile is given up.

use crate::answers::Failure;
use crate::books::ClusterBooks;
use crate::metrics::CeilingWrites;
use crate::pace::Pace;
use crate::patches::{Found, Patches};
use crate::proposals::Turn;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_protocol::VmName;

/// A write that finds another annotation than was known is made so often in all.
const ATTEMPTS: u32 = 4;

/// Between two looks at ceilings that are too high or too low.
const LOOKS: Duration = Duration::from_secs(10);

/// Ceilings that are mended at one look, at most.
const MENDED: usize = 50;

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The ceiling is recorded.
    Written,
    /// None was called for any more, or a later leader recorded one.
    NotDue,
    /// This process does not lead.
    NotLeading,
    /// The annotation was changed each time.
    Conflict,
    /// There is no such object any more.
    Gone,
    /// The API server does not allow it.
    Refused(String),
    /// The API server is busy or gone.
    NoAnswer(String),
}

/// Failures in a row.
#[derive(Default)]
struct Failures {
    pace: Pace,
    are_refused: bool,
}

/// Records ceilings until told to stop.
///
/// # Errors
/// None.
pub async fn run(
    books: ClusterBooks,
    patches: Patches,
    counts: CeilingWrites,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let (mut writes, mut failures) = (FuturesUnordered::new(), Failures::default());
    let mut next_look = Instant::now() + LOOKS;
    // Looks go round: VMs whose writes are refused again and again hold up no other.
    let mut from = 0;
    loop {
        pulse.turn("ceilings to record");
        let now = Instant::now();
        if now >= next_look && failures.pace.failures() == 0 {
            next_look = now + LOOKS;
            let due = books.ceilings_to_mend();
            from = if from < due.len() { from } else { 0 };
            let mended = due.iter().cycle().skip(from).take(MENDED.min(due.len()));
            mended.for_each(|vm| books.proposals().call_for(vm));
            from += MENDED;
        }
        while writes.len() < failures.pace.at_once(now)
            && let Some(turn) = books.proposals().take()
        {
            writes.push(record(&books, &patches, turn));
        }
        let wakes = failures.wakes(now).unwrap_or(next_look);
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some((turn, outcome, took)) = writes.next(), if !writes.is_empty() => {
                counts.count(outcome.word(), took);
                if outcome != Outcome::Written {
                    books.ceiling_given_up(&turn.vm);
                }
                failures.note(&turn.vm, &outcome);
                books.proposals().end(turn);
                if failures.pace.failures() > 1 {
                    give_up_all(&books);
                }
            }
            () = books.proposals().more() => {}
            () = tokio::time::sleep_until(wakes) => {}
            () = tokio::time::sleep(TURN) => {}
        }
    }
}

/// What was proposed holds no room while nothing can be recorded. Agents ask again.
fn give_up_all(books: &ClusterBooks) {
    while let Some(turn) = books.proposals().take() {
        books.ceiling_given_up(&turn.vm);
        books.proposals().end(turn);
    }
}

/// Records the ceiling of one VM, as the books say at its turn.
async fn record(books: &ClusterBooks, patches: &Patches, turn: Turn) -> (Turn, Outcome, Duration) {
    let began = Instant::now();
    let outcome = write(books, patches, &turn.vm).await.unwrap_or_else(Outcome::from);
    (turn, outcome, began.elapsed())
}

async fn write(books: &ClusterBooks, patches: &Patches, vm: &VmName) -> Result<Outcome, Failure> {
    let mut read: Option<Found> = None;
    for _ in 0..ATTEMPTS {
        let Some(act) = books.leadership().act().filter(|_| books.serves().is_ok()) else {
            return Ok(Outcome::NotLeading);
        };
        let Some((on, due)) = books.ceiling_due(vm, act.epoch) else {
            return Ok(Outcome::NotDue);
        };
        let known = due.known.map(|known| Found::Text(known.encode()));
        if let Some(found) = read.take().or(known) {
            match patches.replace(&on, &found, &due.next).await {
                Ok(()) => {
                    books.ceiling_written(vm, due.next);
                    return Ok(Outcome::Written);
                }
                Err(Failure::Conflict(_) | Failure::Invalid(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let found = patches.read(&on).await?;
        books.ceiling_read(vm, found.ceiling());
        read = Some(found);
    }
    Ok(Outcome::Conflict)
}

// === impl Outcome ===

impl Outcome {
    /// As it is counted.
    const fn word(&self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::NotDue => "not-due",
            Self::NotLeading => "not-leading",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Refused(_) => "refused",
            Self::NoAnswer(_) => "no-answer",
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflict(_) | Failure::Invalid(_) => Self::Conflict,
            Failure::Gone(_) => Self::Gone,
            Failure::Refused(why) => Self::Refused(why),
            Failure::Unknown(why) => Self::NoAnswer(why),
        }
    }
}

// === impl Failures ===

impl Failures {
    /// When the next write may be sent, after failures.
    fn wakes(&self, now: Instant) -> Option<Instant> {
        let failed = self.pace.failures() > 0;
        failed.then(|| self.pace.rests_until(now).unwrap_or(now + TURN))
    }

    fn note(&mut self, vm: &VmName, outcome: &Outcome) {
        match outcome {
            Outcome::NoAnswer(why) => {
                if self.pace.fail() {
                    warn!(%vm, why, "no ceiling is recorded; no VM grows beyond its own meanwhile");
                }
            }
            Outcome::Refused(why) => {
                if !self.are_refused {
                    self.are_refused = true;
                    warn!(%vm, why, "the API server refuses a ceiling; the VM does not grow");
                }
                self.answered();
            }
            Outcome::Written => {
                self.are_refused = false;
                self.answered();
            }
            Outcome::Conflict | Outcome::Gone => {
                debug!(%vm, answer = outcome.word(), "a ceiling is not recorded");
                self.answered();
            }
            Outcome::NotDue | Outcome::NotLeading => {}
        }
    }

    fn answered(&mut self) {
        let failures = self.pace.answered();
        if failures > 0 {
            info!(failures, "ceilings are recorded again");
        }
    }
}
