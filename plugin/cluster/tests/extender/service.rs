//! The extender's service with the books of two nodes, n1 of 8 vCPUs and n2 of 2, without an API server.

use axum::body::to_bytes;
use axum::response::Response;
use http::{Method, Request, StatusCode};
use kube::{Client, Config};
use serde_json::{Value, json};
use windlass_kit::clock::Clock;
use windlass_kit::server::{OpenSince, Service};
use windlass_plugin::Endpoint;
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::{Binder, ClusterBooks, Epoch, Extender, Leadership};
use windlass_plugin_core::pods::Pools;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, Resources};

/// Nothing listens there: the port of the discard protocol.
const NO_API_SERVER: &str = "http://127.0.0.1:9";

/// An extender that a test asks.
#[derive(Clone)]
pub(crate) struct Asked {
    extender: Extender,
    books: ClusterBooks,
}

// === impl Asked ===

impl Asked {
    /// Of books that know no node and no pod.
    pub(crate) fn not_rebuilt() -> Self {
        Self::led_by(Leadership::sole(Epoch(1)))
    }

    /// The same, of a plugin that leads or stands by.
    fn led_by(leadership: Leadership) -> Self {
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).unwrap();
        let terms = Terms { unit, reserve: Resources::ZERO, pools: Pools::default() };
        let clock = Clock::starting_at(Moment::from_millis(0));
        let books = ClusterBooks::new(terms, clock, leadership);
        let client = Client::try_from(Config::new(NO_API_SERVER.parse().unwrap())).unwrap();
        let counts = Counts::default();
        let binder = Binder::new(client, books.clone(), counts.bindings.clone());
        let extender = Extender::new(books.clone(), binder, counts.calls.clone());
        Self { extender, books }
    }

    /// Of books that know both nodes.
    pub(crate) fn rebuilt() -> Self {
        Self::not_rebuilt().listed()
    }

    /// The same, of a plugin that stands by.
    pub(crate) fn standing_by() -> Self {
        Self::led_by(Leadership::standby()).listed()
    }

    /// The plugin leads no more.
    pub(crate) fn resigns(&self) {
        self.books.leadership().resign();
    }

    /// What is reserved for VMs on a node, in thousandths of a vCPU.
    pub(crate) fn reserved(&self, node: &str) -> Value {
        let dump = serde_json::to_value(self.books.dump()).unwrap();
        let nodes = dump["nodes"].as_array().unwrap();
        nodes.iter().find(|it| it["name"] == node).unwrap()["reserved"]["cpu"].clone()
    }

    fn listed(self) -> Self {
        let asked = self;
        let node = |name: &str, cpu: &str| {
            let allocatable = json!({"cpu": cpu, "memory": "64Gi"});
            let node = json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}});
            serde_json::from_value(node).unwrap()
        };
        asked.books.nodes_listed(vec![node("n1", "8"), node("n2", "2")]);
        asked.books.pods_listed(Vec::new());
        asked
    }

    /// A pod that is no VM is on a node.
    pub(crate) fn bound(&self, name: &str, cpu: &str, node: &str) {
        let mut object = pod(name, cpu);
        object["spec"]["nodeName"] = json!(node);
        object["metadata"]["labels"] = json!({});
        let pod: Pod = serde_json::from_value(object).unwrap();
        self.books.pod_seen(pod);
    }

    /// A pod that runs the VM of another object and requests one vCPU is on a node. Nothing is recorded of such a VM.
    pub(crate) fn bound_vm(&self, name: &str, node: &str) {
        let mut object = pod(name, "1");
        object["metadata"]["labels"]["vm.neon.tech/name"] = json!("object");
        object["spec"]["nodeName"] = json!(node);
        let pod: Pod = serde_json::from_value(object).unwrap();
        self.books.pod_seen(pod);
    }

    /// A VM's agent asks for this many vCPUs and GiB, and says how many it was permitted; what it is permitted.
    pub(crate) async fn permit(&self, vm: &str, last: Option<u64>, size: u64) -> u64 {
        let answer = self.permitted(7, vm, last, size).await;
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        answer["permit"]["vCPUs"].as_u64().unwrap()
    }

    /// The answer to an agent that speaks this version: 7, or 3, where memory counts in slots of 128 MiB.
    pub(crate) async fn permitted(
        &self,
        version: u32,
        vm: &str,
        last: Option<u64>,
        size: u64,
    ) -> Response {
        let resources = |size: u64| match version {
            7 => json!({"vCPUs": size, "mem": format!("{size}Gi")}),
            _ => json!({"vCPUs": size, "mem": size * 8}),
        };
        let body = json!({
            "protoVersion": version,
            "pod": {"namespace": "tenants", "name": vm},
            "computeUnit": resources(1),
            "resources": resources(size),
            "lastPermit": last.map(resources),
            "metrics": (version < 7).then(|| json!({"loadAvg1M": 0.5, "loadAvg5M": 0.5})),
        });
        let body = axum::body::Bytes::from(body.to_string());
        let endpoint = Endpoint(self.books.clone());
        endpoint.answer(Request::post("/").body(body).unwrap(), OpenSince::now()).await
    }

    /// The answer to a request that is understood.
    pub(crate) async fn ok(&self, path: &str, body: &Value) -> Value {
        let (status, said) = self.raw(Method::POST, path, &body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{said}");
        serde_json::from_str(&said).unwrap()
    }

    /// The answer, as it comes.
    pub(crate) async fn raw(&self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(axum::body::Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let answer = self.extender.answer(request, OpenSince::now()).await;
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

/// A pod that is a VM and requests this much CPU, as the scheduler sends it.
pub(crate) fn pod(name: &str, cpu: &str) -> Value {
    let requests = json!({"cpu": cpu, "memory": "1Gi"});
    json!({
        "metadata": {
            "namespace": "tenants", "name": name, "uid": format!("uid of {name}"),
            "resourceVersion": "1", "labels": {"windlass.dev/enabled": "true"},
        },
        "spec": {"containers": [{"name": "vm", "resources": {"requests": requests}}]},
    })
}
