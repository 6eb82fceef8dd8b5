//! What a file cache hears, and what it asks for.
//!
//! A shell carries out each [`Action`] and reports: [`Event::Sent`] before the first byte
//! leaves, then exactly one answer. There is at most one action under way. A shell hangs up
//! after [`JOB_LIMIT`] and reports [`Problem::Slow`]; a later answer to it is not reported.

use std::time::Duration;
use thiserror::Error;
use windlass_informant_core::Memory;
use windlass_protocol::{Bytes, Moment};

/// How long one action may take, connecting included: a consent waits for two of them at most,
/// and an agent waits 2 s for a consent.
pub const JOB_LIMIT: Duration = Duration::from_millis(800);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The guest's memory was read.
    Sampled(Memory),
    /// From here on the action may take effect, whether or not its answer reaches us.
    Sent(Action),
    /// What PostgreSQL says: the answer to [`Action::Look`], and to [`Action::Set`], after which
    /// it is read until it is what was set, or for half a second.
    Seen(Seen),
    /// The action failed: it may or may not have happened.
    Failed(Problem),
}

/// What a file cache asks its shell to do. Each is harmless when said twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the cache's size and what is in it.
    Look,
    /// Set the cache's size, a whole number of MiB; then read it.
    Set(Bytes),
}

/// What PostgreSQL says of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How large it may become.
    pub limit: Bytes,
    /// The largest limit that PostgreSQL takes; `None` if it does not say.
    pub most: Option<Bytes>,
    /// Memory that its content occupies; `None` if PostgreSQL does not say.
    pub used: Option<Bytes>,
}

/// Why an action failed, or a consent is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// There is no server, or it does not let us in.
    #[error("PostgreSQL cannot be reached: {0}")]
    Unreachable(String),
    /// There was no answer in time.
    #[error("PostgreSQL did not answer within {}ms", JOB_LIMIT.as_millis())]
    Slow,
    /// The server refused a statement.
    #[error("PostgreSQL refused: {0}")]
    Refused(String),
    /// The server's answer makes no sense.
    #[error("PostgreSQL says that {name} is {value}, which is not a size")]
    Unreadable {
        /// Of which setting or query.
        name: String,
        /// What it said, shortened.
        value: String,
    },
    /// The size was set, and PostgreSQL works with another.
    #[error("PostgreSQL was told of a file cache of {set}, and still has {found}")]
    NotInEffect {
        /// What was set.
        set: Bytes,
        /// What it says.
        found: Bytes,
    },
    /// The size was not read yet.
    #[error("the size of the file cache was not read yet")]
    Unread,
    /// Another request came while the cache was being made smaller.
    #[error("another request came before the file cache was smaller")]
    Overtaken,
    /// The cache did not become smaller in time.
    #[error("the file cache was not down to {0} in time")]
    Late(Bytes),
    /// What else is in use would not fit beside the cache.
    #[error("{used} in use{}, and {margin} to spare, do not fit in {usable}", beside(*cache))]
    DoesNotFit {
        /// In use, less the content of the cache.
        used: Bytes,
        /// What the cache would keep; zero if its content counts as in use.
        cache: Bytes,
        /// What must be to spare.
        margin: Bytes,
        /// What the guest could use.
        usable: Bytes,
    },
}

/// What to do now, and when to ask again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to do.
    pub action: Option<Action>,
    /// The first moment at which the plan would differ without a further event.
    pub wake_at: Option<Moment>,
}

// === impl Plan ===

impl Plan {
    /// Notes that the plan would differ at this moment.
    pub(crate) fn wake(&mut self, at: Moment) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    pub(crate) fn with(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }
}

fn beside(cache: Bytes) -> String {
    if cache.is_zero() { String::new() } else { format!(" beside a file cache of {cache}") }
}
