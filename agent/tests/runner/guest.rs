//! A guest with an informant that can be told to misbehave.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use http::{Method, StatusCode, Uri};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use windlass_drivers_fake::FakeVm;
use windlass_kit::client::{Address, Answer, Ask, ask};
use windlass_kit::server::{Counts, Limits, serve};
use windlass_kit::tasks::Tasks;
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, Endpoint, Expected, ID, InformantDesc, RESUME,
    ResourceMessage, Unregistered,
};
use windlass_protocol::version::InformantVersion;
use windlass_protocol::{AgentId, Bytes as Memory, MilliCpu, Resources};

/// A guest. Clones are the same guest.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<GuestState>>,
    tasks: Tasks,
}

/// How the informant, or who serves the metrics, treats a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Works,
    Stalls,
    Refuses(u16),
    /// Answers 200 with something that is not what was asked for.
    Lies(&'static str),
    /// Answers with this status and text.
    Says(u16, &'static str),
    /// Answers 200 with far too much.
    Babbles,
}

pub(crate) struct GuestState {
    vm: FakeVm,
    pub(crate) load: f64,
    /// Over five seconds; what is said of longer ones is `load`.
    pub(crate) load_5s: Option<f64>,
    pub(crate) used: Memory,
    /// The most vCPUs that it was told to use.
    allowed: MilliCpu,
    pub(crate) informant: Manner,
    pub(crate) metrics: Manner,
    /// Whether it agrees to have less.
    pub(crate) agrees: bool,
    /// Paths that were asked for, without `/metrics`.
    pub(crate) asked: Vec<String>,
    /// How often metrics were read.
    pub(crate) reads: usize,
    /// The last session that was registered, and where it is called back.
    pub(crate) agent: Option<(AgentId, SocketAddr)>,
    /// The last size that it was told it has.
    pub(crate) told: Option<Resources>,
}

// === impl Guest ===

impl Guest {
    pub(crate) async fn start(vm: FakeVm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = GuestState {
            vm,
            load: 0.1,
            load_5s: None,
            used: Memory::from_mib(64),
            allowed: MilliCpu::from_cores(u64::from(u16::MAX)),
            informant: Manner::Works,
            metrics: Manner::Works,
            agrees: true,
            asked: Vec::new(),
            reads: 0,
            agent: None,
            told: None,
        };
        let tasks = Tasks::default();
        let guest = Self { address, state: Arc::new(Mutex::new(state)), tasks };
        let router = Router::new().fallback(answer).with_state(guest.clone());
        let limits = Limits::small(Counts::default());
        // A guest that stalls does so for longer than any agent waits.
        let limits = Limits { request_time: Duration::from_secs(3600), ..limits };
        guest.tasks.minor("guest", serve(listener, router, limits, guest.tasks.stopping()));
        guest
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, GuestState> {
        self.state.lock().unwrap()
    }

    /// How often this was asked.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.state().asked.iter().filter(|asked| *asked == path).count()
    }

    /// Asks the agent that registered last.
    pub(crate) async fn call(&self, endpoint: Endpoint, body: Vec<u8>) -> Answer {
        let (_, at) = self.state().agent.unwrap();
        let method = Method::from_bytes(endpoint.method.as_bytes()).unwrap();
        let request = Ask::new(method, endpoint.path, body).within(Duration::from_secs(10));
        ask(&Address::Tcp(at), request).await.unwrap()
    }

    pub(crate) fn session(&self) -> AgentId {
        self.state().agent.unwrap().0
    }

    fn resume_soon(&self, id: AgentId) {
        let guest = self.clone();
        self.tasks.minor("resume", async move {
            let answer = guest.call(RESUME, Expected(id).encode()).await;
            if answer.status == 200 { Ok(()) } else { Err(format!("resume: {answer:?}")) }
        });
    }
}

async fn answer(State(guest): State<Guest>, uri: Uri, body: Bytes) -> (StatusCode, String) {
    let path = uri.path().to_owned();
    let manner = {
        let mut state = guest.state();
        if path == "/metrics" {
            state.reads += 1;
            state.metrics
        } else {
            state.asked.push(path.clone());
            state.informant
        }
    };
    match manner {
        Manner::Works => works(&guest, &path, &body).await,
        Manner::Stalls => std::future::pending().await,
        Manner::Refuses(status) => (StatusCode::from_u16(status).unwrap(), "no".to_owned()),
        Manner::Lies(text) => (StatusCode::OK, text.to_owned()),
        Manner::Says(status, text) => (StatusCode::from_u16(status).unwrap(), text.to_owned()),
        Manner::Babbles => (StatusCode::OK, "windlass_load 1\n".repeat(100_000)),
    }
}

async fn works(guest: &Guest, path: &str, body: &[u8]) -> (StatusCode, String) {
    let reply = match path {
        "/metrics" => guest.state().metrics_text().into_bytes(),
        "/register" => return register(guest, body).await,
        "/health-check" => Empty.encode(),
        "/downscale" => {
            let size = ResourceMessage::decode_any(body).unwrap().resources;
            let mut state = guest.state();
            if state.agrees {
                state.allowed = size.cpu;
            }
            // Some explain themselves at length.
            DownscaleResult { ok: state.agrees, status: "as it is; ".repeat(200) }.encode()
        }
        "/upscale" => {
            let size = ResourceMessage::decode_any(body).unwrap().resources;
            let mut state = guest.state();
            (state.allowed, state.told) = (size.cpu, Some(size));
            Empty.encode()
        }
        "/unregister" => Unregistered { was_active: true }.encode(),
        _ => return (StatusCode::NOT_FOUND, "no such path".to_owned()),
    };
    (StatusCode::OK, String::from_utf8(reply).unwrap())
}

async fn register(guest: &Guest, body: &[u8]) -> (StatusCode, String) {
    let desc = AgentDesc::decode(body).unwrap();
    guest.state().agent = Some((desc.agent_id, desc.serve_addr.parse().unwrap()));
    // As the reference's informant does, before it answers.
    let identified = guest.call(ID, Empty.encode()).await;
    if identified.status != 200 {
        return (StatusCode::BAD_REQUEST, format!("id: {identified:?}"));
    }
    guest.resume_soon(desc.agent_id);
    let reply = InformantDesc { version: InformantVersion::V2_0, metrics_port: Some(10301) };
    (StatusCode::OK, String::from_utf8(reply.encode()).unwrap())
}

// === impl GuestState ===

impl GuestState {
    fn online(&self) -> MilliCpu {
        self.vm.seen().plugged.min(self.allowed)
    }

    fn metrics_text(&self) -> String {
        let total = self.vm.seen().memory.present();
        let available = total.saturating_sub(self.used);
        // Among much that is not for an agent, as an exporter says it.
        "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1\n".repeat(100)
            + &format!(
                "windlass_load{{window=\"5s\"}} {load_5s}\nwindlass_load{{window=\"15s\"}} {load}\n\
             host_load1 {load}\nhost_load5 {load}\nwindlass_cpus_online {online}\n\
             windlass_memory_total_bytes {total}\nwindlass_memory_available_bytes {available}\n",
                load = self.load,
                load_5s = self.load_5s.unwrap_or(self.load),
                online = self.online(),
                total = total.bytes(),
                available = available.bytes(),
            )
    }
}
