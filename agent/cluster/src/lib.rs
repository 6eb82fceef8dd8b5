//! The agent in Kubernetes: which VMs its node has, and how each is reached.
//!
//! ```text
//!   pods of the node ─┬────────► Declared ──► windlass_agent::Agent ──► NeonVM driver
//!                     └────────► OwnPods ───►                      └──► QEMU driver, by a volume of the pod
//!   VM objects of the node ─┬──►   (core)                                  │
//!           ▲               └──► Machines ◄──────── a look ────────────────┤
//!           └─ label ── labels ◄─┘    └──────────── a write ──► API server ◄┘
//! ```
//!
//! Two watches, whatever the number of VMs on other nodes: pods are chosen by `spec.nodeName`, and VM objects by a label with the
//! name of the node. The agent sets that label itself, on each object whose VM its pods run ([`labels`]); the label chooses what
//! is watched and decides nothing. Which VMs there are is decided by [`windlass_agent_core::declared`] where an object has a VM, and by
//! [`windlass_agent_core::own_pods`] where the pod is the VM.

pub mod labels;
pub mod run;
pub mod source;
mod telling;

pub use run::{NodeAgent, run};
pub use source::{Source, start};
