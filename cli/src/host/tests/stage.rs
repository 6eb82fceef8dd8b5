//! A whole host in memory: its parts as they are, VMs and a disk that are turned by a test, and a
//! clock that is paused.

use crate::api::HostFacts;
use crate::host::config::HostConfig;
use crate::host::room::Machine;
use crate::host::serve::compose;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tower::ServiceExt;
use windlass_agent::Config;
use windlass_agent_host::basics::Basics;
use windlass_agent_host::checked_attach::CheckedAttach;
use windlass_agent_host::controller::{HostController, Ways};
use windlass_agent_host::disk::{Disk, Recalled};
use windlass_agent_host::history::{Batch, Line, Unwritten};
use windlass_agent_host::state::{Kept, State};
use windlass_agent_host::{Parts, Setup, http};
use windlass_drivers::{Attach, DriverError, Notice};
use windlass_drivers_fake::{FakeDriver, FakeVm};
use windlass_kit::blocking::Work;
use windlass_kit::clock::Clock;
use windlass_kit::config::Unread;
use windlass_kit::notify::Notify;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::Shared;
use windlass_protocol::{
    Bytes, Capabilities, Decision, MemorySeen, MilliCpu, Moment, Promises, Resources, RunState,
    Seen, ShrinkCpu,
};
use windlass_vm_files::folder::Look;
use windlass_vm_files::watch::Watch;

/// When the clock of a stage begins.
pub(super) const START: Moment = Moment::from_millis(1_795_255_200_000);

/// Longer than a host takes for anything: what takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host of 8 vCPUs and 8 GiB.
pub(super) struct Stage {
    pub(super) disk: FakeDisk,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) watchdog: Watchdog,
    pub(super) books: Shared,
    router: Router,
    waiting: Option<HostController>,
}

/// The VMs that can be reached, by name.
#[derive(Clone, Default)]
pub(super) struct Vms(Arc<Mutex<BTreeMap<String, Vm>>>);

/// A VM of which every connection is counted.
#[derive(Clone)]
pub(super) struct Vm {
    pub(super) fake: FakeVm,
    pub(super) attached: Arc<AtomicUsize>,
}

/// What the disk does. Clones are one disk.
#[derive(Clone, Default)]
pub(super) struct FakeDisk(Arc<Inner>);

#[derive(Default)]
struct Inner {
    papers: Mutex<Papers>,
    /// Which kinds of work are held back.
    held: watch::Sender<BTreeSet<&'static str>>,
}

#[derive(Default)]
pub(super) struct Papers {
    pub(super) files: BTreeMap<String, String>,
    pub(super) state: Option<Kept>,
    pub(super) history: Vec<Line>,
    /// What is read of the history at the next start.
    pub(super) decisions: Vec<Decision>,
    pub(super) saves: usize,
    pub(super) is_full: bool,
    pub(super) refuses_to_watch: bool,
    /// Work under way, by kind.
    busy: BTreeMap<&'static str, usize>,
    /// The most work of one kind that was under way at a time.
    pub(super) busiest: usize,
}

// === impl Stage ===

impl Stage {
    /// A host with this disk and these VMs, which runs.
    pub(super) async fn start(disk: &FakeDisk, vms: &Vms) -> Self {
        Self::with_ports(disk, vms, 0..=0).await
    }

    /// The same, whose informants call back at these ports.
    pub(super) async fn with_ports(disk: &FakeDisk, vms: &Vms, ports: RangeInclusive<u16>) -> Self {
        let mut stage = Self::prepare_with_ports(disk, vms, ports);
        let begun = stage.run();
        timeout(PATIENCE, begun).await.unwrap().unwrap();
        stage
    }

    /// A host whose socket answers and whose controller does not run yet.
    pub(super) fn prepare(disk: &FakeDisk, vms: &Vms) -> Self {
        Self::prepare_with_ports(disk, vms, 0..=0)
    }

    fn prepare_with_ports(disk: &FakeDisk, vms: &Vms, ports: RangeInclusive<u16>) -> Self {
        let clock = Clock::starting_at(START);
        let mut basics = HostConfig::from_text("").unwrap().basics;
        basics.callback_ports = ports;
        let (agent, reached) = (basics.agent(), vms.clone());
        let ways: Ways = Box::new(move |name, _, findings| {
            CheckedAttach::by(name, reached.get(name), findings, clock)
        });
        Self::told(disk, clock, basics, agent, ways)
    }

    /// The same, which is told this and reaches its VMs so.
    pub(super) fn told(
        disk: &FakeDisk,
        clock: Clock,
        basics: Basics,
        agent: Config,
        ways: Ways,
    ) -> Self {
        let (tasks, watchdog) = (Tasks::default(), Watchdog::default());
        let room = Resources::new(MilliCpu::from_cores(8), Bytes::from_gib(8));
        let state = State::of(disk.papers().state.clone().unwrap_or_default());
        let decisions = disk.papers().decisions.clone();
        let machine = Machine { cpu: room.cpu, memory: Some(room.mem) };
        let (composition, books) = compose(basics, agent, machine, room, clock);
        let setup = Setup {
            composition,
            facts: facts(clock),
            clock,
            disk: Arc::new(disk.clone()),
            recalled: Recalled { state, decisions, ..Recalled::default() },
            ways,
            watchdog: watchdog.clone(),
            log_level: LogLevel::ended(),
        };
        let Parts { api, controller, .. } = setup.assemble(&tasks);
        tasks.vital("watchdog", watchdog.clone().run(Notify::default(), tasks.stopping()));
        let (disk, router) = (disk.clone(), http::router(api));
        Self { disk, clock, tasks, watchdog, books, router, waiting: Some(controller) }
    }

    /// Has the controller run; says when it has begun.
    pub(super) fn run(&mut self) -> oneshot::Receiver<()> {
        let controller = self.waiting.take().unwrap();
        let (begin, begun) = oneshot::channel();
        self.tasks.vital("host controller", controller.run(begin));
        begun
    }

    /// A status and what was answered.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = self.router.clone().oneshot(request);
        let response = timeout(PATIENCE, answer).await.unwrap().unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "").await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Pauses a VM for an hour: the status, and how long that took.
    pub(super) async fn pause(&self, vm: &str) -> (u16, Value, Duration) {
        let asked = self.clock.now();
        let body = "{\"until\":\"2026-11-21T12:00:00Z\"}";
        let (status, answer) = self.ask("POST", &format!("/v1/vm/{vm}/pause"), body).await;
        (status, answer, self.clock.now().since(asked))
    }

    /// What the books have for a VM, in vCPUs.
    pub(super) async fn booked(&self, vm: &str) -> Option<u64> {
        let state = self.get("/v1/state").await;
        let vms = state["node"]["vms"].as_array().unwrap().clone();
        let booked = vms.iter().find(|booked| booked["name"]["name"] == vm)?;
        Some(booked["reserved"]["cpu"].as_u64().unwrap() / 1000)
    }

    /// Whether a VM was seen by its runner.
    pub(super) async fn is_seen(&self, vm: &str) -> bool {
        let state = self.get("/v1/state").await;
        let vms = state["vms"].as_array().unwrap().clone();
        vms.iter().any(|status| status["name"]["name"] == vm && !status["seen"].is_null())
    }

    /// What needs a look, by subject.
    pub(super) async fn problems(&self) -> Vec<String> {
        let problems = self.get("/v1/problems").await;
        let subject = |report: &Value| report["subject"].as_str().unwrap().to_owned();
        problems.as_array().unwrap().iter().map(subject).collect()
    }

    /// Ends it as SIGTERM would, within the grace time of a host.
    pub(super) async fn end(self) -> Result<(), String> {
        self.tasks.drain(Duration::from_secs(8)).await.map_err(|stuck| stuck.to_string())?;
        self.tasks.failure().map_or(Ok(()), |failed| Err(failed.to_string()))
    }
}

pub(super) async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn facts(clock: Clock) -> HostFacts {
    HostFacts {
        version: String::new(),
        started: clock.now(),
        config: PathBuf::new(),
        vms_dir: "/etc/windlass/vms.d".into(),
        state_dir: PathBuf::new(),
        admin: String::new(),
        cpu_limit: None,
    }
}

// === impl Vms ===

impl Vms {
    /// A VM of 1 of 4 vCPUs and 1 of 4 GiB, with a file on this disk. It is not there yet.
    pub(super) fn absent(&self, disk: &FakeDisk, name: &str) -> FakeVm {
        let fake = self.get(name).fake;
        disk.put(name, "");
        fake.end();
        fake
    }

    /// The same, which is there.
    pub(super) fn add(&self, disk: &FakeDisk, name: &str) -> FakeVm {
        disk.put(name, "");
        self.get(name).fake
    }

    pub(super) fn get(&self, name: &str) -> Vm {
        self.0.lock().unwrap().entry(name.to_owned()).or_insert_with(Vm::new).clone()
    }
}

// === impl Vm ===

impl Vm {
    fn new() -> Self {
        let (one, step) = (MilliCpu::from_cores(1), Bytes::from_mib(128));
        let capabilities = Capabilities {
            cpu_step: one,
            limit_step: None,
            memory_step: step,
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: Resources::new(one, Bytes::from_gib(1)),
            max: Resources::new(MilliCpu::from_cores(4), Bytes::from_gib(4)),
        };
        let memory =
            MemorySeen { boot: Bytes::from_gib(1), requested: Bytes::ZERO, size: Bytes::ZERO };
        let fake = FakeVm::new(
            capabilities,
            Seen { plugged: one, limit: None, found_limit: None, memory, state: RunState::Running },
        );
        Self { fake, attached: Arc::default() }
    }
}

impl Attach for Vm {
    type Driver = FakeDriver;

    fn place(&self) -> String {
        self.fake.place()
    }

    async fn attach(&self) -> Result<(FakeDriver, mpsc::Receiver<Notice>), DriverError> {
        self.attached.fetch_add(1, Ordering::Relaxed);
        self.fake.attach().await
    }
}

// === impl FakeDisk ===

impl FakeDisk {
    pub(super) fn papers(&self) -> MutexGuard<'_, Papers> {
        self.0.papers.lock().unwrap()
    }

    /// Puts the file of a VM in place, with this besides the usual.
    pub(super) fn put(&self, vm: &str, rest: &str) {
        let mut papers = self.papers();
        let port = 20_000
            + papers.files.keys().position(|known| known == vm).unwrap_or(papers.files.len());
        let text = format!(
            "qmp = \"/fake/{vm}.sock\"\ninformant = \"127.0.0.1:{port}\"\n{rest}\n\
             [min]\ncpu = 1\nmemory = \"1GiB\"\n[max]\ncpu = 4\nmemory = \"4GiB\"\n"
        );
        papers.files.insert(vm.to_owned(), text);
    }

    /// Work of this kind (`look`, `save`, `history`) does not end from here on.
    pub(super) fn hold(&self, kind: &'static str) {
        self.0.held.send_modify(|held| {
            held.insert(kind);
        });
    }

    pub(super) fn let_go(&self, kind: &'static str) {
        self.0.held.send_modify(|held| {
            held.remove(kind);
        });
    }

    /// Does something once work of this kind is not held.
    fn work<T: 'static + Send>(
        &self,
        kind: &'static str,
        work: impl FnOnce(&mut Papers) -> T + Send + 'static,
    ) -> Work<T> {
        let disk = self.clone();
        Box::pin(async move {
            {
                let mut papers = disk.papers();
                let busy = papers.busy.entry(kind).or_default();
                *busy += 1;
                papers.busiest = papers.busiest.max(papers.busy[kind]);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            let mut held = disk.0.held.subscribe();
            held.wait_for(|held| !held.contains(kind)).await.unwrap();
            let mut papers = disk.papers();
            *papers.busy.get_mut(kind).unwrap() -= 1;
            work(&mut papers)
        })
    }
}

impl Disk for FakeDisk {
    fn look(&self) -> Work<Look> {
        self.work("look", |papers| {
            let text = |(name, text): (&String, &String)| (name.clone(), Ok(text.clone()));
            Ok(papers.files.iter().map(text).collect())
        })
    }

    fn watch(&self) -> Work<io::Result<Watch>> {
        let refused = self.papers().refuses_to_watch;
        Box::pin(async move {
            match refused {
                true => Err(rustix::io::Errno::MFILE.into()),
                // No notice ever comes.
                false => std::future::pending().await,
            }
        })
    }

    fn config(&self) -> Work<Result<String, Unread>> {
        self.work("config", |_| Ok(String::new()))
    }

    fn save(&self, text: Vec<u8>) -> Work<io::Result<()>> {
        self.work("save", move |papers| {
            papers.saves += 1;
            if papers.is_full {
                return Err(ErrorKind::StorageFull.into());
            }
            papers.state = Some(serde_json::from_slice(&text).unwrap());
            Ok(())
        })
    }

    fn write(&self, batch: Batch) -> Work<Result<(), Unwritten>> {
        self.work("history", move |papers| {
            if papers.is_full {
                let error = ErrorKind::StorageFull.into();
                return Err(Unwritten { lines: batch.lines, error });
            }
            papers.history.extend(batch.lines);
            Ok(())
        })
    }
}
