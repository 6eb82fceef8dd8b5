//! Answers agents: first everything is decided, then the cache is made smaller, then it is agreed.
//!
//! Whether the guest can live with less is asked of a copy of the informant's core, so that a
//! refusal touches nothing. Only then is the cache made smaller; what is agreed to is decided
//! again when PostgreSQL says that it is. An agent that hangs up in the middle takes nothing
//! with it: what is begun and not agreed to is taken back by the cache's own plan.

use crate::config::Config;
use crate::database::Database;
use crate::metrics::{self, Counts};
use crate::{note, worker};
use anyhow::Context;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use windlass_informant::memory_cotenant::MemoryCotenant;
use windlass_informant::shared::Shared;
use windlass_informant::tree::Tree;
use windlass_informant::{config, log};
use windlass_informant_core::wire::figures::Page;
use windlass_informant_core::{Memory, Refusal};
use windlass_informant_postgres_core::{Event, FileCache, Problem, Proposal};
use windlass_protocol::informant::{DownscaleResult, ResourceMessage};
use windlass_protocol::{Bytes, Moment, Resources};

/// While the cache is made smaller, memory is read this often.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// PostgreSQL's file cache beside the informant.
#[derive(Debug)]
pub struct Postgres {
    cache: Mutex<FileCache>,
    /// Until the thread that speaks to it has taken it.
    database: Mutex<Option<Database>>,
    /// One consent at a time; an agent that hangs up lets go of it.
    turn: tokio::sync::Mutex<()>,
    /// The plan may have changed.
    pub(crate) woken: Notify,
    /// PostgreSQL may have got somewhere.
    pub(crate) moved: Notify,
    pub(crate) counts: Counts,
}

impl Postgres {
    /// The cache of this PostgreSQL, in the guest that the informant is for.
    pub fn new(informant: &config::Config, config: Config) -> Self {
        let noted = note::read(&Tree::new(informant.root.as_deref())).unwrap_or_else(|error| {
            log::warn(format_args!("cannot read what was agreed to: {error}"));
            None
        });
        Self {
            cache: Mutex::new(FileCache::new(fastrand::u64(..), noted)),
            database: Mutex::new(Some(Database::new(config))),
            turn: tokio::sync::Mutex::new(()),
            woken: Notify::new(),
            moved: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// The cache, for as short as possible.
    pub(crate) fn cache(&self) -> MutexGuard<'_, FileCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryCotenant for Postgres {
    fn start(shared: &Arc<Shared<Self>>) -> anyhow::Result<()> {
        let mut database = shared.cotenant.database.lock().unwrap_or_else(PoisonError::into_inner);
        match database.take() {
            Some(database) => {
                worker::start(Arc::clone(shared), database).context("cannot start a thread")
            }
            None => Ok(()),
        }
    }

    fn sampled(&self, now: Moment, memory: Memory) -> Memory {
        let mut cache = self.cache();
        cache.observe(now, Event::Sampled(memory));
        cache.workload(now, memory)
    }

    fn shown(&self, now: Moment, memory: Memory) -> Memory {
        self.cache().shown(now, memory)
    }

    async fn downscale(
        shared: &Shared<Self>,
        message: &ResourceMessage,
    ) -> Result<DownscaleResult, Refusal> {
        let result = {
            let _turn = shared.cotenant.turn.lock().await;
            let result = consent(shared, message).await;
            shared.cotenant.woken.notify_one();
            result?
        };
        shared.follow().await;
        Ok(result)
    }

    fn upscale(shared: &Shared<Self>, message: &ResourceMessage) -> Result<(), Refusal> {
        let now = shared.clock.now();
        let size = message.resources.mem;
        let told = || {
            shared.cotenant.cache().told(size);
            if let Err(error) = note::write(&shared.tree, size) {
                log::warn(format_args!("cannot note what the VM has: {error}"));
            }
        };
        shared.core().upscale_then(now, message, told)?;
        shared.cotenant.woken.notify_one();
        Ok(())
    }

    fn metrics(&self, now: Moment, page: &mut Page) {
        metrics::lines(self, now, page);
    }
}

async fn consent(
    shared: &Shared<Postgres>,
    message: &ResourceMessage,
) -> Result<DownscaleResult, Refusal> {
    // Memory may have been added since the last sample: what the VM has is read now.
    shared.sample();
    let now = shared.clock.now();
    let asked = message.resources.mem;
    let proposal = shared.cotenant.cache().propose(now, asked);
    let (target, rest) = match proposal {
        Err(problem) => return decline(shared, message, &problem),
        Ok(Proposal::Untouched) => return shared.core().downscale(now, message),
        Ok(Proposal::Shrink { target, rest }) => (target, rest),
    };
    let resources = Resources { mem: rest, ..message.resources };
    let rest = ResourceMessage { resources, ..*message };
    let words = |status: &str| format!("beside a file cache of {target}: {status}");

    // Nothing that a copy is asked changes anything.
    let mut agrees = false;
    let mut copy = shared.core().clone();
    copy.downscale_judged(now, &rest, |result| {
        agrees = result.ok;
        result
    })?;
    if !agrees {
        // It does not fit, or this request was answered before.
        return shared.core().downscale_judged(now, &rest, |result| {
            shared.cotenant.counts.declined.add();
            declined(words(&result.status))
        });
    }
    if let Err(problem) = made_smaller(shared, asked, target).await {
        return decline(shared, message, &problem);
    }
    agree(shared, &rest, asked, words)
}

/// Has the cache made smaller, and waits for it.
async fn made_smaller(
    shared: &Shared<Postgres>,
    asked: Bytes,
    target: Bytes,
) -> Result<(), Problem> {
    let cotenant = &shared.cotenant;
    cotenant.cache().begin(shared.clock.now(), asked, target);
    cotenant.woken.notify_one();
    loop {
        let moved = cotenant.moved.notified();
        if let Some(outcome) = cotenant.cache().outcome(shared.clock.now()) {
            return outcome;
        }
        let _ = timeout(SAMPLE_EVERY, moved).await;
        shared.sample();
    }
}

/// The cache is as small as it must be: the last word. It is noted first, for an informant that
/// comes after this one.
fn agree(
    shared: &Shared<Postgres>,
    rest: &ResourceMessage,
    asked: Bytes,
    words: impl Fn(&str) -> String,
) -> Result<DownscaleResult, Refusal> {
    let (before, least) = {
        let cache = shared.cotenant.cache();
        (cache.allowed(), cache.least(asked))
    };
    let noted = note::write(&shared.tree, least);
    let now = shared.clock.now();
    let mut agreed = false;
    let result = shared.core().downscale_judged(now, rest, |result| {
        if let Err(error) = &noted {
            return declined(format!("the agreement cannot be noted: {error}"));
        }
        agreed = result.ok && shared.cotenant.cache().agreed(now);
        DownscaleResult { ok: agreed, status: words(&result.status) }
    });
    if agreed {
        shared.cotenant.counts.agreed.add();
        return result;
    }
    shared.cotenant.cache().taken_back();
    shared.cotenant.counts.declined.add();
    let restored = match before {
        Some(before) => note::write(&shared.tree, before),
        None => note::forget(&shared.tree),
    };
    if let Err(error) = restored {
        log::warn(format_args!("cannot take back what was noted: {error}"));
    }
    result
}

/// Declines with these words; a request that was answered before gets its answer.
fn decline(
    shared: &Shared<Postgres>,
    message: &ResourceMessage,
    problem: &Problem,
) -> Result<DownscaleResult, Refusal> {
    shared.cotenant.cache().taken_back();
    let now = shared.clock.now();
    shared.core().downscale_judged(now, message, |_| {
        let counts = &shared.cotenant.counts;
        let fits = !matches!(problem, Problem::DoesNotFit { .. });
        let count = if fits { &counts.failed } else { &counts.declined };
        count.add();
        declined(problem.to_string())
    })
}

fn declined(status: String) -> DownscaleResult {
    DownscaleResult { ok: false, status }
}
