//! A guest that is nothing but an informant, of v2.0, in the bytes of the wire.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use windlass_protocol::{Bytes, quantity};

/// A guest. Its thread ends with the process.
pub(crate) struct Guest {
    pub(crate) address: SocketAddr,
    facts: Arc<Mutex<Facts>>,
}

#[derive(Default)]
struct Facts {
    load: f64,
    /// MiB that it was told it has.
    told: Option<u64>,
    agreed: usize,
    left: usize,
    callback: Option<SocketAddr>,
}

// === impl Guest ===

impl Guest {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let facts = Arc::new(Mutex::new(Facts { load: 0.1, ..Facts::default() }));
        let of_thread = facts.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let facts = of_thread.clone();
                // Who hangs up in the middle is no failure of the guest.
                std::thread::spawn(move || converse(client.unwrap(), address, &facts));
            }
        });
        Self { address, facts }
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

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }
}

fn converse(client: TcpStream, address: SocketAddr, facts: &Mutex<Facts>) -> Option<()> {
    client.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, text) = answer(&path, &body, address, facts);
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    );
    (&client).write_all(answer.as_bytes()).ok()
}

fn answer(path: &str, body: &[u8], address: SocketAddr, facts: &Mutex<Facts>) -> (u16, String) {
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

/// Calls back before it answers, as informants do, and resumes the agent soon after.
fn register(said: &Value, address: SocketAddr, facts: &Mutex<Facts>) -> (u16, String) {
    let callback: SocketAddr = said["agentServeAddr"].as_str().unwrap().parse().unwrap();
    facts.lock().unwrap().callback = Some(callback);
    if call(callback, "GET", "/id", "{}") != Some(200) {
        return (400, "who is that?".to_owned());
    }
    let expected = json!({ "expectedID": said["agentID"] }).to_string();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        call(callback, "POST", "/resume", &expected)
    });
    let port = address.port();
    let reply = json!({ "protoVersion": 4, "metricsMethod": { "prometheus": { "port": port } } });
    (200, reply.to_string())
}

/// The status of the answer, if there is one.
fn call(to: SocketAddr, method: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
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
