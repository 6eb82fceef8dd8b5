//! Every key of a VM file. The plugin's list shares the keys of sizes.

use crate::config::Value::{Memory, Number, Text, Time, Truth, Whole};
use crate::config::{Field, Kind, Table, key};
use crate::{Bytes, ScaleDown, Target, VmInfo, limits};

/// The default of keys that annotations may replace.
const BOUND: &str = "required, unless there are annotations";
/// The default that the reference's annotations imply.
const AT_ONCE: &str = "0s where only the reference's annotations are given";
/// The address of a server in the guest.
const fn guest(allowed: &'static str) -> Kind {
    Kind::Other { written: "an IP address and a port", allowed }
}

/// The priority.
pub const PRIORITY: Field = key(
    "priority",
    limits::PRIORITY,
    "The order when room is short: the higher priority goes first.",
)
.or(Whole(0));
/// The step of memory.
pub const MEMORY_SLOT: Field =
    key("memory_slot", limits::SLOT, "The step of memory in what is said to the plugin.")
        .or(Memory(VmInfo::DEFAULT_MEMORY_SLOT));
/// The minimum of vCPUs.
pub const MIN_CPU: Field = key("min.cpu", limits::CPU, "The fewest vCPUs.");
/// The minimum of memory.
pub const MIN_MEMORY: Field = key("min.memory", limits::slots(Bytes::ZERO), "The least memory.");
/// The maximum of vCPUs.
pub const MAX_CPU: Field =
    key("max.cpu", limits::CPU, "The most vCPUs.").note(", no less than min.cpu");
/// The maximum of memory.
pub const MAX_MEMORY: Field = key("max.memory", limits::slots(Bytes::ZERO), "The most memory.")
    .note(", no less than min.memory");

/// The keys of a VM file.
pub const VM: Table = Table::toml(&[&[
    key(
        "qmp",
        Kind::SOCKET,
        "The VM's monitor; it serves one client, so Windlass needs one of its own.",
    ),
    key(
        "informant",
        guest("an IP address and a port above 0, as \"127.0.0.2:10301\"; names are not looked up"),
        "Where the guest's informant is reached from the host.",
    ),
    key(
        "advertise",
        Kind::Other {
            written: "an IP address",
            allowed: "an IP address other than 0.0.0.0 and ::, without a port",
        },
        "How the guest reaches the host.",
    )
    .otherwise("10.0.2.2 for a loopback informant, else the local address that reaches it"),
    key(
        "metrics",
        guest("an IP address and a port above 0, as \"127.0.0.2:9100\"; names are not looked up"),
        "Where load is read, if not at the informant.",
    )
    .otherwise("the informant's address, with the port that it announces"),
    key("mode", limits::MODE, "Whether sizes follow the load, or are only decided and recorded.")
        .or(Text("act")),
    key("policy", limits::POLICY, "How a goal is computed.").or(Text("load-average")),
    key("load_window", limits::LOAD_WINDOW, "Over which time load is averaged.")
        .or(Text("15s"))
        .otherwise("1m where only the reference's annotations are given"),
    PRIORITY,
    MEMORY_SLOT,
    key(
        "vcpu_removal",
        Kind::Truth,
        "Whether vCPUs may be taken out rather than parked; needs KVM.",
    )
    .or(Truth(false)),
    key(
        "cpu_limit",
        limits::CPU_LIMIT,
        "How CPU that the VM has given back is kept from its guest; wins over the host's.",
    )
    .otherwise("what host.toml or agent.toml says"),
    MIN_CPU.otherwise(BOUND),
    MIN_MEMORY.otherwise(BOUND),
    MAX_CPU.otherwise(BOUND),
    MAX_MEMORY.otherwise(BOUND),
    key("target.load_average", limits::LOAD_TARGET, "Load per vCPU that is aimed at.")
        .or(Number(Target::USUAL.load_average)),
    key("target.memory", limits::SHARE, "Fraction of memory in use that is aimed at.")
        .or(Number(Target::USUAL.memory)),
    key(
        "scale_down.cpu",
        limits::SCALE_DOWN,
        "How long vCPUs that the load no longer calls for are kept; 0s: not at all.",
    )
    .or(Time(ScaleDown::USUAL.cpu))
    .otherwise(AT_ONCE),
    key(
        "scale_down.memory",
        limits::SCALE_DOWN,
        "How long memory that is no longer called for is kept; 0s: not at all.",
    )
    .or(Time(ScaleDown::USUAL.memory))
    .otherwise(AT_ONCE),
    key(
        "annotations",
        Kind::Other {
            written: "a table of texts",
            allowed: "a table of texts; not together with min, max or target",
        },
        "Bounds and the rest, as a VM object in a cluster has them.",
    )
    .otherwise("none"),
]]);
