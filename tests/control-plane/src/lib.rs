//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-scheduler, kube-controller-manager.
//!
//! [`ControlPlane`] is up in seconds, on ports of the loopback interface, and gone with its value or with
//! the test. No container runs there: a [`Kubelet`] does for the pods of a node what other programs see of a
//! kubelet. What fails here fails the test that called it, with the last lines of the programs' logs. The harness
//! links nothing of Windlass; what Windlass ships meets it as manifests and as programs.
//!
//! - [`plane`]: a control plane, its clients, `kubectl`.
//! - [`audit`]: what an API server writes down of the requests that it gets.
//! - [`identity`]: the users of the API server; RBAC decides what each may do.
//! - [`scheduler`]: kube-scheduler, with extenders.
//! - [`controllers`]: kube-controller-manager, with the controllers that a test names.
//! - [`space`]: a namespace of a test's own, and nodes that only its pods go to.
//! - [`kubelet`]: admits, runs, resizes and ends the pods of one node; its runtime starts the programs that pods name.
//! - [`neonvm`]: NeonVM's kinds, and its controller.
//! - [`way`]: a way to the API server on which requests go wrong.
//! - [`amounts`]: quantities of CPU and memory, as Kubernetes writes them.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test that called it")]

pub mod amounts;
pub mod audit;
pub mod controllers;
pub mod identity;
pub mod kubelet;
pub mod neonvm;
pub mod plane;
mod program;
mod programs;
pub mod scheduler;
pub mod space;
pub mod way;

pub use amounts::Amounts;
pub use audit::Asked;
pub use controllers::Controllers;
pub use identity::Identity;
pub use kubelet::Kubelet;
pub use plane::ControlPlane;
pub use program::Program;
pub use programs::path as program;
pub use scheduler::Scheduler;
pub use space::Space;
pub use way::Way;
