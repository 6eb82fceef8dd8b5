//! Certificates of a test's own, and a client over TLS that sends exact bytes.

use crate::http::{Answer, parse, request};
use crate::wait::PATIENCE;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// A certificate authority.
pub struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// When a certificate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    /// While the test runs.
    Now,
    /// It has ended.
    NoMore,
    /// It has not begun.
    NotYet,
}

/// A client of servers at 127.0.0.1.
#[derive(Clone)]
pub struct Client(Arc<ClientConfig>);

/// A connection of a client.
pub type Stream = StreamOwned<ClientConnection, TcpStream>;

// === impl Ca ===

impl Ca {
    /// A new authority. Two of one name have keys of their own.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for 127.0.0.1, of a server or of a client.
    pub fn signs(&self, common_name: &str, valid: Valid) -> Pair {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = match valid {
            Valid::Now => (date_time_ymd(2020, 1, 1), date_time_ymd(2200, 1, 1)),
            Valid::NoMore => (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1)),
            Valid::NotYet => (date_time_ymd(2199, 1, 1), date_time_ymd(2200, 1, 1)),
        };
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

// === impl Client ===

impl Client {
    /// A client that trusts servers of this authority, and shows this certificate.
    pub fn new(trusts: &Ca, shows: Option<&Pair>) -> Self {
        Self::trusting(&trusts.pem, shows)
    }

    /// The same, of the authorities in this PEM.
    pub fn trusting(pem: &str, shows: Option<&Pair>) -> Self {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Self(Arc::new(match shows {
            None => config.with_no_client_auth(),
            Some(Pair { certificate, key }) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        }))
    }

    /// A connection after its handshake.
    ///
    /// # Errors
    /// The handshake failed.
    pub fn connect(&self, at: SocketAddr) -> io::Result<Stream> {
        let mut tcp = TcpStream::connect(at)?;
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::IpAddress(at.ip().into());
        let mut tls = ClientConnection::new(self.0.clone(), name).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        Ok(StreamOwned::new(tls, tcp))
    }

    /// One request on a connection of its own, with these headers; an error is what the client sees of a connection that
    /// was refused.
    ///
    /// # Errors
    /// No answer came.
    pub fn ask(
        &self,
        at: SocketAddr,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<Answer> {
        let mut stream = self.connect(at)?;
        let text = request(method, path, body).replacen("\r\n", &format!("\r\n{headers}"), 1);
        // The word of a server that refuses a certificate comes after the handshake.
        io::Write::write_all(&mut stream, text.as_bytes())?;
        let mut heard = Vec::new();
        io::Read::read_to_end(&mut stream, &mut heard)?;
        let heard = String::from_utf8_lossy(&heard);
        parse(&heard).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
