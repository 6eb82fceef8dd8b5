//! Every key of the agent's files: how it is written, default, range, meaning.
//!
//! Errors quote the range, and the operator's page is compared with these lists. VM files have
//! keys of their own, in the protocol crate.

use windlass_kit::check::{ADDRESS, CPU, MEMORY, SOCKET, TIME, json_key as json};
use windlass_protocol::vm_file::Key;

/// How names are written.
const TEXT: &str = "a text";
/// How counts are written.
const NUMBER: &str = "a number";

// What the timers of both files mean.
const UNREACHED: &str = "The longest wait before an informant that was not reached is asked again; the \
    first is 1 s, each twice the one before.";
const REFUSED: &str = "The wait after an informant refused a session that it had opened; each twice \
    the one before, up to 60 s.";
const GAP: &str = "The least time from the start of one session to that of the next.";
const READ: &str = "How often a guest's metrics are read.";
const SILENT: &str = "An informant that has said nothing for so long is counted as silent in the \
    metrics, and the log says so.";
const TAKEN_UP: &str = "How long after a VM was taken up its informant is not yet counted as \
    silent.";

/// The keys of agent.toml.
pub const AGENT_KEYS: &[Key] = &[
    Key {
        name: "plugin",
        kind: "a text",
        default: "required, unless --plugin says it",
        range: "http://IP:PORT, perhaps with a path; names are not looked up",
        meaning: "Where permits are asked for.",
    },
    Key {
        name: "state_dir",
        kind: "a path",
        default: "/var/lib/windlass-agent",
        range: "an absolute path, other than vms_dir",
        meaning: "Where it is kept over a restart at which port each informant calls back.",
    },
    Key {
        name: "vms_dir",
        kind: "a path",
        default: "/etc/windlass/vms.d",
        range: "an absolute path, other than state_dir",
        meaning: "Where VM files are looked for.",
    },
    Key {
        name: "admin",
        kind: ADDRESS,
        default: "127.0.0.1:10304",
        range: SOCKET,
        meaning: "Where /livez, /readyz, /metrics and /log-level are served.",
    },
    Key {
        name: "dump_state",
        kind: ADDRESS,
        default: "127.0.0.1:10300",
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
        name: "callback_listen",
        kind: "an IP address",
        default: "K8S_POD_IP; without it 127.0.0.1",
        range: "an IP address, without a port",
        meaning: "Where informants call back.",
    },
    Key {
        name: "callback_ports",
        kind: "a text",
        default: "10310-10399",
        range: "FIRST-LAST, from 1 to 65535, without the ports of admin and dump_state",
        meaning: "One port per VM, the same after a restart.",
    },
    Key {
        name: "trust_guest_parking",
        kind: "true or false",
        default: "false",
        range: "true or false",
        meaning: "Whether a vCPU that the guest has parked is given back to the plugin.",
    },
    Key {
        name: "compute_unit.cpu",
        kind: CPU,
        default: "the smaller of 1 and the VM's min.cpu",
        range: "0.05 to 64 vCPUs",
        meaning: "vCPUs of the step that sizes move in; the plugin's should say the same.",
    },
    Key {
        name: "compute_unit.memory",
        kind: MEMORY,
        default: "the smaller of 1GiB and the VM's min.memory",
        range: "1MiB to 1TiB",
        meaning: "Memory of the step that sizes move in; the plugin's should say the same.",
    },
    Key {
        name: "times.register",
        kind: TIME,
        default: "2s",
        range: "2s to 30s",
        meaning: "How long an informant may take to register this agent; it calls back meanwhile.",
    },
    Key {
        name: "times.unregister",
        kind: TIME,
        default: "2s",
        range: "100ms to 10s",
        meaning: "How long taking leave of an informant may take.",
    },
    Key {
        name: "times.health",
        kind: TIME,
        default: "1s",
        range: "100ms to 5s",
        meaning: "How long an informant may take to say that a session stands.",
    },
    Key {
        name: "times.size",
        kind: TIME,
        default: "2s",
        range: "100ms to 2s; hand-over between agents counts on no more",
        meaning: "How long an informant may take for its word on a size.",
    },
    Key {
        name: "times.metrics",
        kind: TIME,
        default: "2s",
        range: "100ms to 10s",
        meaning: "How long reading a guest's metrics may take.",
    },
    Key {
        name: "times.permit",
        kind: TIME,
        default: "2s",
        range: "100ms to 2s; hand-over between agents counts on no more",
        meaning: "How long the plugin may take to answer.",
    },
    Key {
        name: "periods.health",
        kind: TIME,
        default: "5s",
        range: "1s to 5s; an agent acts for 8 s after it sent a check that was answered",
        meaning: "How often it is asked whether a session stands.",
    },
    Key {
        name: "periods.metrics",
        kind: TIME,
        default: "1s",
        range: "1s to 10s; figures are old after 15 s",
        meaning: READ,
    },
    Key {
        name: "periods.register_retry",
        kind: TIME,
        default: "5s",
        range: "1s to 300s",
        meaning: UNREACHED,
    },
    Key {
        name: "periods.session_retry",
        kind: TIME,
        default: "5s",
        range: "100ms to 300s",
        meaning: REFUSED,
    },
    Key {
        name: "periods.session_gap",
        kind: TIME,
        default: "5s",
        range: "100ms to 300s",
        meaning: GAP,
    },
    Key {
        name: "silence.after",
        kind: TIME,
        default: "20s",
        range: "1s to 86400s",
        meaning: SILENT,
    },
    Key {
        name: "silence.grace",
        kind: TIME,
        default: "20s",
        range: "1s to 86400s",
        meaning: TAKEN_UP,
    },
    billed("billing.url", TEXT, 0),
    billed("billing.cpu_metric_name", TEXT, 1),
    billed("billing.active_time_metric_name", TEXT, 2),
    billed("billing.collect_every_seconds", NUMBER, 3),
    billed("billing.accumulate_every_seconds", NUMBER, 4),
    billed("billing.push_every_seconds", NUMBER, 5),
    billed("billing.push_request_timeout_seconds", NUMBER, 6),
    billed("billing.max_batch_size", NUMBER, 7),
    billed("billing.max_queue_size", NUMBER, 8),
];

/// The keys of the reference's configuration file, a JSON object.
pub const JSON_KEYS: &[Key] = &[
    json("scaling.requestTimeoutSeconds", "10", ANY, "Not used: there is no Kubernetes to ask."),
    json(
        "scaling.defaultConfig.loadAverageFractionTarget",
        "0.9",
        "from 0, below 2; 0 counts as 0.9",
        "The load per vCPU that is aimed at, where a VM file states none.",
    ),
    json("informant.serverPort", "10301", PORT, "Not used: a VM file says where its informant is."),
    json("informant.retryServerMinWaitSeconds", "5", WAIT, GAP),
    json("informant.retryServerNormalWaitSeconds", "5", WAIT, REFUSED),
    json("informant.registerRetrySeconds", "5", WAIT, UNREACHED),
    json(
        "informant.requestTimeoutSeconds",
        "1",
        "a whole number from 1; more than 5 counts as 5",
        "How long an informant may take to say that a session stands.",
    ),
    json(
        "informant.registerTimeoutSeconds",
        "2",
        "a whole number from 1; 1 counts as 2, more than 30 as 30",
        "How long an informant may take to register this agent.",
    ),
    json(
        "informant.downscaleTimeoutSeconds",
        "2",
        "a whole number from 1; more than 2 counts as 2, on which hand-over counts",
        "How long an informant may take for its word on a size, either way.",
    ),
    json("informant.unhealthyAfterSilenceDurationSeconds", "20", DAY, SILENT),
    json("informant.unhealthyStartupGracePeriodSeconds", "20", DAY, TAKEN_UP),
    json(
        "metrics.loadMetricPrefix",
        "host_",
        "a text that is not empty",
        "Not used: both are read, whichever the guest has.",
    ),
    json(
        "metrics.requestTimeoutSeconds",
        "2",
        "a whole number; 0 counts as 1, more than 10 as 10",
        "How long reading a guest's metrics may take.",
    ),
    json(
        "metrics.secondsBetweenRequests",
        "5",
        "a whole number from 1; more than 10 counts as 10, since figures are old after 15 s",
        READ,
    ),
    json(
        "scheduler.schedulerName",
        "none",
        "a text that is not empty",
        "Not used: --plugin says where the plugin is.",
    ),
    json(
        "scheduler.requestTimeoutSeconds",
        "2",
        "a whole number from 1; more than 2 counts as 2, on which hand-over counts",
        "How long the plugin may take to answer.",
    ),
    json("scheduler.requestPort", "10299", PORT, "Not used: --plugin says where the plugin is."),
    billed("billing.url", "JSON", 0),
    billed("billing.cpuMetricName", "JSON", 1),
    billed("billing.activeTimeMetricName", "JSON", 2),
    billed("billing.collectEverySeconds", "JSON", 3),
    billed("billing.accumulateEverySeconds", "JSON", 4),
    billed("billing.pushEverySeconds", "JSON", 5),
    billed("billing.pushRequestTimeoutSeconds", "JSON", 6),
    billed("billing.maxBatchSize", "JSON", 7),
    billed("billing.maxQueueSize", "JSON", 8),
    json(
        "dumpState.port",
        "10300; without dumpState none is shown",
        PORT,
        "Where the state is shown, on every address.",
    ),
    json(
        "dumpState.timeoutSeconds",
        "5",
        "a whole number from 1; more than 60 counts as 60",
        "How long gathering the state may take.",
    ),
];

const ANY: &str = "a whole number from 1";
const DAY: &str = "a whole number from 1; more than 86400 counts as 86400";
const PORT: &str = "a port from 1 to 65535";
const WAIT: &str = "a whole number from 1; more than 300 counts as 300";

/// A key of the `billing` part, as the billing crate says it; nothing is billed without one.
const fn billed(name: &'static str, kind: &'static str, index: usize) -> Key {
    let windlass_agent_billing::config::Key { default, range, meaning, .. } =
        windlass_agent_billing::config::KEYS[index];
    Key { name, kind, default, range, meaning }
}

/// The keys of the `billing` part, in the order of the billing crate: those of TOML, then JSON's.
pub(crate) const BILLING: [[&str; 2]; 9] = [
    ["billing.url", "billing.url"],
    ["billing.cpu_metric_name", "billing.cpuMetricName"],
    ["billing.active_time_metric_name", "billing.activeTimeMetricName"],
    ["billing.collect_every_seconds", "billing.collectEverySeconds"],
    ["billing.accumulate_every_seconds", "billing.accumulateEverySeconds"],
    ["billing.push_every_seconds", "billing.pushEverySeconds"],
    ["billing.push_request_timeout_seconds", "billing.pushRequestTimeoutSeconds"],
    ["billing.max_batch_size", "billing.maxBatchSize"],
    ["billing.max_queue_size", "billing.maxQueueSize"],
];
