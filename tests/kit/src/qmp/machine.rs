//! A machine that is nothing but a monitor: 2 of 4 vCPUs, 256 MiB and 1 GiB of virtio-mem.
//!
//! As QEMU does, it listens with a backlog of one, serves one client, and accepts none meanwhile.

use super::{GREETING, Sizes, reply};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a machine that is held looks whether it still is.
const BETWEEN_CHECKS: Duration = Duration::from_millis(5);

/// A machine. It is gone with this value.
#[derive(Debug)]
pub struct Machine {
    path: PathBuf,
    facts: Arc<Facts>,
    serving: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Facts {
    gone: AtomicBool,
    /// The machine does not greet its clients.
    held: AtomicBool,
    /// Clients that were accepted.
    clients: AtomicU64,
    sizes: Mutex<Sizes>,
}

// === impl Machine ===

impl Machine {
    /// One that has `plugged` MiB above its 256.
    pub fn start(path: PathBuf, plugged: u64) -> Self {
        let listener = listen(&path);
        let sizes = Mutex::new(Sizes::small(plugged));
        let facts =
            Arc::new(Facts { gone: false.into(), held: false.into(), clients: 0.into(), sizes });
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

    /// Where its monitor is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many clients it has accepted.
    pub fn clients(&self) -> u64 {
        self.facts.clients.load(Ordering::Relaxed)
    }

    /// From here on a client that it accepts waits for the greeting.
    pub fn hold(&self) {
        self.facts.held.store(true, Ordering::Relaxed);
    }

    /// Greets the client that waits, and each one that comes.
    pub fn let_go(&self) {
        self.facts.held.store(false, Ordering::Relaxed);
    }
}

/// A monitor with QEMU's backlog.
pub fn listen(path: &Path) -> UnixListener {
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
    while facts.held.load(Ordering::Relaxed) && !facts.gone.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN_CHECKS);
    }
    client.set_read_timeout(Some(Duration::from_millis(100)))?;
    client.write_all(format!("{GREETING}\r\n").as_bytes())?;
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
        let command = request["execute"].as_str().unwrap();
        let result = facts.sizes.lock().unwrap().answer(command, &request["arguments"]);
        let answer = reply(&request["id"], result);
        client.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}
