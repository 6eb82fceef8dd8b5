//! The guests and the host of a run: set up, and taken away again however it ends.
//!
//! Guests come from the lab. The host is the `windlass host` that lies beside this program, with files as
//! a user would write them, so that what is shown is what is used. All processes die with
//! this one; the folder goes with the [`Stage`].

mod files;

use super::script::{Player, Script};
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use windlass_cli::client::Client;
use windlass_cli::failure::Failure;
use windlass_lab::{Extension, Folder, Guest, GuestSpec, Lab, leash};
use windlass_protocol::Bytes;
use windlass_protocol::status::HostStatus;

/// How long the host may take to answer, on a machine that boots guests meanwhile.
const START: Duration = Duration::from_secs(60);

/// How long the host may take to end, once it was asked to.
const STOP: Duration = Duration::from_secs(20);

/// Most of a log that is shown in a message.
const LAST_WORDS: usize = 3000;

/// Where a range of free ports is looked for.
const PORTS: RangeInclusive<u16> = 20_000..=29_000;

/// Everything that runs.
pub(crate) struct Stage {
    guests: Vec<Arc<Guest>>,
    host: Option<Child>,
    client: Client,
    folder: Folder,
}

// === impl Stage ===

impl Stage {
    /// Boots the guests, then starts the host.
    pub(crate) async fn set_up(script: &Script, lab: &Lab) -> Result<Self, Failure> {
        let folder = Folder::create()
            .map_err(|error| Failure::CannotCreate(format!("cannot make a folder: {error}")))?;
        let guests = boot(script, lab).await?;
        let ports = free_ports(guests.len())?;
        let vms = folder.path().join("vms.d");
        make(&vms, |path| fs::create_dir(path))?;
        for (player, guest) in script.players.iter().zip(&guests) {
            let text = files::vm(script, player, &guest.qmp(), guest.informant());
            let path = vms.join(format!("{}.toml", player.name));
            make(&path, |path| fs::write(path, text))?;
        }
        let config = folder.path().join("host.toml");
        make(&config, |path| fs::write(path, files::host(script, folder.path(), &ports)))?;
        let mut host = start(&config, &folder.path().join("host.log"))?;
        let client = match reach(&folder, &mut host, guests.len()).await {
            Ok(client) => client,
            Err(failure) => {
                // It may have ended by itself.
                let _ended = host.kill();
                let _status = host.wait();
                return Err(failure);
            }
        };
        Ok(Self { guests, host: Some(host), client, folder })
    }

    /// The guests, in the order of the script.
    pub(crate) fn guests(&self) -> &[Arc<Guest>] {
        &self.guests
    }

    /// A client of the host.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What has ended that should run, with its last words.
    pub(crate) fn fallen(&mut self) -> Option<String> {
        let guest = self.guests.iter().find_map(|guest| Some((guest, guest.exited()?)));
        if let Some((guest, status)) = guest {
            return Some(format!("guest {} has ended: {status}; {}", guest.name(), guest.serial()));
        }
        let status = self.host.as_mut()?.try_wait().ok().flatten()?;
        Some(format!("windlass host has ended: {status}; {}", self.host_log()))
    }

    /// The last words of the host.
    pub(crate) fn host_log(&self) -> String {
        last_words(&self.folder.path().join("host.log"))
    }

    /// Copies the host's log to where it outlives the run.
    pub(crate) fn keep_host_log(&self, to: &Path) -> io::Result<()> {
        fs::copy(self.folder.path().join("host.log"), to).map(drop)
    }

    /// Asks the host to end, and waits for that.
    pub(crate) async fn end_host(&mut self) -> Result<(), Failure> {
        let Some(mut host) = self.host.take() else { return Ok(()) };
        let status = ended(&mut host).await;
        // It has ended, or has to be made to.
        let _killed = host.kill();
        let _status = host.wait();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::Failed(format!(
                "windlass host ended with {status}: {}",
                self.host_log()
            ))),
            None => Err(Failure::Failed(format!("windlass host did not end within {STOP:?}"))),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(host) = &mut self.host {
            let _ended = host.kill();
            let _status = host.wait();
        }
    }
}

async fn boot(script: &Script, lab: &Lab) -> Result<Vec<Arc<Guest>>, Failure> {
    let failed = |player: &Player, error: &dyn std::error::Error| {
        Failure::Failed(format!("guest {}: {}", player.name, chain(error)))
    };
    let mut guests = Vec::new();
    for player in script.players {
        let guest = Guest::start(lab, spec(player)).map_err(|error| failed(player, &error))?;
        guests.push(Arc::new(guest));
    }
    for (player, guest) in script.players.iter().zip(&guests) {
        guest.ready().await.map_err(|error| failed(player, &error))?;
    }
    Ok(guests)
}

/// Booted at the minimum, with room up to the maximum.
fn spec(player: &Player) -> GuestSpec {
    let bounds = player.bounds;
    let number = |figure: u64| u32::try_from(figure).unwrap_or(u32::MAX);
    let above = bounds.max.mem.saturating_sub(bounds.min.mem);
    GuestSpec {
        boot_mib: number(bounds.min.mem.whole(Bytes::from_mib(1))),
        vcpus: number(bounds.min.cpu.cores_up()),
        max_vcpus: number(bounds.max.cpu.cores_up()),
        extension: Extension::VirtioMem { mib: number(above.whole(Bytes::from_mib(1))) },
        ..GuestSpec::named(player.name)
    }
}

fn start(config: &Path, log: &Path) -> Result<Child, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("cannot start windlass host: {error}"));
    let program = std::env::current_exe().map_err(failed)?.with_file_name("windlass");
    let out = File::create(log).map_err(failed)?;
    let mut command = leash::command(program);
    command.arg("host").arg("--config").arg(config);
    command.stdin(Stdio::null()).stdout(out.try_clone().map_err(failed)?).stderr(out);
    leash::spawn(command).map_err(failed)
}

/// Waits until the host serves its socket and has found all VMs.
async fn reach(folder: &Folder, host: &mut Child, vms: usize) -> Result<Client, Failure> {
    let log = || last_words(&folder.path().join("host.log"));
    let start = Instant::now();
    let mut last = String::from("nothing");
    while start.elapsed() < START {
        if let Ok(Some(status)) = host.try_wait() {
            return Err(Failure::Failed(format!("windlass host ended with {status}: {}", log())));
        }
        let client = Client::to(&folder.path().join("host.sock"));
        match client {
            Ok(client) => match client.get::<HostStatus>("/v1/state").await {
                Ok(state) if state.vms.len() == vms => return Ok(client),
                Ok(state) => last = format!("{} of {vms} VMs", state.vms.len()),
                Err(failure) => last = failure.to_string(),
            },
            Err(failure) => last = failure.to_string(),
        }
        sleep(Duration::from_millis(200)).await;
    }
    Err(Failure::Failed(format!("no answer of windlass host within {START:?}: {last}; {}", log())))
}

async fn ended(host: &mut Child) -> Option<ExitStatus> {
    let pid = i32::try_from(host.id()).ok().and_then(rustix::process::Pid::from_raw)?;
    // It may have ended already, which the wait tells.
    let _sent = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let start = Instant::now();
    while start.elapsed() < STOP {
        if let Ok(Some(status)) = host.try_wait() {
            return Some(status);
        }
        sleep(Duration::from_millis(50)).await;
    }
    None
}

/// As many free ports in a row as there are VMs. Another process may take one before
/// the host does; then the host says so.
fn free_ports(count: usize) -> Result<RangeInclusive<u16>, Failure> {
    let length = u16::try_from(count).unwrap_or(u16::MAX);
    let free = |first: &u16| {
        let ports = *first..=first.saturating_add(length - 1);
        let held: Vec<_> = ports.map(|port| TcpListener::bind(("127.0.0.1", port))).collect();
        held.iter().all(Result::is_ok)
    };
    // Runs that start together look in different places.
    let spread = u16::try_from(std::process::id() % 400).unwrap_or(0) * 20;
    let first = (PORTS.start() + spread..=*PORTS.end()).chain(PORTS).find(free);
    let first = first.ok_or_else(|| Failure::Failed("no free ports for call-backs".to_owned()))?;
    Ok(first..=first + length - 1)
}

fn make(path: &Path, work: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Failure> {
    work(path)
        .map_err(|error| Failure::CannotCreate(format!("cannot write {}: {error}", path.display())))
}

fn last_words(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
