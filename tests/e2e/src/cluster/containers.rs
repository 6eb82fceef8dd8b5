//! What a container runtime does for pods that are VMs: it runs QEMU in them, as guests of the lab.
//!
//! A guest's monitor is where the kubelet has the volume of its pod, and its address is the pod's. Nothing limits the processes of
//! these pods: what their kubelet allocates is seen in the API alone.

use super::in_lab::Guests;
use super::{MIB, SLOT};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_lab::{Extension, Guest, GuestSpec, Lab};

/// Between two looks at the pods.
const EVERY: Duration = Duration::from_millis(200);

/// The label of pods that are VMs.
const OF_VMS: &str = "windlass.dev/enabled=true,!vm.neon.tech/name";

/// Runs the pods of a namespace. It stops with its value; its guests go on.
#[derive(Debug)]
pub(crate) struct Containers {
    _work: JoinSet<()>,
}

struct Work {
    pods: Api<Pod>,
    lab: Lab,
    guests: Guests,
    /// The kubelet's folder of pods.
    folder: PathBuf,
    /// Pods that run, by name, with their UIDs.
    run: BTreeMap<String, String>,
}

// === impl Containers ===

impl Containers {
    pub(crate) fn start(
        client: &Client,
        namespace: &str,
        (lab, guests): (Lab, Guests),
        folder: PathBuf,
    ) -> Self {
        let pods = Api::namespaced(client.clone(), namespace);
        let work = Work { pods, lab, guests, folder, run: BTreeMap::new() };
        Self { _work: JoinSet::from_iter([work.run()]) }
    }
}

// === impl Work ===

impl Work {
    async fn run(mut self) {
        loop {
            // An API server that does not answer is asked again.
            if let Ok(pods) = self.pods.list(&ListParams::default().labels(OF_VMS)).await {
                let there: BTreeMap<String, String> =
                    pods.iter().filter(runs).map(identity).collect();
                let gone = |(name, uid): &(&String, &String)| there.get(*name) != Some(*uid);
                let gone: Vec<_> = self.run.iter().filter(gone).collect();
                let gone: Vec<_> = gone.into_iter().map(|(name, _)| name.clone()).collect();
                for name in gone {
                    self.run.remove(&name);
                    self.guests.put(&name, None);
                }
                for (name, uid) in there {
                    if !self.run.contains_key(&name) {
                        self.start(&name, &uid).await;
                        self.run.insert(name, uid);
                    }
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Boots the guest of a pod, and says at what address the pod is.
    async fn start(&self, name: &str, uid: &str) {
        let slot = u32::try_from(SLOT / MIB).expect("it is small");
        let spec = GuestSpec {
            boot_mib: slot,
            vcpus: 1,
            max_vcpus: 4,
            extension: Extension::VirtioMem { mib: 4 * slot },
            ..GuestSpec::named(name)
        };
        let guest = Guest::boot(&self.lab, spec).await.expect("the guest boots");
        let volume = self.folder.join(uid).join("volumes/kubernetes.io~empty-dir/windlass");
        fs::create_dir_all(&volume).expect("the folder of the test is there");
        fs::hard_link(guest.qmp(), volume.join("qmp.sock")).expect("both are in one file system");
        let address = guest.informant().ip().to_string();
        self.guests.put(name, Some(guest));
        let is_at = json!({"metadata": {"uid": uid}, "status": {
            "podIP": address, "podIPs": [{"ip": address}],
        }});
        let (params, is_at) = (PatchParams::default(), Patch::Merge(is_at));
        // A pod that is gone by now is at no address.
        while let Err(error) = self.pods.patch_status(name, &params, &is_at).await {
            if matches!(error, kube::Error::Api(_)) {
                return;
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

fn runs(pod: &&Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

fn identity(pod: &Pod) -> (String, String) {
    (pod.name_any(), pod.uid().unwrap_or_default())
}
