//! kube-controller-manager as Kubernetes ships it, with the controllers that a test names.
//!
//! Each controller acts as a service account of its own, with the role that Kubernetes gives it. Nodes of tests have no
//! heartbeat: leave `node-lifecycle-controller` out.

use crate::identity::Identity;
use crate::plane::ControlPlane;
use crate::program::{Program, ports};

/// Running controllers. They end with their value.
#[derive(Debug)]
pub struct Controllers {
    program: Program,
}

// === impl Controllers ===

impl Controllers {
    /// What makes pods of workloads, and takes away what is without its owner.
    pub const WORKLOADS: [&str; 4] = [
        "deployment-controller",
        "replicaset-controller",
        "statefulset-controller",
        "garbage-collector-controller",
    ];

    /// Starts these controllers, and waits until their program listens.
    ///
    /// # Panics
    /// With what it said last, if it ends.
    pub async fn start(plane: &ControlPlane, names: &[&str]) -> Self {
        let [port] = ports();
        let kubeconfig = plane.kubeconfig(Identity::Controllers);
        let log = plane.folder().at("kube-controller-manager.log");
        let mut program = Program::logging(
            "kube-controller-manager",
            log,
            [
                format!("--kubeconfig={}", kubeconfig.display()),
                format!("--controllers={}", names.join(",")),
                "--use-service-account-credentials=true".to_owned(),
                "--leader-elect=false".to_owned(),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
            ],
        );
        plane.until_listens("the controllers listen", &mut program, port).await;
        Self { program }
    }

    /// The process.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }
}
