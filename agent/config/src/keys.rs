//! Every key of the agent's files. The operator's page is compared with these tables. VM files have
//! keys of their own, in the protocol crate.

use std::ops::Bound;
use std::time::Duration;
use windlass_agent::{Periods, Silence, Times};
use windlass_agent_billing::config::KEYS as BILLING;
use windlass_agent_host::basics::{
    ADMIN, CALLBACK_LISTEN, CALLBACK_PORTS, CPU_LIMIT, SOCKET, STATE_DIR, VMS_DIR,
};
use windlass_kit::addresses::{
    DUMP_STATE, DUMP_STATE_TIMEOUT, GATHERING, LONGEST_DUMP, USUAL_DUMP,
};
use windlass_protocol::config::Value::{Number, Seconds, Text, Time, Whole};
use windlass_protocol::config::{Field, Kind, Table, key};
use windlass_protocol::timing::LONGEST_ACT;
use windlass_protocol::{Target, unit_choice};

/// The keys of agent.toml.
pub const AGENT: Table = Table::toml(&[OWN, BILLING]);

/// The keys of the reference's configuration file, a JSON object.
pub const JSON: Table = Table::json(&[THEIRS, BILLING, THEIR_DUMP_STATE]);

// What the timers of both files mean.
const UNREACHED: &str = "The longest wait before an informant that was not reached is asked again; the \
    first is 1 s, each twice the one before.";
const REFUSED: &str = "The wait after an informant refused a session that it had opened; each twice \
    the one before, up to 5 s.";
const GAP: &str = "The least time from the start of one session to that of the next.";
const READ: &str = "How often a guest's metrics are read.";
const SILENT: &str = "An informant that has said nothing for so long is counted as silent in the \
    metrics, and the log says so.";
const TAKEN_UP: &str = "How long after a VM was taken up its informant is not yet counted as \
    silent.";
const STANDS: &str = "How long an informant may take to say that a session stands.";
const READING: &str = "How long reading a guest's metrics may take.";
const ANSWERING: &str = "How long the plugin may take to answer.";

// The ranges of both files.
const SECOND: Duration = Duration::from_secs(1);
/// The shortest time that anything may take.
const SHORTEST: Duration = Duration::from_millis(100);
/// An agent that waits less does not hear of an informant that cannot call back: that takes it 1.5 s.
const SHORTEST_REGISTER: Duration = Duration::from_secs(2);
const LONGEST_REGISTER: Duration = Duration::from_secs(30);
const LONGEST_ANSWER: Duration = Duration::from_secs(5);
const LONGEST_READ: Duration = Duration::from_secs(10);
/// The longest wait for an informant that may be told: what is away longer is a person's matter.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The most of a count of seconds that nothing depends on.
const DAY: Duration = Duration::from_secs(86_400);

const OWN: &[Field] = &[
    key(
        "plugin",
        Kind::Other {
            written: "a text",
            allowed: "http://IP:PORT or https://HOST:PORT, perhaps with a path; the names of https alone are looked up",
        },
        "Where permits are asked for.",
    )
    .otherwise("required, unless --plugin says it"),
    key(
        "plugin_ca",
        Kind::PATH,
        "Who signs the plugin's certificate, in PEM; read again when it changes.",
    )
    .otherwise("required with https://, else none"),
    key(
        "plugin_token",
        Kind::PATH,
        "The token that the agent shows the plugin, with https:// alone; read again when it changes.",
    )
    .otherwise("none is shown"),
    STATE_DIR
        .meaning(
            "Where freeze, pauses, history, ports and the VMs to be counted are kept over a restart; without [kubernetes].",
        )
        .or(Text("/var/lib/windlass-agent")),
    VMS_DIR.meaning("Where VM files are looked for; without [kubernetes]."),
    SOCKET.meaning("Where the command line reaches the agent; without [kubernetes]."),
    ADMIN,
    DUMP_STATE.or(Text("127.0.0.1:10300")),
    DUMP_STATE_TIMEOUT,
    CALLBACK_LISTEN.otherwise("K8S_POD_IP; without it 127.0.0.1"),
    CALLBACK_PORTS.note(", without the ports of admin and dump_state"),
    CPU_LIMIT.meaning(
        "How CPU that a VM has given back is kept from its guest, so that the plugin gets it back; without [kubernetes].",
    ),
    unit_choice::CPU
        .meaning("vCPUs of the step that sizes move in; the plugin's should say the same."),
    unit_choice::MEMORY
        .meaning("Memory of the step that sizes move in; the plugin's should say the same."),
    key(
        "times.register",
        within(SHORTEST_REGISTER, LONGEST_REGISTER),
        "How long an informant may take to register this agent; it calls back meanwhile.",
    )
    .or(Time(Times::USUAL.register)),
    key(
        "times.unregister",
        within(SHORTEST, Duration::from_secs(10)),
        "How long taking leave of an informant may take.",
    )
    .or(Time(Times::USUAL.unregister)),
    key("times.health", within(SHORTEST, LONGEST_ANSWER), STANDS).or(Time(Times::USUAL.health)),
    key(
        "times.size",
        within(SHORTEST, LONGEST_ACT),
        "How long an informant may take for its word on a size.",
    )
    .or(Time(Times::USUAL.size))
    .note("; hand-over between agents counts on no more"),
    key("times.metrics", within(SHORTEST, LONGEST_READ), READING).or(Time(Times::USUAL.metrics)),
    key("times.permit", within(SHORTEST, LONGEST_ACT), ANSWERING)
        .or(Time(Times::USUAL.permit))
        .note("; hand-over between agents counts on no more"),
    key(
        "periods.health",
        within(SECOND, Periods::LONGEST_HEALTH),
        "How often it is asked whether a session stands.",
    )
    .or(Time(Periods::USUAL.health))
    .note("; an agent acts for 8 s after it sent a check that was answered"),
    key("periods.metrics", within(SECOND, Periods::LONGEST_METRICS), READ)
        .or(Time(Periods::USUAL.metrics))
        .note("; figures are old after 15 s"),
    key("periods.register_retry", within(SECOND, LONGEST_WAIT), UNREACHED)
        .or(Time(Periods::USUAL.register_retry)),
    key("periods.session_retry", within(SHORTEST, LONGEST_WAIT), REFUSED)
        .or(Time(Periods::USUAL.session_retry)),
    key("periods.session_gap", within(SHORTEST, LONGEST_WAIT), GAP)
        .or(Time(Periods::USUAL.session_gap)),
    key("silence.after", within(SECOND, DAY), SILENT).or(Time(Silence::USUAL.after)),
    key("silence.grace", within(SECOND, DAY), TAKEN_UP).or(Time(Silence::USUAL.grace)),
    key(
        "kubernetes.node",
        Kind::Text { empty: false },
        "The node whose VMs are scaled; with the table [kubernetes] they are those of a cluster's objects, and no files are read.",
    )
    .otherwise("--node-name; with [kubernetes] one of both is required"),
    key("kubernetes.kubeconfig", Kind::PATH, "How the API server is reached, and as whom.")
        .otherwise("by the service account of the pod"),
    key(
        "kubernetes.pods_dir",
        Kind::PATH,
        "The kubelet's folder of pods, usually /var/lib/kubelet/pods, as the agent sees it; VMs of QEMU in pods have their monitors below it.",
    )
    .otherwise("no such VM is scaled"),
];

/// Keys that would have no effect where the table `[kubernetes]` stands, and what is said of each.
pub(crate) const WITHOUT_CLUSTER: [(&str, &str); 4] = [
    (
        "state_dir",
        "must not be there with [kubernetes]: the agent of a node keeps nothing over a restart",
    ),
    (
        "vms_dir",
        "must not be there with [kubernetes]: the agent of a node reads no VM files, its VMs are the API server's",
    ),
    (
        "socket",
        "must not be there with [kubernetes]: the agent of a node serves no socket; windlass top --server asks the plugin",
    ),
    (
        "cpu_limit",
        "must not be there with [kubernetes]: the spec of a VM, or the limits.cpu of its container, limits its CPU",
    ),
];

const THEIRS: &[Field] = &[
    key(
        "scaling.requestTimeoutSeconds",
        Kind::Whole { least: 1, most: i64::MAX },
        "Not used: there is no Kubernetes to ask.",
    )
    .or(Whole(10)),
    key(
        "scaling.defaultConfig.loadAverageFractionTarget",
        Kind::Number { from: Bound::Included(0.0), to: Bound::Excluded(2.0) },
        "The load per vCPU that is aimed at, where a VM file states none.",
    )
    .or(Number(Target::USUAL.load_average))
    .note("; 0 counts as 0.9"),
    key("informant.serverPort", Kind::Port, "Not used: a VM file says where its informant is.")
        .or(Whole(10_301)),
    key("informant.retryServerMinWaitSeconds", counts(1, SECOND, LONGEST_WAIT), GAP)
        .or(Seconds(Periods::REFERENCE.session_gap)),
    key("informant.retryServerNormalWaitSeconds", counts(1, SECOND, LONGEST_WAIT), REFUSED)
        .or(Seconds(Periods::REFERENCE.session_retry)),
    key("informant.registerRetrySeconds", counts(1, SECOND, LONGEST_WAIT), UNREACHED)
        .or(Seconds(Periods::REFERENCE.register_retry)),
    key("informant.requestTimeoutSeconds", counts(1, SECOND, LONGEST_ANSWER), STANDS)
        .or(Seconds(Times::USUAL.health)),
    key(
        "informant.registerTimeoutSeconds",
        counts(1, SHORTEST_REGISTER, LONGEST_REGISTER),
        "How long an informant may take to register this agent.",
    )
    .or(Seconds(Times::USUAL.register)),
    key(
        "informant.downscaleTimeoutSeconds",
        counts(1, SECOND, LONGEST_ACT),
        "How long an informant may take for its word on a size, either way.",
    )
    .or(Seconds(Times::USUAL.size))
    .note(", on which hand-over counts"),
    key("informant.unhealthyAfterSilenceDurationSeconds", counts(1, SECOND, DAY), SILENT)
        .or(Seconds(Silence::USUAL.after)),
    key("informant.unhealthyStartupGracePeriodSeconds", counts(1, SECOND, DAY), TAKEN_UP)
        .or(Seconds(Silence::USUAL.grace)),
    key("metrics.loadMetricPrefix", SOME_TEXT, "Not used: both are read, whichever the guest has.")
        .or(Text("host_")),
    // The reference does not look at it, and takes zero.
    key("metrics.requestTimeoutSeconds", counts(0, SECOND, LONGEST_READ), READING)
        .or(Seconds(Times::USUAL.metrics)),
    key("metrics.secondsBetweenRequests", counts(1, SECOND, Periods::LONGEST_METRICS), READ)
        .or(Seconds(Periods::REFERENCE.metrics))
        .note(", since figures are old after 15 s"),
    key("scheduler.schedulerName", SOME_TEXT, "Not used: --plugin says where the plugin is.")
        .otherwise("none"),
    key("scheduler.requestTimeoutSeconds", counts(1, SECOND, LONGEST_ACT), ANSWERING)
        .or(Seconds(Times::USUAL.permit))
        .note(", on which hand-over counts"),
    key("scheduler.requestPort", Kind::Port, "Not used: --plugin says where the plugin is.")
        .or(Whole(10_299)),
];

const THEIR_DUMP_STATE: &[Field] = &[
    key("dumpState.port", Kind::Port, "Where the state is shown, on every address.")
        .or(Whole(10_300))
        .otherwise("without dumpState none is shown"),
    key("dumpState.timeoutSeconds", counts(1, SECOND, LONGEST_DUMP), GATHERING)
        .or(Seconds(USUAL_DUMP)),
];

const SOME_TEXT: Kind = Kind::Text { empty: false };

const fn within(least: Duration, most: Duration) -> Kind {
    Kind::Time { least, most }
}

/// Whole seconds from `least`; what is not within the other two counts as the nearer.
const fn counts(least: u64, from: Duration, to: Duration) -> Kind {
    Kind::Clamped { least, from: from.as_secs(), to: to.as_secs() }
}
