//! Looks for other programs that act on the pods of VMs, when a person asks: their pods, and the annotations of VM pods.
//!
//! Nothing of it is kept. One look is under way at a time, and each reads a bounded number of pods, metadata alone.

use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use windlass_kit_kubernetes::connect::{Failed, within};
use windlass_kit_kubernetes::objects::PodObject;
use windlass_plugin_core::neighbours::{LABELS, Nodes, Program, VmPod, findings};
use windlass_protocol::VmName;
use windlass_protocol::neighbours::Findings;
use windlass_protocol::pod::{ENABLED, THEIR_ENABLED, THEIR_NAME};

/// Pods in a page, and pages of one kind of VM pod.
const PAGE: u32 = 500;
const PAGES: usize = 10;
/// For one page.
const WITHIN: Duration = Duration::from_secs(3);

/// Looks for other programs. Clones share one turn.
#[derive(Clone)]
pub(crate) struct Neighbours {
    client: Client,
    turn: Arc<Mutex<()>>,
}

// === impl Neighbours ===

impl Neighbours {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, turn: Arc::default() }
    }

    /// What other programs do to the VMs of this namespace, or of all.
    ///
    /// # Errors
    /// The API server does not answer, or not in time.
    pub(crate) async fn look(
        &self,
        namespace: Option<&str>,
        nodes: Nodes,
    ) -> Result<Findings, Failed> {
        let _turn = self.turn.lock().await;
        let pods: Api<PodObject> = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let (mut vms, mut is_cut) = (BTreeMap::new(), false);
        for selector in
            [format!("{ENABLED}=true"), format!("{THEIR_ENABLED}=true"), THEIR_NAME.into()]
        {
            is_cut |= read(&pods, &selector, &mut vms).await?;
        }
        let vms: Vec<VmPod> = vms.into_values().collect();
        let programs = if vms.is_empty() { Vec::new() } else { self.programs().await? };
        Ok(Findings { findings: findings(&vms, programs, nodes), looked_at: vms.len(), is_cut })
    }

    async fn programs(&self) -> Result<Vec<Program>, Failed> {
        let pods: Api<PodObject> = Api::all(self.client.clone());
        let mut programs = Vec::new();
        for label in LABELS {
            let usual = format!("{label} in ({})", Program::USUAL.join(","));
            let params = ListParams::default().labels(&usual).limit(PAGE);
            let found = within(WITHIN, pods.list_metadata(&params)).await?;
            let values = found.iter().filter_map(|pod| pod.labels().get(label));
            programs.extend(values.filter_map(|value| Program::labelled(value)));
        }
        Ok(programs)
    }
}

/// Reads the VM pods with a label; whether there are more.
async fn read(
    pods: &Api<PodObject>,
    selector: &str,
    vms: &mut BTreeMap<VmName, VmPod>,
) -> Result<bool, Failed> {
    let mut from = None;
    for _ in 0..PAGES {
        let params = ListParams { continue_token: from, ..ListParams::default() };
        let params = params.labels(selector).limit(PAGE);
        let page = within(WITHIN, pods.list_metadata(&params)).await?;
        for pod in &page {
            let namespace = pod.namespace().unwrap_or_default();
            let name = VmName { namespace, name: pod.name_any() };
            vms.insert(name.clone(), VmPod { name, annotations: pod.annotations().clone() });
        }
        from = page.metadata.continue_.filter(|token| !token.is_empty());
        if from.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
