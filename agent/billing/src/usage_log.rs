//! The meter and its journal, as one thing that is always told both.
//!
//! Where the disk refuses, the meter goes on in memory and nothing that is not on disk is sent; as
//! soon as the disk takes the whole meter again, all is well. Calls wait for the disk: they are
//! made where that is allowed.

use crate::config::Config;
use crate::journal::{Found, Journal, OpenError};
use crate::metrics::Metrics;
use bytes::Bytes;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{error, info, warn};
use windlass_agent_billing_core::{Allocation, Meter, Names, Origin, Record, Rule, Source, Usages};
use windlass_protocol::{Moment, Sequence};

/// The meter and its journal.
#[derive(Debug)]
pub(crate) struct UsageLog {
    meter: Meter,
    journal: Journal,
    rule: Rule,
    names: Names,
    /// The number of the last event that is on disk.
    safe: Sequence,
    /// Whether the file lacks something.
    behind: bool,
    metrics: Metrics,
}

/// The usage log, as the parts of billing share it; clones are one. A part that waits for the disk holds up
/// no other part.
#[derive(Clone, Debug)]
pub(crate) struct SharedLog(Arc<Mutex<UsageLog>>);

/// Events that are to be sent together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) body: Bytes,
    /// The number of the last event.
    pub(crate) through: Sequence,
    pub(crate) count: usize,
    /// What is said of it in logs, here and at the receiver.
    pub(crate) trace: String,
}

// === impl UsageLog ===

impl UsageLog {
    /// Takes the usage log of a folder, or begins a new one at `now`.
    pub(crate) fn open(
        folder: &Path,
        source: Source,
        now: Moment,
        config: &Config,
        metrics: Metrics,
    ) -> Result<Self, OpenError> {
        let (journal, meter, found) = Journal::open(folder, Origin { source, since: now })?;
        match found {
            Found::Nothing => info!(folder = %folder.display(), "a new usage log"),
            Found::Whole { torn: 0 } => {}
            Found::Whole { torn } => info!(torn, "passed over a line that was not finished"),
            Found::Damaged => {
                error!(folder = %folder.display(), "the usage log was damaged and is put aside");
                metrics.damaged.inc();
            }
        }
        let (rule, names) = (config.rule(), config.names.clone());
        let safe = meter.last();
        let log = Self { meter, journal, rule, names, safe, behind: false, metrics };
        log.show();
        Ok(log)
    }

    /// VMs were looked at.
    pub(crate) fn look(&mut self, at: Moment, vms: Vec<Allocation>) {
        let sight = self.meter.see(at, vms, &self.rule);
        if let Some(first) = sight.too_many.first() {
            let count = sight.too_many.len();
            warn!(%first, count, limit = self.rule.endpoints, "VMs that are not billed: too many");
        }
        self.metrics.not_billed(sight.too_many.len());
        self.meter.apply(&sight.record);
        let ended = self.end(at, false);
        self.keep(std::iter::once(sight.record).chain(ended).collect());
        self.metrics.held(self.meter.held(at, &self.rule));
    }

    /// The process is about to end: what is whole becomes events.
    pub(crate) fn close(&mut self, at: Moment) {
        let ended = self.end(at, true);
        if self.behind || ended.is_some() {
            self.keep(ended.into_iter().collect());
        }
    }

    /// Events that wait for the receiver.
    pub(crate) fn waiting(&self) -> usize {
        self.meter.waiting()
    }

    /// What is to be sent next, if something is: events that are on disk.
    pub(crate) fn batch(&self, most: usize) -> Option<Batch> {
        let events = self.meter.batch(most, self.safe);
        let (first, last) = (events.first()?.sequence, events.last()?.sequence);
        let origin = self.meter.origin();
        let usages = Usages::of(&events, origin, &self.names);
        let body = serde_json::to_vec(&usages).expect("texts and numbers are JSON").into();
        let trace = format!("{:x}-{first}", origin.since.millis());
        Some(Batch { body, through: last, count: events.len(), trace })
    }

    /// The receiver has answered that it has everything up to this event.
    pub(crate) fn delivered(&mut self, through: Sequence) {
        let record = Record::Delivered { through };
        self.meter.apply(&record);
        self.keep(vec![record]);
    }

    fn end(&mut self, at: Moment, all: bool) -> Option<Record> {
        let record = self.meter.end(at, all, &self.rule)?;
        self.meter.apply(&record);
        Some(record)
    }

    /// Writes down what was applied.
    fn keep(&mut self, records: Vec<Record>) {
        let written = if self.behind || self.journal.is_long() {
            self.journal.rewrite(&self.meter)
        } else {
            self.journal.append(&records)
        };
        match written {
            Ok(()) => {
                if self.behind {
                    info!("usage is on disk again");
                }
                (self.behind, self.safe) = (false, self.meter.last());
            }
            Err(error) => {
                if !self.behind {
                    error!(%error, "usage cannot be written down; nothing new is sent");
                }
                self.behind = true;
                self.metrics.unwritten.inc();
            }
        }
        self.show();
    }

    fn show(&self) {
        let Self { meter, journal, metrics, .. } = self;
        metrics.log(meter.present(), meter.waiting(), meter.oldest(), journal.length());
    }
}

// === impl SharedLog ===

impl SharedLog {
    pub(crate) fn new(log: UsageLog) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }

    /// Does something to the usage log on a thread where waiting for the disk blocks no other task.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut UsageLog) -> T + Send + 'static,
    ) -> T {
        let log = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            what(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is going away, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KEYS;
    use windlass_agent_billing_core::Endpoint;
    use windlass_kit::config::read;
    use windlass_protocol::config::Table;
    use windlass_protocol::{MilliCpu, VmName};

    const TABLE: Table = Table::toml(&[KEYS]);

    #[test]
    fn a_line_that_the_disk_refused_is_made_good_by_the_next_one() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let mut log = open(folder.path());
        log.look(at(0), vms());
        log.journal.fill();
        log.look(at(30), vms());
        assert_eq!((log.waiting(), log.batch(9).is_none()), (2, true), "nothing new is sent");
        log.look(at(31), vms());
        assert_eq!(log.batch(9).map(|batch| batch.count), Some(2));
        let known = log.meter.clone();
        drop(log);
        assert_eq!(open(folder.path()).meter, known);
    }

    fn open(folder: &Path) -> UsageLog {
        let mut file = read(&TABLE, "billing.url = \"http://a\"").unwrap();
        let config = Config::read(&mut file).unwrap();
        let source = Source::try_from("node-1".to_owned()).unwrap();
        UsageLog::open(folder, source, at(0), &config, Metrics::default()).unwrap()
    }

    fn vms() -> Vec<Allocation> {
        let endpoint = Endpoint::try_from("ep-1".to_owned()).unwrap();
        vec![Allocation { vm: VmName::on_host("a"), endpoint, cpu: MilliCpu::from_cores(1) }]
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1_000)
    }
}
