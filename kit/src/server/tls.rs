//! The certificate, key and CA of a listener with TLS, read again when their files change.
//!
//! New connections use what was read last; open ones go on with what they began with. Files that cannot be used change
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
    files: TlsFiles,
    held: Mutex<Held>,
    reloads: Reloads,
}

#[derive(Debug)]
struct Held {
    in_force: Arc<ServerConfig>,
    /// What was in the files at the last look: only other contents are tried.
    seen: Result<Contents, TlsError>,
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
#[error("{}: {why}", path.display())]
pub struct TlsError {
    /// Which of the files.
    pub file: TlsFile,
    /// Where it is.
    pub path: PathBuf,
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

/// What was read of the files. A key is in it, so nothing prints it.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

// === impl Tls ===

impl Tls {
    /// Reads the files. What changes in them counts once it is [followed](Tls::follow).
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn load(files: TlsFiles, reloads: Reloads) -> Result<Self, TlsError> {
        let contents = Contents::read(&files)?;
        let in_force = Arc::new(contents.config(&files)?);
        let held = Mutex::new(Held { in_force, seen: Ok(contents) });
        Ok(Self(Arc::new(Inner { files, held, reloads })))
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
        let Inner { files, held, reloads } = &*self.0;
        let seen = Contents::read(files);
        if lock(held).seen == seen {
            return;
        }
        let config = seen.as_ref().map_err(TlsError::clone).and_then(|read| read.config(files));
        let mut held = lock(held);
        held.seen = seen;
        match config {
            Ok(config) => {
                held.in_force = Arc::new(config);
                reloads.count("done");
                let path = files.certificate.display();
                info!(certificate = %path, "certificate read again: new connections use it");
            }
            Err(error) => {
                reloads.count("failed");
                error!(%error, "a changed certificate cannot be used; the last valid one stays in force");
            }
        }
    }

    /// What the next connection uses.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        lock(&self.0.held).in_force.clone()
    }
}

// === impl Contents ===

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key, client_ca } = files;
        let client_ca = client_ca.as_ref().map(|path| bytes(TlsFile::ClientCa, path)).transpose();
        Ok(Self {
            certificate: bytes(TlsFile::Certificate, certificate)?,
            key: bytes(TlsFile::Key, key)?,
            client_ca: client_ca?,
        })
    }

    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, TlsError> {
        let (provider, of_certificate) = (Arc::new(default_provider()), &files.certificate);
        let chain = certificates(TlsFile::Certificate, of_certificate, &self.certificate)?;
        let no_key = |why: &str| wrong(TlsFile::Key, &files.key, why);
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| no_key("must hold a private key in PEM"))?;
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(TlsFile::Certificate, of_certificate, &error.to_string()))?;
        let config = match (&self.client_ca, &files.client_ca) {
            (Some(ca), Some(path)) => {
                let bad = |why: &str| wrong(TlsFile::ClientCa, path, why);
                let mut roots = RootCertStore::empty();
                for root in certificates(TlsFile::ClientCa, path, ca)? {
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
            (_, _) => config.with_no_client_auth(),
        };
        let mut config = config.with_single_cert(chain, key).map_err(|error| {
            no_key(&format!("does not go with {}: {error}", of_certificate.display()))
        })?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contents")
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
    /// Adds them to what a process exports.
    pub fn register(&self, registry: &mut Registry) {
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
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| wrong(file, path, &error.to_string()))?;
    if read.is_empty() {
        return Err(wrong(file, path, "must hold a certificate in PEM"));
    }
    Ok(read)
}

fn bytes(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| wrong(file, path, &error.to_string()))
}

fn wrong(file: TlsFile, path: &Path, why: &str) -> TlsError {
    TlsError { file, path: path.to_owned(), why: why.to_owned() }
}
