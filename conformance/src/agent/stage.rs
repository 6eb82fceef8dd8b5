//! The informant and the plugin that an agent meets, and what a case asks of them.

use super::bench::{LOG, Ready, Stop, write_files};
use super::monitor::Monitor;
use super::world::{Manner, What, World};
use crate::case::{Fault, Verdict};
use crate::http::{self, Answer, Lost, Reply, Request, Server, answer};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The informant's endpoints; what is sent to another is not heard.
const METHODS: [(&str, &str); 5] = [
    ("/register", "POST"),
    ("/health-check", "PUT"),
    ("/downscale", "PUT"),
    ("/upscale", "PUT"),
    ("/unregister", "DELETE"),
];

/// A call to the agent; it may wait for requests under way.
const CALL: Duration = Duration::from_secs(8);

/// An agent that runs begins within this, also on a busy machine.
pub(super) const BEGIN: Duration = Duration::from_secs(20);

/// An agent and its peers. They end with this value.
pub(super) struct Stage {
    // First: it is to find its peers to the end.
    agent: RefCell<Option<Box<dyn Stop>>>,
    world: Arc<Mutex<World>>,
    ready: Ready,
    _servers: [Server; 2],
    _monitor: Monitor,
    // Last: the monitor's socket is in it.
    _folder: Folder,
}

/// It is gone with this value, but for what the agent said, where that is kept.
struct Folder {
    path: PathBuf,
    log: Option<PathBuf>,
}

// === impl Stage ===

impl Stage {
    /// Peers, and no agent yet; what it says is copied to `log` at the end.
    pub(super) fn set(log: Option<PathBuf>) -> Result<Self, Fault> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let fault = |error: std::io::Error| Fault(format!("the peers cannot be played: {error}"));
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-conformance-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(fault)?;
        let world = Arc::new(Mutex::new(World::new()));
        let of = Arc::clone(&world);
        let guest = Server::start(HERE, move |request| guest(&of, request)).map_err(fault)?;
        let of = Arc::clone(&world);
        let plugin = Server::start(HERE, move |request| plugin(&of, &request)).map_err(fault)?;
        let qmp = folder.join("qmp.sock");
        let monitor = Monitor::start(&qmp, Arc::clone(&world)).map_err(fault)?;
        let informant = SocketAddr::new(HERE, guest.port());
        lock(&world).metrics_port = guest.port();
        let ready = Ready { folder, qmp, informant, plugin: SocketAddr::new(HERE, plugin.port()) };
        write_files(&ready).map_err(fault)?;
        let (servers, path) = ([guest, plugin], ready.folder.clone());
        Ok(Self {
            agent: RefCell::new(None),
            world,
            ready,
            _servers: servers,
            _monitor: monitor,
            _folder: Folder { path, log },
        })
    }

    pub(super) fn ready(&self) -> &Ready {
        &self.ready
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// An agent comes among the peers.
    pub(super) fn enter(&self, agent: Box<dyn Stop>) {
        *self.agent.borrow_mut() = Some(agent);
    }

    /// Asks the agent to stop, and waits until it did.
    pub(super) fn stop_agent(&self) {
        if let Some(agent) = self.agent.borrow_mut().as_mut() {
            agent.stop();
        }
    }

    /// A fault, if the agent ended by itself: what it does no more is no merit.
    fn still_runs(&self) -> Verdict {
        match self.agent.borrow_mut().as_mut().and_then(|agent| agent.ended()) {
            Some(how) => Err(Fault(format!("the agent ended by itself: {how}"))),
            None => Ok(()),
        }
    }

    /// Waits for so long, for an agent that is to do nothing meanwhile.
    pub(super) fn wait(&self, long: Duration) -> Verdict {
        std::thread::sleep(long);
        self.still_runs()
    }

    /// Waits until something is so, at most for `limit`.
    pub(super) fn until(
        &self,
        what: &str,
        limit: Duration,
        so: impl Fn(&World) -> bool,
    ) -> Result<(), Fault> {
        let started = Instant::now();
        while !so(&self.world()) {
            if started.elapsed() > limit {
                return Err(Fault(format!("not within {limit:?}: {what}")));
            }
            self.wait(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Calls the agent as its informant.
    pub(super) fn call(&self, method: &str, path: &str, body: &str) -> Result<Answer, Fault> {
        let session = self.world().session.clone();
        let (_, at) = session.ok_or_else(|| Fault("the agent never registered".to_owned()))?;
        Ok(call(at, method, path, body)?)
    }

    /// The id of the session that registered last.
    pub(super) fn id(&self) -> String {
        self.world().session.clone().map(|(id, _)| id).unwrap_or_default()
    }

    /// The body of `/resume` and `/suspend`.
    pub(super) fn expected(&self) -> String {
        json!({ "expectedID": self.id() }).to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            // An agent that says nothing in a file leaves none.
            let _ = std::fs::copy(self.path.join(LOG), log);
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

fn call(at: SocketAddr, method: &str, path: &str, body: &str) -> Result<Answer, Lost> {
    http::ask(at, method, path, body.as_bytes(), CALL)
}

/// The informant, and whoever serves the guest's metrics.
fn guest(shared: &Arc<Mutex<World>>, request: Request) -> Reply {
    let Request { method, path, body, .. } = request;
    if path == "/metrics" {
        let text = lock(shared).metrics();
        return Reply::Bytes(answer(200, text.as_bytes()));
    }
    let takes = METHODS.iter().find(|(known, _)| *known == path).map(|(_, method)| *method);
    if takes != Some(method.as_str()) {
        let text = format!("request method must be {}", takes.unwrap_or("another"));
        return Reply::Bytes(answer(405, text.as_bytes()));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let manner = {
        let mut world = lock(shared);
        world.hear(What::Guest { path: path.clone(), body: body.clone() });
        let found = world.manners.iter().find(|(known, _)| **known == path);
        found.map_or(Manner::Works, |(_, manner)| manner.clone())
    };
    treated(&manner, || match path.as_str() {
        "/register" => register(shared, &body),
        "/health-check" => json!({}),
        "/downscale" => downscale(&mut lock(shared), &body),
        "/upscale" => {
            lock(shared).allowed = u64::MAX;
            json!({})
        }
        _ => json!({ "wasActive": true }),
    })
}

fn treated(manner: &Manner, works: impl FnOnce() -> Value) -> Reply {
    match manner {
        Manner::Works => Reply::Bytes(answer(200, works().to_string().as_bytes())),
        Manner::Late(by) => {
            std::thread::sleep(*by);
            Reply::Bytes(answer(200, works().to_string().as_bytes()))
        }
        Manner::Silent => Reply::Silence,
        Manner::Refuses(status, text) => Reply::Bytes(answer(*status, text.as_bytes())),
        Manner::Says(text) => Reply::Bytes(answer(200, text.as_bytes())),
    }
}

/// Calls back before it answers, and resumes a moment later.
fn register(shared: &Arc<Mutex<World>>, desc: &Value) -> Value {
    let text = |key: &str| desc[key].as_str().unwrap_or_default().to_owned();
    let id = text("agentID");
    let Ok(at) = text("agentServeAddr").parse::<SocketAddr>() else { return Value::Null };
    let identified = call(at, "GET", "/id", "{}").ok();
    let mut world = lock(shared);
    world.session = Some((id.clone(), at));
    world.identified = identified;
    let highest = desc["maxProtoVersion"].as_u64().unwrap_or_default();
    let version = if world.any_version { highest } else { u64::from(world.version) };
    if world.resumes {
        let body = json!({ "expectedID": id }).to_string();
        // Once the agent has read the answer.
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            let status = call(at, "POST", "/resume", &body).ok().map(|answer| answer.status);
            lock(&shared).resumed = Some((id, status));
        });
    }
    let port = world.metrics_port;
    json!({ "protoVersion": version, "metricsMethod": { "prometheus": { "port": port } } })
}

/// vCPUs are parked where the guest agrees.
fn downscale(world: &mut World, body: &Value) -> Value {
    if !world.agrees {
        return json!({ "Ok": false, "Status": "the guest needs what it has" });
    }
    let amounts = if body["data"].is_object() { &body["data"] } else { body };
    let cpu = amounts["cpu"].as_str().unwrap_or_default();
    let milli = match cpu.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap_or_default(),
        None => cpu.parse::<u64>().unwrap_or_default().saturating_mul(1000),
    };
    world.allowed = milli.div_ceil(1000);
    json!({ "Ok": true, "Status": "the guest can do without" })
}

fn plugin(shared: &Mutex<World>, request: &Request) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (manner, only) = {
        let mut world = lock(shared);
        world.hear(What::Permit { body: body.clone() });
        (world.plugin.clone(), world.plugin_only)
    };
    if let Some(only) = only.filter(|only| body["protoVersion"] != *only) {
        let name = crate::versions::PLUGIN.iter().find(|version| version.number == only);
        let name = name.map_or("?", |version| version.name);
        let text = format!("Protocol version mismatch: Need {name} but got another");
        return Reply::Bytes(answer(400, text.as_bytes()));
    }
    treated(&manner, || {
        let mut world = lock(shared);
        let permit = world.permit(&body);
        world.hear(What::Permitted { body: permit.clone() });
        permit
    })
}
