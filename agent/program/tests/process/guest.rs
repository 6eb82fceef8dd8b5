//! A guest that is nothing but an informant, of v2.0, in the bytes of the wire.

use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use windlass_protocol::{Bytes, quantity};
use windlass_testkit::http::{self, Server};
use windlass_testkit::wait::until;

/// A guest.
pub(crate) struct Guest {
    server: Server,
    facts: Arc<Mutex<Facts>>,
}

#[derive(Default)]
struct Facts {
    load: f64,
    /// MiB that it was told it has.
    told: Option<u64>,
    agreed: usize,
    left: usize,
    /// Agents that it takes on wait until they may run.
    holds: bool,
    callback: Option<SocketAddr>,
}

// === impl Guest ===

impl Guest {
    pub(crate) fn start() -> Self {
        let facts = Arc::new(Mutex::new(Facts { load: 0.1, ..Facts::default() }));
        let shared = Arc::clone(&facts);
        let server = Server::talking(move |request, mut stream| {
            let address = stream.local_addr().unwrap();
            let (status, text) = answer(&request.path, request.body.as_bytes(), address, &shared);
            // A client that hangs up in the middle is no failure of the guest.
            let _left = stream.write_all(http::answer(status, &text).as_bytes());
        });
        Self { server, facts }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn load(&self, load: f64) {
        self.facts().load = load;
    }

    /// MiB that it was last told it has.
    pub(crate) fn told(&self) -> Option<u64> {
        self.facts().told
    }

    /// How often it agreed to have less.
    pub(crate) fn agreed(&self) -> usize {
        self.facts().agreed
    }

    /// How often an agent took its leave.
    pub(crate) fn left(&self) -> usize {
        self.facts().left
    }

    /// Where the agent that registered last is called back.
    pub(crate) fn callback(&self) -> Option<SocketAddr> {
        self.facts().callback
    }

    /// From here on an agent that it takes on is not told to run.
    pub(crate) fn hold(&self) {
        self.facts().holds = true;
    }

    /// Tells the agent that waits to run, and each one that comes.
    pub(crate) fn let_go(&self) {
        self.facts().holds = false;
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }
}

fn answer(
    path: &str,
    body: &[u8],
    address: SocketAddr,
    facts: &Arc<Mutex<Facts>>,
) -> (u16, String) {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let mib = said["data"]["memory"].as_str().and_then(|text| quantity::memory(text).ok());
    let reply = match path {
        "/metrics" => return (200, metrics(&facts.lock().unwrap())),
        "/register" => return register(&said, address, facts),
        "/downscale" => {
            facts.lock().unwrap().agreed += 1;
            json!({ "Ok": true, "Status": "as you like" })
        }
        "/upscale" => {
            let mut facts = facts.lock().unwrap();
            facts.told = mib.map(Bytes::mib).or(facts.told);
            json!({})
        }
        "/health-check" => json!({}),
        "/unregister" => {
            facts.lock().unwrap().left += 1;
            json!({ "wasActive": true })
        }
        _ => return (404, "no such path".to_owned()),
    };
    (200, reply.to_string())
}

/// Calls back before it answers, as informants do, and resumes the agent soon after, if it may run.
fn register(said: &Value, address: SocketAddr, facts: &Arc<Mutex<Facts>>) -> (u16, String) {
    let callback: SocketAddr = said["agentServeAddr"].as_str().unwrap().parse().unwrap();
    facts.lock().unwrap().callback = Some(callback);
    let id = http::try_ask(callback, "GET", "/id", "{}");
    if id.is_none_or(|answer| answer.status != 200) {
        return (400, "who is that?".to_owned());
    }
    let expected = json!({ "expectedID": said["agentID"] }).to_string();
    let facts = Arc::clone(facts);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        until("the agent may run", || !facts.lock().unwrap().holds);
        http::try_ask(callback, "POST", "/resume", &expected)
    });
    let port = address.port();
    let reply = json!({ "protoVersion": 4, "metricsMethod": { "prometheus": { "port": port } } });
    (200, reply.to_string())
}

fn metrics(facts: &Facts) -> String {
    let (load, total) = (facts.load, facts.told.unwrap_or(256) << 20);
    let available = total - (64 << 20);
    format!(
        "windlass_load{{window=\"5s\"}} {load}\nwindlass_load{{window=\"15s\"}} {load}\n\
         host_load1 {load}\nhost_load5 {load}\nwindlass_cpus_online 2\n\
         windlass_memory_total_bytes {total}\nwindlass_memory_available_bytes {available}\n"
    )
}
