//! Sends what waits, in order, one request at a time, until the receiver has answered each.
//!
//! A request without an answer may have arrived, so it is made again, with the same keys. Nothing
//! is passed over: what a receiver refuses waits until it does not, and windows become longer
//! meanwhile.

use crate::config::Config;
use crate::metrics::Metrics;
use crate::receiver::Undelivered;
use crate::usage_log::{Batch, SharedLog};
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::backoff::Backoff;

/// How long the last attempt of a process may take.
const LAST_PUSH: Duration = Duration::from_secs(5);

/// After the first failure; doubled with each one.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// What the receiver says of a body that is too large for it.
const TOO_LARGE: u16 = 413;

pub(crate) struct Sender {
    log: SharedLog,
    config: Arc<Config>,
    metrics: Metrics,
    /// Attempts that failed in a row.
    failed: u32,
    /// Events in the next request.
    most: usize,
    /// Two nodes never try again in step.
    seed: u64,
}

// === impl Sender ===

impl Sender {
    pub(crate) fn new(log: SharedLog, config: Arc<Config>, metrics: Metrics) -> Self {
        let (most, seed) = (config.max_batch, RandomState::new().hash_one(0));
        Self { log, config, metrics, failed: 0, most, seed }
    }

    pub(crate) async fn run(mut self, closed: &CancellationToken) {
        loop {
            self.push(closed).await;
            if closed.run_until_cancelled(sleep(self.wait())).await.is_none() {
                break;
            }
        }
        if timeout(LAST_PUSH, self.push(&CancellationToken::new())).await.is_err() {
            let waiting = self.log.with(|log| log.waiting()).await;
            warn!(waiting, "events are left for the next start");
        }
    }

    /// Sends until nothing waits, something fails, or it is `cut`: a request that is under way then
    /// is made again, and what was answered is noted first.
    async fn push(&mut self, cut: &CancellationToken) {
        let started = Instant::now();
        loop {
            let most = self.most;
            let Some(batch) = self.log.with(move |log| log.batch(most)).await else {
                self.metrics.last_send.set(started.elapsed().as_secs_f64());
                self.most = self.config.max_batch;
                return;
            };
            let Some(answer) = cut.run_until_cancelled(self.post(&batch)).await else { return };
            if let Err(why) = answer {
                self.failed(&batch, &why);
                return;
            }
            self.failed = 0;
            self.metrics.sent.inc_by(batch.count as u64);
            debug!(events = batch.count, trace = batch.trace, "events sent");
            self.log.with(move |log| log.delivered(batch.through)).await;
        }
    }

    async fn post(&self, batch: &Batch) -> Result<(), Undelivered> {
        let trace = format!("{}-{}", batch.trace, self.failed);
        self.config.receiver.post(batch.body.clone(), &trace, self.config.request_timeout).await
    }

    fn failed(&mut self, batch: &Batch, why: &Undelivered) {
        self.metrics.failed(why);
        self.failed = self.failed.saturating_add(1);
        let (events, trace, attempt) = (batch.count, &batch.trace, self.failed);
        let cause = why.source().map(ToString::to_string).unwrap_or_default();
        warn!(%why, cause, events, trace, attempt, "events were not received; they are sent again");
        if let Undelivered::Status { status: TOO_LARGE, .. } = why {
            self.most = (batch.count / 2).max(1);
            info!(events = self.most, "fewer events in one request");
        }
    }

    fn wait(&self) -> Duration {
        let longest = self.config.push_every;
        match self.failed {
            0 => longest,
            failed => Backoff { first: FIRST_WAIT.min(longest), longest }.wait(failed, self.seed),
        }
    }
}
