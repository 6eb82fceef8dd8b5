//! A plugin that is reached over HTTP, or over TLS with a token.
//!
//! Connections are kept between requests. A plugin that was replaced closes them, and is asked over
//! new ones.

use crate::plugin::{Asked, Permits};
use bytes::Bytes;
use http::{Method, header};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use windlass_kit::client::{Ask, Pool, TlsWay, Trust, with_causes};
use windlass_protocol::plugin::{METHOD, SPOKEN_PATH, Spoken};

/// Bytes of an answer that are read; it has a few hundred.
const ANSWER: usize = 64 * 1024;

/// Connections to the plugin. Requests of more VMs at once wait for one of them: a permit takes far less
/// than a millisecond, and the plugin serves the agents of all nodes.
const CONNECTIONS: usize = 32;

/// The longest name of a host.
const LONGEST_HOST: usize = 253;

/// Where a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginAt {
    to: To,
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    Plain(SocketAddr),
    /// A name, or an address without brackets.
    Tls(String, u16),
}

/// A plugin that is reached over HTTP, or over TLS with a token.
#[derive(Debug)]
pub struct Remote {
    at: PluginAt,
    kept: Kept,
    limit: Duration,
}

#[derive(Debug)]
enum Kept {
    Plain(Pool),
    Tls(Pool<TlsWay>, Trust),
}

/// A plugin is asked over TLS, and nothing says whose certificate it may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTrust;

// === impl PluginAt ===

impl PluginAt {
    /// Its address, unless it has a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.to {
            To::Plain(address) => Some(address.ip()),
            To::Tls(host, _) => host.parse().ok(),
        }
    }

    /// Its host and port.
    pub fn authority(&self) -> String {
        match &self.to {
            To::Plain(address) => address.to_string(),
            To::Tls(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            To::Tls(host, port) => format!("{host}:{port}"),
        }
    }

    /// Whether it is asked over TLS.
    pub const fn has_tls(&self) -> bool {
        matches!(self.to, To::Tls(..))
    }
}

/// `http://IP:PORT` or `https://HOST:PORT`, and perhaps a path; HOST is a name that is looked up, or an address.
impl FromStr for PluginAt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (has_tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            (None, None) => return Err("does not begin with http:// or https://"),
        };
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let to = match address.parse::<SocketAddr>() {
            Ok(at) if at.port() == 0 || at.ip().is_unspecified() => {
                return Err("is nowhere to connect to");
            }
            Ok(at) if has_tls => To::Tls(at.ip().to_string(), at.port()),
            Ok(at) => To::Plain(at),
            Err(_) if has_tls => named(address).ok_or("is no host and port")?,
            Err(_) => return Err("is no IP address and port"),
        };
        let plain = |c: char| c.is_ascii_graphic() && !['#', '?', '"', '<', '>'].contains(&c);
        if !path.chars().all(plain) {
            return Err("has a path with characters that a path cannot have");
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { to, path: path.to_owned() })
    }
}

impl fmt::Display for PluginAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

// === impl Remote ===

impl Remote {
    /// The plugin that is there; it may take `limit` to answer.
    ///
    /// # Errors
    /// It is asked over TLS, which needs `trust`.
    pub fn new(at: PluginAt, trust: Option<Trust>, limit: Duration) -> Result<Self, NoTrust> {
        let kept = match &at.to {
            To::Plain(address) => Kept::Plain(Pool::new(*address, CONNECTIONS)),
            To::Tls(host, port) => {
                let trust = trust.ok_or(NoTrust)?;
                let way = TlsWay::new(host, *port, trust.clone()).ok_or(NoTrust)?;
                Kept::Tls(Pool::new(way, CONNECTIONS), trust)
            }
        };
        Ok(Self { at, kept, limit })
    }
}

impl Remote {
    /// Tells the plugin of VMs for which no permit is asked: status and words of its answer.
    ///
    /// # Errors
    /// Why there was no answer.
    pub async fn tell(&self, spoken: &Spoken) -> Result<(u16, Bytes), String> {
        let body = serde_json::to_vec(spoken).map_err(|error| error.to_string())?;
        let path = format!("{}{SPOKEN_PATH}", self.at.path.trim_end_matches('/'));
        self.send(path, body.into()).await
    }

    async fn send(&self, path: String, body: Bytes) -> Result<(u16, Bytes), String> {
        // The method of the protocol is a constant, and valid.
        let method = Method::from_bytes(METHOD.as_bytes()).unwrap_or(Method::POST);
        let request = Ask::new(method, path, body);
        let request = request.within(self.limit).at_most(ANSWER);
        let answer = match &self.kept {
            Kept::Plain(pool) => pool.ask(request).await,
            Kept::Tls(pool, trust) => {
                let request = match trust.authorization() {
                    Some(token) => request.with(header::AUTHORIZATION, token),
                    None => request,
                };
                pool.ask(request).await
            }
        };
        match answer {
            Ok(answer) => Ok((answer.status, answer.body)),
            Err(error) => Err(with_causes(&error)),
        }
    }
}

impl Permits for Remote {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(self.send(self.at.path.clone(), body))
    }

    fn place(&self) -> String {
        self.at.to_string()
    }
}

/// A name as a certificate has it, and a port.
fn named(address: &str) -> Option<To> {
    let (host, port) = address.rsplit_once(':')?;
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !part.is_empty() && part.chars().all(is_plain)
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let is_name = host.len() <= LONGEST_HOST && host.split('.').all(is_part);
    is_name.then(|| To::Tls(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_has_an_address_and_perhaps_a_path() {
        for (text, said) in [
            ("http://10.0.0.5:10299", "http://10.0.0.5:10299/"),
            ("http://[::1]:1/", "http://[::1]:1/"),
            ("http://127.0.0.1:8080/a/b", "http://127.0.0.1:8080/a/b"),
            ("https://10.0.0.5:10296", "https://10.0.0.5:10296/"),
            ("https://[::1]:1", "https://[::1]:1/"),
            (
                "https://windlass-plugin.windlass.svc:10296/a",
                "https://windlass-plugin.windlass.svc:10296/a",
            ),
        ] {
            assert_eq!(text.parse::<PluginAt>().unwrap().to_string(), said);
        }
        for (text, why) in [
            ("10.0.0.5:10299", "does not begin with http:// or https://"),
            ("ftp://10.0.0.5:10299", "does not begin with http:// or https://"),
            ("https://plugin", "is no host and port"),
            ("https://plugin:0", "is no host and port"),
            ("https://a..b:1", "is no host and port"),
            ("https://a b:1", "is no host and port"),
            ("https://0.0.0.0:1", "is nowhere to connect to"),
            ("http://plugin:10299", "is no IP address and port"),
            ("http://10.0.0.5", "is no IP address and port"),
            ("http://10.0.0.5:0", "is nowhere to connect to"),
            ("http://0.0.0.0:1", "is nowhere to connect to"),
            ("http://10.0.0.5:1/a b", "has a path with characters that a path cannot have"),
            ("http://10.0.0.5:1/a?b", "has a path with characters that a path cannot have"),
            ("http://10.0.0.5:1\r\nx: y", "is no IP address and port"),
            ("", "does not begin with http:// or https://"),
        ] {
            assert_eq!(text.parse::<PluginAt>().unwrap_err(), why, "{text}");
        }
    }
}
