//! The nodes, and how each shares its room: by the label of its pool.

use crate::cluster::steps::cu;
use crate::cluster::{OWN, Setup};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_plugin_core::pods::{HeadroomTerms, MigrationTerms, Mode, Pool, Pools};
use windlass_protocol::node::Node;
use windlass_protocol::{Bytes, MilliCpu};

/// The label that names the pool of a node.
const POOL: &str = "pool";
/// The pool of nodes whose VMs' pods are resized.
const RESIZED: &str = "resized";

/// A VM that was moved rests for this long, and so long a plugin waits for its second pod.
const RESTS: Duration = Duration::from_secs(15);

/// How a node shares its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Its VMs have it to themselves.
    Dedicated,
    /// A headroom pod keeps so much ready.
    Headroom(Spare),
    /// The pods of its VMs are resized.
    Resized,
}

/// What a headroom pod keeps ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spare {
    /// All that VMs may still grow into.
    All,
    /// So many compute units.
    Units(u64),
}

// === impl Sharing ===

impl Sharing {
    /// The pool's name; `None`: it is in no pool.
    fn pool(self) -> Option<String> {
        match self {
            Self::Dedicated => None,
            Self::Headroom(Spare::All) => Some("shared".to_owned()),
            Self::Headroom(Spare::Units(units)) => Some(format!("shared-{units}")),
            Self::Resized => Some(RESIZED.to_owned()),
        }
    }

    fn mode(self) -> Mode {
        match self {
            Self::Dedicated => Mode::Dedicated,
            Self::Headroom(spare) => {
                let (cpu, mem) = match spare {
                    Spare::All => (None, None),
                    Spare::Units(units) => {
                        (Some(MilliCpu::from_cores(units)), Some(Bytes::from_gib(units)))
                    }
                };
                Mode::Headroom(HeadroomTerms { cpu, mem, ..HeadroomTerms::default() })
            }
            Self::Resized => Mode::Resize,
        }
    }

    pub(crate) fn labels(self) -> BTreeMap<String, String> {
        self.pool().map(|pool| (POOL.to_owned(), pool)).into_iter().collect()
    }
}

/// Whether a node's VMs have it to themselves.
pub(crate) fn is_dedicated(node: &Node) -> bool {
    !node.labels.contains_key(POOL)
}

/// Whether the pods of a node's VMs are resized.
pub(crate) fn is_resized(node: &Node) -> bool {
    node.labels.get(POOL).is_some_and(|pool| pool == RESIZED)
}

pub(crate) fn pools(setup: &Setup) -> Pools {
    let all: BTreeSet<Sharing> = setup.nodes.iter().map(|(_, sharing)| *sharing).collect();
    let pool = |sharing: &Sharing| {
        let (labels, mode) = (sharing.labels(), sharing.mode());
        Some(Pool { name: sharing.pool()?, labels, mode, watermark: None })
    };
    let pools = all.iter().filter_map(pool).collect();
    let follows_objects = setup.has_objects;
    Pools {
        pools,
        namespace: OWN.to_owned(),
        follows_objects,
        empties_cordoned: setup.empties_cordoned,
        migration: MigrationTerms { per_node: 2, in_all: 3, rests: RESTS, placed_within: RESTS },
        ..Pools::default()
    }
}

pub(crate) fn node(nth: usize, units: u64, sharing: Sharing) -> Node {
    Node {
        name: node_name(nth),
        uid: format!("node {nth}"),
        revision: String::new(),
        allocatable: cu(units),
        labels: sharing.labels(),
        is_unschedulable: false,
        has_memory_pressure: false,
        taints: Vec::new(),
        problems: Vec::new(),
    }
}

pub(crate) fn node_name(nth: usize) -> String {
    format!("n{nth}")
}
