//! A `windlass host` of the benchmark's own.

use crate::burst::BOOT_MIB;
use crate::program::{PATIENCE, Program, beside};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use windlass_lab::{Folder, Guest};

const PORTS: u16 = 8;

/// A running host. It ends with this value.
pub(crate) struct Host {
    program: Program,
}

// === impl Host ===

impl Host {
    /// Starts one of this program for VMs with these files, and waits until each has a session.
    pub(crate) async fn start(binary: &Path, vms: &[String]) -> Result<Self> {
        let folder = Folder::create()?;
        let place = folder.path();
        for name in ["vms.d", "state"] {
            fs::create_dir(place.join(name))?;
        }
        let config = host_text(place)?;
        for (number, text) in vms.iter().enumerate() {
            fs::write(place.join(format!("vms.d/vm{number}.toml")), text)?;
        }
        let mut host = Self { program: Program::run(binary, &["host"], folder, &config)? };
        host.wait_for_sessions(vms.len()).await?;
        Ok(host)
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    async fn wait_for_sessions(&mut self, count: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            let state = self.state().await;
            let vms = state.as_ref().ok().and_then(|state| state["vms"].as_array());
            let active =
                vms.map_or(0, |vms| vms.iter().filter(|vm| vm["session"] == "active").count());
            if active == count {
                return Ok(());
            }
            self.program.check()?;
            ensure!(begun.elapsed() < PATIENCE, "no sessions: {state:?}\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn state(&self) -> Result<Value> {
        let mut socket = UnixStream::connect(self.program.folder().join("host.sock")).await?;
        socket
            .write_all(b"GET /v1/state HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no whole answer")?;
        ensure!(head.contains(" 200 "), "{head}");
        Ok(serde_json::from_str(body)?)
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        self.program.log()
    }
}

/// The `windlass` that is measured.
pub(crate) fn binary() -> Result<PathBuf> {
    let Some(named) = std::env::var_os("WINDLASS_BIN") else { return beside("windlass") };
    let path = PathBuf::from(named);
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}

fn host_text(place: &Path) -> Result<String> {
    let (place, first) = (place.display(), free_ports()?);
    let last = first + PORTS - 1;
    Ok(format!(
        "state_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
         socket = \"{place}/host.sock\"\nadmin = \"127.0.0.1:0\"\n\
         callback_listen = \"127.0.0.1\"\ncallback_ports = \"{first}-{last}\"\n\
         cpu_limit = \"trust\"\n\
         [node]\ncpu = 8\nmemory = \"4GiB\"\n[compute_unit]\ncpu = 1\nmemory = \"256MiB\"\n"
    ))
}

/// Gives back at once what is no longer called for.
pub(crate) const AT_ONCE: &str = "[scale_down]\ncpu = \"0s\"\nmemory = \"0s\"\n";

/// The file of a VM whose memory is taken in bursts. What is measured is the answer to urgency:
/// load counts as little as the file allows, and the memory policy, which would ask before the
/// threshold is crossed, only from a full guest on.
pub(crate) fn burst_text(guest: &Guest, more: &str) -> String {
    format!(
        "{}load_window = \"1m\"\n[target]\nload_average = 1.9\nmemory = 1.0\n\
         [min]\ncpu = 1\nmemory = \"{BOOT_MIB}MiB\"\n[max]\ncpu = 1\nmemory = \"1280MiB\"\n{more}",
        reached(guest)
    )
}

/// The file of a VM that is made to compute: its memory stays.
pub(crate) fn load_text(guest: &Guest, boot_mib: u32, more: &str) -> String {
    format!(
        "{}[min]\ncpu = 1\nmemory = \"{boot_mib}MiB\"\n[max]\ncpu = 3\nmemory = \"{boot_mib}MiB\"\n{more}",
        reached(guest)
    )
}

fn reached(guest: &Guest) -> String {
    format!("qmp = {:?}\ninformant = \"{}\"\n", guest.qmp(), guest.informant())
}

/// The first of some ports that nobody has.
fn free_ports() -> Result<u16> {
    let free = |first: &u16| {
        (*first..*first + PORTS).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    (12_000..20_000).step_by(usize::from(PORTS)).find(free).context("no free ports")
}
