//! The books of a cluster's nodes: what is reserved for their VMs, and which VM gets what is left.
//!
//! [`Books`] are those of one node: a plain value that is asked and answers, without a clock, I/O
//! or a lock. A [`Cluster`] says which node's books know a VM, and [`HostVms`] which VMs a host's own books
//! have; [`wire`] reads a request's bytes and
//! writes the answer's; [`trust`] says who may ask, a [`lease`] which of several plugins answers,
//! and [`certificates`] which certificates a plugin makes for itself. What is written to the API server, when, and after which
//! answer again, say [`writes`], [`ceiling_turn`], [`mending`] and [`settling`]. The shell in `windlass-plugin` gives books a lock per node and puts them
//! behind HTTP; a program tells them which VMs there are.

pub mod allotment;
pub mod ask;
mod backoff;
pub mod books;
mod by_name;
pub mod ceiling_turn;
pub mod ceilings;
pub mod certificates;
pub mod cluster;
pub mod conditions;
mod cover;
mod entry;
mod heard;
mod hold;
pub mod host_vms;
mod journal;
mod largest;
mod late;
pub mod lease;
pub mod mending;
pub mod neighbours;
mod offer;
pub mod pods;
pub mod rebuild;
pub mod settling;
pub mod stays;
mod summary;
mod tally;
pub mod trust;
pub mod wire;
pub mod writes;

pub use ask::{Ask, Granted, Proposed};
pub use books::{Books, BooksError};
pub use cluster::Cluster;
pub use hold::Hold;
pub use host_vms::HostVms;
pub use pods::Pods;
pub use rebuild::Rebuild;
pub use summary::Summary;
pub use windlass_protocol::{Axis, Held, Note, Shortage, VmRecord};
