//! What is said over the host's socket, as JSON over HTTP.
//!
//! | method and path | body | answer |
//! |---|---|---|
//! | `GET /v1/state` | | `HostStatus` of the protocol crate |
//! | `GET /v1/host` | | [`HostFacts`] |
//! | `GET /v1/problems` | | a list of [`Report`] |
//! | `GET /v1/vms` | | a list of [`VmEntry`] |
//! | `GET /v1/changes` | | a list of [`Changed`] |
//! | `GET /v1/explain/{vm}` | | [`Explained`] |
//! | `POST /v1/freeze`, `/v1/thaw` | none | [`Done`] |
//! | `POST /v1/vm/{vm}/release` | [`Release`] | [`Done`] |
//! | `GET /v1/vm/{vm}/release` | | [`Releasing`] |
//! | `POST /v1/vm/{vm}/pause` | [`Pause`] | [`Done`] |
//! | `POST /v1/vm/{vm}/resume` | none | [`Done`] |
//! | `GET /v1/vm/{vm}/findings` | | [`VmFindings`] |
//! | `POST /v1/check` | [`Check`] | [`Checked`] |
//! | `GET /v1/log-level` | | [`LogFilter`] |
//! | `PUT /v1/log-level` | [`LogFilter`] | [`Done`] |
//!
//! Members of the group [`GROUP`] may open the socket, and order. Members of [`VIEW_GROUP`] may open
//! the one at [`view_socket`], which answers what is read (`GET`) and refuses the rest with 403.
//! The kernel tells the host which process sends an order; a request does not say it.
//! An order may carry the header `windlass-not-after` (milliseconds since 1970, by this machine's wall
//! clock): from that moment on it is refused with 503 and not done.
//! A refusal is [`Refusal`] with a status that says whose fault it is. CPUs are thousandths of
//! a vCPU, memory is bytes, moments are milliseconds since 1970, except where a text is said.
//! Requests are read strictly: a field that is not known is an error that names it.

use crate::problem::{Problem, Report};
use axum::http::HeaderName;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use windlass_drivers_qemu::check::Finding;
use windlass_protocol::status::{NodeStatus, Ordered, VmStatus};
use windlass_protocol::{
    Bytes, CpuLimit, Decision, MilliCpu, Moment, Note, Outcome, Resources, VmName,
};

/// The header of an order with the last moment at which it may take effect.
pub const NOT_AFTER: HeaderName = HeaderName::from_static("windlass-not-after");

/// The group whose members may order.
pub const GROUP: &str = "windlass";

/// The group whose members may look.
pub const VIEW_GROUP: &str = "windlass-view";

/// Where the host whose orders go to `socket` is looked at: `host.view.sock` beside `host.sock`.
pub fn view_socket(socket: &Path) -> PathBuf {
    socket.with_extension("view.sock")
}

/// What a host is, for as long as its process lives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Release of Windlass.
    pub version: String,
    /// When it started.
    pub started: Moment,
    /// The file it was configured by.
    pub config: PathBuf,
    /// Where it looks for VM files.
    pub vms_dir: PathBuf,
    /// Where it keeps what survives a restart.
    pub state_dir: PathBuf,
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub admin: String,
    /// How the CPU of VMs is limited, as its configuration says; a VM file may say otherwise.
    pub cpu_limit: Option<CpuLimit>,
}

/// A VM that the host knows, whether or not it is managed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmEntry {
    /// Which VM.
    pub name: VmName,
    /// How it stands.
    pub state: VmState,
    /// Its file, if it has one.
    pub file: Option<PathBuf>,
    /// The path of its monitor, if one is known.
    pub monitor: Option<PathBuf>,
    /// The most that it may have, as far as is known.
    pub size: Option<Resources>,
    /// Until when it is paused.
    pub paused_until: Option<Moment>,
    /// The last order about it, and who gave it.
    pub ordered: Option<Ordered>,
    /// What is wrong with its file.
    pub problems: Vec<Problem>,
}

/// What a host answers when it is asked to explain a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// When this was true.
    pub at: Moment,
    /// Which VM.
    pub vm: VmName,
    /// Decisions that are over, oldest first.
    pub decisions: Vec<Decision>,
    /// The decision that is under way.
    pub open: Option<Decision>,
    /// What the books answered this VM where there was less than it asked for, oldest first.
    pub notes: Vec<Note>,
    /// The VM at this moment; absent while it is not there, and once it is no longer managed.
    pub status: Option<VmStatus>,
    /// How the VM stands with the host; absent once the host has only its history.
    pub state: Option<VmState>,
    /// The path of its monitor, if one is known.
    pub monitor: Option<PathBuf>,
    /// The last orders about the VM and about the host, and who gave them.
    #[serde(default)]
    pub ordered: Vec<Ordered>,
    /// The books at this moment; absent where another process keeps them.
    pub node: Option<NodeStatus>,
    /// What is wrong with what Windlass was told about this VM, a sentence each.
    pub problems: Vec<String>,
    /// What other VMs have parked, and what stays reserved for them.
    #[serde(default)]
    pub parked: Vec<Parked>,
    /// What other VMs keep for a while, and when they return it.
    #[serde(default)]
    pub returning: Vec<Returning>,
    /// How the CPU of VMs is limited, as the host's configuration says; absent where that says nothing.
    pub cpu_limit: Option<CpuLimit>,
}

/// vCPUs that a VM has parked, and that stay reserved for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Which VM.
    pub vm: VmName,
    /// How much CPU.
    pub cpu: MilliCpu,
}

/// What a VM keeps for a while, though its signals no longer call for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    /// Which VM.
    pub vm: VmName,
    /// How much it is about to return.
    pub size: Resources,
    /// When it begins to, if its load stays as it is.
    pub from: Moment,
    /// Whether the host limits its CPU, so that the CPU which it returns leaves the books.
    #[serde(default)]
    pub limited: bool,
}

/// How a VM stands with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// It follows its load, or is watched.
    Managed,
    /// Its file was never valid; nothing is done.
    Invalid,
    /// A person lets go of it, and it is on its way to the size for that.
    Releasing,
    /// A person let go of it; it stays in the books until its hypervisor is gone.
    Released,
    /// Its file is gone; it stays in the books until its hypervisor is gone.
    Removed,
}

/// A size to let go of a VM with. An axis that is absent keeps what the VM has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Thousandths of a vCPU.
    pub cpu: Option<MilliCpu>,
    /// Bytes.
    pub mem: Option<Bytes>,
}

/// How far a release came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Releasing {
    /// When this was true.
    pub at: Moment,
    /// Which VM.
    pub vm: VmName,
    /// How far it came.
    pub state: ReleaseState,
    /// The size that it is to be let go with; absent: the one that it has.
    pub wanted: Option<Resources>,
    /// The most that it may have now, as far as is known.
    pub has: Option<Resources>,
    /// The VM, while it is on its way.
    pub status: Option<VmStatus>,
    /// Why it was given up; absent otherwise.
    pub why: Option<String>,
}

/// How far a release came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseState {
    /// The VM is on its way to the size, or about to be let go.
    UnderWay,
    /// The VM is let go, with the size that was ordered.
    Done,
    /// The size was not reached; the VM is let go with what it has.
    GivenUp,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogFilter {
    /// A level, or `target=level` parts.
    pub filter: String,
}

/// Until when a VM is to keep its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// RFC 3339, with an offset.
    pub until: String,
}

/// A VM file to be checked, before it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The name that the VM is to have; the file's stem.
    pub name: String,
    /// The file's content.
    pub text: String,
}

/// What the host thinks of a VM file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// What makes it invalid; empty if it is valid.
    pub problems: Vec<Problem>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Problem>,
    /// Where the file belongs.
    pub path: PathBuf,
    /// Whether a file stands there already.
    pub exists: bool,
    /// Whether a person let go of the VM: no file of it is followed until `windlass resume`.
    #[serde(default)]
    pub released: bool,
}

/// What can and cannot scale in a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmFindings {
    /// Which VM.
    pub vm: VmName,
    /// When its hypervisor was looked at, which is just before the host attached; or when it could
    /// last not be reached.
    pub at: Moment,
    /// What its hypervisor says, or why it says nothing.
    pub findings: Vec<Finding>,
    /// Whether its informant answers at this moment.
    pub informant: Option<Finding>,
    /// The VM at this moment; absent while it is not there, or not managed.
    pub status: Option<VmStatus>,
}

/// The last change of a VM's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Which VM.
    pub vm: VmName,
    /// When the change was complete, or was superseded.
    pub at: Moment,
    /// What the VM had before.
    pub from: Resources,
    /// What it had then.
    pub to: Resources,
}

/// What an order led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// In a sentence.
    pub message: String,
    /// Whether anything is different from before.
    pub changed: bool,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Which of a few kinds: `bad-request`, `unknown-vm`, …
    pub code: String,
    /// In a sentence that names the field, the value and the limit.
    pub message: String,
}

/// What is wrong with files, and with the node.
pub type Reports = Vec<Report>;

// === impl Changed ===

impl Changed {
    /// What a decision came to, if that is another size than before.
    pub(crate) fn by(decision: &Decision) -> Option<Self> {
        let (at, to) = match decision.outcome {
            Outcome::Reached { at } => (at, decision.goal),
            Outcome::Replaced { at, has } => (at, has),
            Outcome::Open | Outcome::Observed | Outcome::Interrupted { .. } => return None,
        };
        let from = decision.from;
        (to != from).then(|| Self { vm: decision.vm.clone(), at, from, to })
    }
}
