//! Makes and renews the plugin's own certificates, and has its ports show them.
//!
//! It decides nothing: [`windlass_plugin_core::certificates`] does. The CA and the plugin's certificate are in a Secret, which every plugin reads and
//! shows; the CAs to be trusted are in a ConfigMap, and the scheduler's certificate is in a Secret of its own. Only the leader
//! writes: a creation fails where an object is there already, and a replacement names the revision that was read, so two plugins that write at
//! once leave what one of them wrote. An object without the label of [`names::MADE_BY`] is a person's: it is read, and never written.
//!
//! A part that cannot be used is logged once and counted. No key is logged.

mod make;
pub mod names;
mod read;
mod requests;

use crate::leadership::Leadership;
use crate::metrics::CertificateCounts;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, Resource};
use names::{BUNDLE, CA, CLIENT, Data, KEPT, LEAF, MADE_BY, SERVICE};
use read::{Problem, Reader, bundle_of};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use windlass_kit::admin::Readiness;
use windlass_kit::clock::Clock;
use windlass_kit::server::{Tls, TlsFile, TlsPem, TlsPlaces};
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::answers::Failure;
use windlass_plugin_core::certificates::{
    self as core, Bundle, Fingerprint, Kept, Maker, Terms, There,
};

/// Between two looks at whether the objects are to be read.
const LOOKS: Duration = Duration::from_millis(500);

/// Between two times that the objects are read, once a certificate is shown.
pub const EVERY: Duration = Duration::from_secs(5);

/// Writes of one round: a CA with a certificate, a bundle, a scheduler's certificate, and once more each.
const WRITES: usize = 6;

/// What the process waits for before it is ready.
const PART: &str = "certificate";

/// What is needed to make certificates and to show them.
pub struct Certificates {
    /// How the API server is reached.
    pub client: Client,
    /// The plugin's own namespace.
    pub namespace: String,
    /// For whom certificates are made.
    pub terms: Terms,
    /// Whether this plugin may write.
    pub leadership: Leadership,
    /// The ports that show the certificate.
    pub ports: Vec<Port>,
    /// What is written and what is wrong is counted there.
    pub counts: CertificateCounts,
    /// The time.
    pub clock: Clock,
    /// Between two times that the objects are read, once a certificate is shown; [`EVERY`].
    pub every: Duration,
    /// A leader is ready once a certificate is shown, a standby once it has looked for one.
    pub readiness: Readiness,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// A port that shows the certificate.
#[derive(Clone, Debug)]
pub struct Port {
    /// What it shows.
    pub tls: Tls,
    /// Whether its clients show certificates of the same CA.
    pub asks_clients: bool,
}

/// For whom the plugin of this namespace makes certificates: for the names of its Service and the machine itself, and for a scheduler
/// of this common name.
pub fn terms(namespace: &str, scheduler: Option<String>) -> Terms {
    let service =
        ["", ".svc", ".svc.cluster.local"].map(|end| format!("{SERVICE}.{namespace}{end}"));
    let own = [SERVICE, "localhost", "127.0.0.1", "::1"].map(str::to_owned);
    Terms { hosts: service.into_iter().chain(own).collect(), scheduler }
}

/// Makes and shows certificates until told to stop. From the call on the process is not ready before a
/// certificate is shown, or a standby has looked for one.
///
/// # Errors
/// None.
pub fn run(certificates: Certificates) -> impl Future<Output = Result<(), Infallible>> {
    certificates.readiness.wait_for(PART);
    turn(certificates)
}

async fn turn(certificates: Certificates) -> Result<(), Infallible> {
    let Certificates { leadership, readiness, pulse, stop, every, .. } = &certificates;
    let (mut led, mut due, mut has_failed) = (false, Instant::now(), false);
    let mut said = BTreeSet::new();
    loop {
        let leads = leadership.epoch().is_some();
        if Instant::now() >= due || leads != std::mem::replace(&mut led, leads) {
            let round = certificates.round(&mut said).await;
            let is_read = round.is_ok();
            match round {
                Ok(()) if std::mem::take(&mut has_failed) => {
                    info!("certificates are read and written again");
                }
                Ok(()) => {}
                Err(why) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        warn!(%why, "certificates are not read or written; it is tried again");
                    }
                }
            }
            let is_shown = certificates.ports.iter().all(|port| port.tls.is_in_force());
            // A standby answers nobody, and makes none: it is ready without, else an update to own certificates would wait
            // for it while a plugin leads that has its certificates from a person.
            if is_shown || (is_read && !leads) {
                readiness.done(PART);
            }
            if is_shown {
                due = Instant::now() + *every;
            }
        }
        if !pulse.rest("the next look at certificates", LOOKS.min(*every), stop).await {
            return Ok(());
        }
    }
}

/// The three objects, as they were read.
#[derive(Default)]
struct Objects {
    kept: Option<Secret>,
    bundle: Option<ConfigMap>,
    client: Option<Secret>,
}

/// Why a round came to no end.
enum RoundError {
    Api(&'static str, Failure),
    Make(make::MakeError),
}

// === impl Certificates ===

impl Certificates {
    /// Reads and shows; the leader writes until nothing is left to write.
    async fn round(&self, said: &mut BTreeSet<Problem>) -> Result<(), RoundError> {
        for _ in 0..WRITES {
            let objects = self.read().await?;
            let (there, mut problems) = self.judge(&objects);
            if let Some(kept) = &objects.kept {
                problems.extend(self.show(kept, there.kept.as_ref()));
            }
            self.say(problems, said);
            // Right before the write: a standby writes nothing.
            let Some(_act) = self.leadership.act() else { return Ok(()) };
            let Some(write) = core::next(self.clock.now(), &self.terms, &there) else {
                return Ok(());
            };
            self.write(write, objects).await?;
        }
        Ok(())
    }

    /// A standby reads what it shows, and nothing else.
    async fn read(&self) -> Result<Objects, RoundError> {
        let kept = self.get::<Secret>(KEPT).await?;
        if self.leadership.epoch().is_none() {
            return Ok(Objects { kept, ..Objects::default() });
        }
        let bundle = self.get::<ConfigMap>(BUNDLE).await?;
        let client = match self.terms.scheduler {
            Some(_) => self.get::<Secret>(CLIENT).await?,
            None => None,
        };
        Ok(Objects { kept, bundle, client })
    }

    /// What the objects hold, in the words of the core, and what is wrong with them.
    fn judge(&self, objects: &Objects) -> (There, Vec<Problem>) {
        let (now, mut problems) = (self.clock.now(), Vec::new());
        let of_kept = objects.kept.as_ref().map(data).unwrap_or_default();
        let kept = objects.kept.as_ref().map(|secret| {
            if maker(secret) == Maker::Person {
                // It is shown as it is.
                return Kept::of_a_person();
            }
            let (kept, wrong) = Reader::kept(&of_kept, now);
            problems.extend(wrong);
            kept
        });
        let is_ours = kept.as_ref().is_some_and(|kept| kept.maker == Maker::Plugin);
        let bundle = objects.bundle.as_ref().map(|bundle| {
            let (holds, wrong) = Reader::bundle(bundle_text(bundle));
            let maker = maker(bundle);
            if maker == Maker::Plugin {
                problems.extend(wrong);
            } else if is_ours && kept.as_ref().is_some_and(|kept| !holds_all(&holds, kept)) {
                let why = "was not made by the plugin, and does not name its CA".to_owned();
                problems.push(Problem { object: BUNDLE, key: CA.certificate, why });
            }
            Bundle { maker, holds }
        });
        let client = objects.client.as_ref().map(|client| {
            let maker = maker(client);
            let (certificate, wrong) = Reader::client(&data(client), &of_kept, now);
            if maker == Maker::Plugin {
                problems.extend(wrong);
            }
            core::Client { maker, certificate }
        });
        (There { kept, bundle, client }, problems)
    }

    /// Has the ports show what can be used of the Secret; what is wrong with one of a person.
    fn show(&self, secret: &Secret, kept: Option<&Kept>) -> Vec<Problem> {
        let data = data(secret);
        let is_ours = kept.is_some_and(|kept| kept.maker == Maker::Plugin);
        if is_ours && kept.is_none_or(|kept| kept.serving.get().is_none()) {
            // The leader makes it anew.
            return Vec::new();
        }
        let place = |key: &str| format!("secret {}/{KEPT}: {key}", self.namespace);
        let places = TlsPlaces {
            certificate: place(LEAF.certificate),
            key: place(LEAF.key),
            client_ca: place(CA.certificate),
        };
        let part = |key: &str| data.get(key).cloned().unwrap_or_default();
        let mut problems = BTreeSet::new();
        for Port { tls, asks_clients } in &self.ports {
            let clients = if is_ours { bundle_of(&data) } else { part(CA.certificate) };
            let pem = TlsPem {
                certificate: part(LEAF.certificate),
                key: part(LEAF.key),
                client_ca: asks_clients.then_some(clients),
            };
            if let Err(error) = tls.give(pem, &places) {
                let key = match error.file {
                    TlsFile::Certificate => LEAF.certificate,
                    TlsFile::Key => LEAF.key,
                    TlsFile::ClientCa => CA.certificate,
                };
                problems.insert(Problem { object: KEPT, key, why: error.why });
            }
        }
        problems.into_iter().collect()
    }

    /// Logs and counts what was not wrong at the last look.
    fn say(&self, problems: Vec<Problem>, said: &mut BTreeSet<Problem>) {
        let problems: BTreeSet<Problem> = problems.into_iter().collect();
        for problem @ Problem { object, key, why } in &problems {
            if !said.contains(problem) {
                self.counts.problem(object);
                let namespace = &self.namespace;
                error!(namespace, object, key, why, "a certificate cannot be used");
            }
        }
        *said = problems;
    }
}

// === impl RoundError ===

impl From<make::MakeError> for RoundError {
    fn from(error: make::MakeError) -> Self {
        Self::Make(error)
    }
}

impl fmt::Display for RoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(object, failure) => write!(f, "{object}: {failure}"),
            Self::Make(error) => error.fmt(f),
        }
    }
}

fn maker(object: &impl Resource) -> Maker {
    let (label, value) = MADE_BY;
    let labels = object.meta().labels.as_ref();
    match labels.and_then(|labels| labels.get(label)) {
        Some(made_by) if made_by == value => Maker::Plugin,
        Some(_) | None => Maker::Person,
    }
}

fn data(secret: &Secret) -> Data {
    let parts = secret.data.iter().flatten();
    parts.map(|(key, ByteString(bytes))| (key.clone(), bytes.clone())).collect()
}

fn bundle_text(bundle: &ConfigMap) -> &str {
    let text = bundle.data.as_ref().and_then(|data| data.get(CA.certificate));
    text.map_or("", String::as_str)
}

fn holds_all(holds: &[Fingerprint], kept: &Kept) -> bool {
    kept.trusted().iter().all(|id| holds.contains(id))
}
