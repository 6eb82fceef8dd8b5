//! kube-scheduler as Kubernetes ships it, with the extenders that a test gives it.
//!
//! Schedulers with different names run beside each other in one control plane: each places the pods that name
//! it in `schedulerName`.

use crate::identity::Identity;
use crate::plane::ControlPlane;
use crate::program::{Program, ports};
use serde_json::{Value, json};

/// A running kube-scheduler. It ends with its value.
#[derive(Debug)]
pub struct Scheduler {
    program: Program,
}

// === impl Scheduler ===

impl Scheduler {
    /// The name of the scheduler that places pods that name no other.
    pub const DEFAULT: &'static str = "default-scheduler";

    /// Starts a scheduler of this name, with `extenders` of a `KubeSchedulerConfiguration`, and waits until it
    /// listens.
    ///
    /// # Panics
    /// With what it said last, if it ends.
    pub async fn start(plane: &ControlPlane, name: &str, extenders: &[Value]) -> Self {
        Self::start_by(plane, name, extenders, json!({})).await
    }

    /// The same, and its own requests to the API server wait for no others: it sends 50 in a second otherwise.
    ///
    /// # Panics
    /// With what it said last, if it ends.
    pub async fn start_without_limits(
        plane: &ControlPlane,
        name: &str,
        extenders: &[Value],
    ) -> Self {
        Self::start_by(plane, name, extenders, json!({"qps": 10_000, "burst": 10_000})).await
    }

    /// An extender in a scheduler's configuration that has all verbs and is reached there, without TLS.
    pub fn extender_at(at: &str) -> Value {
        json!({
            "urlPrefix": format!("http://{at}"),
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "weight": 1,
            "nodeCacheCapable": true,
            "httpTimeout": "8s",
        })
    }

    /// The same by a whole `KubeSchedulerConfiguration`, as it stands in a file.
    ///
    /// # Panics
    /// With what it said last, if it ends.
    pub async fn start_with(plane: &ControlPlane, name: &str, config: &str) -> Self {
        let config = plane.folder().put(&format!("{name}.yaml"), config);
        let [port] = ports();
        let log = plane.folder().at(&format!("{name}.log"));
        let mut program = Program::logging(
            "kube-scheduler",
            log,
            [
                format!("--config={}", config.display()),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
            ],
        );
        plane.until_listens("the scheduler listens", &mut program, port).await;
        Self { program }
    }

    async fn start_by(
        plane: &ControlPlane,
        name: &str,
        extenders: &[Value],
        mut connection: Value,
    ) -> Self {
        connection["kubeconfig"] = json!(plane.kubeconfig(Identity::Scheduler));
        let config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": false},
            "profiles": [{"schedulerName": name}],
            // A pod that was refused is looked at again soon.
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "extenders": extenders,
        });
        // JSON is YAML.
        Self::start_with(plane, name, &config.to_string()).await
    }

    /// The process.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }
}
