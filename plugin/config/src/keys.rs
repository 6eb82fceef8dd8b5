//! Every key of the plugin's files. The operator's page is compared with these tables.

use std::ops::Bound;
use std::time::Duration;
use windlass_kit::addresses::{
    ADMIN, DUMP_STATE, DUMP_STATE_TIMEOUT, GATHERING, LONGEST_DUMP, USUAL_DUMP,
};
use windlass_protocol::config::Value::{
    Cpu, Memory, Number, Quantity, Seconds, Text, Time, Truth, Whole,
};
use windlass_protocol::config::{Field, Kind, Table, key};
use windlass_protocol::unit_choice::{self, USUAL_CPU, USUAL_MEM};
use windlass_protocol::vm_file::{MAX_CPU, MAX_MEMORY, MEMORY_SLOT, MIN_CPU, MIN_MEMORY, PRIORITY};
use windlass_protocol::{Bytes, VmInfo, limits};

/// The keys of plugin.toml.
pub const PLUGIN: Table = Table::toml(&[OWN, LISTS, KUBERNETES, MIGRATION]);

/// The keys of the list that goes with a .json.
pub const BOOKS: Table = Table::toml(&[LISTS]);

const OWN: &[Field] = &[
    key("listen", Kind::Address, "Where agents ask for permits; without [kubernetes].")
        .or(Text("0.0.0.0:10299")),
    DUMP_STATE.or(Text("127.0.0.1:10298")),
    DUMP_STATE_TIMEOUT,
    ADMIN.or(Text("127.0.0.1:10305")),
    unit_choice::CPU.meaning(UNIT_CPU).or(Cpu(USUAL_CPU)).otherwise(""),
    unit_choice::MEMORY.meaning(UNIT_MEM).or(Memory(USUAL_MEM)).otherwise(""),
];

const LISTS: &[Field] = &[
    key(
        "node",
        tables("one [[node]] or more"),
        "The nodes whose books are kept; without [kubernetes].",
    ),
    key("vm", tables("any number of [[vm]]"), "The VMs of those nodes.").otherwise("none"),
];

/// Where this table stands, even an empty one, nodes and VMs are those of a cluster.
const KUBERNETES: &[Field] = &[
    key(
        "kubernetes.permits",
        Kind::Address,
        "Where agents ask for permits in a cluster: over TLS, each with the token of its pod.",
    )
    .or(Text("0.0.0.0:10296")),
    key(
        "kubernetes.plain_permits",
        Kind::Address,
        "Where the reference's agents ask, which have neither TLS nor tokens: whoever reaches it can ask for any VM.",
    )
    .otherwise("none"),
    key(
        "kubernetes.extender",
        Kind::Address,
        "Where kube-scheduler asks its extender: over TLS, with its client certificate.",
    )
    .or(Text("127.0.0.1:10297")),
    key(
        "kubernetes.plain_extender",
        Kind::Truth,
        "The extender has no TLS, and its callers are not authenticated: at a loopback address only.",
    )
    .or(Truth(false)),
    key("kubernetes.tls.certificate", Kind::PATH, "What both ports show, in PEM, with those that lead to its CA.")
        .otherwise(NO_TLS),
    key("kubernetes.tls.key", Kind::PATH, "Its private key, in PEM.").otherwise(NO_TLS),
    key("kubernetes.tls.client_ca", Kind::PATH, "Who signs the scheduler's certificate, in PEM.")
        .otherwise("required with kubernetes.tls, but with plain_extender"),
    key("kubernetes.scheduler", SOME_TEXT, "The common name of the scheduler's certificate.")
        .or(Text("system:kube-scheduler")),
    key("kubernetes.agent", SOME_TEXT, "The user that agents' tokens are of, as the API server names it.")
        .or(Text("system:serviceaccount:windlass:windlass-agent")),
    key("kubernetes.kubeconfig", Kind::PATH, "How the API server is reached, and as whom.")
        .otherwise("the service account of the plugin's pod"),
    key(
        "kubernetes.namespace",
        NAME,
        "The plugin's own namespace, where its pods, its Lease and its headroom pods are.",
    )
    .or(Text("windlass")),
    key(
        "kubernetes.pool",
        tables("any number of [[kubernetes.pool]]"),
        "How nodes with certain labels are treated; a node belongs to the first pool whose labels it has.",
    )
    .otherwise("all nodes are dedicated"),
    key(
        "kubernetes.neonvm",
        Kind::Truth,
        "There are VMs of NeonVM: their VirtualMachine objects are followed, and have their ceilings.",
    )
    .or(Truth(false)),
    key(
        "kubernetes.conditions",
        Kind::Truth,
        "Whether a VM follows its load, and why not, is written as a condition of its pod and told by events.",
    )
    .or(Truth(false)),
    key(
        "kubernetes.lease.enabled",
        Kind::Truth,
        "One of several plugins leads, by a Lease; false: this plugin is alone, and answers from its start to its end.",
    )
    .or(Truth(true)),
    key("kubernetes.lease.name", SOME_TEXT, "What the Lease is called.").or(Text("windlass-plugin")),
    key(
        "kubernetes.lease.label",
        SOME_TEXT,
        "KEY=VALUE: the label that only the leader's pod has, for a Service, and for agents that look for it.",
    )
    .or(Text("windlass.dev/role=leader")),
    key("kubernetes.reserve.cpu", Kind::cpu(4096), RESERVE).otherwise("nothing"),
    key(
        "kubernetes.reserve.memory",
        Kind::memory(Bytes::from_mib(1), Bytes::from_gib(1 << 20)),
        RESERVE,
    )
    .otherwise("nothing"),
];

const MIGRATION: &[Field] = &[
    key(
        "kubernetes.migration.watermark",
        limits::SHARE,
        "The share of a node above which VMs that may be moved leave it; of nodes whose pool has none.",
    )
    .otherwise("none leaves"),
    key(
        "kubernetes.migration.cordoned",
        Kind::Truth,
        "VMs that may be moved leave nodes that are cordoned.",
    )
    .or(Truth(false)),
    key("kubernetes.migration.per_node", AT_ONCE, "As many VMs leave a node at a time.")
        .or(Whole(1)),
    key("kubernetes.migration.in_all", AT_ONCE, "As many VMs move at a time, those that others move too.")
        .or(Whole(4)),
    key(
        "kubernetes.migration.rests",
        UP_TO_A_DAY,
        "A VM whose migration ended is not moved again for this long.",
    )
    .or(Time(Duration::from_secs(600))),
    key(
        "kubernetes.migration.placed_within",
        UP_TO_A_DAY,
        "A migration whose VM has no pod on another node after this is given up.",
    )
    .or(Time(Duration::from_secs(120))),
];

const AT_ONCE: Kind = Kind::Whole { least: 1, most: 1000 };
const UP_TO_A_DAY: Kind =
    Kind::Time { least: Duration::from_secs(10), most: Duration::from_secs(86_400) };
const NO_TLS: &str = "required with kubernetes.tls; without that table the plugin makes its own";
const RESERVE: &str =
    "Kept of each node for pods that come past the plugin, as those of a DaemonSet.";

/// The keys of a `[[kubernetes.pool]]`.
pub const POOL: Table = Table::toml(&[&[
    key("name", NAME, "What the pool is called.").note(", once"),
    key(
        "labels",
        Kind::Other { written: "a table", allowed: "one text or more, by the names of labels" },
        "The labels that a node of the pool has.",
    ),
    key(
        "mode",
        Kind::Word { of: &["dedicated", "headroom", "resize"] },
        "How growth and placement share the room of a node.",
    ),
    key("headroom.cpu", Kind::cpu(4096), SPARE).otherwise(ALL_GROWTH),
    key("headroom.memory", Kind::memory(Bytes::from_mib(1), Bytes::from_gib(1 << 20)), SPARE)
        .otherwise(ALL_GROWTH),
    key("headroom.share", limits::SHARE, "The most of a node that its headroom pod holds.")
        .or(Number(1.0)),
    key(
        "watermark",
        limits::SHARE,
        "The share of a node above which VMs that may be moved leave it.",
    )
    .otherwise("kubernetes.migration.watermark"),
]]);

const SPARE: &str =
    "Held ready on each node, beyond what its VMs have grown into; with mode = \"headroom\".";
const ALL_GROWTH: &str = "all that the node's VMs may still grow into";

/// The keys of a `[[node]]`.
pub const NODE: Table = Table::toml(&[&[
    key("name", NAME, "What the node is called.").note(", once"),
    key("cpu", Kind::cpu(4096), ROOM),
    key("memory", Kind::memory(Bytes::from_mib(64), Bytes::from_gib(1 << 20)), ROOM),
]]);

const ROOM: &str =
    "What may be reserved for VMs; with a .json, less what that keeps for the system.";

/// The keys of a `[[vm]]`. Those that a VM file has mean the same there.
pub const LISTED: Table = Table::toml(&[&[
    key("namespace", NAME, "The namespace that the agent names.").or(Text("default")),
    key(
        "name",
        NAME,
        "The name that the agent names: without a cluster the VM file's, without .toml.",
    ),
    key(
        "node",
        Kind::Other { written: TEXT, allowed: "the name of a [[node]]" },
        "The node that it is on.",
    ),
    PRIORITY,
    key(
        "moving",
        Kind::Truth,
        "It is about to be moved: its agent is told, and it keeps its size until then.",
    )
    .or(Truth(false)),
    MEMORY_SLOT
        .meaning("The step of memory that the agent counts in; the same on both sides.")
        .otherwise("with a .json, its memBlockSize"),
    MIN_CPU,
    MIN_MEMORY,
    MAX_CPU.meaning("The most vCPUs; what it counts with until an agent speaks for it."),
    MAX_MEMORY.meaning("The most memory; what it counts with until an agent speaks for it."),
]]);

/// The keys of the reference's configuration file, a JSON object: those of all its releases from
/// v0.12.2 to v0.49.1.
pub const JSON: Table = Table::json(&[THEIRS, UNUSED]);

const THEIRS: &[Field] = &[
    key(
        "memBlockSize",
        quantity(limits::SLOT),
        "The step of memory of VMs that say no memory_slot.",
    )
    .or(Quantity(VmInfo::DEFAULT_MEMORY_SLOT)),
    key("nodeDefaults.cpu.watermark", limits::SHARE, WATERMARK).or(Number(1.0)),
    key("nodeDefaults.cpu.system", SYSTEM_CPU, KEPT).otherwise("nothing"),
    key("nodeDefaults.memory.watermark", limits::SHARE, WATERMARK).or(Number(1.0)),
    key("nodeDefaults.memory.system", SYSTEM_MEMORY, KEPT).otherwise("nothing"),
    key("nodeDefaults.computeUnit.vCPUs", unit_choice::CPU.kind, UNIT_CPU).or(Cpu(USUAL_CPU)),
    key("nodeDefaults.computeUnit.mem", SLOTS, "Its memory, in memBlockSize.")
        .otherwise("what comes to 1Gi"),
    key(
        "nodeOverrides",
        Kind::Other { written: "", allowed: "a list of { nodes, config }" },
        "Other values for the nodes of these names; the first that names one counts.",
    )
    .otherwise("none"),
    key("schedulerName", SOME_TEXT, SHOWN).otherwise("none"),
    key("migrationDeletionRetrySeconds", DAY, SHOWN).otherwise("none"),
    unused("doMigration", Kind::Truth).otherwise("true"),
    key("k8sNodeGroupLabel", ANY_TEXT, SHOWN).otherwise("none"),
    key("dumpState.port", Kind::Port, "Where the state is shown, on every address.")
        .or(Whole(10_298))
        .otherwise("without dumpState none is shown"),
    key(
        "dumpState.timeoutSeconds",
        Kind::Whole { least: 1, most: LONGEST_DUMP.as_secs().cast_signed() },
        GATHERING,
    )
    .or(Seconds(USUAL_DUMP)),
    key("watermark", limits::SHARE, "Shown; nothing is moved for it. From v0.42 on.")
        .or(Number(1.0)),
    key("nodeConfig.cpu.watermark", limits::SHARE, "The same of CPU, before v0.42.")
        .otherwise("watermark"),
    key("nodeConfig.memory.watermark", limits::SHARE, "The same of memory, before v0.42.")
        .otherwise("watermark"),
    key(
        "computeUnit.vCPUs",
        unit_choice::CPU.kind,
        "vCPUs of the compute unit that agents are told, where nodeDefaults does not say.",
    )
    .or(Cpu(USUAL_CPU)),
    key("computeUnit.mem", quantity(unit_choice::MEMORY.kind), "Its memory.")
        .or(Quantity(USUAL_MEM)),
];

/// What the reference uses to place and move VMs: it is still to be what it should.
pub(crate) const UNUSED: &[Field] = &[
    unused("nodeDefaults.minUsageScore", SCORE),
    unused("nodeDefaults.maxUsageScore", SCORE),
    unused("nodeDefaults.scorePeak", SCORE),
    unused("nodeConfig.minUsageScore", SCORE),
    unused("nodeConfig.maxUsageScore", SCORE),
    unused("nodeConfig.scorePeak", SCORE),
    unused("scoring.minUsageScore", SCORE),
    unused("scoring.maxUsageScore", SCORE),
    unused("scoring.scorePeak", SCORE),
    unused("scoring.randomize", Kind::Truth),
    unused("randomizeScores", Kind::Truth),
    unused("eventQueueWorkers", DAY),
    unused("reconcileWorkers", DAY),
    unused("logSuccessiveFailuresThreshold", DAY),
    unused("startupEventHandlingTimeoutSeconds", DAY),
    unused("patchRetryWaitSeconds", DAY),
    unused("k8sCRUDTimeoutSeconds", DAY),
    unused("k8sAvailabilityZoneLabel", ANY_TEXT),
    unused("nodeMetricLabels", Kind::Other { written: "", allowed: "an object of texts" }),
    unused("ignoreNamespaces", TEXTS),
    unused("ignoredNamespaces", TEXTS),
];

/// The keys of an entry of `nodeOverrides`.
pub const OVERRIDE: Table = Table::json(&[&[
    key("nodes", Kind::Texts { empty: false }, "The nodes that are meant."),
    key("config.cpu.watermark", limits::SHARE, DEFAULTS).or(Number(1.0)),
    key("config.cpu.system", SYSTEM_CPU, DEFAULTS).otherwise("nothing"),
    key("config.memory.watermark", limits::SHARE, DEFAULTS).or(Number(1.0)),
    key("config.memory.system", SYSTEM_MEMORY, DEFAULTS).otherwise("nothing"),
    key("config.computeUnit.vCPUs", unit_choice::CPU.kind, DEFAULTS).or(Cpu(USUAL_CPU)),
    key("config.computeUnit.mem", SLOTS, DEFAULTS).otherwise("what comes to 1Gi"),
    unused("config.minUsageScore", SCORE),
    unused("config.maxUsageScore", SCORE),
    unused("config.scorePeak", SCORE),
]]);

const UNIT_CPU: &str = "vCPUs of the compute unit that agents are told.";
const UNIT_MEM: &str = "Memory of the compute unit that agents are told.";
const SHOWN: &str = "Shown; not used without a cluster.";
const WATERMARK: &str = "Shown; nothing is moved for it.";
const KEPT: &str = "Kept from VMs on each node.";
const DEFAULTS: &str = "As of nodeDefaults.";

const TEXT: &str = "a text";
const ANY_TEXT: Kind = Kind::Text { empty: true };
const SOME_TEXT: Kind = Kind::Text { empty: false };
const TEXTS: Kind = Kind::Texts { empty: true };
const NAME: Kind = Kind::Other {
    written: TEXT,
    allowed: "1 to 253 letters, digits, dots, dashes and underscores",
};
const SCORE: Kind = Kind::Number { from: Bound::Included(0.0), to: Bound::Included(1.0) };
const DAY: Kind = Kind::Whole { least: 1, most: 86_400 };
const SLOTS: Kind = Kind::Whole { least: 1, most: 65_535 };
const SYSTEM_CPU: Kind =
    Kind::Other { written: "", allowed: "an amount of CPU above 0, as 1 or \"500m\"" };
const SYSTEM_MEMORY: Kind =
    Kind::Other { written: "", allowed: "an amount of memory above 0, as \"0.5Gi\"" };

const fn tables(allowed: &'static str) -> Kind {
    Kind::Other { written: "tables", allowed }
}

/// The same range, as Kubernetes writes memory.
const fn quantity(kind: Kind) -> Kind {
    let Kind::Memory { least, most, step } = kind else { return kind };
    Kind::Quantity { least, most, step }
}

const fn unused(name: &'static str, kind: Kind) -> Field {
    key(name, kind, "Not used without a cluster.").otherwise("none")
}
