//! What one look at a host gives.

use crate::api::{Reports, VmEntry};
use crate::client::Client;
use crate::failure::Failure;
use windlass_protocol::status::HostStatus;

/// What one look at a host gives.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) state: HostStatus,
    /// VMs that are known, whether or not they are there.
    pub(super) entries: Vec<VmEntry>,
    pub(super) reports: Reports,
}

/// Looks at it.
pub(super) async fn look(client: &Client) -> Result<Sight, Failure> {
    let state = client.get("/v1/state").await?;
    let entries = client.get("/v1/vms").await?;
    let reports = client.get("/v1/problems").await?;
    Ok(Sight { state, entries, reports })
}
