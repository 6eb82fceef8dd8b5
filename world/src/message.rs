//! What is said between the parts: the bytes that production's codecs write and read.
//!
//! What goes to a monitor is not encoded: a driver is spoken to in values.

use std::fmt;
use std::net::SocketAddr;
use windlass_agent_core::wire::{
    Offered, Said, from_informant, from_plugin, to_informant, to_plugin,
};
use windlass_agent_core::{Action, Event, Failure, metrics_text};
use windlass_protocol::informant::Endpoint;
use windlass_protocol::{Moment, Peer, VmInfo};
use windlass_scaling::Sample;

/// A body, told as text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Body(pub(crate) Vec<u8>);

/// A request of an agent.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Monitor(Order),
    Metrics,
    Permit(Body),
    Informant(Endpoint, Body),
}

/// What is said to a monitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) action: Action,
    /// When it left.
    pub(crate) sent: Moment,
    /// Over which of the connections to its monitor.
    pub(crate) connection: u64,
    /// The guest had agreed to it then.
    pub(crate) agreed: bool,
    /// The guest had restarted, and the agent had not heard of it.
    pub(crate) unheard: bool,
}

/// What comes back to an agent.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Of a monitor.
    Event(Event),
    /// Of anybody else: a status and a body.
    Http(u16, Body),
    Failed(Failure),
}

// === impl Request ===

impl Request {
    /// The request that an action is; `None` if the wire cannot say it. What goes to a monitor is
    /// an [`Order`].
    pub(crate) fn of(
        action: Action,
        info: &VmInfo,
        sample: Option<&Sample>,
        offered: Offered,
        address: SocketAddr,
    ) -> Option<Self> {
        match action {
            Action::Look | Action::Resize(_) => None,
            Action::Measure => Some(Self::Metrics),
            Action::AskPlugin(asking) => {
                to_plugin(info, &asking, sample).ok().map(|body| Self::Permit(Body(body)))
            }
            Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Upscale(..)
            | Action::Unregister(_) => {
                let Said { endpoint, body } = to_informant(action, &address.to_string(), offered)?;
                Some(Self::Informant(endpoint, Body(body)))
            }
        }
    }

    pub(crate) const fn peer(&self) -> Peer {
        match self {
            Self::Monitor(_) => Peer::Hypervisor,
            Self::Metrics => Peer::Metrics,
            Self::Permit(_) => Peer::Plugin,
            Self::Informant(..) => Peer::Informant,
        }
    }
}

// === impl Reply ===

impl Reply {
    /// What it means to the agent that asked for `action` at this moment: figures are no older than that.
    pub(crate) fn event(
        self,
        action: Action,
        info: &VmInfo,
        offered: Offered,
        asked_at: Moment,
    ) -> Event {
        let peer = action.peer();
        let (status, Body(body)) = match self {
            Self::Event(event) => return event,
            Self::Failed(failure) => return Event::Failed(peer, failure),
            Self::Http(status, body) => (status, body),
        };
        let heard = match (peer, action) {
            (Peer::Metrics, _) if status == 200 => {
                let text = String::from_utf8_lossy(&body);
                return Event::Measured(metrics_text::parse(&text, asked_at));
            }
            (Peer::Plugin, Action::AskPlugin(asking)) => from_plugin(info, &asking, status, &body),
            (Peer::Informant, _) => from_informant(action, offered, status, &body),
            (Peer::Metrics | Peer::Hypervisor | Peer::Plugin, _) => {
                return Event::Failed(peer, Failure::Refused(status));
            }
        };
        heard.unwrap_or_else(|unheard| Event::Failed(peer, unheard.failure()))
    }
}

// === impl Body ===

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(String::from_utf8_lossy(&self.0).trim_end())
    }
}
