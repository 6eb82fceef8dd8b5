//! What a scaler hears, and what it asks for.
//!
//! A shell carries out each [`Action`] and reports: [`Event::Sent`] before the first byte
//! leaves, then exactly one answer of the same peer, or [`Event::Failed`] when it has hung up.
//! After `Failed`, a late answer is not reported. There is at most one action under way per
//! [`Peer`]. Calls from the informant come through `Scaler::call`, which answers at once.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;
use windlass_protocol::{
    AgentId, Bytes, Capabilities, ComputeUnit, InformantVersion, Peer, PluginVersion, Resize,
    Resources, Seen, Sequence, VmInfo,
};
use windlass_scaling::Sample;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The VM's file or annotations changed.
    Told(Arc<VmInfo>),
    /// It names another place for the guest's figures, or is read for the first time.
    FiguresMoved {
        /// Whether they are read elsewhere than where the informant says.
        elsewhere: bool,
    },
    /// It names another place for the informant, or for where that calls back.
    InformantMoved,
    /// A person gave an order.
    Ordered(Order),
    /// The hypervisor is connected, and says what it can do.
    Attached(Capabilities),
    /// From here on the action may take effect, whether or not its answer reaches us.
    Sent(Action),
    /// Answer to [`Action::Look`].
    Seen(Seen),
    /// Answer to [`Action::Resize`]: the hypervisor took it.
    Resized,
    /// Answer to [`Action::Measure`].
    Measured(Sample),
    /// Answer to [`Action::AskPlugin`].
    Permitted(Resources),
    /// The same, and the VM is about to be moved: until then it keeps its size.
    MustStay(Resources),
    /// Answer to [`Action::Register`].
    Registered {
        /// What is spoken in this session.
        version: InformantVersion,
        /// The port at which the guest's metrics are read.
        metrics_port: u16,
    },
    /// Answer to [`Action::CheckHealth`].
    Healthy,
    /// Answer to [`Action::Downscale`]: the guest can live with it.
    Agreed {
        /// The informant's words.
        status: String,
    },
    /// Answer to [`Action::Downscale`]: it cannot. Normal, not an error.
    Declined {
        /// The informant's words.
        status: String,
    },
    /// Answer to [`Action::Upscale`].
    Upscaled,
    /// Answer to [`Action::Unregister`].
    Unregistered,
    /// The shell has hung up on this peer.
    Failed(Peer, Failure),
    /// The hypervisor reported that the guest restarted.
    Reset,
    /// The hypervisor reported that something about the size changed.
    Changed,
    /// Memory that the host itself has available; `None` if it cannot be read.
    HostMemory(Option<Bytes>),
}

/// How a peer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer, or a broken one: it may or may not have happened.
    NoAnswer,
    /// A refusal by a status or, from a hypervisor, by an error: it did not happen.
    Refused(u16),
    /// The same, by a plugin that does not speak the version that was stated.
    Version,
    /// The same, by a plugin that has said that the VM is about to be moved.
    Moving,
}

/// What a person ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Follow the load.
    #[default]
    Follow,
    /// The host is frozen: keep what is there.
    Freeze,
    /// Move to this size, or keep the present one, and then let go. A limit of the host is put back as it
    /// was found.
    Release(Option<Resources>),
    /// The agent ends: let go of the VM as it is, with its limit, for the next agent to take over.
    Leave,
}

/// `follow`, `freeze`, `release at 2 vCPU / 1GiB`, `leave`.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follow => f.pad("follow"),
            Self::Freeze => f.pad("freeze"),
            Self::Release(Some(size)) => write!(f, "release at {size}"),
            Self::Release(None) => f.pad("release at the size it has"),
            Self::Leave => f.pad("leave"),
        }
    }
}

/// What the plugin is asked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The version that is stated.
    pub version: PluginVersion,
    /// What the VM has or should get.
    pub resources: Resources,
    /// What was last permitted, as far as it is relied on.
    pub last_permit: Option<Resources>,
    /// The step that sizes move in.
    pub unit: ComputeUnit,
}

/// What a scaler asks its shell to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the hypervisor what the VM has.
    Look,
    /// Ask the hypervisor for a size.
    Resize(Resize),
    /// Read the guest's metrics.
    Measure,
    /// Tell the plugin what the VM has or should get, and ask for a permit.
    AskPlugin(Asking),
    /// Open a session with the informant under this id.
    Register(AgentId),
    /// Ask whether the session stands.
    CheckHealth(AgentId),
    /// Ask the guest to be content with this. The number is zero in a session whose version
    /// does not number sizes: the message then is that of before v2.0.
    Downscale(AgentId, Sequence, Resources),
    /// Tell the guest that it has this, and may use it; the number is as above.
    Upscale(AgentId, Sequence, Resources),
    /// Close the session.
    Unregister(AgentId),
}

/// What an informant calls for, by the reference's call-backs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `GET /id`.
    Id,
    /// `POST /resume`: this session counts.
    Resume(AgentId),
    /// `POST /suspend`: another one counts.
    Suspend(AgentId),
    /// `POST /try-upscale`: the guest needs more at once.
    MoreResources {
        /// Which session is meant.
        expected: AgentId,
        /// More vCPU.
        cpu: bool,
        /// More memory.
        memory: bool,
    },
}

/// The answer to a [`Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAnswer {
    /// 200, with the session's id and the next sequence number.
    Ours(AgentId, Sequence),
    /// 404: there is no session.
    Unknown,
    /// 404: this session is not meant.
    Other(AgentId),
    /// 400: not in this state, or not in this version.
    NotNow(NotNow),
}

/// Why a session that is meant does not follow, in the reference's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotNow {
    /// It is told to run so soon after it was told to wait that this may be the older word.
    #[error("Cannot resume agent that has only just been suspended")]
    ResumesTooSoon,
    /// It is told to wait before it has registered.
    #[error("Cannot suspend agent that is not yet registered")]
    SuspendsUnregistered,
    /// It is called for more before it has registered, or was never told that it counts.
    #[error("Cannot process upscale while unconfirmed")]
    MoreUnconfirmed,
    /// It is called for more while another one counts.
    #[error("Cannot process upscale while suspended")]
    MoreSuspended,
    /// It is called for more, in a version that cannot.
    #[error("/try-upscale not supported for protocol version {0}")]
    MoreUnknown(InformantVersion),
}

// === impl Action ===

impl Action {
    /// The peer that carries it out.
    pub const fn peer(self) -> Peer {
        match self {
            Self::Look | Self::Resize(_) => Peer::Hypervisor,
            Self::Measure => Peer::Metrics,
            Self::AskPlugin(_) => Peer::Plugin,
            Self::Register(_)
            | Self::CheckHealth(_)
            | Self::Downscale(..)
            | Self::Upscale(..)
            | Self::Unregister(_) => Peer::Informant,
        }
    }
}

// === impl Event ===

impl Event {
    /// The peer that answers with this, or does not answer; `None` for what is neither.
    pub const fn peer(&self) -> Option<Peer> {
        match self {
            Self::Seen(_) | Self::Resized => Some(Peer::Hypervisor),
            Self::Measured(_) => Some(Peer::Metrics),
            Self::Permitted(_) | Self::MustStay(_) => Some(Peer::Plugin),
            Self::Registered { .. }
            | Self::Healthy
            | Self::Agreed { .. }
            | Self::Declined { .. }
            | Self::Upscaled
            | Self::Unregistered => Some(Peer::Informant),
            Self::Failed(peer, _) => Some(*peer),
            Self::Told(_)
            | Self::FiguresMoved { .. }
            | Self::InformantMoved
            | Self::Ordered(_)
            | Self::Attached(_)
            | Self::Sent(_)
            | Self::Reset
            | Self::Changed
            | Self::HostMemory(_) => None,
        }
    }
}
