//! The plugin in Kubernetes: the books of all nodes, kept by watches, behind a stock kube-scheduler and its agents.
//!
//! ```text
//!   API server ── watch ──► objects ─► ClusterBooks ◄── permits ── agents
//!       ▲                                ▲   │
//!       │                  filter, prioritize, preempt (no API call)
//!       └──── Binding ◄── binder ◄── bind ── extender ◄── kube-scheduler
//! ```
//!
//! An answer to an agent above the recorded ceiling of its VM waits until [`ceilings`] has recorded a higher one.
//!
//! It decides nothing: [`windlass_plugin_core::Pods`] does. The commit point of a placement is `bind`: the books
//! reserve, and then the API server binds the very revision of the pod that was read. What became of a
//! binding whose answer was lost is settled by reading the pod ([`settler`]). Filter and prioritize are advice.
//! Who asks is known by a token ([`tokens`]) or a certificate ([`callers`]).
//! One plugin leads by a Lease ([`lease`]), and the others stand by: their books follow, and they answer nothing.
//! Without certificates of a person the leader makes its own ([`certificates`]).
//! On nodes that are shared with others, [`headroom`] has pods hold what VMs may grow into, or [`resizes`] has VMs' own pods
//! resized before the VMs.
//! Away from nodes that are too full, [`migrations`] has VMs move that may be moved.
//! Why a VM does not follow its load is written on its pod ([`conditions`]), and told to people who may see the pod
//! ([`operators`]), who are also told of other programs that act on such pods.
//! The client of the API server, what its answers mean and how objects are followed are in [`windlass_kit_kubernetes`].

mod access;
mod asked;
pub mod audit;
mod binder;
pub mod books;
pub mod callers;
pub mod ceilings;
pub mod certificates;
pub mod conditions;
pub mod extender;
mod fresh;
pub mod headroom;
pub mod leadership;
pub mod lease;
pub mod metrics;
mod migration_object;
pub mod migrations;
mod neighbours;
pub mod operators;
mod patches;
mod proposals;
pub mod rebuild;
pub mod resizes;
pub mod retries;
pub mod role;
pub mod settler;
pub mod takeover;
pub mod tokens;
mod waits;
pub mod watch;

pub use binder::Binder;
pub use books::ClusterBooks;
pub use callers::{AgentsOnly, Callers, SchedulerOnly};
pub use extender::Extender;
pub use fresh::Fresh;
pub use leadership::{Epoch, Leadership};
pub use lease::Election;
pub use operators::Operators;
pub use patches::Patches;
pub use tokens::Tokens;
