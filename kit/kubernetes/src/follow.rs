//! Follows the objects of one kind.
//!
//! A list replaces all that was known, and the events of a watch change it. Where a watch ends or fails, another
//! begins after at most two seconds; a failure is logged once and counted.

use crate::connect::chain;
use crate::metrics::Watches;
use crate::objects::Read;
use futures_util::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_kit::admin::Readiness;
use windlass_kit::backoff::Backoff;
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_protocol::config::Problem;
use windlass_protocol::timing::WATCH_LASTS;

/// Between failures in a row.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };

/// What a follower needs besides the objects.
pub struct Following {
    /// How the API server is reached.
    pub client: Client,
    /// Its failures are counted there.
    pub watches: Watches,
    /// Unready until all objects were listed.
    pub readiness: Readiness,
    /// How far the watch has come, and where a new list is asked for.
    pub followed: Followed,
    /// Shows that the follower is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Which objects of a kind are followed, and when they are listed anew.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Those with these labels, as the API server reads it.
    pub labels: Option<String>,
    /// Those with these fields, as the API server reads it.
    pub fields: Option<String>,
    /// After so many failures in a row: a watch that cannot go on from where it was does not always say so. After one, where it matters
    /// that what came is current: that a watch which failed goes on shows in nothing but what comes of it.
    pub after: u32,
    /// Whenever another epoch begins.
    pub anew: Option<Receiver<u64>>,
}

/// How far a watch has come, and whether everything is to be listed anew. Clones are of the same watch.
#[derive(Clone, Debug, Default)]
pub struct Followed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The highest revision that came.
    highest: AtomicU64,
    /// Everything was listed, and the watch goes on from there.
    is_listed: AtomicBool,
    again: Notify,
    /// Told when everything was listed.
    done: Notify,
}

/// What the API server told.
#[derive(Debug)]
pub enum Told<K> {
    /// These are all; the list began in this epoch of the process.
    All(Vec<K>, u64),
    /// This is there, as it is now.
    Seen(K),
    /// This is no more.
    Gone(K),
}

/// What a list has told so far. All objects of a cluster are in memory here before anybody has them, so nothing
/// else of them is.
struct Listed<K> {
    kept: Vec<K>,
    /// The highest revision.
    highest: u64,
    /// The namespace and name of the first object that says what is not valid, what that is, and how many others there are.
    bad: Option<([Option<String>; 2], Problem)>,
    others: usize,
}

/// Follows objects of a kind until told to stop.
///
/// # Errors
/// None.
pub async fn follow<K>(
    of: &'static str,
    manner: Manner,
    following: Following,
    tell: impl Fn(Told<K::Kept>),
) -> Result<(), Infallible>
where
    K: Resource<DynamicType = ()> + Read + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let Following { client, watches, readiness, followed, pulse, stop } = following;
    let Manner { labels, fields, after, mut anew } = manner;
    let lasts = u32::try_from(WATCH_LASTS.as_secs()).unwrap_or(u32::MAX);
    let begin = || {
        let config = watcher::Config {
            label_selector: labels.clone(),
            field_selector: fields.clone(),
            ..watcher::Config::default().timeout(lasts)
        };
        Box::pin(watcher::watcher(Api::<K>::all(client.clone()), config))
    };
    let mut epoch = epoch_of(&mut anew);
    let mut events = begin();
    let (mut list, mut failures, seed) = (Listed::default(), 0_u32, seed(of));
    loop {
        pulse.turn("events of the API server");
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = async {
                tokio::select! {
                    () = followed.0.again.notified() => {}
                    () = begins(&mut anew) => {}
                }
            } => {
                // What was listed before is forgotten with its stream.
                list = Listed::default();
                epoch = epoch_of(&mut anew);
                events = begin();
                followed.lists();
                continue;
            }
            event = events.next() => event,
            () = tokio::time::sleep(TURN) => continue,
        };
        let mut listed = None;
        let told = match event {
            Some(Ok(Event::Init)) => {
                followed.lists();
                list = Listed::default();
                continue;
            }
            Some(Ok(Event::InitApply(object))) => {
                list.push(object);
                continue;
            }
            Some(Ok(Event::InitDone)) => {
                let Listed { kept, highest, bad, others } = std::mem::take(&mut list);
                info!(of, objects = kept.len(), "listed");
                complain(of, bad, others);
                listed = Some(highest);
                Told::All(kept, epoch)
            }
            Some(Ok(Event::Apply(object))) => {
                followed.came(&object);
                Told::Seen(object.kept())
            }
            Some(Ok(Event::Delete(object))) => {
                followed.came(&object);
                Told::Gone(object.kept())
            }
            Some(Err(error)) => {
                watches.failed(of);
                failures += 1;
                if failures == 1 {
                    let why = chain(&error);
                    warn!(of, why, "a watch failed; it is tried again");
                }
                if failures.is_multiple_of(after) {
                    epoch = epoch_of(&mut anew);
                    events = begin();
                    followed.lists();
                }
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(BACKOFF.wait(failures, seed)) => continue,
                }
            }
            // The stream has no end; if it had, a process without it would keep what grows old.
            None => std::future::pending().await,
        };
        if failures > 0 {
            info!(of, failures, "the watch goes on");
        }
        failures = 0;
        tell(told);
        // Only now does what was listed stand where others look.
        if let Some(highest) = listed {
            followed.came_all(highest);
            readiness.done(of);
        }
    }
}

// === impl Manner ===

impl Default for Manner {
    fn default() -> Self {
        Self { labels: None, fields: None, after: 5, anew: None }
    }
}

// === impl Followed ===

impl Followed {
    /// Everything is to be listed anew, unless that is under way.
    pub fn list_again(&self) {
        if self.is_listed() {
            self.0.again.notify_one();
        }
    }

    /// Whether everything was listed, and no other list is under way.
    pub fn is_listed(&self) -> bool {
        self.0.is_listed.load(Ordering::Acquire)
    }

    /// Waits until it is so.
    pub async fn listed(&self) {
        loop {
            let done = self.0.done.notified();
            if self.is_listed() {
                return;
            }
            done.await;
        }
    }

    fn lists(&self) {
        self.0.is_listed.store(false, Ordering::Release);
    }

    /// The highest revision that came, as far as revisions are numbers.
    pub fn highest(&self) -> u64 {
        self.0.highest.load(Ordering::Acquire)
    }

    /// Everything was listed; this is the highest revision.
    fn came_all(&self, highest: u64) {
        self.0.highest.store(highest, Ordering::Release);
        self.0.is_listed.store(true, Ordering::Release);
        self.0.done.notify_waiters();
    }

    fn came<K: Resource>(&self, object: &K) {
        self.0.highest.fetch_max(revision(object), Ordering::AcqRel);
    }
}

// === impl Listed ===

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self { kept: Vec::new(), highest: 0, bad: None, others: 0 }
    }
}

impl<K> Listed<K> {
    fn push<O: Resource + Read<Kept = K>>(&mut self, object: O) {
        self.highest = self.highest.max(revision(&object));
        match (object.problem(), &self.bad) {
            (None, _) => {}
            (Some(problem), None) => {
                let meta = object.meta();
                self.bad = Some(([meta.namespace.clone(), meta.name.clone()], problem.clone()));
            }
            (Some(_), Some(_)) => self.others += 1,
        }
        self.kept.push(object.kept());
    }
}

fn revision<K: Resource>(object: &K) -> u64 {
    let revision = object.meta().resource_version.as_deref();
    revision.and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// The epoch in which a list begins.
fn epoch_of(anew: &mut Option<Receiver<u64>>) -> u64 {
    anew.as_mut().map_or(0, |anew| *anew.borrow_and_update())
}

/// Waits until another epoch begins.
async fn begins(anew: &mut Option<Receiver<u64>>) {
    let Some(anew) = anew else { return std::future::pending().await };
    if anew.changed().await.is_err() {
        // No other will.
        std::future::pending::<()>().await;
    }
}

/// Names the first object that says what is not valid. A list tells of them, and no event: a tenant makes as many as it likes.
fn complain(of: &'static str, bad: Option<([Option<String>; 2], Problem)>, others: usize) {
    if let Some(([namespace, name], problem)) = bad {
        warn!(of, namespace, name, %problem, others, "what an object says is not valid");
    }
}

/// Two followers, and those of two processes, do not march in step.
fn seed(of: &str) -> u64 {
    u64::from(std::process::id()) ^ of.len() as u64
}
