//! What people and misfortune do to a system, and when.

use std::fmt;
use std::time::Duration;
use windlass_world::{Faults, Step};

/// A system, and everything that happens to it from outside.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// From which it was drawn; also the world's chance.
    pub seed: u64,
    /// How many nodes.
    pub nodes: usize,
    /// Compute units that each may promise.
    pub room: u64,
    /// How many VMs, spread over the nodes in turn.
    pub vms: usize,
    /// Whether a parked vCPU counts as given back.
    pub trust: bool,
    /// What happens, in order.
    pub turns: Vec<Turn>,
}

/// Something that happens a while after what came before it.
#[derive(Clone, Debug)]
pub struct Turn {
    /// How long after.
    pub after: Duration,
    /// What.
    pub act: Act,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Act {
    /// To a VM, an agent, a node.
    Step(Step),
    /// To the network.
    Network(Faults),
    /// VM number so many starts, if it is not there.
    Appears(usize),
}

/// Kinds of things that happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Load and use of memory: life, and no fault.
    Life,
    /// Bounds, freeze, room: a person's doing, and no fault.
    People,
    /// The network loses, delays and repeats.
    Network,
    /// An agent is killed.
    Agent,
    /// The process of a host is killed.
    Host,
    /// An informant is killed.
    Informant,
    /// A guest restarts.
    Reboot,
    /// A monitor does not answer.
    Deaf,
    /// A guest keeps memory that it agreed to give.
    Stuck,
    /// Figures are missing, or are none.
    Figures,
    /// A guest un-parks by itself.
    Unparks,
    /// A guest's kernel brings no vCPU online.
    Online,
    /// A hypervisor refuses, does nothing or half.
    Driver,
    /// VMs end and start.
    Arrivals,
}

// === impl Schedule ===

impl Schedule {
    /// How long all of it takes.
    pub fn length(&self) -> Duration {
        self.turns.iter().map(|turn| turn.after).sum()
    }

    /// The kinds of fault in it.
    pub fn faults(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.turns.iter().map(|turn| turn.act.kind()).collect();
        kinds.retain(|kind| !matches!(kind, Kind::Life | Kind::People));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} nodes of {} units, {} VMs, parking {}, {} turns in {:.1} s",
            self.seed,
            self.nodes,
            self.room,
            self.vms,
            if self.trust { "trusted" } else { "not trusted" },
            self.turns.len(),
            self.length().as_secs_f64()
        )
    }
}

// === impl Act ===

impl Act {
    /// Of which kind it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Network(_) => Kind::Network,
            Self::Appears(_) => Kind::Arrivals,
            Self::Step(step) => match step {
                Step::Load(..) | Step::Use(..) => Kind::Life,
                Step::Dies(_) => Kind::Arrivals,
                Step::ShortOfVcpus(..) => Kind::Online,
                Step::Driver(..) => Kind::Driver,
                Step::Told(_) | Step::Ordered(..) | Step::Room(..) => Kind::People,
                Step::AgentRestarts(_) | Step::AgentDies(_) => Kind::Agent,
                Step::HostRestarts(_) => Kind::Host,
                Step::InformantDies(_) | Step::InformantStarts(_) => Kind::Informant,
                Step::Reboots(_) => Kind::Reboot,
                Step::Deaf(..) => Kind::Deaf,
                Step::Stuck(..) => Kind::Stuck,
                Step::Mute(..) => Kind::Figures,
                Step::Unparks(_) => Kind::Unparks,
            },
        }
    }
}
