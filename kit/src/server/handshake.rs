//! A listener with TLS: the handshake of each connection, and why one fails.
//!
//! A handshake takes as long as its peer lets it, within a limit; it is no part of the loop that accepts. A peer that
//! speaks no TLS is told so in plain text. Each failure is counted by reason, and logged once a minute for each reason and address.

use super::limits::{Handshake, Refusal};
use super::listen::{Accept, Peer, Who};
use super::subject::common_name;
use super::tls::Tls;
use crate::seldom::Seldom;
use rustls::{AlertDescription, CertificateError, Error};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::warn;

/// How each record of a handshake begins.
const HANDSHAKE: u8 = 0x16;

/// What a peer that speaks no TLS may have said by then.
const SAID: usize = 4096;

const NO_TLS: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 39\r\nconnection: close\r\n\r\nthis port speaks TLS, and nothing else\n";

/// A listener whose connections begin with a handshake.
#[derive(Debug)]
pub struct TlsListener {
    tcp: TcpListener,
    tls: Tls,
    said: Arc<Seldom<(Handshake, IpAddr)>>,
}

/// A connection whose handshake is to be made.
#[derive(Debug)]
pub struct Begun {
    stream: TcpStream,
    address: SocketAddr,
    tls: Tls,
    said: Arc<Seldom<(Handshake, IpAddr)>>,
}

// === impl TlsListener ===

impl TlsListener {
    /// Connections of this listener show what `tls` has in force.
    pub fn new(tcp: TcpListener, tls: Tls) -> Self {
        Self { tcp, tls, said: Arc::default() }
    }
}

impl Accept for TlsListener {
    type Stream = Begun;
    type Open = TlsStream<TcpStream>;

    async fn accept(&self) -> io::Result<Begun> {
        let (stream, address) = self.tcp.accept().await?;
        stream.set_nodelay(true)?;
        Ok(Begun { stream, address, tls: self.tls.clone(), said: self.said.clone() })
    }

    async fn open(begun: Begun, within: Duration) -> Result<Self::Open, Refusal> {
        let Begun { stream, address, tls, said } = begun;
        let opened = timeout(within, handshake(stream, &tls)).await;
        let opened = opened.unwrap_or_else(|_| Err((Handshake::Slow, String::new())));
        opened.map_err(|(why, detail)| {
            if said.is_due((why, address.ip())) {
                warn!(peer = %address.ip(), why = why.as_str(), detail, "a TLS connection was refused");
            }
            Refusal::Tls(why)
        })
    }

    fn who(stream: &Self::Open) -> Who {
        let (tcp, tls) = stream.get_ref();
        let Ok(address) = tcp.peer_addr() else { return Who::Unknown };
        let certificate = tls.peer_certificates().and_then(<[_]>::first);
        let common_name =
            certificate.map(|certificate| common_name(certificate).unwrap_or_default().into());
        Who::Peer(Peer { address, common_name })
    }

    fn turn_away(begun: &Begun, _: &[u8]) {
        // Words before a handshake are a broken handshake to the peer: the connection only closes.
        let Begun { stream: _, address: _, tls: _, said: _ } = begun;
    }
}

async fn handshake(
    mut stream: TcpStream,
    tls: &Tls,
) -> Result<TlsStream<TcpStream>, (Handshake, String)> {
    let broken = |error: io::Error| (Handshake::Broken, error.to_string());
    let mut first = [0];
    match stream.peek(&mut first).await.map_err(broken)? {
        0 => return Err((Handshake::Broken, "closed without a word".to_owned())),
        _ if first == [HANDSHAKE] => {}
        _ => {
            // What is not read would cut the answer off.
            let _ = stream.read(&mut [0; SAID]).await;
            let _ = stream.write_all(NO_TLS.as_bytes()).await;
            let _ = stream.shutdown().await;
            return Err((Handshake::PlainText, String::new()));
        }
    }
    let Some(config) = tls.config() else {
        return Err((Handshake::NoCertificate, String::new()));
    };
    TlsAcceptor::from(config).accept(stream).await.map_err(|error| {
        let why = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        (why.map_or(Handshake::Broken, reason), error.to_string())
    })
}

/// The reason by which a failure is counted.
fn reason(error: &Error) -> Handshake {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    if let Error::AlertReceived(alert) = error {
        return if is_distrust(*alert) { Handshake::Distrusted } else { Handshake::Broken };
    }
    let Error::InvalidCertificate(why) = error else { return Handshake::Broken };
    if matches!(why, UnknownIssuer | BadSignature) {
        Handshake::UnknownCa
    } else if matches!(why, Expired | ExpiredContext { .. }) {
        Handshake::Expired
    } else if matches!(why, NotValidYet | NotValidYetContext { .. }) {
        Handshake::NotYetValid
    } else {
        Handshake::BadCertificate
    }
}

/// Whether a peer says by this alert that it does not trust our certificate.
fn is_distrust(alert: AlertDescription) -> bool {
    [
        AlertDescription::UnknownCA,
        AlertDescription::BadCertificate,
        AlertDescription::UnsupportedCertificate,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
    ]
    .contains(&alert)
}
