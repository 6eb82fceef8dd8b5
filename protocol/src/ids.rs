//! Names and numbers that identify a VM, a session of an agent, or a message.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A VM: its namespace and its name. On a host without a cluster the namespace is `default`.
#[derive(Clone, Debug, Default, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VmName {
    /// Namespace; `default` on a host.
    pub namespace: String,
    /// Name within the namespace; on a host the stem of the VM file.
    pub name: String,
}

/// One session of an agent with an informant. A new session has a new id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(Uuid);

/// The number of a runner's session: answers to older sessions are ignored.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(u64);

/// The number of a message within a session. The first is 1; zero is never valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sequence(u64);

/// Numbers that count up.
macro_rules! counting {
    ($($type:ident),+) => {$(
        impl $type {
            /// The one that follows.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }

            /// As a number, for the wire, logs and dumps.
            pub const fn number(self) -> u64 {
                self.0
            }
        }
    )+};
}

counting!(Generation, Sequence);

// === impl VmName ===

impl VmName {
    /// A VM of a host without a cluster.
    pub fn on_host(name: impl Into<String>) -> Self {
        Self { namespace: "default".to_owned(), name: name.into() }
    }
}

/// Most VMs that are compared share a namespace, so names are compared first.
impl PartialEq for VmName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }
}

/// `default/db1`, as the reference logs it.
impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl AgentId ===

impl AgentId {
    /// The id with these 16 bytes. Shells draw ids at random; tests count.
    pub const fn from_u128(id: u128) -> Self {
        Self(Uuid::from_u128(id))
    }

    /// The id as a UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// Whether it is all zero, as decoded from a body without an id.
    pub const fn is_zero(self) -> bool {
        self.0.is_nil()
    }
}

impl From<Uuid> for AgentId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

// === impl Sequence ===

impl Sequence {
    /// The number before the first message; never sent.
    pub const ZERO: Self = Self(0);

    /// The sequence number of this value.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_and_sequences_show_their_number() {
        let second = Sequence::ZERO.next().next();
        assert_eq!((second.number(), second.to_string()), (2, "2".to_owned()));
        assert_eq!(Generation::default().next().next().number(), 2);
    }
}
