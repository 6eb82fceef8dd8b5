//! What people and misfortune do to a cluster.

use crate::cluster::call::Kind;
use crate::cluster::network::Network;
use crate::cluster::nodes::Sharing;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// A name of a pod has one of so many numbers.
pub const NAMES: usize = 8;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A VM pod of this name is made, if there is none, for the scheduler to place.
    Vm {
        /// Its number.
        name: usize,
        /// What it requests, in compute units.
        units: u64,
        /// MiB that it requests beyond that.
        odd: u64,
        /// What it may grow to.
        most: u64,
        /// What it starts with at least.
        least: u64,
        /// The pod runs the VM of another object: no ceiling is recorded.
        is_others: bool,
        /// What the VM's container is like.
        container: Container,
    },
    /// A VM pod is bound past the plugin.
    VmPast {
        /// Its number.
        name: usize,
        /// The number of the node.
        node: usize,
        /// What it requests.
        units: u64,
    },
    /// Another pod is bound past the plugin.
    Other {
        /// Its number.
        name: usize,
        /// The number of the node.
        node: usize,
        /// What it requests.
        units: u64,
    },
    /// A pod is deleted: it goes after its grace.
    Delete {
        /// Whether it is a VM.
        is_vm: bool,
        /// Its number.
        name: usize,
        /// Milliseconds that it takes.
        grace: u64,
    },
    /// A pod ends by itself.
    End {
        /// Whether it is a VM.
        is_vm: bool,
        /// Its number.
        name: usize,
    },
    /// A VM is to have another size.
    Goal {
        /// Its number.
        name: usize,
        /// In compute units.
        units: u64,
    },
    /// The agent of a VM starts anew.
    AgentRestarts(usize),
    /// The agent of a VM names no last permit any more.
    AgentIsOld(usize),
    /// The agent of a VM is silent.
    AgentIsSilent(usize, u64),
    /// A VM with an object of its own is made, if there is none of this name.
    Machine {
        /// Its number.
        name: usize,
        /// What it is to use at first, in compute units.
        units: u64,
        /// What it may grow to.
        most: u64,
        /// What it starts with.
        least: u64,
    },
    /// The object of a VM is deleted.
    MachineGone(usize),
    /// The pod that runs the VM of an object goes after its grace, or ends by itself.
    MachinePod {
        /// The number of the VM.
        name: usize,
        /// Milliseconds that it takes.
        grace: Option<u64>,
    },
    /// A VM moves to another node, or the move fails.
    Move {
        /// Its number.
        name: usize,
        /// Whether it fails.
        fails: bool,
    },
    /// A person takes the label of its node from an object.
    Unlabel(usize),
    /// The agent of a node is killed, and another one starts after so many milliseconds.
    AgentKill(usize, u64),
    /// The agent of a node is told to end, and another one starts later.
    AgentLeave(usize),
    /// The agent of a node does not run for so many milliseconds.
    AgentStop(usize, u64),
    /// The watches of the agent of a node break.
    AgentCut(usize),
    /// A person removes a recorded ceiling.
    NoCeiling(usize),
    /// A plugin does not run for so many milliseconds.
    Stop(usize, u64),
    /// A plugin is killed, and another one starts after so many milliseconds.
    Kill(usize, u64),
    /// A plugin is told to end, and another one starts soon.
    Leave(usize),
    /// A plugin does not reach the API server for so many milliseconds; agents reach it.
    CutOff(usize, u64),
    /// The watch of a plugin breaks.
    CutPods(usize),
    /// The same of nodes.
    CutNodes(usize),
    /// The API server forgets what watches could go on from.
    Compact,
    /// The API server does not answer for so many milliseconds.
    Down(u64),
    /// A node has another size.
    NodeSize {
        /// Its number.
        node: usize,
        /// In compute units.
        units: u64,
    },
    /// A node comes to another pool.
    NodePool {
        /// Its number.
        node: usize,
        /// How it shares its room from here on.
        sharing: Sharing,
    },
    /// A person cordons a node, and uncordons it later.
    Cordon {
        /// Its number.
        node: usize,
        /// Milliseconds until it is uncordoned.
        time: u64,
    },
    /// The object of a node is deleted, and made anew later. Its pods run on.
    NodeGone {
        /// Its number.
        node: usize,
        /// Its size then, in compute units.
        units: u64,
        /// Milliseconds without it.
        time: u64,
    },
    /// A person deletes the Lease.
    LeaseGone,
    /// Somebody copies the store of the API server; a lot is written to others of its objects after that.
    Copy,
    /// The store of the API server is replaced by the last copy.
    Back,
    /// From here on the network is like this.
    Network(Network),
}

/// What the container of a VM is like, and what is beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// It has limits, which equal its requests.
    pub is_limited: bool,
    /// It cannot be resized.
    pub is_fixed: bool,
    /// What a sidecar requests, in compute units.
    pub beside: u64,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Nodes, Self::Pods, Self::Objects, Self::Migrations];
}

/// So many compute units.
pub(crate) fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
