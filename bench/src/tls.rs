//! TLS for a benchmark: an authority of its own, the certificate of both servers, and a client that trusts it.

use anyhow::{Context, Result};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use windlass_lab::Folder;
use windlass_testkit::tls::{Ca, Valid};

/// The files of a server's certificate. They go with this value.
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// For clients of the server.
    pub(crate) connector: TlsConnector,
    _folder: Folder,
}

// === impl Files ===

impl Files {
    pub(crate) fn create() -> Result<Self> {
        let (folder, ca) = (Folder::create()?, Ca::new("bench"));
        let pair = ca.signs("server", Valid::Now);
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, pair.certificate)?;
        std::fs::write(&key, pair.key)?;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(ca.pem().as_bytes()) {
            roots.add(authority?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { certificate, key, connector, _folder: folder })
    }
}

/// What a server shows.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key).context("no key")?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
