//! What the listener for permits puts up with.

use std::time::Duration;
use windlass_kit::server::{Counts, Limits};
use windlass_protocol::timing::CONNECTION_KEPT;

/// Connections of agents at a time: the VMs of a host, of which it has at most 1,000, may all ask at once.
/// Beyond it the connection that idles longest is closed for a new one, so more agents than this are
/// answered, too. It needs more descriptors than the usual 1,024, which the start raises.
const CONNECTIONS: usize = 1_100;

/// What the listener for permits puts up with.
pub(crate) fn limits(counts: Counts) -> Limits {
    Limits {
        connections: CONNECTIONS,
        // Agents keep their connections between requests.
        head_time: CONNECTION_KEPT,
        connection_time: Duration::from_secs(600),
        ..Limits::small(counts)
    }
}
