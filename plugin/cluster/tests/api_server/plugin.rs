//! The parts of the plugin, run beside a test.

use crate::between::{Between, pods_of, without_pods};
use crate::headroom;
use crate::resizes;
use axum::body::{Bytes, to_bytes};
use futures_util::future::try_join_all;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::LazyLock;
use tokio_util::sync::CancellationToken;
use windlass_control_plane::space::node_of;
use windlass_control_plane::{ControlPlane, Identity, Space};
use windlass_kit::admin::Readiness;
use windlass_kit::clock::Clock;
use windlass_kit::server::{OpenSince, Service};
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::{Followed, Following};
use windlass_plugin::Endpoint;
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::headroom::Headroom;
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::migrations::{self, Migrating};
use windlass_plugin_cluster::resizes::Resizes;
use windlass_plugin_cluster::watch;
use windlass_plugin_cluster::{
    Binder, ClusterBooks, Epoch, Extender, Leadership, Patches, ceilings, retries, settler,
    takeover,
};
use windlass_plugin_core::pods::{MigrationTerms, Mode, Pool, Pools};
use windlass_protocol::annotations::CEILING;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::{Bytes as Memory, ComputeUnit, MilliCpu, Resources};
use windlass_testkit::wait;

/// A plugin, and the pods and nodes that a test makes for it.
pub(crate) struct Plugin<'a> {
    pub(crate) between: Between,
    pub(crate) space: Space<'a>,
    pub(crate) books: ClusterBooks,
    extender: Extender,
}

/// The labels of a pod that is a VM.
static ENABLED: LazyLock<Value> = LazyLock::new(|| json!({"windlass.dev/enabled": "true"}));

type Part = Pin<Box<dyn Future<Output = Result<(), std::convert::Infallible>>>>;

// === impl Plugin ===

impl<'a> Plugin<'a> {
    /// Runs a test beside a plugin that has listed all nodes and pods.
    pub(crate) async fn beside(plane: &'a ControlPlane, test: impl AsyncFnOnce(&Self)) {
        let leadership = Leadership::sole(Epoch(1));
        Self::led_by(plane, leadership, async |plugin| {
            plugin.answers().await;
            test(plugin).await;
        })
        .await;
    }

    /// The same, beside a plugin that may stand by.
    pub(crate) async fn led_by(
        plane: &'a ControlPlane,
        leadership: Leadership,
        test: impl AsyncFnOnce(&Self),
    ) {
        let space = Space::new(plane).await;
        Self::with(plane, space, Pools::default(), leadership, without_pods(), test).await;
    }

    /// The same, where nodes with the label `pool: shared` have headroom, and of those with `pool: resized` VMs' pods are
    /// resized; the namespace is the plugin's own.
    pub(crate) async fn sharing(plane: &'a ControlPlane, test: impl AsyncFnOnce(&Self)) {
        let space = Space::new(plane).await;
        headroom::own(&space).await;
        resizes::own(&space).await;
        Self::sharing_in(plane, space, test).await;
    }

    /// The same in this namespace, whose pods an earlier plugin may have had.
    pub(crate) async fn sharing_in(
        plane: &'a ControlPlane,
        space: Space<'a>,
        test: impl AsyncFnOnce(&Self),
    ) {
        let (pools, leadership) = (headroom::pools(space.name()), Leadership::sole(Epoch(1)));
        let taken_over = pods_of(space.name(), plane.client(Identity::Plugin).await);
        Self::with(plane, space, pools, leadership, taken_over, async |plugin| {
            plugin.answers().await;
            test(plugin).await;
        })
        .await;
    }

    /// The same, where VMs leave this test's nodes above three quarters.
    pub(crate) async fn moving(
        plane: &'a ControlPlane,
        terms: MigrationTerms,
        test: impl AsyncFnOnce(&Self),
    ) {
        let space = Space::new(plane).await;
        let labels = [("windlass.dev/space".to_owned(), space.name().to_owned())].into();
        let (name, mode, watermark) = ("own".to_owned(), Mode::Dedicated, Some(750));
        let pool = Pool { name, labels, mode, watermark };
        let pools = Pools { pools: vec![pool], migration: terms, ..Pools::default() };
        Self::with(
            plane,
            space,
            pools,
            Leadership::sole(Epoch(1)),
            without_pods(),
            async |plugin| {
                plugin.answers().await;
                test(plugin).await;
            },
        )
        .await;
    }

    /// The same, where the objects of NeonVM's VMs are followed.
    pub(crate) async fn following_objects(
        plane: &'a ControlPlane,
        space: Space<'a>,
        test: impl AsyncFnOnce(&Self),
    ) {
        let pools = Pools { follows_objects: true, ..Pools::default() };
        let leadership = Leadership::sole(Epoch(1));
        Self::with(plane, space, pools, leadership, without_pods(), async |plugin| {
            plugin.answers().await;
            test(plugin).await;
        })
        .await;
    }

    async fn with(
        plane: &'a ControlPlane,
        space: Space<'a>,
        pools: Pools,
        leadership: Leadership,
        taken_over: Client,
        test: impl AsyncFnOnce(&Self),
    ) {
        let admin = plane.client(Identity::Admin).await;
        let between = Between::new(plane.client(Identity::Plugin).await, admin);
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Memory::from_gib(1)).unwrap();
        let (moves, follows) = (pools.move_vms(), pools.follows_objects);
        let terms = Terms { unit, reserve: Resources::ZERO, pools };
        let books = ClusterBooks::new(terms, Clock::system(), leadership);
        let counts = Counts::default();
        let binder = Binder::new(between.client(), books.clone(), counts.bindings.clone());
        let extender = Extender::new(books.clone(), binder.clone(), counts.calls.clone());
        let mut parts = parts(&between, &books, binder, &counts, space.name(), taken_over);
        if moves {
            parts.extend(movers(&between, &books, &counts));
        }
        if follows {
            parts.push(follower(&between, &books, &counts));
        }
        let plugin = Self { between, space, extender, books };
        let tested = test(&plugin);
        tokio::select! {
            () = tested => {}
            ended = try_join_all(parts) => panic!("a part of the plugin ended: {ended:?}"),
        }
    }

    /// Waits until the plugin leads with books that are rebuilt.
    pub(crate) async fn answers(&self) {
        let serves = async || self.books.serves().is_ok();
        wait::until_async("the plugin answers", serves).await;
    }

    /// A node of 4 vCPUs that the books know.
    pub(crate) async fn node(&self) -> String {
        let name = self.space.node("one", "4", "64Gi").await;
        let is_known = async || self.knows(&name);
        wait::until_async("the books know the node", is_known).await;
        name
    }

    /// Whether the books have this node.
    pub(crate) fn knows(&self, node: &str) -> bool {
        self.dump()["nodes"].as_array().unwrap().iter().any(|it| it["name"] == node)
    }

    /// Makes a pod that is a VM and requests this many vCPUs; as the API server has it.
    pub(crate) async fn vm(&self, name: &str, cpus: u64) -> Pod {
        self.vm_of(name, &cpus.to_string()).await
    }

    /// The same, with a quantity as a person writes it.
    pub(crate) async fn vm_of(&self, name: &str, cpu: &str) -> Pod {
        self.make(json!({"name": name, "labels": ENABLED.clone()}), cpu, None).await
    }

    /// A pod that is a VM of one vCPU, which may grow to this many.
    pub(crate) async fn growing(&self, name: &str, most: u64) -> Pod {
        let annotations = json!({"windlass.dev/bounds": bounds(most)});
        let metadata = json!({"name": name, "labels": ENABLED.clone(), "annotations": annotations});
        self.make(metadata, "1", None).await
    }

    /// Makes a pod of one vCPU with this metadata on this node, past the plugin.
    pub(crate) async fn on(&self, node: &str, metadata: Value) -> Pod {
        let pod = self.make(metadata, "1", Some(node)).await;
        let counts = async || self.reserved(node) > 0;
        wait::until_async("the books know the pod", counts).await;
        pod
    }

    /// Makes a pod with this metadata that requests this much CPU.
    pub(crate) async fn unbound(&self, metadata: Value, cpu: &str) -> Pod {
        self.make(metadata, cpu, None).await
    }

    async fn make(&self, metadata: Value, cpu: &str, node: Option<&str>) -> Pod {
        let requests = json!({"cpu": cpu, "memory": "1Gi"});
        let pod = json!({
            "metadata": metadata,
            "spec": {
                "nodeName": node,
                "schedulerName": "none",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {"name": "vm", "image": "none", "resources": {"requests": requests}},
                ],
            },
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.space.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    /// Deletes a pod, as its kubelet does at the end.
    pub(crate) async fn delete(&self, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.space.pods().delete(name, &now).await.unwrap();
    }

    /// Asks for a pod to be bound; the error, which is empty if it is.
    pub(crate) async fn bind(&self, pod: &Pod, node: &str) -> String {
        self.bind_as(pod, &pod.uid().unwrap(), node).await
    }

    /// The same, of a pod with this uid.
    pub(crate) async fn bind_as(&self, pod: &Pod, uid: &str, node: &str) -> String {
        let args = json!({
            "PodName": pod.name_any(), "PodNamespace": self.space.name(), "PodUID": uid, "Node": node,
        });
        self.ask("/bind", &args).await["Error"].as_str().unwrap().to_owned()
    }

    /// Whether the scheduler is told that a pod fits on a node.
    pub(crate) async fn fits(&self, pod: &Pod, node: &str) -> bool {
        let args = json!({"Pod": pod, "NodeNames": [node]});
        let answer = self.ask("/filter", &args).await;
        assert_eq!(answer["Error"], "");
        answer["NodeNames"] == json!([node])
    }

    /// Waits until a pod fits on a node.
    pub(crate) async fn until_fits(&self, pod: &Pod, node: &str) {
        wait::until_async("the pod fits", async || self.fits(pod, node).await).await;
    }

    /// The node that a pod is on, as the API server has it.
    pub(crate) async fn place_of(&self, pod: &Pod) -> Option<String> {
        let pod = self.space.pods().get(&pod.name_any()).await.unwrap();
        node_of(&pod).map(str::to_owned)
    }

    /// The placements on a node that no pod has shown yet.
    pub(crate) fn open(&self, node: &str) -> usize {
        let dump = self.dump();
        let nodes = dump["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|it| it["name"] == node).unwrap();
        node["placements"].as_array().unwrap().len()
    }

    /// How many thousandths of a vCPU are reserved on a node.
    pub(crate) fn reserved(&self, node: &str) -> u64 {
        let dump = self.dump();
        let nodes = dump["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|it| it["name"] == node).unwrap();
        node["reserved"]["cpu"].as_u64().unwrap()
    }

    /// The agent of a VM asks for this many vCPUs and GiB, and says how many it was permitted last; what it is permitted.
    pub(crate) async fn permit(&self, vm: &str, last: Option<u64>, size: u64) -> u64 {
        self.permit_in(self.space.name(), vm, last, size).await.unwrap()
    }

    /// The same, of a VM in this namespace; `None`: the plugin does not know it.
    pub(crate) async fn permit_in(
        &self,
        namespace: &str,
        vm: &str,
        last: Option<u64>,
        size: u64,
    ) -> Option<u64> {
        let permit = self.permit_of(namespace, vm, last.map(units), units(size)).await?;
        Some(permit["vCPUs"].as_u64().unwrap())
    }

    /// The same, of sizes as they are on the wire. Where a ceiling is not recorded in time, the agent asks again.
    pub(crate) async fn permit_of(
        &self,
        namespace: &str,
        vm: &str,
        last: Option<Value>,
        size: Value,
    ) -> Option<Value> {
        loop {
            let (status, mut answer) = self.asked(namespace, vm, last.clone(), size.clone()).await;
            assert!(matches!(status, 200 | 404 | 503), "{status}");
            if status != 503 {
                return (status == 200).then(|| answer["permit"].take());
            }
        }
    }

    /// The same; the answer with its status.
    pub(crate) async fn try_permit(&self, vm: &str, last: Option<u64>, size: u64) -> (u16, Value) {
        self.asked(self.space.name(), vm, last.map(units), units(size)).await
    }

    async fn asked(
        &self,
        namespace: &str,
        vm: &str,
        last: Option<Value>,
        size: Value,
    ) -> (u16, Value) {
        let body = json!({
            "protoVersion": 7,
            "pod": {"namespace": namespace, "name": vm},
            "computeUnit": units(1),
            "resources": size,
            "lastPermit": last,
            "metrics": null,
        });
        let request = Request::post("/").body(Bytes::from(body.to_string())).unwrap();
        let answer = Endpoint(self.books.clone()).answer(request, OpenSince::now()).await;
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The recorded ceiling of a VM, as the API server has it.
    pub(crate) async fn ceiling(&self, vm: &str) -> Option<Ceiling> {
        let pod = self.space.pods().get(vm).await.unwrap();
        Ceiling::decode(pod.annotations().get(CEILING)?).ok()
    }

    /// A person sets the annotation of a pod.
    pub(crate) async fn edit_ceiling(&self, vm: &str, text: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {CEILING: text}}});
        let params = PatchParams::default();
        self.space.pods().patch(vm, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) fn dump(&self) -> Value {
        serde_json::to_value(self.books.dump()).unwrap()
    }

    async fn ask(&self, path: &str, args: &Value) -> Value {
        let request = Request::post(path).body(Bytes::from(args.to_string())).unwrap();
        let answer = self.extender.answer(request, OpenSince::now()).await;
        assert_eq!(answer.status(), 200);
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

/// So many compute units, as they are on the wire.
pub(crate) fn units(count: u64) -> Value {
    json!({"vCPUs": count, "mem": format!("{count}Gi")})
}

/// From one vCPU and GiB to this many.
pub(crate) fn bounds(most: u64) -> String {
    let size = |count: u64| json!({"cpu": count, "mem": format!("{count}Gi")});
    json!({"min": size(1), "max": size(most)}).to_string()
}

fn parts(
    between: &Between,
    books: &ClusterBooks,
    binder: Binder,
    counts: &Counts,
    own: &str,
    taken_over: Client,
) -> Vec<Part> {
    let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
    let following = |of: &'static str| Following {
        client: between.client(),
        watches: counts.watches.clone(),
        readiness: Readiness::default(),
        followed: Followed::default(),
        pulse: watchdog.watch(of),
        stop: stop.clone(),
    };
    let headroom = Headroom {
        client: between.client(),
        namespace: own.to_owned(),
        counts: counts.headroom.clone(),
        pulse: watchdog.watch("headroom"),
        stop: stop.clone(),
    };
    let resizing = Resizes {
        client: between.client(),
        counts: counts.resizes.clone(),
        pulse: watchdog.watch("resizes"),
        stop: stop.clone(),
    };
    vec![
        Box::pin(windlass_plugin_cluster::resizes::run(books.clone(), resizing)),
        Box::pin(windlass_plugin_cluster::headroom::run(books.clone(), headroom)),
        Box::pin(watch::nodes(books.clone(), following("nodes"))),
        Box::pin(watch::pods(books.clone(), following("pods"))),
        Box::pin(settler::run(
            books.clone(),
            binder.clone(),
            watchdog.watch("placements"),
            stop.clone(),
        )),
        Box::pin(ceilings::run(
            books.clone(),
            Patches::new(between.client()),
            counts.ceilings.clone(),
            watchdog.watch("ceilings"),
            stop.clone(),
        )),
        Box::pin(retries::run(books.clone(), binder, watchdog.watch("refused pods"), stop.clone())),
        Box::pin(takeover::run(
            books.clone(),
            Binder::new(taken_over, books.clone(), counts.bindings.clone()),
            watchdog.watch("takeover"),
            stop,
        )),
    ]
}

/// Follows the objects of NeonVM's VMs.
fn follower(between: &Between, books: &ClusterBooks, counts: &Counts) -> Part {
    let following = Following {
        client: between.client(),
        watches: counts.watches.clone(),
        readiness: Readiness::default(),
        followed: Followed::default(),
        pulse: Watchdog::default().watch("objects"),
        stop: CancellationToken::new(),
    };
    Box::pin(watch::objects(books.clone(), following))
}

fn movers(between: &Between, books: &ClusterBooks, counts: &Counts) -> [Part; 2] {
    let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
    let following = Following {
        client: between.client(),
        watches: counts.watches.clone(),
        readiness: Readiness::default(),
        followed: Followed::default(),
        pulse: watchdog.watch("migrations"),
        stop: stop.clone(),
    };
    let migrating = Migrating {
        client: between.client(),
        counts: counts.migrations.clone(),
        pulse: watchdog.watch("moves"),
        stop,
    };
    [
        Box::pin(watch::migrations(books.clone(), following)),
        Box::pin(migrations::run(books.clone(), migrating)),
    ]
}
