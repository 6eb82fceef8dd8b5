//! A placement, and what becomes of it.

use crate::pods::freed::Freed;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Resources, VmName};

/// Room that is reserved for a pod on a node, before the pod is bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: VmName,
    /// Its uid, for the binding.
    pub uid: String,
    /// Its revision, for the binding: what is bound is this revision or nothing.
    pub revision: String,
    /// The node.
    pub node: String,
    /// What is reserved: the ceiling to record before the pod is bound.
    pub reserved: Resources,
    /// The pod was placed there before: an earlier binding may have taken effect.
    pub is_repeat: bool,
}

/// What became of a binding.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The API server said that the pod is bound.
    Bound,
    /// The API server refused the binding.
    Refused,
    /// The pod, as it was read from the API server after the binding was answered or given up; `None`:
    /// there is none of its name.
    Read(Option<Box<Pod>>),
}

/// What an outcome says of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The pod is bound where it was placed.
    Bound,
    /// The pod is not bound there and will not be by this placement.
    Released(Freed),
    /// A binding may still take effect: the pod is to be changed, so that its revision is another, and read
    /// again.
    Open,
    /// No placement of this pod is under way.
    Unknown,
}
