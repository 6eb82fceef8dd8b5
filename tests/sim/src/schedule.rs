//! What people and misfortune do to a system, and when.

use std::fmt;
use std::time::Duration;
use windlass_world::world::{Cut, Driver, Grouping, Speaks, Unplug};
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
    /// Whether the books are a process of their own that knows of VMs by a list alone.
    pub listed: bool,
    /// Whether VMs keep for a while what their signals no longer call for.
    pub rests: bool,
    /// Which VMs have a hypervisor whose process has a group to itself, so that the host can limit its CPU.
    pub limits: Vec<bool>,
    /// Whether VMs move in parts of a vCPU, and those that can be limited have bounds with such parts.
    pub parts: bool,
    /// What the agents and the informant of each VM speak at first.
    pub speaks: Vec<Speaks>,
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
    /// It does so for one VM.
    Link,
    /// An agent is killed.
    Agent,
    /// The process of a host is killed.
    Host,
    /// An informant is killed.
    Informant,
    /// A process ends between two effects.
    Crash,
    /// A process stops for a while, and goes on.
    Pause,
    /// A process is slow.
    Slow,
    /// The clocks of machines differ, and jump.
    Clock,
    /// A guest restarts.
    Reboot,
    /// A monitor does not answer, or its connection breaks.
    Deaf,
    /// A guest keeps memory that it agreed to give, or a part of it.
    Unplug,
    /// Memory moves slowly in a guest.
    SlowMemory,
    /// A workload takes what its guest has just agreed to give.
    Rises,
    /// An informant lies.
    Lies,
    /// Figures are missing, or absurd.
    Figures,
    /// A guest un-parks by itself.
    Unparks,
    /// A guest's kernel brings no vCPU online.
    Online,
    /// A hypervisor refuses, does nothing or half, is late, or does it twice.
    Driver,
    /// A host is short of memory itself.
    HostMemory,
    /// VMs end and start.
    Arrivals,
    /// VMs move to another node, or are about to.
    Moves,
    /// Releases differ in the versions that they speak: no fault.
    Releases,
    /// A second agent of a VM starts and one of them ends; ways between them and the guest are cut.
    TwoAgents,
    /// A hypervisor pauses, saves or migrates its VM for a while.
    Stop,
    /// Somebody else sets a host's limit or takes it away, its group moves, or it cannot be set.
    Limit,
}

// === impl Schedule ===

impl Schedule {
    /// The same, where everybody speaks everything: so in the latest version.
    pub fn in_the_latest(mut self) -> Self {
        self.speaks = vec![Speaks::default(); self.vms];
        self.turns.retain(|turn| turn.act.kind() != Kind::Releases);
        self
    }

    /// The same, with books that are a process of their own, and know of VMs by a list alone.
    pub fn with_lists(mut self) -> Self {
        self.listed = true;
        self
    }

    /// The same, with hypervisors whose CPU no host limits.
    pub fn without_limits(mut self) -> Self {
        (self.limits, self.parts) = (Vec::new(), false);
        self.turns.retain(|turn| turn.act.kind() != Kind::Limit);
        self
    }

    /// How long all of it takes.
    pub fn length(&self) -> Duration {
        self.turns.iter().map(|turn| turn.after).sum()
    }

    /// The kinds of fault in it; that something gets well is none.
    pub fn faults(&self) -> Vec<Kind> {
        let faults = self.turns.iter().map(|turn| &turn.act).filter(|act| !act.is_well());
        let mut kinds: Vec<Kind> = faults.map(Act::kind).collect();
        kinds.retain(|kind| !matches!(kind, Kind::Life | Kind::People | Kind::Releases));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} nodes of {} units, {} VMs{}{}, {} limited{}, parking {}, {} turns in {:.1} s",
            self.seed,
            self.nodes,
            self.room,
            self.vms,
            if self.listed { " from a list" } else { "" },
            if self.rests { " that rest" } else { "" },
            self.limits.iter().filter(|limited| **limited).count(),
            if self.parts { " to parts" } else { "" },
            if self.trust { "trusted" } else { "not trusted" },
            self.turns.len(),
            self.length().as_secs_f64()
        )
    }
}

// === impl Act ===

impl Act {
    /// Whether it makes something well, and harms nobody.
    pub fn is_well(&self) -> bool {
        match self {
            Self::Network(faults) => *faults == Faults::default(),
            Self::Appears(_) => true,
            Self::Step(step) => match step {
                Step::Link(_, faults) => faults.is_none(),
                Step::Cut(.., cut) => *cut == Cut::default(),
                Step::Deaf(_, bad)
                | Step::SlowMemory(_, bad)
                | Step::Rises(_, bad)
                | Step::MoveIsDue(_, bad)
                | Step::ShortOfVcpus(_, bad) => !bad,
                Step::Unplug(_, unplug) => *unplug == Unplug::Willing,
                Step::Lies(_, lie) => lie.is_none(),
                Step::Driver(_, driver) => *driver == Driver::Honest,
                Step::Mute(_, muted) => muted.is_none(),
                Step::Group(_, grouping) => *grouping == Grouping::Refuses(false),
                Step::HostMemory(_, left) => left.is_none(),
                Step::Slow(_, time) | Step::Stands(_, _, time) => time.is_zero(),
                Step::AgentStarts(_) | Step::InformantStarts(_) => true,
                Step::Load(..)
                | Step::Use(..)
                | Step::AgentRestarts(_)
                | Step::AgentDies(_)
                | Step::HostRestarts(_)
                | Step::InformantDies(_)
                | Step::Reboots(_)
                | Step::Dies(_)
                | Step::Reconnects(_)
                | Step::Unparks(_)
                | Step::Told(_)
                | Step::Ordered(..)
                | Step::Room(..)
                | Step::Moves(..)
                | Step::Speaks(..)
                | Step::AgentSpeaks(..)
                | Step::BooksSpeak(..)
                | Step::SecondAgentStarts(_)
                | Step::OneAgentEnds(..)
                | Step::Pauses(..)
                | Step::Crashes(..)
                | Step::WallClock(..) => false,
            },
        }
    }

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
                Step::Group(..) => Kind::Limit,
                Step::Told(_) | Step::Ordered(..) | Step::Room(..) => Kind::People,
                Step::AgentRestarts(_) | Step::AgentDies(_) | Step::AgentStarts(_) => Kind::Agent,
                Step::Link(..) => Kind::Link,
                Step::SecondAgentStarts(_) | Step::OneAgentEnds(..) | Step::Cut(..) => {
                    Kind::TwoAgents
                }
                Step::Crashes(..) => Kind::Crash,
                Step::Pauses(..) => Kind::Pause,
                Step::Slow(..) => Kind::Slow,
                Step::WallClock(..) => Kind::Clock,
                Step::SlowMemory(..) => Kind::SlowMemory,
                Step::Rises(..) => Kind::Rises,
                Step::Lies(..) => Kind::Lies,
                Step::HostMemory(..) => Kind::HostMemory,
                Step::Moves(..) | Step::MoveIsDue(..) => Kind::Moves,
                Step::Speaks(..) | Step::AgentSpeaks(..) | Step::BooksSpeak(..) => Kind::Releases,
                Step::HostRestarts(_) => Kind::Host,
                Step::InformantDies(_) | Step::InformantStarts(_) => Kind::Informant,
                Step::Reboots(_) => Kind::Reboot,
                Step::Deaf(..) | Step::Reconnects(_) => Kind::Deaf,
                Step::Stands(..) => Kind::Stop,
                Step::Unplug(..) => Kind::Unplug,
                Step::Mute(..) => Kind::Figures,
                Step::Unparks(_) => Kind::Unparks,
            },
        }
    }
}
