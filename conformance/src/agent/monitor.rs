//! The monitor of a machine of one of four vCPUs, 256 MiB, and 768 MiB of virtio-mem.

use super::world::{What, World};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \
    \"major\": 7}, \"package\": \"\"}, \"capabilities\": [\"oob\"]}}\r\n";

/// The most memory above that of the start.
const MOST: u64 = 768 << 20;

/// How often a waiting thread looks whether the machine is gone.
const LOOK: Duration = Duration::from_millis(100);

/// A machine. It is gone with this value.
pub(super) struct Monitor {
    path: PathBuf,
    gone: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Monitor {
    pub(super) fn start(path: &Path, world: Arc<Mutex<World>>) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone);
        let serving = std::thread::spawn(move || {
            for client in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                // A client that hangs up is no failure of the machine.
                let _ = client.and_then(|client| converse(client, &world, &flag));
            }
        });
        Ok(Self { path: path.to_owned(), gone, serving: Some(serving) })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        // Wakes the thread, whether it waits for a client or talks to one.
        let _ = UnixStream::connect(&self.path);
        drop(self.serving.take().map(JoinHandle::join));
    }
}

fn converse(mut client: UnixStream, world: &Mutex<World>, gone: &AtomicBool) -> io::Result<()> {
    client.set_read_timeout(Some(LOOK))?;
    client.write_all(GREETING.as_bytes())?;
    let mut lines = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    while !gone.load(Ordering::SeqCst) {
        match lines.read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // Half a line stays; the rest of it comes.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let request: Value = serde_json::from_str(&line)?;
        line.clear();
        let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = json!({ "return": obey(&mut world, &request), "id": request["id"] });
        drop(world);
        client.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}

fn obey(world: &mut World, request: &Value) -> Value {
    let command = request["execute"].as_str().unwrap_or_default();
    let arguments = &request["arguments"];
    if matches!(command, "device_add" | "device_del" | "qom-set" | "object-add" | "object-del") {
        let (command, arguments) = (command.to_owned(), arguments.clone());
        world.hear(What::Monitor { command, arguments });
    }
    match command {
        "query-hotpluggable-cpus" => {
            Value::Array((0..4).rev().map(|core| cpu(core, core < world.cpus)).collect())
        }
        "query-memory-devices" => json!([{ "type": "virtio-mem", "data": {
            "memdev": "/objects/vmem0", "memaddr": 1_u64 << 32, "block-size": 2 << 20,
            "size": world.plugged, "node": 0, "max-size": MOST, "requested-size": world.plugged,
            "id": "vm0",
        }}]),
        "query-memory-size-summary" => {
            json!({ "base-memory": super::world::BOOT, "plugged-memory": 0 })
        }
        "query-kvm" => json!({ "enabled": false, "present": true }),
        "query-status" => json!({ "running": true, "status": "running" }),
        "query-memdev" => json!([{ "id": "vmem0", "size": MOST }]),
        "qom-list" => json!([]),
        "qom-set" => {
            world.plugged = arguments["value"].as_u64().unwrap_or_default().min(MOST);
            json!({})
        }
        "device_add" => {
            world.cpus = (world.cpus + 1).min(4);
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
