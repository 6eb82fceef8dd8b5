//! A client over TLS: whose certificates it takes, and the token that it shows.
//!
//! Both are files that are read again when they change: a CA is renewed, and a token lasts an hour. New connections take what the CA signed that
//! was read last, and each request shows the token that was read last. Files that cannot be used change nothing, and the log
//! says once why. No token is logged.

use super::pool::Way;
use super::request::{Address, ClientError};
use crate::blocking::{BlockingTask, run_blocking};
use crate::catch_panic::lock;
use crate::watchdog::{Pulse, TURN};
use http::HeaderValue;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// The longest token that is read.
const LONGEST: usize = 64 * 1024;

/// Whom a client trusts, and what it shows. Clones share it.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: TrustFiles,
    held: Mutex<Held>,
}

/// The files of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustFiles {
    /// Who signs the certificates of servers, in PEM.
    pub ca: PathBuf,
    /// The token that each request shows; without it requests show none.
    pub token: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {why}", path.display())]
pub struct TrustError {
    /// Which of the files.
    pub file: TrustFile,
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it. Nothing that the file says.
    pub why: String,
}

/// One of the files of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustFile {
    /// [`TrustFiles::ca`].
    Ca,
    /// [`TrustFiles::token`].
    Token,
}

#[derive(Debug)]
struct Held {
    config: Arc<ClientConfig>,
    authorization: Option<HeaderValue>,
    /// What was in the files at the last look: only other contents are tried.
    seen: Result<Contents, TrustError>,
}

/// What was read of the files. A token is in it, so nothing prints it.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    ca: Vec<u8>,
    token: Option<Vec<u8>>,
}

/// The way to a server over TLS.
#[derive(Debug)]
pub struct TlsWay {
    host: String,
    port: u16,
    name: ServerName<'static>,
    trust: Trust,
}

// === impl Trust ===

impl Trust {
    /// Reads the files. What changes in them counts once they are [followed](Trust::follow).
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn load(files: TrustFiles) -> Result<Self, TrustError> {
        let contents = Contents::read(&files)?;
        let (config, authorization) = contents.understood(&files)?;
        let held = Mutex::new(Held { config, authorization, seen: Ok(contents) });
        Ok(Self(Arc::new(Inner { files, held })))
    }

    /// Reads the files again whenever they change, until told to stop.
    ///
    /// # Errors
    /// None.
    pub async fn follow(self, pulse: Pulse, stop: CancellationToken) -> Result<(), Infallible> {
        let mut reading = BlockingTask::default();
        loop {
            pulse.turn("the files of a CA and a token");
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                done = reading.done() => drop::<io::Result<()>>(done),
                () = tokio::time::sleep(TURN) => {
                    let trust = self.clone();
                    reading.start(|| Box::pin(run_blocking(move || trust.look())));
                }
            }
        }
    }

    /// Looks at the files once, and puts in force what they say.
    pub fn look(&self) {
        let Inner { files, held } = &*self.0;
        let seen = Contents::read(files);
        if lock(held).seen == seen {
            return;
        }
        let read = seen.as_ref().map_err(TrustError::clone).and_then(|read| read.understood(files));
        let mut held = lock(held);
        held.seen = seen;
        match read {
            Ok((config, authorization)) => {
                (held.config, held.authorization) = (config, authorization);
                info!("the CA or the token was read again: new connections and requests use it");
            }
            Err(error) => {
                error!(%error, "a changed CA or token cannot be used; the last valid one stays in force");
            }
        }
    }

    /// The header that shows the token.
    pub fn authorization(&self) -> Option<HeaderValue> {
        lock(&self.0.held).authorization.clone()
    }

    fn config(&self) -> Arc<ClientConfig> {
        lock(&self.0.held).config.clone()
    }
}

// === impl Contents ===

impl Contents {
    fn read(files: &TrustFiles) -> Result<Self, TrustError> {
        let TrustFiles { ca, token } = files;
        let token = token.as_ref().map(|path| bytes(TrustFile::Token, path)).transpose();
        Ok(Self { ca: bytes(TrustFile::Ca, ca)?, token: token? })
    }

    fn understood(
        &self,
        files: &TrustFiles,
    ) -> Result<(Arc<ClientConfig>, Option<HeaderValue>), TrustError> {
        let bad = |why: &str| wrong(TrustFile::Ca, &files.ca, why);
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&self.ca) {
            let root = root.map_err(|error| bad(&error.to_string()))?;
            roots.add(root).map_err(|error| bad(&error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(bad("must hold a certificate in PEM"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let authorization = match (&self.token, &files.token) {
            (Some(token), Some(path)) => Some(header(token, path)?),
            (_, _) => None,
        };
        Ok((Arc::new(config), authorization))
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contents")
    }
}

// === impl TrustFile ===

impl TrustFile {
    /// Its name in [`TrustFiles`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ca => "ca",
            Self::Token => "token",
        }
    }
}

// === impl TlsWay ===

impl TlsWay {
    /// The way to this host, which is a name or an address, and must stand in the server's certificate; `None`: it is neither.
    pub fn new(host: &str, port: u16, trust: Trust) -> Option<Self> {
        Self::as_named(host, port, host, trust)
    }

    /// The same, where another name must stand in the certificate: the way leads through a tunnel.
    pub fn as_named(host: &str, port: u16, name: &str, trust: Trust) -> Option<Self> {
        let name = ServerName::try_from(name.to_owned()).ok()?;
        Some(Self { host: host.to_owned(), port, name, trust })
    }
}

impl Way for TlsWay {
    type Stream = TlsStream<TcpStream>;

    fn address(&self) -> Address {
        Address::Named(self.host.clone(), self.port)
    }

    async fn connect(&self) -> Result<Self::Stream, ClientError> {
        let at = |source| ClientError::Connect(self.address(), source);
        let addresses = lookup_host((self.host.as_str(), self.port)).await.map_err(at)?;
        let mut failed = io::Error::other("the name has no address");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(at)?;
                    let connector = TlsConnector::from(self.trust.config());
                    let opened = connector.connect(self.name.clone(), stream).await;
                    return opened.map_err(|error| {
                        ClientError::Handshake(self.address(), words(&error), error)
                    });
                }
                Err(error) => failed = error,
            }
        }
        Err(at(failed))
    }

    fn is_silent(stream: &Self::Stream) -> bool {
        SocketAddr::is_silent(stream.get_ref().0)
    }
}

/// What a person is told of a handshake that failed.
fn words(error: &io::Error) -> &'static str {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext,
        NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return "the connection ended";
    };
    let Error::InvalidCertificate(why) = error else { return "it speaks no TLS, or another kind" };
    if matches!(why, UnknownIssuer | BadSignature) {
        "its certificate is of another CA than the one that is trusted"
    } else if matches!(why, Expired | ExpiredContext { .. }) {
        "its certificate has ended"
    } else if matches!(why, NotValidYet | NotValidYetContext { .. }) {
        "its certificate is not valid yet"
    } else if matches!(why, NotValidForName | NotValidForNameContext { .. }) {
        "its certificate is for other hosts"
    } else {
        "its certificate cannot be used"
    }
}

fn header(token: &[u8], path: &Path) -> Result<HeaderValue, TrustError> {
    let bad = |why: &str| wrong(TrustFile::Token, path, why);
    let token = std::str::from_utf8(token).map_err(|_| bad("must hold a token"))?.trim();
    if token.is_empty() || token.len() > LONGEST || token.contains(char::is_whitespace) {
        return Err(bad("must hold one token"));
    }
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| bad("must hold a token"))?;
    header.set_sensitive(true);
    Ok(header)
}

fn bytes(file: TrustFile, path: &Path) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|error| wrong(file, path, &error.to_string()))
}

fn wrong(file: TrustFile, path: &Path, why: &str) -> TrustError {
    TrustError { file, path: path.to_owned(), why: why.to_owned() }
}
