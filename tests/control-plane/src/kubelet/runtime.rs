//! The runtime of kubelets: it runs the program that a pod of a namespace names, as a process of this machine.
//!
//! A pod has an address of the loopback interface to itself. Its volumes are folders, written once, and its service account's tokens are the API
//! server's. The program is in no container: the [`Launch`] has what its arguments and files say of paths changed to those folders, and
//! a test changes the rest. A pod is ready once its probe says so. It ends as a kubelet ends it: SIGTERM, its grace period, SIGKILL.

mod volumes;

use super::status;
use crate::plane::ControlPlane;
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_testkit::{Process, http};

/// Between two looks at the pods.
const EVERY: Duration = Duration::from_millis(200);

/// Runs the programs of a namespace's pods. They end with its value.
#[derive(Debug)]
pub struct Runtime {
    _work: JoinSet<()>,
}

/// A program that is about to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The name of its pod.
    pub pod: String,
    /// Of its pod.
    pub address: Ipv4Addr,
    /// The file by which it finds the API server and is the service account of its pod.
    pub kubeconfig: PathBuf,
    /// What it is called.
    pub program: String,
    /// What it is told.
    pub args: Vec<String>,
    /// The environment that its pod says.
    pub env: BTreeMap<String, String>,
    /// The files of its volumes.
    pub files: BTreeMap<PathBuf, String>,
}

/// What makes a program fit this machine; it gives the path of the program.
type Fit = Box<dyn Fn(&mut Launch) -> PathBuf + Send + Sync>;

struct Work {
    plane: &'static ControlPlane,
    client: Client,
    pods: Api<Pod>,
    folder: PathBuf,
    fit: Fit,
    /// By the UIDs of their pods.
    run: BTreeMap<String, Run>,
    /// How many pods had an address.
    addresses: u32,
}

struct Run {
    launch: Launch,
    program: PathBuf,
    log: PathBuf,
    process: Process,
    is_ready: bool,
    /// When it was told to end.
    told: Option<Instant>,
}

/// Whether a runtime runs the program of such a pod: one whose container names it.
pub(super) fn is_run(pod: &Pod) -> bool {
    container(pod).is_some_and(|container| container.command.is_some())
}

// === impl Runtime ===

impl Runtime {
    /// The runtime of all nodes, for the pods of a namespace. Logs and volumes are in a folder; `fit` changes what a program is told
    /// where this machine is no cluster.
    pub fn start(
        plane: &'static ControlPlane,
        client: &Client,
        namespace: &str,
        folder: PathBuf,
        fit: impl Fn(&mut Launch) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        let (client, run) = (client.clone(), BTreeMap::new());
        let pods = Api::namespaced(client.clone(), namespace);
        let work = Work { plane, client, pods, folder, fit: Box::new(fit), run, addresses: 0 };
        Self { _work: JoinSet::from_iter([work.run()]) }
    }
}

// === impl Work ===

impl Work {
    async fn run(mut self) {
        loop {
            // An API server that does not answer is asked again.
            if let Ok(pods) = self.pods.list(&ListParams::default()).await {
                let there: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
                self.run.retain(|uid, _| there.contains(uid));
                for pod in pods.iter().filter(|pod| is_run(pod) && is_bound(pod)) {
                    let _again = self.look(pod).await;
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn look(&mut self, pod: &Pod) -> kube::Result<()> {
        let uid = pod.uid().unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() {
            return self.end(pod, &uid).await;
        }
        let Some(run) = self.run.get_mut(&uid) else { return self.begin(pod, uid).await };
        let address = run.launch.address;
        if run.process.ended().is_some() {
            // It is started again, as its pod says.
            run.process = run.launch.start(&run.program, &run.log);
            run.is_ready = false;
            return self.write(pod, status::running_at(pod, &address.to_string(), false)).await;
        }
        if run.is_ready {
            return Ok(());
        }
        run.is_ready = is_ready(pod, address).await;
        let is_ready = run.is_ready;
        self.write(pod, status::running_at(pod, &address.to_string(), is_ready)).await
    }

    /// Starts the program of a pod whose volumes are there.
    async fn begin(&mut self, pod: &Pod, uid: String) -> kube::Result<()> {
        let folder = self.folder.join(&uid);
        let Some(files) = volumes::files(&self.client, pod, &folder).await? else { return Ok(()) };
        let token = volumes::token(&self.client, pod, volumes::OF_API_SERVER, 3600).await?;
        let container = container(pod).unwrap();
        self.addresses += 1;
        let address = address(self.addresses);
        let mut command = container.command.clone().unwrap().into_iter();
        let mut launch = Launch {
            pod: pod.name_any(),
            address,
            kubeconfig: self.plane.kubeconfig_with(&uid, &token),
            program: command.next().unwrap(),
            args: command.chain(container.args.clone().unwrap_or_default()).collect(),
            env: environment(pod, container, address),
            files,
        };
        let folders = volumes::folders(pod, &folder);
        launch.move_paths(&folders);
        let program = (self.fit)(&mut launch);
        for folder in folders.values() {
            fs::create_dir_all(folder).unwrap();
        }
        for (file, text) in &launch.files {
            fs::write(file, text).unwrap();
        }
        let log = self.folder.join(format!("{}.log", launch.pod));
        let process = launch.start(&program, &log);
        self.run.insert(uid, Run { launch, program, log, process, is_ready: false, told: None });
        self.write(pod, status::running_at(pod, &address.to_string(), false)).await
    }

    /// Ends the program of a pod, and then the pod.
    async fn end(&mut self, pod: &Pod, uid: &str) -> kube::Result<()> {
        if let Some(run) = self.run.get_mut(uid) {
            let told = *run.told.get_or_insert_with(|| {
                run.process.signal("TERM");
                Instant::now()
            });
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
            let is_over = told.elapsed() > Duration::from_secs(grace.try_into().unwrap());
            if run.process.ended().is_none() && !is_over {
                return Ok(());
            }
            run.process.kill();
        }
        self.write(pod, status::ended(pod)).await?;
        let at_once = DeleteParams::default().grace_period(0);
        self.pods.delete(&pod.name_any(), &at_once).await?;
        self.run.remove(uid);
        Ok(())
    }

    async fn write(&self, pod: &Pod, status: Value) -> kube::Result<()> {
        let (params, status) = (PatchParams::default(), Patch::Strategic(status));
        self.pods.patch_status(&pod.name_any(), &params, &status).await.map(drop)
    }
}

// === impl Launch ===

impl Launch {
    /// Where arguments, environment and files name a path below a folder of the pod, they name it where it is here.
    fn move_paths(&mut self, folders: &BTreeMap<String, PathBuf>) {
        let moved = |text: &str| {
            folders.iter().fold(text.to_owned(), |text, (path, folder)| {
                let text = text.replace(&format!("{path}/"), &format!("{}/", folder.display()));
                if text == *path { folder.display().to_string() } else { text }
            })
        };
        let texts =
            self.args.iter_mut().chain(self.env.values_mut()).chain(self.files.values_mut());
        for text in texts {
            *text = moved(text);
        }
    }

    fn start(&self, program: &PathBuf, log: &PathBuf) -> Process {
        let log = File::options().create(true).append(true).open(log).unwrap();
        Process::start(program, |command| {
            command.args(&self.args).envs(&self.env);
            command.stdout(log.try_clone().unwrap()).stderr(log);
        })
    }
}

fn container(pod: &Pod) -> Option<&Container> {
    pod.spec.as_ref()?.containers.first()
}

/// Whether its kubelet has it, and did not refuse it.
fn is_bound(pod: &&Pod) -> bool {
    let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    is_bound && !matches!(phase, Some("Failed" | "Succeeded"))
}

/// An address that no pod of another test on this machine has: the test's process is in it.
fn address(number: u32) -> Ipv4Addr {
    let [high, low] = u16::try_from(std::process::id() % 50_000).unwrap().to_be_bytes();
    Ipv4Addr::new(127, 32 + high, low, u8::try_from(number % 250).unwrap() + 1)
}

fn environment(pod: &Pod, container: &Container, address: Ipv4Addr) -> BTreeMap<String, String> {
    let vars = container.env.iter().flatten().map(|var| {
        let of_pod = var.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        let value = match of_pod.map(|field| field.field_path.as_str()) {
            None => var.value.clone().unwrap_or_default(),
            Some("metadata.name") => pod.name_any(),
            Some("spec.nodeName") => pod.spec.clone().unwrap().node_name.unwrap(),
            Some("status.podIP") => address.to_string(),
            Some(other) => panic!("{}: no field {other}", pod.name_any()),
        };
        (var.name.clone(), value)
    });
    vars.collect()
}

/// What its probe says. Where that speaks TLS, that the port listens: its certificate is signed by nobody.
async fn is_ready(pod: &Pod, address: Ipv4Addr) -> bool {
    let container = container(pod).unwrap();
    let probe = container.readiness_probe.clone();
    let Some(Probe { http_get: Some(get), .. }) = probe else { return true };
    let port = match get.port {
        IntOrString::Int(port) => port,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(&name));
            named.unwrap().container_port
        }
    };
    let at = (address, u16::try_from(port).unwrap());
    let path = get.path.unwrap_or_default();
    let is_plain = get.scheme.is_none_or(|scheme| scheme == "HTTP");
    let ask = move || {
        let is_well = || http::try_ask(at, "GET", &path, "").is_some_and(|it| it.status == 200);
        if is_plain { is_well() } else { TcpStream::connect(at).is_ok() }
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}
