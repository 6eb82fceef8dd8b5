//! A cluster in which nothing of Windlass is installed: a real control plane with its controllers and its own scheduler, four nodes, NeonVM.
//!
//! Whatever is applied to it runs: pods of the namespace `windlass` as processes of this machine, VMs as guests of the lab. Nothing stands in for
//! a part of Windlass; a [`Runtime`] stands in for containers, [`fit`] says what it changes, and [`Front`] stands in for
//! the Service of the plugin.

mod fit;
mod front;

use crate::cluster::{Containers, EVERY, Guests, InLab, LIMIT};
use crate::programs::Programs;
use crate::served::last_words;
use crate::stage::turn;
use anyhow::{Result, ensure};
use front::Front;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use windlass_control_plane::kubelet::runtime::Runtime;
use windlass_control_plane::neonvm::{self, Controller};
use windlass_control_plane::{ControlPlane, Controllers, Identity, Kubelet, Scheduler, Space};
use windlass_lab::{Folder, Guest};

/// Where Windlass is installed.
const HOME: &str = "windlass";

/// What a cluster does with the objects of this test.
const CONTROLLERS: [&str; 9] = [
    "deployment-controller",
    "replicaset-controller",
    "daemonset-controller",
    "disruption-controller",
    "resourcequota-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
];

/// The first part of its nodes' names.
const NODES: &str = "worker";

/// A cluster. Its parts end with it.
pub struct Platform {
    plane: &'static ControlPlane,
    guests: Guests,
    folder: Folder,
    front: Front,
    windlass: PathBuf,
    _parts: (Controllers, Scheduler, Controller, Containers, Vec<Kubelet>, Runtime),
    _turn: File,
}

// === impl Platform ===

impl Platform {
    /// Starts it, with the nodes `worker-1` to `worker-4` of 6 vCPUs; VMs run in this namespace.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn start(namespace: &str) -> Result<Self> {
        let (programs, turn) =
            tokio::task::spawn_blocking(|| anyhow::Ok((Programs::find()?, turn()?))).await??;
        // What borrows it lives as long as the cluster, which ends its programs.
        let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start().await));
        neonvm::kinds(plane).await;
        let controllers = Controllers::start(plane, &CONTROLLERS).await;
        let scheduler = Scheduler::start(plane, Scheduler::DEFAULT, &[]).await;
        let nodes = Space::named(plane, NODES).await;
        let client = nodes.client();
        let mut kubelets = Vec::new();
        for number in 1..=4 {
            let node = nodes.node(&number.to_string(), "6", "8Gi").await;
            kubelets.push(Kubelet::start_beside_runtime(client, &node, HOME).await);
        }
        let folder = Folder::create()?;
        let (windlass, pods) = (programs.windlass.clone(), folder.path().join("pods"));
        let guests = Guests::default();
        let in_lab = (programs.lab.clone(), guests.clone());
        let containers = Containers::start(client, namespace, in_lab, pods.clone());
        let in_lab = InLab { lab: programs.lab, guests: guests.clone() };
        let machines = Controller::start(client, namespace, in_lab);
        let front = Front::start(client, HOME).await?;
        let fit = fit::for_machine(&windlass, pods, front.addresses());
        let runs = folder.path().join("runs");
        fs::create_dir(&runs)?;
        let runtime = Runtime::start(plane, client, HOME, runs, fit);
        let parts = (controllers, scheduler, machines, containers, kubelets, runtime);
        Ok(Self { plane, guests, folder, front, windlass, _parts: parts, _turn: turn })
    }

    /// The guest of a VM, once it is there and answers.
    ///
    /// # Errors
    /// It is not, in time.
    pub async fn booted(&self, name: &str) -> Result<Arc<Guest>> {
        let start = Instant::now();
        loop {
            if let Some(guest) = self.guests.get(name)
                && guest.inside().await.is_ok()
            {
                return Ok(guest);
            }
            ensure!(start.elapsed() < LIMIT, "no guest of {name}");
            tokio::time::sleep(EVERY).await;
        }
    }

    /// The file by which a person is the cluster's administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.plane.kubeconfig(Identity::Admin)
    }

    /// The command under test.
    pub fn windlass(&self) -> &Path {
        &self.windlass
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The port of the loopback interface behind which the leading plugin's permits are.
    pub fn permits(&self) -> u16 {
        self.front.addresses().permits.port()
    }

    /// Of each program that a pod ran.
    pub fn last_words(&self) -> String {
        let logs = fs::read_dir(self.folder.path().join("runs")).into_iter().flatten().flatten();
        let logs = logs.map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
        logs.map(|path| format!("{}:\n{}\n", path.display(), last_words(&path))).collect()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.plane.api_server().kill();
        self.plane.etcd().kill();
    }
}
