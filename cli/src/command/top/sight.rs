//! What one look at a host gives.

use crate::api::{Changed, Reports, VmEntry};
use crate::client::Client;
use crate::failure::Failure;
use std::collections::BTreeMap;
use windlass_protocol::VmName;
use windlass_protocol::status::HostStatus;

/// What one look at a host gives.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) state: HostStatus,
    /// VMs that are known, whether or not they are there.
    pub(super) entries: Vec<VmEntry>,
    /// The last change of each VM that changed lately.
    pub(super) changes: BTreeMap<VmName, Changed>,
    pub(super) reports: Reports,
}

/// Looks at it.
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
    /// The last change of this VM, if there was one lately.
    pub(super) fn change(&self, vm: &VmName) -> Option<&Changed> {
        self.changes.get(vm)
    }

    /// Whether a person has paused this VM.
    pub(super) fn is_paused(&self, vm: &str) -> bool {
        let its = |entry: &&VmEntry| entry.name.name == vm;
        self.entries.iter().find(its).is_some_and(|entry| entry.paused_until.is_some())
    }
}
