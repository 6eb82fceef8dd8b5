//! What one look at a host gives.

use crate::api::{Changed, Reports, VmEntry};
use crate::client::Client;
use crate::failure::Failure;
use std::collections::BTreeMap;
use windlass_protocol::VmName;
use windlass_protocol::status::HostStatus;

#[derive(Debug)]
pub(super) struct Sight {
    pub(super) state: HostStatus,
    /// VMs that are known, whether or not they are there.
    pub(super) entries: Vec<VmEntry>,
    /// The last change of each VM that changed lately.
    pub(super) changes: BTreeMap<VmName, Changed>,
    pub(super) reports: Reports,
}

pub(super) async fn look(client: &Client) -> Result<Sight, Failure> {
    let state = client.get("/v1/state").await?;
    let entries = client.get("/v1/vms").await?;
    let changes: Vec<Changed> = match client.get("/v1/changes").await {
        // A host of an earlier release does not say.
        Err(Failure::Missing(_)) => Vec::new(),
        answer => answer?,
    };
    let changes = changes.into_iter().map(|changed| (changed.vm.clone(), changed)).collect();
    let reports = client.get("/v1/problems").await?;
    Ok(Sight { state, entries, changes, reports })
}

// === impl Sight ===

impl Sight {
    /// Whether a person has paused this VM.
    pub(super) fn is_paused(&self, vm: &str) -> bool {
        let its = |entry: &&VmEntry| entry.name.name == vm;
        self.entries.iter().find(its).is_some_and(|entry| entry.paused_until.is_some())
    }
}
