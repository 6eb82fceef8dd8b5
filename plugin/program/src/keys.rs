//! Every key of the plugin's files: how it is written, default, range, meaning.
//!
//! Errors quote the range, and the operator's page is compared with these lists.

use windlass_kit::check::{ADDRESS, CPU, MEMORY, SOCKET, TIME, json_key as json};
use windlass_protocol::vm_file::Key;

/// The keys of plugin.toml.
pub const PLUGIN_KEYS: &[Key] = &[
    Key {
        name: "listen",
        kind: ADDRESS,
        default: "0.0.0.0:10299",
        range: SOCKET,
        meaning: "Where agents ask for permits.",
    },
    Key {
        name: "dump_state",
        kind: ADDRESS,
        default: "127.0.0.1:10298",
        range: SOCKET,
        meaning: "Where the state is shown, in the reference's shape.",
    },
    Key {
        name: "dump_state_timeout",
        kind: TIME,
        default: "5s",
        range: "100ms to 60s",
        meaning: "How long gathering the state may take.",
    },
    Key {
        name: "admin",
        kind: ADDRESS,
        default: "127.0.0.1:10305",
        range: SOCKET,
        meaning: "Where /livez, /readyz, /metrics and /log-level are served.",
    },
    Key {
        name: "compute_unit.cpu",
        kind: CPU,
        default: "1",
        range: "0.05 to 64 vCPUs",
        meaning: "vCPUs of the compute unit that agents are told.",
    },
    Key {
        name: "compute_unit.memory",
        kind: MEMORY,
        default: "1GiB",
        range: "1MiB to 1TiB",
        meaning: "Memory of the compute unit that agents are told.",
    },
    NODES,
    VMS,
];

/// The keys of the list that goes with a .json.
pub const BOOKS_KEYS: &[Key] = &[NODES, VMS];

const NODES: Key = Key {
    name: "node",
    kind: "tables",
    default: "required",
    range: "one [[node]] or more",
    meaning: "The nodes whose books are kept.",
};

const VMS: Key = Key {
    name: "vm",
    kind: "tables",
    default: "none",
    range: "any number of [[vm]]",
    meaning: "The VMs of those nodes.",
};

/// The keys of a `[[node]]`.
pub const NODE_KEYS: &[Key] = &[
    Key {
        name: "name",
        kind: "a text",
        default: "required",
        range: "1 to 253 letters, digits, dots, dashes and underscores, once",
        meaning: "What the node is called.",
    },
    Key {
        name: "cpu",
        kind: CPU,
        default: "required",
        range: "0.05 to 4096 vCPUs",
        meaning: "What may be reserved for VMs; with a .json, less what that keeps for the system.",
    },
    Key {
        name: "memory",
        kind: MEMORY,
        default: "required",
        range: "64MiB to 1024TiB",
        meaning: "What may be reserved for VMs; with a .json, less what that keeps for the system.",
    },
];

/// The keys of a `[[vm]]`. Those that a VM file has mean the same there.
pub const LISTED_KEYS: &[Key] = &[
    Key {
        name: "namespace",
        kind: "a text",
        default: "default",
        range: "1 to 253 letters, digits, dots, dashes and underscores",
        meaning: "The namespace that the agent names.",
    },
    Key {
        name: "name",
        kind: "a text",
        default: "required",
        range: "1 to 253 letters, digits, dots, dashes and underscores",
        meaning: "The name that the agent names: without a cluster the VM file's, without .toml.",
    },
    Key {
        name: "node",
        kind: "a text",
        default: "required",
        range: "the name of a [[node]]",
        meaning: "The node that it is on.",
    },
    Key {
        name: "priority",
        kind: "a whole number",
        default: "0",
        range: "-2147483648 to 2147483647",
        meaning: "Who goes first when room is short: higher first.",
    },
    Key {
        name: "moving",
        kind: "true or false",
        default: "false",
        range: "true or false",
        meaning: "It is about to be moved: its agent is told, and it keeps its size until then.",
    },
    Key {
        name: "memory_slot",
        kind: MEMORY,
        default: "128MiB; with a .json, its memBlockSize",
        range: "1MiB to 64GiB, in whole MiB",
        meaning: "The step of memory that the agent counts in; the same on both sides.",
    },
    Key {
        name: "min.cpu",
        kind: CPU,
        default: "required",
        range: "0.05 to 512",
        meaning: "The fewest vCPUs.",
    },
    Key {
        name: "min.memory",
        kind: MEMORY,
        default: "required",
        range: "1 to 65535 whole memory slots",
        meaning: "The least memory.",
    },
    Key {
        name: "max.cpu",
        kind: CPU,
        default: "required",
        range: "0.05 to 512, no less than min.cpu",
        meaning: "The most vCPUs; what it counts with until an agent speaks for it.",
    },
    Key {
        name: "max.memory",
        kind: MEMORY,
        default: "required",
        range: "1 to 65535 whole memory slots, no less than min.memory",
        meaning: "The most memory; what it counts with until an agent speaks for it.",
    },
];

/// The keys of the reference's configuration file, a JSON object: those of all its releases from
/// v0.12.2 to v0.49.1.
pub const JSON_KEYS: &[Key] = &[
    json(
        "memBlockSize",
        "128Mi",
        "an amount of memory from 1Mi to 64Gi, in whole Mi",
        "The step of memory of VMs that say no memory_slot.",
    ),
    json("nodeDefaults.cpu.watermark", "1", WATERMARK, "Shown; nothing is moved for it."),
    json("nodeDefaults.cpu.system", "nothing", SYSTEM_CPU, "Kept from VMs on each node."),
    json("nodeDefaults.memory.watermark", "1", WATERMARK, "Shown; nothing is moved for it."),
    json("nodeDefaults.memory.system", "nothing", SYSTEM_MEMORY, "Kept from VMs on each node."),
    json(
        "nodeDefaults.computeUnit.vCPUs",
        "1",
        UNIT_CPU,
        "vCPUs of the compute unit that agents are told.",
    ),
    json(
        "nodeDefaults.computeUnit.mem",
        "what comes to 1Gi",
        UNIT_MEM,
        "Its memory, in memBlockSize.",
    ),
    json(
        "nodeOverrides",
        "none",
        "a list of { nodes, config }",
        "Other values for the nodes of these names; the first that names one counts.",
    ),
    json("schedulerName", "none", "a text that is not empty", SHOWN),
    json("migrationDeletionRetrySeconds", "none", "a whole number from 1 to 86400", SHOWN),
    json("doMigration", "true", "true or false", "Not used without a cluster."),
    json("k8sNodeGroupLabel", "none", "a text", SHOWN),
    json(
        "dumpState.port",
        "10298; without dumpState none is shown",
        "a port from 1 to 65535",
        "Where the state is shown, on every address.",
    ),
    json(
        "dumpState.timeoutSeconds",
        "5",
        "a whole number from 1 to 60",
        "How long gathering the state may take.",
    ),
    json("watermark", "1", WATERMARK, "Shown; nothing is moved for it. From v0.42 on."),
    json("nodeConfig.cpu.watermark", "watermark", WATERMARK, "The same of CPU, before v0.42."),
    json(
        "nodeConfig.memory.watermark",
        "watermark",
        WATERMARK,
        "The same of memory, before v0.42.",
    ),
    json(
        "computeUnit.vCPUs",
        "1",
        UNIT_CPU,
        "vCPUs of the compute unit that agents are told, where nodeDefaults does not say.",
    ),
    json("computeUnit.mem", "1Gi", "an amount of memory from 1Mi to 1Ti", "Its memory."),
    json("nodeDefaults.minUsageScore", "none", SCORE, UNUSED),
    json("nodeDefaults.maxUsageScore", "none", SCORE, UNUSED),
    json("nodeDefaults.scorePeak", "none", SCORE, UNUSED),
    json("nodeConfig.minUsageScore", "none", SCORE, UNUSED),
    json("nodeConfig.maxUsageScore", "none", SCORE, UNUSED),
    json("nodeConfig.scorePeak", "none", SCORE, UNUSED),
    json("scoring.minUsageScore", "none", SCORE, UNUSED),
    json("scoring.maxUsageScore", "none", SCORE, UNUSED),
    json("scoring.scorePeak", "none", SCORE, UNUSED),
    json("scoring.randomize", "none", "true or false", UNUSED),
    json("randomizeScores", "none", "true or false", UNUSED),
    json("eventQueueWorkers", "none", COUNT, UNUSED),
    json("reconcileWorkers", "none", COUNT, UNUSED),
    json("logSuccessiveFailuresThreshold", "none", COUNT, UNUSED),
    json("startupEventHandlingTimeoutSeconds", "none", COUNT, UNUSED),
    json("patchRetryWaitSeconds", "none", COUNT, UNUSED),
    json("k8sCRUDTimeoutSeconds", "none", COUNT, UNUSED),
    json("k8sAvailabilityZoneLabel", "none", "a text", UNUSED),
    json("nodeMetricLabels", "none", "an object of texts", UNUSED),
    json("ignoreNamespaces", "none", "a list of texts", UNUSED),
    json("ignoredNamespaces", "none", "a list of texts", UNUSED),
];

/// The keys of an entry of `nodeOverrides`.
pub const OVERRIDE_KEYS: &[Key] = &[
    json("nodes", "required", "a list of one name or more", "The nodes that are meant."),
    json("config.cpu.watermark", "1", WATERMARK, "As of nodeDefaults."),
    json("config.cpu.system", "nothing", SYSTEM_CPU, "As of nodeDefaults."),
    json("config.memory.watermark", "1", WATERMARK, "As of nodeDefaults."),
    json("config.memory.system", "nothing", SYSTEM_MEMORY, "As of nodeDefaults."),
    json("config.computeUnit.vCPUs", "1", UNIT_CPU, "As of nodeDefaults."),
    json("config.computeUnit.mem", "what comes to 1Gi", UNIT_MEM, "As of nodeDefaults."),
    json("config.minUsageScore", "none", SCORE, UNUSED),
    json("config.maxUsageScore", "none", SCORE, UNUSED),
    json("config.scorePeak", "none", SCORE, UNUSED),
];

const SCORE: &str = "a number from 0 to 1";
const COUNT: &str = "a whole number from 1 to 86400";
const SHOWN: &str = "Shown; not used without a cluster.";
const UNUSED: &str = "Not used without a cluster.";
const WATERMARK: &str = "above 0, at most 1";
const SYSTEM_CPU: &str = "an amount of CPU above 0, as 1 or \"500m\"";
const SYSTEM_MEMORY: &str = "an amount of memory above 0, as \"0.5Gi\"";
const UNIT_CPU: &str = "0.05 to 64 vCPUs";
const UNIT_MEM: &str = "a whole number from 1 to 65535";
