//! Connections to one guest: to its informant, and to where its metrics are read.

use std::net::SocketAddr;
use std::sync::Arc;
use windlass_kit::client::Pool;

/// Of these, as long as they are asked: the informant and the metrics, often at one address.
const ADDRESSES: usize = 2;

/// An informant and its metrics are asked at the same time.
const CONNECTIONS: usize = 2;

/// Connections that are kept to the addresses that were asked last.
#[derive(Debug, Default)]
pub(super) struct Connections {
    newest_last: Vec<Arc<Pool>>,
}

// === impl Connections ===

impl Connections {
    /// The connections to this address.
    pub(super) fn to(&mut self, address: SocketAddr) -> Arc<Pool> {
        let known = self.newest_last.iter().position(|kept| *kept.to() == address);
        let kept = match known {
            Some(index) => self.newest_last.remove(index),
            None => Arc::new(Pool::new(address, CONNECTIONS)),
        };
        self.newest_last.push(kept.clone());
        let old = self.newest_last.len().saturating_sub(ADDRESSES);
        self.newest_last.drain(..old);
        kept
    }

    /// The guest restarted: its new servers do not know these connections.
    pub(super) fn guest_restarted(&self) {
        for kept in &self.newest_last {
            kept.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_asked_no_more_are_forgotten() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut connections = Connections::default();
        let (informant, metrics) = (connections.to(at(1)), connections.to(at(2)));
        assert!(Arc::ptr_eq(&connections.to(at(1)), &informant));
        connections.to(at(3));
        assert!(Arc::ptr_eq(&connections.to(at(1)), &informant));
        assert!(!Arc::ptr_eq(&connections.to(at(2)), &metrics));
    }
}
