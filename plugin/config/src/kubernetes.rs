//! How a plugin lives in a cluster: the table `[kubernetes]` of plugin.toml.
//!
//! Both ports have TLS and know their callers, unless a key says otherwise in words: `plain_permits` is a second port, and
//! `plain_extender` counts at a loopback address alone.

use crate::lists::name;
use crate::pools;
use std::net::SocketAddr;
use std::path::PathBuf;
use windlass_plugin_core::pods::{MigrationTerms, Pools};
use windlass_protocol::Resources;
use windlass_protocol::config::Reader;

/// How a plugin lives in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Where agents ask for permits over TLS; `None`: nowhere.
    pub permits: Option<SocketAddr>,
    /// Where whoever reaches it asks for permits.
    pub plain_permits: Option<SocketAddr>,
    /// Where the scheduler asks its extender.
    pub extender: SocketAddr,
    /// The extender has no TLS, and knows no callers.
    pub plain_extender: bool,
    /// What both ports show; `None`: neither has TLS.
    pub tls: Option<TlsSource>,
    /// The common name of the scheduler's certificate.
    pub scheduler: String,
    /// The user that agents' tokens are of.
    pub agent: String,
    /// How the API server is reached; `None`: by the service account of the plugin's pod.
    pub kubeconfig: Option<PathBuf>,
    /// Kept of each node, beyond the requests of its pods.
    pub reserve: Resources,
    /// How its nodes are treated, and where the plugin's own pods are.
    pub pools: Pools,
    /// Conditions and events of VMs are written.
    pub conditions: bool,
    /// By what one of several plugins leads; `None`: this one is alone.
    pub lease: Option<Lease>,
}

/// The Lease by which one of several plugins leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The Lease's name.
    pub name: String,
    /// The label that only the leader's pod has, and its value.
    pub label: (String, String),
}

/// Where the certificates of both ports are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// Of files.
    Files(TlsPaths),
    /// The plugin makes its own.
    Own,
}

/// The files of both ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPaths {
    /// What they show.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who signs the scheduler's certificate; `None` where the extender has no TLS.
    pub client_ca: Option<PathBuf>,
}

// === impl Kubernetes ===

impl Kubernetes {
    /// `None` where the file has no such table.
    pub(crate) fn read(file: &mut Reader) -> Option<Self> {
        if !file.has_table("kubernetes") {
            return None;
        }
        if let Some(listen) = file.peek("listen").cloned() {
            let limit = "must not be there with [kubernetes]: agents ask at kubernetes.permits or kubernetes.plain_permits";
            file.wrong("listen", &listen, limit);
        }
        let plain_permits = file.find("kubernetes.plain_permits");
        let extender: SocketAddr = file.get("kubernetes.extender");
        let plain_extender = file.get("kubernetes.plain_extender");
        if plain_extender && !extender.ip().is_loopback() {
            let limit = "must be a loopback address with kubernetes.plain_extender: its callers are not authenticated";
            file.wrong("kubernetes.extender", extender, limit);
        }
        let is_any = |names: &[&str]| names.iter().any(|name| file.peek(name).is_some());
        let tls = if file.has_table("kubernetes.tls") {
            TlsPaths::read(file, plain_extender).map(TlsSource::Files)
        } else if is_any(&["kubernetes.permits"]) || plain_permits.is_none() || !plain_extender {
            Some(TlsSource::Own)
        } else {
            None
        };
        let permits = file.get("kubernetes.permits");
        let cpu = file.find("kubernetes.reserve.cpu").unwrap_or_default();
        let mem = file.find("kubernetes.reserve.memory").unwrap_or_default();
        let namespace = file.get_with("kubernetes.namespace", name);
        Some(Self {
            permits: tls.is_some().then_some(permits),
            plain_permits,
            extender,
            plain_extender,
            tls,
            scheduler: file.get("kubernetes.scheduler"),
            agent: file.get("kubernetes.agent"),
            kubeconfig: file.find("kubernetes.kubeconfig"),
            reserve: Resources { cpu, mem },
            pools: Pools {
                pools: pools::read(file),
                namespace,
                follows_objects: file.get("kubernetes.neonvm"),
                watermark: file.find("kubernetes.migration.watermark").map(pools::thousandths),
                empties_cordoned: file.get("kubernetes.migration.cordoned"),
                migration: migration(file),
            },
            conditions: file.get("kubernetes.conditions"),
            lease: Lease::read(file),
        })
    }

    /// Where it listens, by key.
    pub(crate) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let permits = self.permits.map(|at| ("kubernetes.permits", at));
        let plain = self.plain_permits.map(|at| ("kubernetes.plain_permits", at));
        let extender = ("kubernetes.extender", self.extender);
        permits.into_iter().chain(plain).chain([extender]).collect()
    }
}

/// How VMs move away from nodes.
fn migration(file: &mut Reader) -> MigrationTerms {
    MigrationTerms {
        per_node: file.get("kubernetes.migration.per_node"),
        in_all: file.get("kubernetes.migration.in_all"),
        rests: file.get("kubernetes.migration.rests"),
        placed_within: file.get("kubernetes.migration.placed_within"),
    }
}

// === impl TlsPaths ===

impl TlsPaths {
    fn read(file: &mut Reader, plain_extender: bool) -> Option<Self> {
        let (certificate, key) =
            (file.required("kubernetes.tls.certificate"), file.required("kubernetes.tls.key"));
        if !plain_extender {
            file.require("kubernetes.tls.client_ca");
        }
        let client_ca = file.find("kubernetes.tls.client_ca").filter(|_| !plain_extender);
        Some(Self { certificate: certificate?, key: key?, client_ca })
    }
}

// === impl Lease ===

impl Lease {
    /// `None` where the file says that the plugin is alone.
    fn read(file: &mut Reader) -> Option<Self> {
        let is_held: bool = file.get("kubernetes.lease.enabled");
        let name = file.get("kubernetes.lease.name");
        let label: String = file.get("kubernetes.lease.label");
        let Some((key, value)) = label.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            file.wrong("kubernetes.lease.label", label, "must be KEY=VALUE");
            return None;
        };
        let label = (key.to_owned(), value.to_owned());
        is_held.then_some(Self { name, label })
    }
}
