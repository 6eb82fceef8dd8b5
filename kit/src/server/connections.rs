//! The open connections of a server, and which of them closes for a new one: the longest idle one.
//!
//! A peer whose idle connection closes only loses time. A connection with a request in progress stays open.
//! A connection without a request yet is idle since it was accepted, so silent peers cannot keep others out.

use crate::catch_panic::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a connection may take to close for a new one.
pub(super) const LEAVES_WITHIN: Duration = Duration::from_millis(500);

/// The connections of a server. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// In the order in which they were accepted.
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// A counter of connections and answers: the smaller of two numbers was drawn first.
    drawn: AtomicU64,
}

struct Connection {
    /// Drawn at its last answer, or when it was accepted; zero while a request is in progress.
    idle_since: AtomicU64,
    leave: CancellationToken,
}

/// The place of one connection; dropping it removes the connection.
pub(super) struct Slot {
    open: Connections,
    number: u64,
    connection: Arc<Connection>,
}

// === impl Connections ===

impl Connections {
    /// Adds a connection, which must close with `stop`, too.
    pub(super) fn enter(&self, stop: &CancellationToken) -> Slot {
        let number = self.draw();
        let idle_since = AtomicU64::new(number);
        let connection = Arc::new(Connection { idle_since, leave: stop.child_token() });
        self.with(|all| all.insert(number, connection.clone()));
        Slot { open: self.clone(), number, connection }
    }

    /// Asks the longest idle connection to close; whether there is one.
    pub(super) fn make_room(&self) -> bool {
        self.with(|all| {
            let since = |connection: &Connection| connection.idle_since.load(Ordering::Relaxed);
            let idle = all.iter().filter(|(_, connection)| since(connection) > 0);
            let longest = idle.min_by_key(|(_, connection)| since(connection));
            let longest = longest.map(|(number, _)| *number);
            let leaves = longest.and_then(|number| all.remove(&number));
            leaves.map(|connection| connection.leave.cancel()).is_some()
        })
    }

    fn draw(&self) -> u64 {
        self.0.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn with<T>(&self, ask: impl FnOnce(&mut BTreeMap<u64, Arc<Connection>>) -> T) -> T {
        ask(&mut lock(&self.0.connections))
    }
}

// === impl Slot ===

impl Slot {
    /// A request is in progress.
    pub(super) fn set_busy(&self) {
        self.connection.idle_since.store(0, Ordering::Relaxed);
    }

    /// The request was answered.
    pub(super) fn set_idle(&self) {
        self.connection.idle_since.store(self.open.draw(), Ordering::Relaxed);
    }

    /// Waits until this connection must close, for a new one or with the server.
    pub(super) async fn asked_to_leave(&self) {
        self.connection.leave.cancelled().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.with(|all| all.remove(&self.number));
    }
}
