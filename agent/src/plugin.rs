//! The permit client: one request to the plugin, through the wire's codec.
//!
//! On a host the plugin is in the same process and is called in memory; the bytes are the
//! same as over a socket, so there is one code path.

use crate::errors::{Outage, Word};
use crate::lock::lock;
use crate::metrics::reference::Reference;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::{debug, info, warn};
use windlass_agent_core::wire::{self, WireError};
use windlass_agent_core::{Asking, Event, Failure};
use windlass_protocol::plugin::Told;
use windlass_protocol::timing::{ASK_EVERY, LONGEST_ACT};
use windlass_protocol::{Moment, Peer, PluginVersion, VmInfo};
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

/// The plugin that all VMs of an agent ask. Its answers are counted, by status.
pub(crate) struct Plugin {
    permits: Arc<dyn Permits>,
    counts: Reference,
    health: Mutex<Health>,
}

/// One request that counts as unanswered until there is an answer: the caller may give up.
struct Open<'a> {
    counts: &'a Reference,
    status: Option<u16>,
}

/// Whether the plugin answers and takes a version of ours, and which of that the log has said.
#[derive(Debug, Default)]
struct Health {
    /// The plugin's words when it last refused a version.
    words: String,
    /// The log has said that the plugin takes no version of ours.
    is_told: bool,
    /// Why the last request met no answer, if that is known.
    why: String,
    /// The log has said that the plugin does not take who asks.
    is_denied: bool,
    outage: Outage,
}

/// A plugin that gave no answer for so long is away, and does not just start anew. A VM that is answered has an answer more often, so
/// the plugin is not away when it grants nothing to another VM.
const AWAY: Duration = Duration::from_secs(8);

const _: () = assert!(ASK_EVERY.as_millis() * 11 / 10 + LONGEST_ACT.as_millis() < AWAY.as_millis());

/// The status of a plugin that grants nothing at this moment: it stands by, or its books are not rebuilt yet, or it has too much
/// to do.
pub(crate) const NOT_NOW: u16 = 503;

// === impl Plugin ===

impl Plugin {
    pub(crate) fn new(permits: Arc<dyn Permits>, counts: Reference) -> Self {
        Self { permits, counts, health: Mutex::default() }
    }

    /// Asks for a permit, and tells what people are to know of the VM. Always ends within `limit`, with exactly one event for the scaler.
    pub(crate) async fn ask(
        &self,
        info: &VmInfo,
        asking: &Asking,
        sample: Option<&Sample>,
        told: Told,
        limit: Duration,
    ) -> Event {
        let body = match wire::to_plugin_telling(info, asking, sample, Some(told)) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                warn!(%error, "permit request does not fit the wire");
                return failed(wire::UNSAID);
            }
        };
        let mut open = Open { counts: &self.counts, status: None };
        match tokio::time::timeout(limit, self.permits.ask(body)).await {
            Ok(Ok((status, body))) => {
                open.status = Some(status);
                self.knows(status, &body);
                wire::from_plugin(info, asking, status, &body).unwrap_or_else(|error| {
                    self.log(&error, &body);
                    failed(error.failure())
                })
            }
            Ok(Err(why)) => {
                debug!(why, "plugin not reached");
                lock(&self.health).why = why;
                failed(Failure::NoAnswer)
            }
            Err(_) => {
                lock(&self.health).why = format!("no answer within {limit:?}");
                failed(Failure::NoAnswer)
            }
        }
    }

    /// The plugin takes no version of ours. All VMs ask the same plugin: the log says it once, until
    /// the plugin takes a version again.
    pub(crate) fn takes_none(&self) {
        let mut health = lock(&self.health);
        if !health.is_told {
            health.is_told = true;
            warn!(
                plugin = self.permits.place(), versions = %PluginVersion::SPOKEN, words = health.words,
                "plugin takes no version that this agent speaks; no vm grows beyond its permit"
            );
        }
    }

    /// The plugin took the version that was stated.
    pub(crate) fn takes(&self) {
        if std::mem::take(&mut lock(&self.health).is_told) {
            info!(plugin = self.permits.place(), "plugin takes a version again");
        }
    }

    /// The plugin answered a VM, or did not, or not at this moment: the log says it once for all VMs.
    pub(crate) fn answers(&self, now: Moment, answered: bool) {
        let mut health = lock(&self.health);
        match health.outage.heard(now, answered, AWAY) {
            Some(Word::Silent(since)) => warn!(
                plugin = self.permits.place(),
                since_s = since.as_secs(),
                why = health.why,
                "plugin does not answer; no vm grows beyond its permit"
            ),
            Some(Word::Back) => info!(plugin = self.permits.place(), "plugin answers again"),
            None => {}
        }
    }

    /// The plugin denies whoever asks without a right to, by 401 and 403: the log says it once, until another answer comes.
    fn knows(&self, status: u16, body: &[u8]) {
        if status == NOT_NOW {
            lock(&self.health).why = format!("status {status}: {}", words(body));
            return;
        }
        let is_denied = [401, 403].contains(&status);
        let was_denied = std::mem::replace(&mut lock(&self.health).is_denied, is_denied);
        match (was_denied, is_denied) {
            (false, true) => {
                warn!(
                    plugin = self.permits.place(),
                    status,
                    words = words(body),
                    "plugin denies this agent; no vm grows beyond its permit"
                );
            }
            (true, false) => {
                info!(plugin = self.permits.place(), "plugin answers this agent again")
            }
            (_, _) => {}
        }
    }

    fn log(&self, error: &WireError, body: &[u8]) {
        match error {
            WireError::Refused(status) => {
                debug!(status, words = words(body), "plugin refused");
            }
            WireError::Version(words) => {
                debug!(words, "plugin does not take the version that was stated");
                lock(&self.health).words.clone_from(words);
            }
            WireError::Moving => debug!("plugin refused: the vm is about to be moved"),
            WireError::Broken(_)
            | WireError::Odd(_)
            | WireError::NotOffered { .. }
            | WireError::NoMetricsPort
            | WireError::Unasked => {
                warn!(error = %error, "plugin's answer is broken");
                lock(&self.health).why = error.to_string();
            }
        }
    }
}

// === impl Open ===

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.counts.plugin_answered(self.status);
    }
}

/// The plugin's words, cut.
fn words(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().chars().take(200).collect()
}

fn failed(failure: Failure) -> Event {
    Event::Failed(Peer::Plugin, failure)
}
