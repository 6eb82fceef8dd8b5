//! The certificate, key and CA of a listener with TLS: of files that are read again when they change, or given by the process.
//!
//! New connections use what was read or given last; open ones go on with what they began with. What cannot be used changes
//! nothing: what is in force stays in force, and the log says once why. No session is resumed, so what a peer's
//! certificate says is checked at each connection.

use crate::blocking::{BlockingTask, run_blocking};
use crate::catch_panic::lock;
use crate::watchdog::Pulse;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// Between two looks at the files.
const EVERY: Duration = Duration::from_secs(2);

/// What a listener shows, and whose certificates it takes. Clones share it.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None`: the process gives what they would hold.
    files: Option<TlsFiles>,
    held: Mutex<Held>,
    reloads: Reloads,
}

#[derive(Debug, Default)]
struct Held {
    /// `None`: nothing was given yet.
    in_force: Option<Arc<ServerConfig>>,
    /// What was in the files at the last look, or was given last: only other contents are tried.
    seen: Option<Result<TlsPem, TlsError>>,
    /// Why that cannot be used.
    failed: Option<TlsError>,
}

/// The files of a listener, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that lead from it to its CA.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs the certificates of clients; without it clients are not asked for one.
    pub client_ca: Option<PathBuf>,
}

/// Reloads of changed files, by what came of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Reloads(Family<Answer, Counter>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    answer: &'static str,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {why}")]
pub struct TlsError {
    /// Which of the files.
    pub file: TlsFile,
    /// Where it is.
    pub place: String,
    /// What is wrong with it. Nothing that the file says.
    pub why: String,
}

/// One of the files of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// [`TlsFiles::certificate`].
    Certificate,
    /// [`TlsFiles::key`].
    Key,
    /// [`TlsFiles::client_ca`].
    ClientCa,
}

/// What the files of a listener hold, in PEM. A key is in it, so nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsPem {
    /// As [`TlsFiles::certificate`].
    pub certificate: Vec<u8>,
    /// As [`TlsFiles::key`].
    pub key: Vec<u8>,
    /// As [`TlsFiles::client_ca`].
    pub client_ca: Option<Vec<u8>>,
}

/// Where the parts of a [`TlsPem`] are from, in the words of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPlaces {
    /// The certificate's place.
    pub certificate: String,
    /// The key's place.
    pub key: String,
    /// The place of the CA of clients.
    pub client_ca: String,
}

// === impl Tls ===

impl Tls {
    /// Reads the files. What changes in them counts once it is [followed](Tls::follow).
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn load(files: TlsFiles, reloads: Reloads) -> Result<Self, TlsError> {
        let pem = TlsPem::read(&files)?;
        let in_force = Some(Arc::new(pem.config(&TlsPlaces::of(&files))?));
        let held = Mutex::new(Held { in_force, seen: Some(Ok(pem)), failed: None });
        Ok(Self(Arc::new(Inner { files: Some(files), held, reloads })))
    }

    /// Has nothing to show until it is [given](Tls::give) something: connections are closed till then.
    pub fn awaiting(reloads: Reloads) -> Self {
        Self(Arc::new(Inner { files: None, held: Mutex::default(), reloads }))
    }

    /// Puts this in force for new connections, unless it is what was given last.
    ///
    /// # Errors
    /// It cannot be used; what is in force stays in force.
    pub fn give(&self, pem: TlsPem, places: &TlsPlaces) -> Result<(), TlsError> {
        self.see(Ok(pem), places)
    }

    /// Whether there is something to show.
    pub fn is_in_force(&self) -> bool {
        lock(&self.0.held).in_force.is_some()
    }

    /// Reads the files again whenever they change, until told to stop.
    ///
    /// # Errors
    /// None.
    pub async fn follow(self, pulse: Pulse, stop: CancellationToken) -> Result<(), Infallible> {
        let mut reading = BlockingTask::default();
        loop {
            pulse.turn("the files of a certificate");
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                done = reading.done() => drop::<std::io::Result<()>>(done),
                () = tokio::time::sleep(EVERY) => {
                    let tls = self.clone();
                    reading.start(|| Box::pin(run_blocking(move || tls.look())));
                }
            }
        }
    }

    /// Looks at the files once, and puts in force what they say.
    pub fn look(&self) {
        if let Some(files) = &self.0.files {
            // The log has it.
            let _ = self.see(TlsPem::read(files), &TlsPlaces::of(files));
        }
    }

    fn see(&self, seen: Result<TlsPem, TlsError>, places: &TlsPlaces) -> Result<(), TlsError> {
        let Inner { held, reloads, .. } = &*self.0;
        {
            let held = lock(held);
            if held.seen.as_ref() == Some(&seen) {
                return held.failed.clone().map_or(Ok(()), Err);
            }
        }
        let config = seen.as_ref().map_err(TlsError::clone).and_then(|pem| pem.config(places));
        let mut held = lock(held);
        held.seen = Some(seen);
        held.failed = config.as_ref().err().cloned();
        match config {
            Ok(config) => {
                let is_first = held.in_force.replace(Arc::new(config)).is_none();
                if !is_first {
                    reloads.count("done");
                }
                let certificate = &places.certificate;
                info!(certificate, "certificate read again: new connections use it");
                Ok(())
            }
            Err(error) => {
                reloads.count("failed");
                error!(%error, "a changed certificate cannot be used; the last valid one stays in force");
                Err(error)
            }
        }
    }

    /// What the next connection uses; `None`: nothing was given yet.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        lock(&self.0.held).in_force.clone()
    }
}

// === impl TlsPem ===

impl TlsPem {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key, client_ca } = files;
        let client_ca = client_ca.as_ref().map(|path| bytes(TlsFile::ClientCa, path)).transpose();
        Ok(Self {
            certificate: bytes(TlsFile::Certificate, certificate)?,
            key: bytes(TlsFile::Key, key)?,
            client_ca: client_ca?,
        })
    }

    fn config(&self, places: &TlsPlaces) -> Result<ServerConfig, TlsError> {
        let (provider, of_certificate) = (Arc::new(default_provider()), &places.certificate);
        let chain = certificates(TlsFile::Certificate, of_certificate, &self.certificate)?;
        let no_key = |why: &str| wrong(TlsFile::Key, &places.key, why);
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| no_key("must hold a private key in PEM"))?;
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(TlsFile::Certificate, of_certificate, &error.to_string()))?;
        let config = match &self.client_ca {
            Some(ca) => {
                let place = &places.client_ca;
                let bad = |why: &str| wrong(TlsFile::ClientCa, place, why);
                let mut roots = RootCertStore::empty();
                for root in certificates(TlsFile::ClientCa, place, ca)? {
                    roots.add(root).map_err(|error| bad(&error.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        // A client without a certificate gets an answer in words.
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| bad(&error.to_string()))?;
                config.with_client_cert_verifier(verifier)
            }
            None => config.with_no_client_auth(),
        };
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| no_key(&format!("does not go with {of_certificate}: {error}")))?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl std::fmt::Debug for TlsPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsPem")
    }
}

// === impl TlsPlaces ===

impl TlsPlaces {
    fn of(files: &TlsFiles) -> Self {
        let TlsFiles { certificate, key, client_ca } = files;
        let client_ca = client_ca.as_deref().map(place).unwrap_or_default();
        Self { certificate: place(certificate), key: place(key), client_ca }
    }
}

// === impl TlsFile ===

impl TlsFile {
    /// Its name in [`TlsFiles`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Key => "key",
            Self::ClientCa => "client_ca",
        }
    }
}

// === impl Reloads ===

impl Reloads {
    /// Adds them to what a process exports, from zero on: an alert takes the first value of a counter for no increase.
    pub fn register(&self, registry: &mut Registry) {
        for answer in ["done", "failed"] {
            drop(self.0.get_or_create_owned(&Answer { answer }));
        }
        let help = "Changed files of certificates that were read again, by what came of it";
        registry.register("certificate_reloads", help, self.0.clone());
    }

    /// Counts a reload: `done` or `failed`.
    pub fn count(&self, answer: &'static str) {
        self.0.get_or_create(&Answer { answer }).inc();
    }
}

fn certificates(
    file: TlsFile,
    place: &str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| wrong(file, place, &error.to_string()))?;
    if read.is_empty() {
        return Err(wrong(file, place, "must hold a certificate in PEM"));
    }
    Ok(read)
}

fn bytes(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| wrong(file, &place(path), &error.to_string()))
}

fn wrong(file: TlsFile, place: &str, why: &str) -> TlsError {
    TlsError { file, place: place.to_owned(), why: why.to_owned() }
}

fn place(path: &Path) -> String {
    path.display().to_string()
}
