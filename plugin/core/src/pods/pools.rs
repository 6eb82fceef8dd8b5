//! Pools of nodes: by labels of a node, how its room is shared between growth and placement.
//!
//! A *dedicated* node has VM pods, which the extender places, and pods that come past it and are facts. On a
//! node with *headroom* anybody places pods: what VMs may grow into is what a pod of the plugin's own holds
//! there, the headroom pod, so that Kubernetes gives it to no other. Where VMs' pods are *resized* anybody places pods, too:
//! a VM grows into what its kubelet has allocated to its own pod.

use crate::pods::migration::MigrationTerms;
use std::collections::BTreeMap;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

/// The whole of a node.
const WHOLE: u64 = 1000;

/// The longest name of a pod.
const LONGEST_NAME: usize = 253;

/// The pools, and where headroom pods are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// A node belongs to the first whose labels it has.
    pub pools: Vec<Pool>,
    /// The plugin's own namespace: in no other does a label make a headroom pod.
    pub namespace: String,
    /// The watermark of nodes whose pool has none, in thousandths of what a node can allocate; `None`: no VM leaves them.
    pub watermark: Option<u64>,
    /// VMs that may be moved leave nodes that are cordoned.
    pub empties_cordoned: bool,
    /// VMs whose pods belong to objects of NeonVM have their ceilings on those objects, which are told too.
    pub follows_objects: bool,
    /// How VMs move away from nodes.
    pub migration: MigrationTerms,
}

/// Nodes that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What people call it.
    pub name: String,
    /// A node of the pool has all these labels.
    pub labels: BTreeMap<String, String>,
    /// How the room of its nodes is shared.
    pub mode: Mode,
    /// The watermark of its nodes, in thousandths of what a node can allocate.
    pub watermark: Option<u64>,
}

/// How the room of a node is shared between growth and placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The node is the VMs': growth and placement meet in the books.
    #[default]
    Dedicated,
    /// Anybody places pods there: VMs grow into what a headroom pod holds.
    Headroom(HeadroomTerms),
    /// Anybody places pods there: the pod of a VM is resized before the VM.
    Resize,
}

/// How large headroom pods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomTerms {
    /// Kept ready beyond what VMs have grown into; `None`: all that they may still grow into.
    pub cpu: Option<MilliCpu>,
    /// The same of memory.
    pub mem: Option<Bytes>,
    /// The most of a node that its headroom pod holds, in thousandths.
    pub share: u64,
}

// === impl Pools ===

impl Pools {
    /// How a node with these labels is treated.
    pub fn mode_of(&self, labels: &BTreeMap<String, String>) -> Mode {
        self.pool_of(labels).map_or(Mode::Dedicated, |pool| pool.mode)
    }

    /// The watermark of a node with these labels.
    pub fn watermark_of(&self, labels: &BTreeMap<String, String>) -> Option<u64> {
        self.pool_of(labels).and_then(|pool| pool.watermark).or(self.watermark)
    }

    /// Whether VMs move away from any node.
    pub fn move_vms(&self) -> bool {
        let have_watermarks = || self.pools.iter().any(|pool| pool.watermark.is_some());
        self.empties_cordoned || self.watermark.is_some() || have_watermarks()
    }

    fn pool_of(&self, labels: &BTreeMap<String, String>) -> Option<&Pool> {
        self.pools.iter().find(|pool| {
            pool.labels.iter().all(|(name, value)| labels.get(name).is_some_and(|it| it == value))
        })
    }

    /// Whether a node may be treated like this.
    pub fn have(&self, mode: Mode) -> bool {
        self.pools.iter().any(|pool| pool.mode == mode)
    }

    /// Whether a pod holds headroom. A tenant can write the label, and no pod of this namespace.
    pub fn is_headroom(&self, pod: &Pod) -> bool {
        pod.is_headroom && !self.namespace.is_empty() && pod.name.namespace == self.namespace
    }

    /// The name of the headroom pod of a node.
    pub fn headroom_of(&self, node: &str) -> VmName {
        let name = format!("headroom-{node}");
        let name = if name.len() > LONGEST_NAME {
            // No two nodes share a name that was cut.
            let number = node.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
                (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            format!("headroom-{number:016x}")
        } else {
            name
        };
        VmName { namespace: self.namespace.clone(), name }
    }
}

// === impl Mode ===

impl Mode {
    /// As a person reads it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Headroom(_) => "headroom",
            Self::Resize => "resize",
        }
    }
}

// === impl HeadroomTerms ===

impl HeadroomTerms {
    /// The most that a headroom pod holds of a node that can allocate this much.
    pub(crate) fn most(self, allocatable: Resources) -> Resources {
        let part = |amount: u64| {
            let part = u128::from(amount) * u128::from(self.share.min(WHOLE)) / u128::from(WHOLE);
            u64::try_from(part).unwrap_or(amount)
        };
        Resources {
            cpu: MilliCpu::from_milli(part(allocatable.cpu.milli())),
            mem: Bytes::from_bytes(part(allocatable.mem.bytes())),
        }
    }
}

impl Default for HeadroomTerms {
    fn default() -> Self {
        Self { cpu: None, mem: None, share: WHOLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_belongs_to_the_first_pool_whose_labels_it_has() {
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let headroom = |share| Mode::Headroom(HeadroomTerms { share, ..HeadroomTerms::default() });
        let pool = |pairs, mode| {
            let (name, labels, watermark) = (String::new(), labels(pairs), None);
            Pool { name, labels, mode, watermark }
        };
        let pools = Pools {
            pools: vec![
                pool(&[("kind", "shared"), ("zone", "a")], headroom(1)),
                pool(&[("kind", "shared")], headroom(2)),
            ],
            ..Pools::default()
        };
        for (pairs, mode) in [
            (&[("kind", "shared"), ("zone", "a"), ("other", "x")][..], headroom(1)),
            (&[("kind", "shared"), ("zone", "b")], headroom(2)),
            (&[("kind", "Shared")], Mode::Dedicated),
            (&[("zone", "a")], Mode::Dedicated),
            (&[], Mode::Dedicated),
        ] {
            assert_eq!(pools.mode_of(&labels(pairs)), mode, "{pairs:?}");
        }
    }

    #[test]
    fn nodes_with_long_names_have_headroom_pods_too() {
        let pools = Pools { namespace: "own".to_owned(), ..Pools::default() };
        assert_eq!(pools.headroom_of("n1").name, "headroom-n1");
        let (one, other) = (format!("{}1", "n".repeat(252)), format!("{}2", "n".repeat(252)));
        assert_ne!(pools.headroom_of(&one), pools.headroom_of(&other));
        assert!(pools.headroom_of(&one).name.len() <= LONGEST_NAME);
    }
}
