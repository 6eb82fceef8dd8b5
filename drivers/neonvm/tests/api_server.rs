//! The driver at a real API server; the test plays NeonVM's controller.
#![expect(clippy::unwrap_used, reason = "tests")]

use http::{Method, Request};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use windlass_control_plane::{ControlPlane, Identity, Space, neonvm};
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_neonvm::{Machines, NeonVm};
use windlass_kit::admin::Readiness;
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::objects::WholeMachineObject;
use windlass_kit_kubernetes::{Followed, Following, Manner, Watches, follow};
use windlass_protocol::vm_object::NODE;
use windlass_protocol::{Bytes, MilliCpu, Resize, Resources, RunState, VmName};
use windlass_testkit::wait;

const POD: &str = "a-1";

#[tokio::test]
async fn a_vm_is_seen_and_resized_by_its_object() {
    let vm = Vm::make().await;
    let (mut driver, mut notices) = vm.way(POD).attach().await.unwrap();
    let can = driver.capabilities();
    assert_eq!((can.min, can.max), (size(250, 512), size(4000, 4096)));
    let seen = driver.see().await.unwrap();
    assert_eq!((seen.upper(), seen.memory.present()), (size(1000, 1024), Bytes::from_mib(1024)));
    assert_eq!(seen.state, RunState::Running);

    driver.resize(Resize::Limit(Some(MilliCpu::from_milli(1750)))).await.unwrap();
    let seen = driver.see().await.unwrap();
    assert_eq!(seen.upper().cpu.milli(), 1750, "a look after a write shows it");
    driver.resize(Resize::Memory(Bytes::from_mib(2048))).await.unwrap();
    let seen = driver.see().await.unwrap();
    assert_eq!(seen.memory.upper(), Bytes::from_mib(2048), "it may be given that at any time");
    assert_eq!(seen.memory.present(), Bytes::from_mib(1024), "the guest has no more yet");
    let spec = vm.get().await.data["spec"]["guest"].clone();
    assert_eq!((&spec["cpus"]["use"], &spec["memorySlots"]["use"]), (&json!("1750m"), &json!(4)));
    assert_eq!(spec["rootDisk"], json!({"image": "vm"}), "the rest is as it was");

    while notices.try_recv().is_ok() {}
    vm.status(json!({"cpus": "1750m", "memorySize": "2Gi", "phase": "Scaling"})).await;
    assert_eq!(notices.recv().await, Some(Notice::Changed));
    wait::until_async("the guest has it", async || {
        driver.see().await.unwrap().memory.present() == Bytes::from_mib(2048)
    })
    .await;
}

/// A watch that is behind delays a VM. It makes no look of before a write one of after it, and no write one of another spec.
#[tokio::test]
async fn a_watch_that_is_behind_changes_nothing() {
    let mut vm = Vm::make().await;
    let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
    driver.see().await.unwrap();
    vm.watch.shutdown().await;
    driver.resize(Resize::Limit(Some(MilliCpu::from_milli(1750)))).await.unwrap();
    let error = driver.see().await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { .. }), "the write is not shown: {error}");
    let error = driver.resize(Resize::Limit(Some(MilliCpu::from_milli(500)))).await.unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "the spec is another: {error}");
    assert_eq!(vm.get().await.data["spec"]["guest"]["cpus"]["use"], json!("1750m"));
}

/// The watch says nothing of it: it is silent, and looks as it did.
#[tokio::test]
async fn what_became_of_a_write_that_was_not_answered_is_read() {
    let mut vm = Vm::make().await;
    let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
    vm.watch.shutdown().await;
    vm.loses_next.store(true, Ordering::Release);
    let error = driver.resize(Resize::Limit(Some(MilliCpu::from_milli(1750)))).await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { .. }), "{error}");
    let is_known = async || match driver.see().await {
        Ok(seen) => {
            assert_eq!(seen.upper().cpu.milli(), 1000);
            false
        }
        Err(DriverError::NoAnswer { .. }) => true,
        Err(error) => panic!("{error}"),
    };
    wait::until_async("the look waits for the watch to show the write", is_known).await;
    let error = driver.see().await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { .. }), "{error}");
}

/// What does not concern the spec is in no write's way.
#[tokio::test]
async fn an_annotation_that_changes_meanwhile_does_not_hold_up_a_write() {
    let mut vm = Vm::make().await;
    let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
    vm.watch.shutdown().await;
    vm.patch(json!({"metadata": {"annotations": {"windlass.dev/ceiling": "{}"}}})).await;
    vm.status(json!({"cpus": "900m"})).await;
    driver.resize(Resize::Limit(Some(MilliCpu::from_milli(750)))).await.unwrap();
}

#[tokio::test]
async fn a_vm_is_gone_once_its_object_is_or_names_another_pod() {
    for (why, change) in
        [("another pod", json!({"podName": "a-2"})), ("it has ended", json!({"phase": "Failed"}))]
    {
        let vm = Vm::make().await;
        let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
        vm.status(change).await;
        let is_gone = async || matches!(driver.see().await, Err(DriverError::Gone { .. }));
        wait::until_async(why, is_gone).await;
        let error = vm.way(POD).attach().await.unwrap_err();
        assert!(matches!(error, DriverError::Gone { .. }), "{why}: {error}");
        let error =
            driver.resize(Resize::Limit(Some(MilliCpu::from_milli(500)))).await.unwrap_err();
        assert!(matches!(error, DriverError::Gone { .. }), "{why}: {error}");
    }
    let vm = Vm::make().await;
    let (mut driver, mut notices) = vm.way(POD).attach().await.unwrap();
    vm.machines().delete("a", &DeleteParams::default()).await.unwrap();
    let is_gone = async || matches!(driver.see().await, Err(DriverError::Gone { .. }));
    wait::until_async("the object is gone", is_gone).await;
    while notices.recv().await.is_some() {}
    let error = vm.way(POD).attach().await.unwrap_err();
    assert!(matches!(error, DriverError::Gone { .. }), "{error}");
}

/// The label chooses what is watched: a VM without it may be there.
#[tokio::test]
async fn a_vm_that_the_watch_does_not_show_is_not_taken_for_gone() {
    let vm = Vm::make().await;
    let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
    vm.patch(json!({"metadata": {"labels": {NODE: "another"}}})).await;
    let is_unseen = async || match driver.see().await {
        Ok(_) => false,
        Err(DriverError::NoAnswer { .. }) => true,
        Err(error) => panic!("{error}"),
    };
    wait::until_async("it is not shown", is_unseen).await;
    let error = vm.way(POD).attach().await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { .. }), "{error}");
    vm.patch(json!({"metadata": {"labels": {NODE: vm.space.name()}}})).await;
    wait::until_async("it is attached to again", async || vm.way(POD).attach().await.is_ok()).await;
}

#[tokio::test]
async fn a_vm_that_moves_is_seen_to() {
    let vm = Vm::make().await;
    let (mut driver, _notices) = vm.way(POD).attach().await.unwrap();
    vm.status(json!({"phase": "Migrating"})).await;
    let moves = async || driver.see().await.unwrap().state == RunState::Migrating;
    wait::until_async("it moves", moves).await;
}

/// A VM with an object in a namespace of its own, which a watch shows.
struct Vm {
    space: Space<'static>,
    known: Machines,
    /// It ends with the VM.
    watch: JoinSet<()>,
    /// Whether the answer to the driver's next write is lost.
    loses_next: Arc<AtomicBool>,
}

impl Vm {
    async fn make() -> Self {
        let plane = plane().await;
        let space = Space::new(plane).await;
        let followed = Followed::default();
        let client = plane.client(Identity::Admin).await;
        let loses_next = Arc::<AtomicBool>::default();
        let known = Machines::new(lossy(&client, &loses_next), followed.clone());
        let following = Following {
            client,
            watches: Watches::default(),
            readiness: Readiness::default(),
            followed: followed.clone(),
            pulse: Watchdog::default().watch("vms"),
            stop: CancellationToken::new(),
        };
        // Nodes of tests have the names of their namespaces.
        let labels = Some(format!("{NODE}={}", space.name()));
        let manner = Manner { labels, after: 1, ..Manner::default() };
        let told = known.clone();
        let watch = async move {
            let tell = |it| drop(told.told(it));
            follow::<WholeMachineObject>("vms", manner, following, tell).await.unwrap();
        };
        let vm = Self { space, known, watch: JoinSet::from_iter([watch]), loses_next };
        let object = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
            "metadata": {"name": "a", "labels": {NODE: vm.space.name()}},
            "spec": {"guest": {
                "cpus": {"min": "250m", "max": 4, "use": 1},
                "memorySlotSize": "512Mi",
                "memorySlots": {"min": 1, "max": 8, "use": 2},
                "rootDisk": {"image": "vm"},
            }},
        });
        let object = serde_json::from_value(object).unwrap();
        vm.machines().create(&PostParams::default(), &object).await.unwrap();
        let status = json!({
            "phase": "Running", "podName": POD, "podIP": "127.0.0.1", "cpus": 1,
            "memorySize": "1Gi",
        });
        vm.status(status).await;
        let name = vm.name();
        let runs = async || vm.known.get(&name).is_some_and(|known| known.pod.is_some());
        wait::until_async("the watch shows it", runs).await;
        assert!(followed.is_listed());
        vm
    }

    fn way(&self, pod: &str) -> NeonVm {
        NeonVm::new(self.known.clone(), self.name(), pod.to_owned())
    }

    fn name(&self) -> VmName {
        VmName { namespace: self.space.name().to_owned(), name: "a".to_owned() }
    }

    fn machines(&self) -> Api<DynamicObject> {
        let client = self.space.client().clone();
        Api::namespaced_with(client, self.space.name(), &neonvm::kind())
    }

    async fn get(&self) -> DynamicObject {
        self.machines().get("a").await.unwrap()
    }

    async fn patch(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        self.machines().patch("a", &PatchParams::default(), &patch).await.unwrap();
    }

    async fn status(&self, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.machines().patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    }
}

/// A client that loses the answer to the next write, once it is told to.
fn lossy(client: &Client, loses_next: &Arc<AtomicBool>) -> Client {
    let (client, loses_next) = (client.clone(), Arc::clone(loses_next));
    let through = service_fn(move |request: Request<Body>| {
        let (client, loses_next) = (client.clone(), Arc::clone(&loses_next));
        async move {
            let is_write = request.method() == Method::PATCH;
            let answer = client.send(request).await;
            if is_write && loses_next.swap(false, Ordering::AcqRel) {
                return Err(kube::Error::Service("lost".into()));
            }
            answer
        }
    });
    Client::new(through, "default")
}

async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE
        .get_or_init(async || {
            let plane = ControlPlane::start().await;
            neonvm::kinds(&plane).await;
            plane
        })
        .await
}

fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}
