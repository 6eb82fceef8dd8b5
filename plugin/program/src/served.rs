//! What a plugin of lists and one of a cluster are both given to serve with.

use prometheus_client::registry::Registry;
use std::time::Duration;
use windlass_kit::admin::Readiness;
use windlass_kit::dump_state::DumpListener;
use windlass_kit::server::{Counts, Limits};
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_protocol::timing::CONNECTION_KEPT;

/// Connections of agents at a time: the VMs of a host, of which it has at most 1,000, may all ask at once.
/// Beyond it the connection that idles longest is closed for a new one, so more agents than this are
/// answered, too. It needs more descriptors than the usual 1,024, which the start raises.
const CONNECTIONS: usize = 1_100;

/// What both kinds of plugin are given to serve with.
pub(crate) struct Served<'a> {
    pub(crate) counts: Counts,
    pub(crate) tasks: &'a Tasks,
    pub(crate) watchdog: &'a Watchdog,
    pub(crate) readiness: &'a Readiness,
    pub(crate) registry: &'a mut Registry,
    pub(crate) dump: Option<DumpListener>,
    /// The addresses, as they are said at the start.
    pub(crate) said: &'a mut String,
    /// The pod that the process runs in, where that is known.
    pub(crate) pod: Option<&'a str>,
}

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
