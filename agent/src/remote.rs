//! A plugin that is reached over HTTP.
//!
//! Connections are kept between requests. A plugin that was replaced closes them, and is asked over
//! new ones.

use crate::plugin::{Asked, Permits};
use bytes::Bytes;
use http::Method;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use windlass_kit::client::{Ask, Pool};
use windlass_protocol::plugin::METHOD;

/// Bytes of an answer that are read; it has a few hundred.
const ANSWER: usize = 64 * 1024;

/// Connections to the plugin. Requests of more VMs at once wait for one of them: a permit takes far less
/// than a millisecond, and the plugin serves the agents of all nodes.
const CONNECTIONS: usize = 32;

/// Where a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginAt {
    address: SocketAddr,
    path: String,
}

/// A plugin that is reached over HTTP.
#[derive(Debug)]
pub struct Remote {
    at: PluginAt,
    kept: Pool,
    limit: Duration,
}

// === impl PluginAt ===

impl PluginAt {
    /// Where it is connected to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// `http://IP:PORT` and perhaps a path; names are not looked up.
impl FromStr for PluginAt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("http://").ok_or("does not begin with http://")?;
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let address: SocketAddr = address.parse().map_err(|_| "is no IP address and port")?;
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err("is nowhere to connect to");
        }
        let plain = |c: char| c.is_ascii_graphic() && !['#', '?', '"', '<', '>'].contains(&c);
        if !path.chars().all(plain) {
            return Err("has a path with characters that a path cannot have");
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { address, path: path.to_owned() })
    }
}

impl fmt::Display for PluginAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.address, self.path)
    }
}

// === impl Remote ===

impl Remote {
    /// The plugin that is there; it may take `limit` to answer.
    pub const fn new(at: PluginAt, limit: Duration) -> Self {
        let kept = Pool::new(at.address, CONNECTIONS);
        Self { at, kept, limit }
    }
}

impl Permits for Remote {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(async move {
            // The method of the protocol is a constant, and valid.
            let method = Method::from_bytes(METHOD.as_bytes()).unwrap_or(Method::POST);
            let request = Ask::new(method, self.at.path.clone(), body);
            let request = request.within(self.limit).at_most(ANSWER);
            match self.kept.ask(request).await {
                Ok(answer) => Ok((answer.status, answer.body)),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn place(&self) -> String {
        self.at.to_string()
    }
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
        ] {
            assert_eq!(text.parse::<PluginAt>().unwrap().to_string(), said);
        }
        for (text, why) in [
            ("10.0.0.5:10299", "does not begin with http://"),
            ("https://10.0.0.5:10299", "does not begin with http://"),
            ("http://plugin:10299", "is no IP address and port"),
            ("http://10.0.0.5", "is no IP address and port"),
            ("http://10.0.0.5:0", "is nowhere to connect to"),
            ("http://0.0.0.0:1", "is nowhere to connect to"),
            ("http://10.0.0.5:1/a b", "has a path with characters that a path cannot have"),
            ("http://10.0.0.5:1/a?b", "has a path with characters that a path cannot have"),
            ("http://10.0.0.5:1\r\nx: y", "is no IP address and port"),
            ("", "does not begin with http://"),
        ] {
            assert_eq!(text.parse::<PluginAt>().unwrap_err(), why, "{text}");
        }
    }
}
