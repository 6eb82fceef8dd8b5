//! Where events go: `http://HOST[:PORT][/PATH]`, and one request there.
//!
//! There is no TLS in this process: an operator who needs it runs a proxy on the same machine, and gives
//! that proxy's address here.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use windlass_kit::client::{Address, Ask, ClientError, ask};

/// Characters of a URL.
const LONGEST: usize = 2048;

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

const TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    host: String,
    port: u16,
    /// What `Host` says.
    authority: HeaderValue,
    path: String,
}

/// Why a batch counts as not received.
#[derive(Debug, Error)]
pub(crate) enum Undelivered {
    #[error("{host}: the name has no address")]
    Name {
        host: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("answered {status}: {text}")]
    Status { status: u16, text: String },
}

// === impl Receiver ===

impl Receiver {
    /// Reads a URL.
    ///
    /// # Errors
    /// Says in words what may stand there.
    pub fn from_url(url: &str) -> Result<Self, &'static str> {
        let form = "must be http://HOST, with :PORT and /PATH if need be, of at most 2048 \
                    characters of ASCII";
        if url.len() > LONGEST || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(form);
        }
        let (scheme, rest) = url.split_once("://").ok_or(form)?;
        if scheme.eq_ignore_ascii_case("https") {
            return Err("must be http://: TLS is not spoken here; have a proxy on this machine \
                        speak it, and give the proxy's address");
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(form);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains(['@', '?', '#']) || path.contains(['?', '#']) {
            return Err("must have no user, no query and no fragment");
        }
        let (host, port) = host_and_port(authority).ok_or(form)?;
        let authority = HeaderValue::from_str(authority).map_err(|_| form)?;
        let path = format!("{}/usage_events", path.trim_end_matches('/'));
        Ok(Self { host, port, authority, path })
    }

    /// Asks once; nothing but 200 is success, as in the reference.
    pub(crate) async fn post(
        &self,
        body: Bytes,
        trace: &str,
        limit: Duration,
    ) -> Result<(), Undelivered> {
        let deadline = Instant::now() + limit;
        let mut refused = None;
        for address in self.addresses(deadline).await? {
            let to = Address::Tcp(address);
            let left = deadline.saturating_duration_since(Instant::now());
            let mut request = Ask::new(Method::POST, self.path.as_str(), body.clone())
                .with(header::HOST, self.authority.clone())
                .within(left)
                .at_most(MAX_ANSWER);
            if let Ok(trace) = HeaderValue::from_str(trace) {
                request = request.with(TRACE_ID, trace);
            }
            match ask(&to, request).await {
                Ok(answer) if answer.status == 200 => return Ok(()),
                Ok(answer) => {
                    let (status, text) = (answer.status, answer.text());
                    return Err(Undelivered::Status { status, text });
                }
                // Certainly not received: another address of the same name may be.
                Err(error @ ClientError::Connect { .. }) => refused = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(refused.map_or_else(|| self.nameless(ErrorKind::NotFound.into()), Undelivered::Client))
    }

    async fn addresses(&self, deadline: Instant) -> Result<Vec<SocketAddr>, Undelivered> {
        let found = timeout_at(deadline, tokio::net::lookup_host((self.host.as_str(), self.port)));
        match found.await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())) {
            Ok(found) => Ok(found.take(MOST_ADDRESSES).collect()),
            Err(source) => Err(self.nameless(source)),
        }
    }

    fn nameless(&self, source: std::io::Error) -> Undelivered {
        Undelivered::Name { host: self.host.clone(), source }
    }
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path, .. } = self;
        let colons = host.contains(':');
        let (open, close) = if colons { ("[", "]") } else { ("", "") };
        write!(f, "http://{open}{host}{close}:{port}{path}")
    }
}

/// A name, an IPv4 address, or an IPv6 address in brackets; port 80 if none is said.
fn host_and_port(authority: &str) -> Option<(String, u16)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (host, rest) = authority.split_at(end);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if host.is_empty() || host.len() > 253 || !host.bytes().all(is_name) {
                return None;
            }
            (host, rest)
        }
    };
    let port = match rest.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        None if rest.is_empty() => 80,
        Some(_) | None => return None,
    };
    (port > 0).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_the_reference_does() {
        for (url, shown) in [
            ("http://billing.example", "http://billing.example:80/usage_events"),
            ("http://10.0.0.1:8080/api/v1/", "http://10.0.0.1:8080/api/v1/usage_events"),
            ("HTTP://[::1]:9/x", "http://[::1]:9/x/usage_events"),
        ] {
            assert_eq!(Receiver::from_url(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_in_words() {
        for (url, word) in [
            ("", "http://HOST"),
            ("billing.example", "http://HOST"),
            ("https://billing.example", "TLS"),
            ("HTTPS://billing.example", "TLS"),
            ("ftp://billing.example", "http://HOST"),
            ("http://", "http://HOST"),
            ("http://:80", "http://HOST"),
            ("http://a:", "http://HOST"),
            ("http://a:0", "http://HOST"),
            ("http://a:65536", "http://HOST"),
            ("http://a:+1", "http://HOST"),
            ("http://[::1", "http://HOST"),
            ("http://[x]", "http://HOST"),
            ("http://user@a", "no user"),
            ("http://a/?x=1", "no query"),
            ("http://a/#x", "fragment"),
            ("http://a b", "http://HOST"),
            ("http://ä", "http://HOST"),
        ] {
            let refused = Receiver::from_url(url).unwrap_err();
            assert!(refused.contains(word), "{url}: {refused}");
        }
        assert!(Receiver::from_url(&format!("http://{}", "a".repeat(300))).is_err());
        assert!(Receiver::from_url(&format!("http://a/{}", "a".repeat(2048))).is_err());
    }
}
