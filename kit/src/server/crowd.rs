//! Who makes room when all connections of a server are in use: the one that idles longest.
//!
//! A peer that keeps a connection between its requests loses nothing but time when it is closed; one
//! that is being answered is left alone. One that has not asked yet idles since it came: whoever
//! connects and says nothing keeps nobody out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a connection that is told to make room may take to leave.
pub(super) const LEAVES_WITHIN: Duration = Duration::from_millis(500);

/// The connections of a server. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Crowd(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// By the order in which they came.
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// Counts connections and answers: of two numbers, the smaller was drawn first.
    drawn: AtomicU64,
}

struct Connection {
    /// Drawn with its last answer, or when it came; zero while it is being answered.
    idle_since: AtomicU64,
    leave: CancellationToken,
}

/// One connection of a crowd; it is none of it any more once this is dropped.
pub(super) struct Seat {
    crowd: Crowd,
    number: u64,
    connection: Arc<Connection>,
}

// === impl Crowd ===

impl Crowd {
    /// One connection more.
    pub(super) fn enter(&self) -> Seat {
        let number = self.draw();
        let idle_since = AtomicU64::new(number);
        let connection = Arc::new(Connection { idle_since, leave: CancellationToken::new() });
        self.with(|all| all.insert(number, connection.clone()));
        Seat { crowd: self.clone(), number, connection }
    }

    /// Tells the connection that idles longest to leave; whether there is one.
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
        ask(&mut self.0.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Seat ===

impl Seat {
    /// A request is being answered.
    pub(super) fn works(&self) {
        self.connection.idle_since.store(0, Ordering::Relaxed);
    }

    /// It was answered.
    pub(super) fn rests(&self) {
        self.connection.idle_since.store(self.crowd.draw(), Ordering::Relaxed);
    }

    /// Waits until it is told to make room.
    pub(super) async fn told_to_leave(&self) {
        self.connection.leave.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crowd.with(|all| all.remove(&self.number));
    }
}
