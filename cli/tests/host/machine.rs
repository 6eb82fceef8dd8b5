//! A machine that is nothing but a monitor: 2 of 4 vCPUs, 256 MiB and 1 GiB of virtio-mem.
//!
//! As QEMU does, it listens with a backlog of one, serves one client, and accepts none meanwhile.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \
    \"major\": 7}, \"package\": \"\"}, \"capabilities\": [\"oob\"]}}\r\n";

/// A machine. It is gone with this value.
pub(crate) struct Machine {
    path: PathBuf,
    facts: Arc<Facts>,
    serving: Option<JoinHandle<()>>,
}

struct Facts {
    gone: AtomicBool,
    /// Clients that were accepted.
    clients: AtomicU64,
    /// MiB of virtio-mem that the guest has, as it was asked to.
    plugged: AtomicU64,
}

// === impl Machine ===

impl Machine {
    /// One that has `plugged` MiB above its 256.
    pub(crate) fn start(path: PathBuf, plugged: u64) -> Self {
        let listener = listen(&path);
        let facts =
            Arc::new(Facts { gone: false.into(), clients: 0.into(), plugged: plugged.into() });
        let of_thread = facts.clone();
        let serving = std::thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.gone.load(Ordering::Relaxed) {
                    return;
                }
                of_thread.clients.fetch_add(1, Ordering::Relaxed);
                // A client that hangs up is no failure of the machine.
                let _ = converse(client.unwrap(), &of_thread);
            }
        });
        Self { path, facts, serving: Some(serving) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many clients it has accepted.
    pub(crate) fn clients(&self) -> u64 {
        self.facts.clients.load(Ordering::Relaxed)
    }
}

/// A monitor with QEMU's backlog.
pub(crate) fn listen(path: &Path) -> UnixListener {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let _in_it = runtime.enter();
    let socket = tokio::net::UnixSocket::new_stream().unwrap();
    socket.bind(path).unwrap();
    let listener = socket.listen(1).unwrap().into_std().unwrap();
    listener.set_nonblocking(false).unwrap();
    listener
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.facts.gone.store(true, Ordering::Relaxed);
        // Wakes the thread, whether it waits for a client or talks to one.
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        drop(self.serving.take().map(JoinHandle::join));
    }
}

fn converse(mut client: UnixStream, facts: &Facts) -> std::io::Result<()> {
    client.set_read_timeout(Some(std::time::Duration::from_millis(100)))?;
    client.write_all(GREETING.as_bytes())?;
    let mut lines = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    while !facts.gone.load(Ordering::Relaxed) {
        match lines.read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // Half a line stays; the rest of it comes.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let request: Value = serde_json::from_str(&line)?;
        line.clear();
        let answer = json!({ "return": answer(&request, facts), "id": request["id"] });
        client.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}

fn answer(request: &Value, facts: &Facts) -> Value {
    let plugged = facts.plugged.load(Ordering::Relaxed) << 20;
    match request["execute"].as_str().unwrap() {
        "query-hotpluggable-cpus" => {
            json!([cpu(3, false), cpu(2, false), cpu(1, true), cpu(0, true)])
        }
        "query-memory-devices" => json!([{ "type": "virtio-mem", "data": {
            "memdev": "/objects/vmem0", "memaddr": 1_u64 << 32, "block-size": 2 << 20,
            "size": plugged, "node": 0, "max-size": 1 << 30, "requested-size": plugged,
            "id": "vm0",
        }}]),
        "query-memory-size-summary" => json!({ "base-memory": 256 << 20, "plugged-memory": 0 }),
        "query-kvm" => json!({ "enabled": false, "present": true }),
        "query-status" => json!({ "running": true, "status": "running" }),
        "query-memdev" => json!([{ "id": "vmem0", "size": 1 << 30 }]),
        "qom-list" => json!([]),
        "qom-set" => {
            let wanted = request["arguments"]["value"].as_u64().unwrap();
            facts.plugged.store(wanted >> 20, Ordering::Relaxed);
            json!({})
        }
        _ => json!({}),
    }
}

fn cpu(core: u64, present: bool) -> Value {
    let mut cpu = json!({
        "type": "max-x86_64-cpu", "vcpus-count": 1,
        "props": { "socket-id": 0, "core-id": core, "thread-id": 0, "node-id": 0 },
    });
    if present {
        cpu["qom-path"] = format!("/machine/unattached/device[{core}]").into();
    }
    cpu
}
