//! The script of the demo, as plain data.
//!
//! Which VMs play, on how large a node, and step by step: which load begins or ends in which
//! guest, and where each VM should then be, and why there. Nothing here waits or acts, so the
//! same script is played with real guests by the demo and in `world` by the tests. A step is
//! over when every VM has been where it should be for [`Step::steady`]; it has failed when
//! that has not come by [`Step::within`].
//!
//! The sizes follow from the policy: a load of 2.85 to 4.75 calls for two units, a larger one
//! for three; memory in use (with 100 MiB for the kernel) over its target for one unit per
//! 256 MiB or part of it. The loads stand well within these limits.
//! The node has room for less than all want, and never for nothing: what is short is vCPU, so
//! that no guest runs out of memory for the sake of a show.

use std::time::Duration;
use windlass_protocol::{Bounds, Bytes, LoadWindow, MilliCpu, Resources, Target};

/// A whole play.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// What the pretend node can reserve.
    pub room: Resources,
    /// The step that sizes move in.
    pub unit: Resources,
    /// Over which time load is averaged.
    pub window: LoadWindow,
    /// The VMs. All start at the minimum of their bounds.
    pub players: &'static [Player],
    /// What happens, in order.
    pub steps: &'static [Step],
    /// Whose decisions are explained at the end.
    pub explained: &'static str,
    /// The step whose end the picture shows where it does not move.
    pub pictured: &'static str,
}

/// A VM of the script.
#[derive(Clone, Copy, Debug)]
pub struct Player {
    /// Its name.
    pub name: &'static str,
    /// What it plays.
    pub role: &'static str,
    /// Where the node has too little room, a VM of higher priority gets it first.
    pub priority: i32,
    /// Between which sizes it moves.
    pub bounds: Bounds,
    /// Which use of its CPU and memory is aimed at.
    pub target: Target,
}

/// A step of the script.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// One word.
    pub name: &'static str,
    /// What the watcher should see.
    pub says: &'static str,
    /// What begins or ends inside the guests.
    pub loads: &'static [(&'static str, Load)],
    /// Where each VM should get.
    pub ends: &'static [End],
    /// For how long it should be there before the next step.
    pub steady: Duration,
    /// By when it should be there.
    pub within: Duration,
}

/// What happens inside a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// This many processes spin; zero ends them.
    Spin(u64),
    /// Takes memory up to `total`, `chunk` at a time, and holds it.
    Take {
        /// How much in all.
        total: Bytes,
        /// How much at a time.
        chunk: Bytes,
        /// How long between two.
        every: Duration,
    },
    /// Gives back all memory that it took.
    Free,
}

/// Where a VM should be at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which VM.
    pub vm: &'static str,
    /// What it should have.
    pub has: Resources,
    /// Why it is to stay there.
    pub because: Because,
}

/// Why a VM is to stay where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// That is its goal.
    Goal,
    /// The node has no more for it; it would like to have this.
    Room(Resources),
    /// Its guest refused, in this step, to have less memory.
    Refusal,
}

const fn size(cpu: u64, mib: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(cpu), Bytes::from_mib(mib))
}

const fn at_goal(vm: &'static str, has: Resources) -> End {
    End { vm, has, because: Because::Goal }
}

const fn short(vm: &'static str, has: Resources, wants: Resources) -> End {
    End { vm, has, because: Because::Room(wants) }
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const MINIMUM: Resources = size(1, 256);
/// Nearly two busy processes to a vCPU: in an emulated guest that shares two cores with
/// others something more is always about to run, and what is shown must not hang on that.
const LOAD_AVERAGE: f64 = 1.9;
/// Long enough for each agent to have asked again, and to have been refused again.
const STEADY: Duration = secs(3);
/// An emulated guest on a busy machine takes its time.
const WITHIN: Duration = secs(60);

/// What the demo plays.
pub const SCRIPT: Script = Script {
    room: size(5, 1792),
    unit: size(1, 256),
    window: LoadWindow::FiveSeconds,
    players: &[
        Player {
            name: "web",
            role: "goes first",
            priority: 10,
            bounds: Bounds { min: MINIMUM, max: size(2, 512) },
            // Fuller than the informant in its guest agrees to: so it is refused.
            target: Target { load_average: LOAD_AVERAGE, memory: 1.0 },
        },
        Player {
            name: "batch",
            role: "spins first",
            priority: 0,
            bounds: Bounds { min: MINIMUM, max: size(3, 768) },
            target: Target { load_average: LOAD_AVERAGE, memory: 0.75 },
        },
        Player {
            name: "cache",
            role: "takes memory",
            priority: 5,
            bounds: Bounds { min: MINIMUM, max: size(3, 1024) },
            target: Target { load_average: LOAD_AVERAGE, memory: 0.75 },
        },
    ],
    steps: STEPS,
    explained: "web",
    pictured: "burst",
};

const STEPS: &[Step] = &[
    Step {
        name: "idle",
        says: "three guests at their minimum; the node has two vCPUs to spare",
        loads: &[],
        ends: &[at_goal("web", MINIMUM), at_goal("batch", MINIMUM), at_goal("cache", MINIMUM)],
        steady: secs(2),
        within: secs(60),
    },
    Step {
        name: "rise",
        says: "batch starts six processes, and gets all vCPUs that the node can spare",
        loads: &[("batch", Load::Spin(6))],
        ends: &[at_goal("web", MINIMUM), at_goal("batch", size(3, 768)), at_goal("cache", MINIMUM)],
        steady: secs(2),
        within: WITHIN,
    },
    Step {
        name: "contention",
        says: "web starts four processes: memory is there, a second vCPU is not; batch has it",
        loads: &[("web", Load::Spin(4))],
        ends: &[
            short("web", size(1, 512), size(2, 512)),
            at_goal("batch", size(3, 768)),
            at_goal("cache", MINIMUM),
        ],
        steady: STEADY,
        within: WITHIN,
    },
    Step {
        name: "burst",
        says: "cache takes 16 MiB every quarter of a second; memory comes at once, a vCPU does not",
        loads: &[(
            "cache",
            Load::Take {
                total: Bytes::from_mib(192),
                chunk: Bytes::from_mib(16),
                every: Duration::from_millis(250),
            },
        )],
        ends: &[
            short("web", size(1, 512), size(2, 512)),
            at_goal("batch", size(3, 768)),
            short("cache", size(1, 512), size(2, 512)),
        ],
        steady: STEADY,
        within: WITHIN,
    },
    Step {
        name: "ease",
        says: "batch ends three processes; the vCPU goes to web, which goes before cache",
        loads: &[("batch", Load::Spin(3))],
        ends: &[
            at_goal("web", size(2, 512)),
            at_goal("batch", size(2, 512)),
            short("cache", size(1, 512), size(2, 512)),
        ],
        steady: STEADY,
        within: WITHIN,
    },
    Step {
        name: "yield",
        says: "batch ends the others; cache gets its vCPU at last",
        loads: &[("batch", Load::Spin(0))],
        ends: &[
            at_goal("web", size(2, 512)),
            at_goal("batch", MINIMUM),
            at_goal("cache", size(2, 512)),
        ],
        steady: secs(2),
        within: WITHIN,
    },
    Step {
        name: "refusal",
        says: "web stops, holding on to 112 MiB: a vCPU goes back, its guest refuses to lose memory",
        loads: &[
            (
                "web",
                Load::Take {
                    total: Bytes::from_mib(112),
                    chunk: Bytes::from_mib(112),
                    every: Duration::from_millis(250),
                },
            ),
            ("web", Load::Spin(0)),
        ],
        ends: &[
            End { vm: "web", has: size(1, 512), because: Because::Refusal },
            at_goal("batch", MINIMUM),
            at_goal("cache", size(2, 512)),
        ],
        steady: secs(2),
        within: WITHIN,
    },
    Step {
        name: "fall",
        says: "web and cache let go of their memory; everybody is back at the minimum",
        loads: &[("web", Load::Free), ("cache", Load::Free)],
        ends: &[at_goal("web", MINIMUM), at_goal("batch", MINIMUM), at_goal("cache", MINIMUM)],
        steady: secs(2),
        within: secs(90),
    },
];

#[cfg(test)]
mod tests;
