//! Records the ceilings of VMs, ahead of the answers that need them.
//!
//! One task owns the writes, whatever becomes of the requests that wait for them. A VM has at most one write under
//! way, and all together a few; no lock is held across one. Its outcome goes to the books before any request goes on.
//! Ceilings that keep pods from a place are lowered, whatever else is written: nobody waits for that.
//!
//! While the API server does not answer, one write at a time finds out whether it does again, and with each that fails
//! all that was proposed meanwhile is given up.

use crate::books::ClusterBooks;
use crate::metrics::CeilingWrites;
use crate::patches::{Found, Patches};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_kit_kubernetes::answers::Failure;
use windlass_plugin_core::ceiling_turn::{CeilingTurn, Next, Outcome, after};
use windlass_plugin_core::mending::Mending;
use windlass_plugin_core::pods::CeilingOn;
use windlass_plugin_core::writes::Reach;
use windlass_protocol::VmName;

/// Ceilings that are lowered at one look, at most.
const FITTED: usize = 20;

/// What came of a turn, and why in words, where the API server refuses or does not answer.
type Came = (Outcome, String);

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
    let (mut writes, mut fits) = (FuturesUnordered::new(), FuturesUnordered::new());
    let proposals = books.proposals();
    let (mut mending, mut are_refused) = (Mending::new(books.now()), false);
    loop {
        pulse.turn("ceilings to record");
        let now = books.now();
        if mending.begin(now, proposals.rests(now)) {
            let due = mending.choose(books.ceilings_to_mend());
            due.iter().for_each(|vm| proposals.call_for(vm));
            if fits.is_empty() {
                let due = books.ceilings_to_fit().into_iter().take(FITTED);
                due.for_each(|(pod, on)| fits.push(fit(&books, &patches, pod, on)));
            }
        }
        while let Some(vm) = proposals.take(now) {
            writes.push(record(&books, &patches, vm));
        }
        let wakes = proposals.tries_at(now).unwrap_or(mending.next()).since(now);
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some((vm, came, took)) = writes.next(), if !writes.is_empty() => {
                let (outcome, why) = came;
                counts.count(outcome.word(), took);
                if outcome != Outcome::Written {
                    books.ceiling_given_up(&vm);
                }
                let reach = proposals.end(books.now(), &vm, outcome.heard());
                say(&vm, (outcome, &why), reach, &mut are_refused);
                // What was proposed holds no room while nothing can be recorded. Agents ask again.
                proposals.give_up(|vm| books.ceiling_given_up(vm));
            }
            Some((vm, (outcome, why), took)) = fits.next(), if !fits.is_empty() => {
                counts.count(outcome.word(), took);
                say(&vm, (outcome, &why), Reach::Same, &mut are_refused);
            }
            () = proposals.more() => {}
            () = tokio::time::sleep(wakes) => {}
            () = tokio::time::sleep(TURN) => {}
        }
    }
}

/// Records the ceiling of one VM, as the books say at its turn.
async fn record(books: &ClusterBooks, patches: &Patches, vm: VmName) -> (VmName, Came, Duration) {
    let began = Instant::now();
    let came = match write(books, patches, &vm).await {
        Ok(outcome) => (outcome, String::new()),
        Err(failure) => (Outcome::of(failure.kind()), failure.to_string()),
    };
    (vm, came, began.elapsed())
}

async fn write(books: &ClusterBooks, patches: &Patches, vm: &VmName) -> Result<Outcome, Failure> {
    let mut turn = CeilingTurn::<Found>::default();
    loop {
        let act = books.leadership().act().filter(|_| books.serves().is_ok());
        let epoch = act.as_ref().map(|act| act.epoch);
        let on = match turn.next(epoch, |epoch| books.ceiling_due(vm, epoch)) {
            Next::Ends(outcome) => return Ok(outcome),
            Next::Reads(on) => on,
            Next::Replaces { on, found, write } => {
                match patches.replace(&on, &found, &write.next).await {
                    Ok(()) => {
                        books.ceiling_written(vm, write.next);
                        return Ok(Outcome::Written);
                    }
                    Err(failure) if after(failure.kind()).is_ok() => on,
                    Err(failure) => return Err(failure),
                }
            }
        };
        let found = patches.read(&on).await?;
        books.ceiling_read(vm, found.ceiling());
        turn.read(found);
    }
}

/// Lowers the ceiling that keeps a pod from a place.
async fn fit(
    books: &ClusterBooks,
    patches: &Patches,
    pod: VmName,
    on: CeilingOn,
) -> (VmName, Came, Duration) {
    let began = Instant::now();
    let came = match lower(books, patches, &pod, &on).await {
        Ok(outcome) => (outcome, String::new()),
        Err(failure) => (Outcome::of(failure.kind()), failure.to_string()),
    };
    (pod, came, began.elapsed())
}

async fn lower(
    books: &ClusterBooks,
    patches: &Patches,
    pod: &VmName,
    on: &CeilingOn,
) -> Result<Outcome, Failure> {
    let CeilingOn::Object(name, _) = on else { return Ok(Outcome::NotDue) };
    let Some(read) = patches.read_object(name).await? else { return Ok(Outcome::Gone) };
    let act = books.leadership().act().filter(|_| books.serves().is_ok());
    let Some(act) = act else { return Ok(Outcome::NotLeading) };
    let Some(next) = books.fitting_ceiling(pod, &read, act.epoch) else {
        return Ok(Outcome::NotDue);
    };
    // What the object asks for is to be as it was read.
    patches.replace(on, &Found::Absent(read.revision), &next).await?;
    Ok(Outcome::Written)
}

/// Failures in a row are said once.
fn say(vm: &VmName, (outcome, why): (Outcome, &str), reach: Reach, are_refused: &mut bool) {
    match outcome {
        Outcome::NoAnswer | Outcome::NotDue | Outcome::NotLeading => {}
        Outcome::Refused => {
            if !std::mem::replace(are_refused, true) {
                warn!(%vm, why, "the API server refuses a ceiling; the VM does not grow");
            }
        }
        Outcome::Written => *are_refused = false,
        Outcome::Conflict | Outcome::Gone => {
            debug!(%vm, answer = outcome.word(), "a ceiling is not recorded");
        }
    }
    match reach {
        Reach::Same => {}
        Reach::Lost => {
            warn!(%vm, why, "no ceiling is recorded; no VM grows beyond its own meanwhile");
        }
        Reach::Back(failures) => info!(failures, "ceilings are recorded again"),
    }
}
