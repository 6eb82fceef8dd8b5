//! The permit client: one request to the plugin, through the wire's codec.
//!
//! On a host the plugin is in the same process and is called in memory; the bytes are the
//! same as over a socket, so there is one code path.

use crate::errors::{Outage, Word};
use crate::metrics::reference::Reference;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{debug, info, warn};
use windlass_agent_core::wire::{self, WireError};
use windlass_agent_core::{Asking, Event, Failure};
use windlass_protocol::{Moment, Peer, PluginVersion, Versions, VmInfo};
use windlass_scaling::Sample;

/// An answer on its way: its status and body, or the reason why the plugin gave no answer.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<(u16, Bytes), String>> + Send + 'a>>;

/// A plugin, in this process or another.
pub trait Permits: Send + Sync + 'static {
    /// Sends the body of a permit request (POST, any path), and returns status and body of the
    /// answer. The caller gives up after a deadline by dropping the future.
    fn ask(&self, body: Bytes) -> Asked<'_>;

    /// Where the permits are asked for, in the words of the log.
    fn place(&self) -> String;
}

/// A plugin whose answers are counted, by status.
pub(crate) struct CountedPermits {
    pub(crate) permits: Arc<dyn Permits>,
    pub(crate) counts: Reference,
}

/// One request that counts as unanswered until there is an answer: the caller may give up.
struct Open<'a> {
    counts: &'a Reference,
    status: Option<u16>,
}

/// Whether the plugin answers and takes a version of ours, and which of that the log has said.
#[derive(Debug, Default)]
pub(crate) struct PluginHealth(Mutex<Health>);

#[derive(Debug, Default)]
struct Health {
    /// The plugin's words when it last refused a version.
    words: String,
    /// The log has said that the plugin takes no version of ours.
    is_told: bool,
    outage: Outage,
}

/// For so long a plugin may start anew.
const RESTARTED: Duration = Duration::from_secs(5);

// === impl CountedPermits ===

impl Permits for CountedPermits {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(async move {
            let mut open = Open { counts: &self.counts, status: None };
            let answer = self.permits.ask(body).await;
            open.status = answer.as_ref().ok().map(|(status, _)| *status);
            answer
        })
    }

    fn place(&self) -> String {
        self.permits.place()
    }
}

// === impl Open ===

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.counts.plugin_answered(self.status);
    }
}

// === impl PluginHealth ===

impl PluginHealth {
    /// The plugin takes none of these versions. All VMs ask the same plugin: the log says it once, until
    /// the plugin takes a version again.
    pub(crate) fn takes_none(&self, ours: Versions<PluginVersion>, place: &str) {
        let mut health = self.lock();
        if !health.is_told {
            health.is_told = true;
            warn!(
                plugin = place, versions = %ours, words = health.words,
                "plugin takes no version that this agent speaks; no vm grows beyond its permit"
            );
        }
    }

    /// The plugin took the version that was stated.
    pub(crate) fn takes(&self, place: impl FnOnce() -> String) {
        let mut health = self.lock();
        if health.is_told {
            health.is_told = false;
            info!(plugin = place(), "plugin takes a version again");
        }
    }

    /// The plugin answered a VM, or did not: the log says it once for all VMs.
    pub(crate) fn answers(&self, now: Moment, answered: bool, place: impl FnOnce() -> String) {
        match self.lock().outage.heard(now, answered, RESTARTED) {
            Some(Word::Silent(since)) => warn!(
                plugin = place(),
                since_s = since.as_secs(),
                "plugin does not answer; no vm grows beyond its permit"
            ),
            Some(Word::Back) => info!(plugin = place(), "plugin answers again"),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks for a permit. Always ends within `limit`, with exactly one event for the scaler.
pub(crate) async fn ask(
    permits: &dyn Permits,
    info: &VmInfo,
    asking: &Asking,
    sample: Option<&Sample>,
    limit: Duration,
    health: &PluginHealth,
) -> Event {
    let body = match wire::to_plugin(info, asking, sample) {
        Ok(body) => Bytes::from(body),
        Err(error) => {
            warn!(%error, "permit request does not fit the wire");
            return failed(wire::UNSAID);
        }
    };
    match tokio::time::timeout(limit, permits.ask(body)).await {
        Ok(Ok((status, body))) => {
            wire::from_plugin(info, asking, status, &body).unwrap_or_else(|error| {
                log(&error, &body, health);
                failed(error.failure())
            })
        }
        Ok(Err(why)) => {
            debug!(why, "plugin not reached");
            failed(Failure::NoAnswer)
        }
        Err(_) => failed(Failure::NoAnswer),
    }
}

fn log(error: &WireError, body: &[u8], health: &PluginHealth) {
    match error {
        WireError::Refused(status) => {
            let words = String::from_utf8_lossy(body).chars().take(200).collect::<String>();
            debug!(status, words, "plugin refused");
        }
        WireError::Version(words) => {
            debug!(words, "plugin does not take the version that was stated");
            health.lock().words.clone_from(words);
        }
        WireError::Moving => debug!("plugin refused: the vm is about to be moved"),
        WireError::Broken(_)
        | WireError::Odd(_)
        | WireError::NotOffered { .. }
        | WireError::NoMetricsPort
        | WireError::Unasked => warn!(error = %error, "plugin's answer is broken"),
    }
}

fn failed(failure: Failure) -> Event {
    Event::Failed(Peer::Plugin, failure)
}
