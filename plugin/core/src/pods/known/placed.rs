//! Whether the books placed a pod, and what is known of its binding since.
//!
//! ```text
//!           place                 bound, or read there          shown by the watch
//!   No ───────────────► UnderWay ──────────────────────► Bound ────────────────────► Shown
//!   ▲                       │                              │
//!   └───────────────────────┴──────────────────────────────┘
//!     refused, or on no node, on another, ended, gone
//! ```
//!
//! A place that an API server that went back does not know any more is *lost*: the VM may be there, until its kubelet looks.

use crate::pods::share::Share;
use std::sync::Arc;
use windlass_protocol::Resources;
use windlass_protocol::pod::Pod;

/// A binding is sent for this many revisions of a pod, the last of which are remembered.
const SENT: usize = 8;

/// Whether these books placed a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// They did not.
    No,
    /// It may be bound, or become so: no answer tells.
    UnderWay {
        node: Arc<str>,
        reserved: Resources,
        /// Revisions of the pod for which a binding was sent.
        sent: Vec<String>,
        attempts: u32,
    },
    /// The API server said that it is bound, or the pod was read there; the watch does not show it yet.
    Bound { node: Arc<str>, reserved: Resources },
    /// It is bound where it was placed, and shows it.
    Shown { node: Arc<str>, reserved: Resources },
    /// It was on this node, by what is not so any more: where it is placed there again, its VM may have what it had.
    Lost { node: Arc<str>, reserved: Resources },
}

// === impl Placed ===

impl Placed {
    /// The node where it was placed, while the pod does not show it.
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::UnderWay { node, .. } | Self::Bound { node, .. } => Some(node),
            Self::No | Self::Shown { .. } | Self::Lost { .. } => None,
        }
    }

    /// What may be on this node yet, which the pod lost.
    pub(crate) fn lost(&self, from: &str) -> Resources {
        match self {
            Self::Lost { node, reserved } if **node == *from => *reserved,
            Self::No
            | Self::UnderWay { .. }
            | Self::Bound { .. }
            | Self::Shown { .. }
            | Self::Lost { .. } => Resources::ZERO,
        }
    }

    pub(super) fn node_mut(&mut self) -> Option<&mut Arc<str>> {
        match self {
            Self::UnderWay { node, .. }
            | Self::Bound { node, .. }
            | Self::Shown { node, .. }
            | Self::Lost { node, .. } => Some(node),
            Self::No => None,
        }
    }

    /// What was reserved for it.
    pub(crate) const fn reserved(&self) -> Option<Resources> {
        match self {
            Self::UnderWay { reserved, .. }
            | Self::Bound { reserved, .. }
            | Self::Shown { reserved, .. } => Some(*reserved),
            Self::No | Self::Lost { .. } => None,
        }
    }

    /// Whether the API server said that it is bound.
    pub(crate) const fn is_bound(&self) -> bool {
        match self {
            Self::Bound { .. } | Self::Shown { .. } => true,
            Self::No | Self::UnderWay { .. } | Self::Lost { .. } => false,
        }
    }

    /// The API server said that it is bound.
    pub(crate) fn bind(&mut self) {
        if let Self::UnderWay { node, reserved, .. } = self {
            *self = Self::Bound { node: Arc::clone(node), reserved: *reserved };
        }
    }

    /// One more binding is sent, for this revision of the pod.
    pub(crate) fn send(&mut self, revision: &str) {
        if let Self::UnderWay { sent, attempts, .. } = self {
            *attempts = attempts.saturating_add(1);
            sent.retain(|known| known != revision);
            sent.push(revision.to_owned());
            let many = sent.len().saturating_sub(SENT);
            sent.drain(..many);
        }
    }

    /// The watch or a list shows the pod.
    pub(super) fn shown(self, pod: &Pod) -> Self {
        match (self, &pod.node) {
            (Self::No, _) | (Self::Shown { .. }, None) | (Self::Lost { .. }, Some(_)) => Self::No,
            (_, _) if pod.phase.is_ended() => Self::No,
            (placed @ (Self::UnderWay { .. } | Self::Bound { .. } | Self::Lost { .. }), None) => {
                placed
            }
            (
                Self::UnderWay { node, reserved, .. }
                | Self::Bound { node, reserved }
                | Self::Shown { node, reserved },
                Some(on),
            ) => {
                if *node == **on {
                    Self::Shown { node, reserved }
                } else {
                    Self::No
                }
            }
        }
    }

    /// The pod was read.
    pub(super) fn read(self, pod: &Pod) -> Self {
        match (self, &pod.node) {
            (_, _) if pod.phase.is_ended() => Self::No,
            (Self::UnderWay { node, reserved, .. } | Self::Bound { node, reserved }, Some(on)) => {
                let reserved = if *node == **on { reserved } else { Share::of(pod).most() };
                Self::Bound { node: on.as_str().into(), reserved }
            }
            (Self::Lost { .. }, Some(_)) => Self::No,
            (placed, _) => placed,
        }
    }
}
