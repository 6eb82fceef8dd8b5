//! Every key of a VM file: type, default, range, meaning.

use super::text::{Node, unit};

/// One key of a VM file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// With its table: `max.memory`.
    pub name: &'static str,
    /// How it is written.
    pub kind: &'static str,
    /// What holds where it is absent; `required` where it may not be.
    pub default: &'static str,
    /// What may stand there; an error quotes it.
    pub range: &'static str,
    /// What it is for.
    pub meaning: &'static str,
}

/// How amounts of CPU are written.
const CPU: &str = "vCPUs, as 1, 0.25 or \"250m\"";
/// How amounts of memory are written.
const MEMORY: &str = "bytes, or a text as \"512MiB\"";
/// How times are written.
const TIME: &str = "seconds, or a text as \"5m\"";
/// How the kind of every key begins that is an amount of memory.
const BYTES: &str = "bytes, ";
/// How addresses with a port are written.
const SOCKET: &str = "an IP address and a port";
/// Beyond this an annotation's bounds are needed.
const BOUND: &str = "required, unless there are annotations";

/// The keys of a VM file.
pub const KEYS: &[Key] = &[
    Key {
        name: "qmp",
        kind: "a path",
        default: "required",
        range: "an absolute path of at most 107 bytes",
        meaning: "The VM's monitor; it serves one client, so Windlass needs one of its own.",
    },
    Key {
        name: "informant",
        kind: SOCKET,
        default: "required",
        range: "an IP address and a port above 0, as \"127.0.0.2:10301\"; names are not looked up",
        meaning: "Where the guest's informant is reached from the host.",
    },
    Key {
        name: "advertise",
        kind: "an IP address",
        default: "10.0.2.2 for a loopback informant, else the local address that reaches it",
        range: "an IP address other than 0.0.0.0 and ::, without a port",
        meaning: "How the guest reaches the host.",
    },
    Key {
        name: "metrics",
        kind: SOCKET,
        default: "the informant's address, with the port that it announces",
        range: "an IP address and a port above 0, as \"127.0.0.2:9100\"; names are not looked up",
        meaning: "Where load is read, if not at the informant.",
    },
    Key {
        name: "mode",
        kind: "a word",
        default: "act",
        range: "act or observe",
        meaning: "Whether sizes follow the load, or are only decided and recorded.",
    },
    Key {
        name: "policy",
        kind: "a word",
        default: "load-average",
        range: "load-average",
        meaning: "How a goal is computed.",
    },
    Key {
        name: "load_window",
        kind: "a word",
        default: "15s; 1m where only the reference's annotations are given",
        range: "5s, 15s or 1m",
        meaning: "Over which time load is averaged.",
    },
    Key {
        name: "priority",
        kind: "a whole number",
        default: "0",
        range: "-2147483648 to 2147483647",
        meaning: "Who goes first when room is short: higher first.",
    },
    Key {
        name: "memory_slot",
        kind: MEMORY,
        default: "128MiB",
        range: "1MiB to 64GiB, in whole MiB",
        meaning: "The step of memory in what is said to the plugin.",
    },
    Key {
        name: "vcpu_removal",
        kind: "true or false",
        default: "false",
        range: "true or false",
        meaning: "Whether vCPUs may be taken out rather than parked; needs KVM.",
    },
    Key {
        name: "min.cpu",
        kind: CPU,
        default: BOUND,
        range: "0.05 to 512",
        meaning: "The fewest vCPUs.",
    },
    Key {
        name: "min.memory",
        kind: MEMORY,
        default: BOUND,
        range: "1 to 65535 whole memory slots",
        meaning: "The least memory.",
    },
    Key {
        name: "max.cpu",
        kind: CPU,
        default: BOUND,
        range: "0.05 to 512, no less than min.cpu",
        meaning: "The most vCPUs.",
    },
    Key {
        name: "max.memory",
        kind: MEMORY,
        default: BOUND,
        range: "1 to 65535 whole memory slots, no less than min.memory",
        meaning: "The most memory.",
    },
    Key {
        name: "target.load_average",
        kind: "a number",
        default: "0.9",
        range: "above 0, below 2",
        meaning: "Load per vCPU that is aimed at.",
    },
    Key {
        name: "target.memory",
        kind: "a number",
        default: "0.75",
        range: "above 0, at most 1",
        meaning: "Fraction of memory in use that is aimed at.",
    },
    Key {
        name: "scale_down.cpu",
        kind: TIME,
        default: "60s; 0s where only the reference's annotations are given",
        range: crate::limits::SCALE_DOWN,
        meaning: "How long vCPUs that the load no longer calls for are kept; 0s: not at all.",
    },
    Key {
        name: "scale_down.memory",
        kind: TIME,
        default: "60s; 0s where only the reference's annotations are given",
        range: crate::limits::SCALE_DOWN,
        meaning: "How long memory that is no longer called for is kept; 0s: not at all.",
    },
    Key {
        name: "annotations",
        kind: "a table of texts",
        default: "none",
        range: "a table of texts; not together with min, max or target",
        meaning: "Bounds and the rest, as a VM object in a cluster has them.",
    },
];

// === impl Key ===

impl Key {
    /// The name of a key as somebody wrote it: in quotes where it would read as none, or as one of
    /// a table. No key of ours has such a name.
    pub fn spelt(written: String) -> String {
        if written.is_empty() || written.contains('.') { format!("{written:?}") } else { written }
    }

    /// What is wrong with a value that this key does not take. Of memory the unit is named first:
    /// a range says nothing to a person who took MB for one.
    pub fn complaint(&self, node: &Node) -> String {
        let unit = node.text().filter(|_| self.kind.starts_with(BYTES)).and_then(unit::complaint);
        unit.unwrap_or_else(|| format!("must be {}", self.range))
    }

    /// The key of this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}
