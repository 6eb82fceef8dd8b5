//! A monitor that speaks QMP over a real socket and does as a test's script says.
//!
//! It knows the machine of [`FakeMonitor::default_answer`] and nothing of sizes that change:
//! how commands follow from answers is tested here, what a hypervisor does with them is tested
//! with a real one.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

pub(crate) const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \
    \"minor\": 2, \"major\": 7}, \"package\": \"\"}, \"capabilities\": [\"oob\"]}}";

/// What to do about one command.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// As the machine that it knows would.
    Usual,
    /// With this result.
    Result(Value),
    /// With an error of this class and these words.
    Error(&'static str, &'static str),
    /// With these bytes, and nothing else.
    Raw(Vec<u8>),
    /// With these bytes first, then as usual.
    After(Vec<u8>),
    /// Not at all, and the connection stays.
    Silence,
    /// Not at all, and the connection ends.
    HangUp,
}

type Script = dyn FnMut(&str, &Value) -> Reply + Send;

/// A monitor. It ends with this value.
pub(crate) struct FakeMonitor {
    path: PathBuf,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    _serving: JoinSet<()>,
}

// === impl FakeMonitor ===

impl FakeMonitor {
    /// One that answers each command as `script` says, one client after another.
    pub(crate) fn new(script: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> Self {
        let path = socket_path();
        let listener = UnixListener::bind(&path).unwrap();
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let serving = JoinSet::from_iter([serve(listener, Arc::clone(&asked), Box::new(script))]);
        Self { path, asked, _serving: serving }
    }

    /// One that accepts, and leaves its clients waiting.
    pub(crate) fn taken() -> Self {
        let path = socket_path();
        let listener = UnixListener::bind(&path).unwrap();
        let wait = async move {
            let _kept = listener.accept().await;
            std::future::pending::<()>().await;
        };
        Self { path, asked: Arc::default(), _serving: JoinSet::from_iter([wait]) }
    }

    /// One that sends this in place of a greeting, and then hangs up.
    pub(crate) fn greeting_with(bytes: Vec<u8>) -> Self {
        let path = socket_path();
        let listener = UnixListener::bind(&path).unwrap();
        let greet = async move {
            let (mut client, _) = listener.accept().await.unwrap();
            // A client that has heard enough does not stay to the end.
            let _ = client.write_all(&bytes).await;
        };
        Self { path, asked: Arc::default(), _serving: JoinSet::from_iter([greet]) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Each command that changes something, with its arguments.
    pub(crate) fn changes(&self) -> Vec<(String, Value)> {
        let asked = self.asked.lock().unwrap();
        let is_question = |name: &str| name.starts_with("query-") || name.starts_with("qom-");
        let changes = asked.iter().filter(|(name, _)| {
            name != "qmp_capabilities" && (!is_question(name) || name == "qom-set")
        });
        changes.cloned().collect()
    }

    /// A machine with 2 of 4 vCPUs and 256 MiB, and 1 GiB of virtio-mem.
    fn default_answer(command: &str) -> Option<Value> {
        let cpu = |core: u64, path: Option<&str>| {
            let mut cpu = json!({
                "type": "max-x86_64-cpu", "vcpus-count": 1,
                "props": {"socket-id": 0, "core-id": core, "thread-id": 0, "node-id": 0},
            });
            if let Some(path) = path {
                cpu["qom-path"] = path.into();
            }
            cpu
        };
        Some(match command {
            "query-hotpluggable-cpus" => json!([
                cpu(3, None),
                cpu(2, None),
                cpu(1, Some("/machine/unattached/device[2]")),
                cpu(0, Some("/machine/unattached/device[0]")),
            ]),
            "query-memory-devices" => json!([{"type": "virtio-mem", "data": {
                "memdev": "/objects/vmem0", "memaddr": 1u64 << 32, "block-size": 2 << 20,
                "size": 64 << 20, "node": 0, "max-size": 1 << 30, "requested-size": 128 << 20,
                "id": "vm0",
            }}]),
            "query-memory-size-summary" => json!({"base-memory": 256 << 20, "plugged-memory": 0}),
            "query-kvm" => json!({"enabled": false, "present": true}),
            "query-memdev" => json!([{"id": "vmem0", "size": 1 << 30}]),
            "query-status" => json!({"status": "running", "running": true, "singlestep": false}),
            "query-migrate" => json!({}),
            "qom-list" => json!([]),
            "qmp_capabilities" | "qom-set" | "device_add" | "device_del" | "object-add"
            | "object-del" => json!({}),
            _ => return None,
        })
    }
}

impl Drop for FakeMonitor {
    fn drop(&mut self) {
        // A test may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(
    listener: UnixListener,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    mut script: Box<Script>,
) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        // A client that goes away is no failure of the monitor.
        let _ = converse(client, &asked, &mut script).await;
    }
}

async fn converse(
    client: UnixStream,
    asked: &Mutex<Vec<(String, Value)>>,
    script: &mut Script,
) -> std::io::Result<()> {
    let (read, mut write): (OwnedReadHalf, OwnedWriteHalf) = client.into_split();
    let mut lines: Lines<BufReader<OwnedReadHalf>> = BufReader::new(read).lines();
    write.write_all(format!("{GREETING}\r\n").as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line).unwrap();
        let command = request["execute"].as_str().unwrap().to_owned();
        let (arguments, id) = (request["arguments"].clone(), request["id"].clone());
        asked.lock().unwrap().push((command.clone(), arguments.clone()));
        let usual = || match FakeMonitor::default_answer(&command) {
            Some(result) => json!({"return": result, "id": id}),
            None => error(&id, "CommandNotFound", "The command has not been found"),
        };
        let line = |value: Value| format!("{value}\r\n").into_bytes();
        let bytes = match script(&command, &arguments) {
            Reply::Usual => line(usual()),
            Reply::Result(result) => line(json!({"return": result, "id": id})),
            Reply::Error(class, words) => line(error(&id, class, words)),
            Reply::Raw(bytes) => bytes,
            Reply::After(mut bytes) => {
                bytes.extend(line(usual()));
                bytes
            }
            Reply::Silence => continue,
            Reply::HangUp => return Ok(()),
        };
        write.write_all(&bytes).await?;
    }
    Ok(())
}

fn error(id: &Value, class: &str, words: &str) -> Value {
    json!({"id": id, "error": {"class": class, "desc": words}})
}

/// A path of its own for each monitor, and for each of several runs at once.
pub(crate) fn socket_path() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("windlass-qmp-{}-{number}.sock", std::process::id()))
}
