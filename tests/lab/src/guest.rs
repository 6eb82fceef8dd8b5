//! One guest: a QEMU process, its monitors, and the load program inside.
//!
//! The process dies with the value, and with this process however that ends. Its folder is
//! removed then, but for the logs of a guest that a panic dropped: those are kept, and said.

use crate::address::Address;
use crate::group::Group;
use crate::inside::{self, Inside};
use crate::spec::{Extension, GuestSpec, INFORMANT_PORT, LOAD_PORT, VIRTIO_MEM, Wiring};
use crate::{Folder, Lab, LabError, Outside, Qmp, leash, snapshot, wait};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a guest may take to boot, on a machine that has other things to do.
const BOOT: Duration = Duration::from_secs(180);

/// How much of a log is shown in a message.
const LAST_WORDS: usize = 2000;

/// A running guest.
pub struct Guest {
    spec: GuestSpec,
    address: Address,
    folder: Folder,
    qemu: Mutex<Child>,
    pid: u32,
    lab_monitor: Qmp,
    /// It goes when QEMU has ended.
    group: Option<Group>,
}

// === impl Guest ===

impl Guest {
    /// Starts a guest, from a snapshot where that is quicker, and waits until its load
    /// program answers.
    ///
    /// # Errors
    /// Whatever went wrong, with the last words of QEMU and of the guest.
    pub async fn boot(lab: &Lab, spec: GuestSpec) -> Result<Self, LabError> {
        if let Some(path) = snapshot::of(lab, &spec).await? {
            if let Ok(guest) = Self::from_snapshot(lab, spec.clone(), &path).await {
                return Ok(guest);
            }
            // It may have been made by another QEMU; gone is what it is to be.
            let _gone = fs::remove_file(&path);
        }
        let guest = Self::start(lab, spec)?;
        guest.ready().await?;
        Ok(guest)
    }

    pub(crate) async fn from_snapshot(
        lab: &Lab,
        spec: GuestSpec,
        path: &Path,
    ) -> Result<Self, LabError> {
        let guest = Self::begin(lab, spec, Some(path))?;
        guest.wake().await?;
        Ok(guest)
    }

    /// Boots guests at the same time.
    ///
    /// # Errors
    /// The first that could not be booted.
    pub async fn boot_all(
        lab: &Lab,
        specs: impl IntoIterator<Item = GuestSpec>,
    ) -> Result<Vec<Self>, LabError> {
        let mut boots = JoinSet::new();
        let mut guests = Vec::new();
        for (place, spec) in specs.into_iter().enumerate() {
            let lab = lab.clone();
            boots.spawn(async move { (place, Self::boot(&lab, spec).await) });
        }
        for (place, guest) in boots.join_all().await {
            guests.push((place, guest?));
        }
        guests.sort_by_key(|(place, _)| *place);
        Ok(guests.into_iter().map(|(_, guest)| guest).collect())
    }

    /// Starts a guest cold; its monitors are there soon, its programs once it has booted.
    ///
    /// # Errors
    /// If QEMU or a file of its folder cannot be made.
    pub fn start(lab: &Lab, spec: GuestSpec) -> Result<Self, LabError> {
        Self::begin(lab, spec, None)
    }

    fn begin(lab: &Lab, spec: GuestSpec, snapshot: Option<&Path>) -> Result<Self, LabError> {
        let address = Address::claim(&[INFORMANT_PORT, LOAD_PORT])?;
        let file = |path: &Path, source| LabError::File { path: path.to_owned(), source };
        let kept = Folder::create().map_err(|source| file(&std::env::temp_dir(), source))?;
        let folder = kept.path();
        let image = folder.join("image");
        fs::write(&image, lab.image()?).map_err(|source| file(&image, source))?;

        let ours = folder.join("lab.sock");
        let theirs = (0..spec.monitors).map(|number| monitor(folder, number));
        let monitors: Vec<PathBuf> = theirs.chain([ours.clone()]).collect();
        let (program, arguments) = spec.command_line(&Wiring {
            qemu: lab.qemu(),
            accel: lab.accel(),
            kernel: &lab.vmlinuz(),
            image: &image,
            monitors: &monitors,
            serial: &folder.join("serial.log"),
            address: address.ip(),
            snapshot,
        });
        let log = folder.join("qemu.log");
        let errors = File::create(&log).map_err(|source| file(&log, source))?;
        let group = if spec.group { Some(Group::make()?) } else { None };
        let mut command = match &group {
            Some(group) => group.command(&program),
            None => leash::command(program),
        };
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let qemu = leash::spawn(command)
            .map_err(|source| LabError::Start { program: "qemu".to_owned(), source })?;
        let pid = qemu.id();
        let lab_monitor = Qmp::at(&ours);
        let qemu = Mutex::new(qemu);
        Ok(Self { spec, address, folder: kept, qemu, pid, lab_monitor, group })
    }

    /// Has a guest that was started from a snapshot go on, and waits until it answers. Its
    /// kernel's command line is the snapshot's until it restarts, so the load program is told what
    /// else it would know from there.
    async fn wake(&self) -> Result<(), LabError> {
        let status = async || match self.exited() {
            Some(status) => Ok(Err(self.ended(status))),
            None => self.lab_monitor.execute("query-status", json!({})).await.map(Ok),
        };
        let loaded = |seen: &Result<Value, LabError>| match seen {
            Ok(answer) => answer["status"] == "paused",
            Err(_) => true,
        };
        wait::until("guest from its snapshot", BOOT, status, loaded).await??;
        self.lab_monitor.execute("cont", json!({})).await?;
        if let Some(versions) = &self.spec.versions {
            let request = format!("informant versions {versions}");
            let tell = async || self.ask(&request).await;
            wait::until("answer of the load program", BOOT, tell, |_| true).await?;
        }
        self.ready().await.map(drop)
    }

    /// Waits until the load program answers.
    ///
    /// # Errors
    /// [`LabError::Ended`] or [`LabError::Late`], with last words.
    pub async fn ready(&self) -> Result<Inside, LabError> {
        let look = async || match self.exited() {
            Some(status) => Ok(Err(self.ended(status))),
            None => self.inside().await.map(Ok),
        };
        match wait::until("answer of the load program", BOOT, look, |_| true).await {
            Ok(seen) => seen,
            Err(LabError::Late { what, limit, seen }) => {
                let seen = format!("{seen}; serial: {}", self.serial());
                Err(LabError::Late { what, limit, seen })
            }
            Err(other) => Err(other),
        }
    }

    /// What it was to be.
    pub fn spec(&self) -> &GuestSpec {
        &self.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The monitor that is Windlass's.
    pub fn qmp(&self) -> PathBuf {
        self.monitor(0)
    }

    /// One of the monitors that are Windlass's, counted from 0.
    pub fn monitor(&self, number: usize) -> PathBuf {
        monitor(self.folder.path(), number)
    }

    /// The monitor that is the lab's.
    pub fn lab_monitor(&self) -> &Qmp {
        &self.lab_monitor
    }

    /// Where its informant listens, as seen from the host.
    pub fn informant(&self) -> SocketAddr {
        SocketAddr::from((self.address.ip(), INFORMANT_PORT))
    }

    /// Where its load program listens, as seen from the host.
    pub fn load(&self) -> SocketAddr {
        SocketAddr::from((self.address.ip(), LOAD_PORT))
    }

    /// The id of its QEMU process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The cgroup that its QEMU process has to itself, if it was to have one.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Memory of its QEMU process that is resident, in bytes; `None` once it has ended.
    pub fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }

    /// What the guest's console has said.
    pub fn serial(&self) -> String {
        last_words(&self.folder.path().join("serial.log"))
    }

    /// What the hypervisor says that it has.
    ///
    /// # Errors
    /// If the monitor does not answer.
    pub async fn outside(&self) -> Result<Outside, LabError> {
        Outside::ask(&self.lab_monitor).await
    }

    /// What its kernel says that it has.
    ///
    /// # Errors
    /// If the load program does not answer.
    pub async fn inside(&self) -> Result<Inside, LabError> {
        inside::figures(self.load()).await
    }

    /// Sends the load program one request (its crate has the list), and gives what stands
    /// behind `ok`.
    ///
    /// # Errors
    /// [`LabError::Declined`] with its words, or [`LabError::Broken`].
    pub async fn ask(&self, request: &str) -> Result<String, LabError> {
        inside::ask(self.load(), request).await
    }

    /// What the guest's kernel has logged as a warning or worse since it booted, as far as it still has it.
    ///
    /// # Errors
    /// As [`Guest::ask`], or an answer that is no list.
    pub async fn warnings(&self) -> Result<Vec<String>, LabError> {
        let list = self.ask("warnings").await?;
        serde_json::from_str(&list).map_err(|error| LabError::Broken {
            peer: "the load program".to_owned(),
            words: format!("{error} in {list}"),
        })
    }

    /// Has this many processes compute.
    ///
    /// # Errors
    /// As [`Guest::ask`].
    pub async fn cpu(&self, workers: u32) -> Result<(), LabError> {
        self.ask(&format!("cpu {workers}")).await.map(drop)
    }

    /// Has this much memory held, at once.
    ///
    /// # Errors
    /// As [`Guest::ask`].
    pub async fn memory(&self, mib: u32) -> Result<(), LabError> {
        self.ask(&format!("memory {mib}")).await.map(drop)
    }

    /// Has memory held, approached in steps.
    ///
    /// # Errors
    /// As [`Guest::ask`].
    pub async fn ramp(&self, mib: u32, step_mib: u32, every: Duration) -> Result<(), LabError> {
        let every = every.as_millis();
        self.ask(&format!("memory {mib} step {step_mib} every {every}")).await.map(drop)
    }

    /// Restarts it from inside.
    ///
    /// # Errors
    /// As [`Guest::ask`].
    pub async fn reboot(&self) -> Result<(), LabError> {
        self.ask("reboot").await.map(drop)
    }

    /// Restarts it from outside.
    ///
    /// # Errors
    /// If the monitor does not answer.
    pub async fn system_reset(&self) -> Result<(), LabError> {
        self.lab_monitor.execute("system_reset", json!({})).await.map(drop)
    }

    /// Plugs a vCPU, by the lab's monitor.
    ///
    /// # Errors
    /// [`LabError::Missing`] if all are plugged; else as the monitor says.
    pub async fn plug_vcpu(&self) -> Result<(), LabError> {
        let slots = self.lab_monitor.execute("query-hotpluggable-cpus", json!({})).await?;
        let free = slots.as_array().into_iter().flatten().rev();
        let Some(slot) = free.into_iter().find(|slot| slot.get("qom-path").is_none()) else {
            return Err(LabError::Missing {
                what: "a free vCPU".to_owned(),
                how: "max_vcpus of the guest's spec".to_owned(),
            });
        };
        let mut device = slot["props"].clone();
        device["driver"] = slot["type"].clone();
        device["id"] = Value::from(format!("lab-cpu-{}", slot["props"]["core-id"]));
        self.lab_monitor.execute("device_add", device).await.map(drop)
    }

    /// Asks the guest to have this much memory by virtio-mem, by the lab's monitor.
    ///
    /// # Errors
    /// As the monitor says.
    pub async fn request_memory(&self, bytes: u64) -> Result<(), LabError> {
        let property = json!({
            "path": format!("/machine/peripheral/{VIRTIO_MEM}"),
            "property": "requested-size",
            "value": bytes,
        });
        self.lab_monitor.execute("qom-set", property).await.map(drop)
    }

    /// Whether QEMU has ended, and how.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.qemu.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten()
    }

    /// Kills QEMU and waits for its end.
    pub fn kill(&self) {
        let mut qemu = self.qemu.lock().unwrap_or_else(PoisonError::into_inner);
        // It can only have ended already.
        let _ended = qemu.kill();
        let _status = qemu.wait();
    }

    /// Stops QEMU where it stands, as SIGSTOP does, until [`Guest::go_on`]: its monitors take
    /// connections and answer nothing.
    ///
    /// # Errors
    /// [`LabError::Ended`] if it has ended.
    pub fn halt(&self) -> Result<(), LabError> {
        self.signal("-STOP")
    }

    /// Has QEMU go on.
    ///
    /// # Errors
    /// [`LabError::Ended`] if it has ended.
    pub fn go_on(&self) -> Result<(), LabError> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), LabError> {
        if let Some(status) = self.exited() {
            return Err(self.ended(status));
        }
        let sent = Command::new("kill").args([signal, &self.pid.to_string()]).status();
        let failed = |words| LabError::Broken { peer: format!("kill {signal}"), words };
        match sent {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Whether its memory can grow by virtio-mem.
    pub fn has_virtio_mem(&self) -> bool {
        matches!(self.spec.extension, Extension::VirtioMem { .. })
    }

    pub(crate) fn ended(&self, status: ExitStatus) -> LabError {
        let qemu = last_words(&self.folder.path().join("qemu.log"));
        LabError::Ended {
            guest: self.spec.name.clone(),
            words: format!("{status}; qemu: {qemu}; serial: {}", self.serial()),
        }
    }

    /// Puts the logs where they outlive the guest, and says where.
    fn keep_logs(&self) {
        let kept = std::env::temp_dir().join(format!("wl-{}-failed", std::process::id()));
        if fs::create_dir_all(&kept).is_err() {
            return;
        }
        for log in ["serial.log", "qemu.log"] {
            let target = kept.join(format!("{}-{log}", self.spec.name));
            if fs::copy(self.folder.path().join(log), &target).is_ok() {
                eprintln!("lab: log of a guest that failed: {}", target.display());
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            self.keep_logs();
        }
    }
}

fn monitor(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("qmp{number}.sock"))
}

fn last_words(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
}
